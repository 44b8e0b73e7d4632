// Converts arrays in C++17. `Cast` closes what it opened and turns errors into exceptions.

#include "truecast.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

class Type {
public:
    explicit Type(const std::string &name) {
        char message[512];
        if (truecast_type(name.c_str(), &number_, message, sizeof message) != TRUECAST_STATUS_OK) {
            throw std::invalid_argument(message);
        }
    }
    std::uint32_t number() const { return number_; }
    std::size_t bytes(std::size_t count) const { return (count * truecast_type_storage_bits(number_) + 7) / 8; }

private:
    std::uint32_t number_ = 0;
};

class Cast {
public:
    Cast(const std::string &words, Type from, Type to) : to_(to) {
        char message[512];
        truecast_cast *opened = nullptr;
        if (truecast_open(words.c_str(), from.number(), to.number(), &opened, message, sizeof message) !=
            TRUECAST_STATUS_OK) {
            throw std::invalid_argument(message);
        }
        cast_.reset(opened);
    }

    // The packed results of elements whose C++ type has the bytes of the source type.
    template <typename T> std::vector<unsigned char> operator()(const std::vector<T> &src) const {
        std::vector<unsigned char> dst(to_.bytes(src.size()));
        std::size_t refused = 0;
        switch (truecast_cast_array(cast_.get(), src.data(), dst.data(), src.size(), &refused)) {
        case TRUECAST_STATUS_OK:
            return dst;
        case TRUECAST_STATUS_REFUSED:
            throw std::domain_error("element " + std::to_string(refused) + " is refused");
        default:
            throw std::logic_error("wrong arguments");
        }
    }

private:
    struct Close {
        void operator()(truecast_cast *cast) const { truecast_close(cast); }
    };
    std::unique_ptr<truecast_cast, Close> cast_;
    Type to_;
};

static void show(const char *what, const std::vector<unsigned char> &bytes) {
    std::printf("%s:", what);
    for (unsigned byte : bytes) {
        std::printf(" %02x", byte);
    }
    std::printf("\n");
}

int main() try {
    Type f32("f32");
    show("f32 to f8e4m3fn", Cast("onnx@28", f32, Type("f8e4m3fn"))(std::vector<float>{1.0f, 465.0f, -1.0f}));
    show("f32 to f4e2m1", Cast("ieee", f32, Type("f4e2m1"))(std::vector<float>{1.0f, 0.4375f, 6.0f}));
    try {
        Cast("ieee:nan=error", f32, Type("f16"))(std::vector<float>{0.0f, 0.0f / std::strtof("0", nullptr)});
    } catch (const std::domain_error &error) {
        std::printf("%s\n", error.what());
    }
    return 0;
} catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
}
