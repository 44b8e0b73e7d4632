/* Each function with ordinary arguments, at its limits, and with wrong ones. Expectations are from docs/spec. */

#include "truecast.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

#define CHECK(condition)                                                           \
    do {                                                                           \
        if (!(condition)) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);        \
            failures++;                                                            \
        }                                                                          \
    } while (0)

static char message[512];

static uint32_t type(const char *name) {
    uint32_t number = UINT32_MAX;
    CHECK(truecast_type(name, &number, message, sizeof message) == TRUECAST_STATUS_OK);
    CHECK(message[0] == 0);
    return number;
}

static truecast_cast *opened(const char *words, const char *from, const char *to) {
    truecast_cast *cast = NULL;
    truecast_status status = truecast_open(words, type(from), type(to), &cast, message, sizeof message);
    if (status != TRUECAST_STATUS_OK) {
        fprintf(stderr, "%s, %s to %s: %s\n", words, from, to, message);
        exit(1);
    }
    return cast;
}

/* The status of truecast_open, after which there is no conversion. */
static truecast_status refusal(const char *words, uint32_t from, uint32_t to) {
    truecast_cast *cast = (truecast_cast *)message;
    truecast_status status = truecast_open(words, from, to, &cast, message, sizeof message);
    CHECK(cast == NULL);
    CHECK(message[0] != 0);
    return status;
}

static uint64_t f32(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void versions(void) {
    CHECK(truecast_abi() == TRUECAST_ABI);
    CHECK(strchr(truecast_version(), '.') != NULL);
}

static void types(void) {
    uint32_t number, count = 0;
    while (truecast_type_name(count) != NULL) {
        CHECK(type(truecast_type_name(count)) == count);
        count++;
    }
    CHECK(count >= 39);
    CHECK(truecast_type_name(UINT32_MAX) == NULL);
    CHECK(truecast_type_bits(count) == 0 && truecast_type_storage_bits(count) == 0);
    CHECK(type("FLOAT8E4M3FN") == type("f8e4m3fn") && type("ov:f8e4m3") == type("f8e4m3fn"));
    CHECK(strcmp(truecast_type_name(type("bfloat16")), "bf16") == 0);
    CHECK(truecast_type_bits(type("f6e2m3")) == 6 && truecast_type_storage_bits(type("f6e2m3")) == 6);
    CHECK(truecast_type_bits(type("bool")) == 1 && truecast_type_storage_bits(type("bool")) == 8);
    CHECK(truecast_type_bits(type("tf32")) == 19 && truecast_type_storage_bits(type("tf32")) == 32);
    CHECK(truecast_type_bits(type("string")) == 0 && truecast_type_storage_bits(type("string")) == 0);

    CHECK(truecast_type("f8e4m3", &number, message, sizeof message) == TRUECAST_STATUS_UNKNOWN);
    CHECK(strstr(message, "f8e4m3fnuz") != NULL);
    CHECK(truecast_type("f33", &number, NULL, 0) == TRUECAST_STATUS_UNKNOWN);
    CHECK(truecast_type("\xff", &number, NULL, 0) == TRUECAST_STATUS_UNKNOWN);
    CHECK(truecast_type(NULL, &number, NULL, 0) == TRUECAST_STATUS_MISUSE);
    CHECK(truecast_type("f32", NULL, NULL, 0) == TRUECAST_STATUS_MISUSE);
}

/* A message is cut to the room that there is, between characters, and always ends. */
static void messages(void) {
    uint32_t number;
    char small[12];
    memset(small, 'x', sizeof small);
    CHECK(truecast_type("f33", &number, small, 8) == TRUECAST_STATUS_UNKNOWN);
    CHECK(strcmp(small, "unknown") == 0 && small[8] == 'x');
    CHECK(truecast_type("f33", &number, small, 1) == TRUECAST_STATUS_UNKNOWN && small[0] == 0);
    small[0] = 'x';
    CHECK(truecast_type("f33", &number, small, 0) == TRUECAST_STATUS_UNKNOWN && small[0] == 'x');
    /* unknown type "\xc3\xa4": the last byte of 15 would be the first half of a letter. */
    CHECK(truecast_type("\xc3\xa4", &number, message, 16) == TRUECAST_STATUS_UNKNOWN);
    CHECK(strcmp(message, "unknown type \"") == 0);
}

static void names(void) {
    char name[64];
    size_t count = 0, seen = 0;
    for (size_t length; (length = truecast_name(count, name, sizeof name)) > 0; count++) {
        CHECK(length == strlen(name));
        seen += !strcmp(name, "torch@2.15") + !strcmp(name, "onnx@28") + !strcmp(name, "onnx@1");
        seen += !strcmp(name, "ieee");
        truecast_cast *cast;
        CHECK(truecast_open(name, type("f32"), type("f16"), &cast, NULL, 0) != TRUECAST_STATUS_UNKNOWN);
        truecast_close(cast);
    }
    CHECK(count > 40 && seen == 4);
    CHECK(truecast_name(count, name, sizeof name) == 0 && name[0] == 0);
    size_t whole = truecast_name(0, NULL, 0);
    CHECK(truecast_name(0, name, 3) == whole && strlen(name) == 2);
}

static void refusals(void) {
    uint32_t from = type("f32"), to = type("f16");
    CHECK(refusal("nobody", from, to) == TRUECAST_STATUS_UNKNOWN);
    CHECK(strstr(message, "torch") != NULL);
    CHECK(refusal("torch@0.1", from, to) == TRUECAST_STATUS_UNKNOWN);
    CHECK(refusal("onnx:rounding=sideways", from, to) == TRUECAST_STATUS_UNKNOWN);
    CHECK(refusal("onnx:saturate=perhaps", from, type("f8e5m2")) == TRUECAST_STATUS_UNKNOWN);
    CHECK(refusal("\xff", from, to) == TRUECAST_STATUS_UNKNOWN);
    CHECK(refusal("", from, to) == TRUECAST_STATUS_UNKNOWN);
    CHECK(refusal("openvino", from, type("f8e4m3fnuz")) == TRUECAST_STATUS_UNSUPPORTED);
    CHECK(refusal("onnx@13", from, type("f8e4m3fn")) == TRUECAST_STATUS_UNSUPPORTED);
    CHECK(refusal("onnx", from, type("string")) == TRUECAST_STATUS_UNSUPPORTED);
    CHECK(refusal("onnx", type("string"), type("string")) == TRUECAST_STATUS_UNSUPPORTED);
    CHECK(refusal("ieee", from, type("c64")) == TRUECAST_STATUS_UNSUPPORTED);
    CHECK(refusal(NULL, from, to) == TRUECAST_STATUS_MISUSE);
    CHECK(refusal("onnx", UINT32_MAX, to) == TRUECAST_STATUS_MISUSE);
    CHECK(refusal("onnx", from, UINT32_MAX) == TRUECAST_STATUS_MISUSE);
    CHECK(truecast_open("onnx", from, to, NULL, message, sizeof message) == TRUECAST_STATUS_MISUSE);
}

/* docs/spec/onnx.md 4.6 and 4.11, and the policies of docs/interfaces.md 2. */
static void elements(void) {
    uint64_t result = 0;
    truecast_cast *cast = opened("onnx@28", "f32", "f8e4m3fn");
    CHECK(strstr(truecast_clause(cast), "docs/spec/onnx.md") != NULL);
    CHECK(truecast_cast_one(cast, f32(1.0f), &result) == TRUECAST_STATUS_DEFINED && result == 0x38);
    CHECK(truecast_cast_one(cast, f32(465.0f), &result) == TRUECAST_STATUS_DEFINED && result == 0x7e);
    CHECK(truecast_cast_one(cast, f32(1.0f) | UINT64_C(1) << 40, &result) == TRUECAST_STATUS_DEFINED && result == 0x38);
    CHECK(truecast_cast_one(cast, f32(1.0f), NULL) == TRUECAST_STATUS_DEFINED);
    CHECK(truecast_permitted(cast, f32(465.0f), 0x7e, TRUECAST_NAN_CLASS) == 1);
    CHECK(truecast_permitted(cast, f32(465.0f), 0x7f, TRUECAST_NAN_CLASS) == 0);
    CHECK(truecast_permitted(cast, f32(NAN), 0xff, TRUECAST_NAN_CLASS) == 1);
    CHECK(truecast_permitted(cast, 0x7fc00000, 0xff, TRUECAST_NAN_BITS) == 0);
    CHECK(truecast_permitted(cast, 0x7fc00000, 0x7f, TRUECAST_NAN_BITS) == 1);
    CHECK(truecast_permitted(cast, 0, 0, 2) == TRUECAST_STATUS_MISUSE);
    truecast_close(cast);

    cast = opened("onnx:saturate=false", "f32", "f8e4m3fn");
    CHECK(truecast_cast_one(cast, f32(465.0f), &result) == TRUECAST_STATUS_DEFINED && result == 0x7f);
    truecast_close(cast);

    cast = opened("onnx", "f32", "i4"); /* A fraction is cut off, or rounded in two ways. */
    CHECK(truecast_cast_one(cast, f32(2.5f), &result) == TRUECAST_STATUS_OPEN && result == 2);
    CHECK(truecast_permitted(cast, f32(2.5f), 2, TRUECAST_NAN_CLASS) == 1);
    CHECK(truecast_permitted(cast, f32(2.5f), 3, TRUECAST_NAN_CLASS) == 1);
    CHECK(truecast_permitted(cast, f32(2.5f), 4, TRUECAST_NAN_CLASS) == 0);
    truecast_close(cast);

    cast = opened("ieee:overflow=error", "f32", "f16");
    result = 7;
    CHECK(truecast_cast_one(cast, f32(1e6f), &result) == TRUECAST_STATUS_REFUSED && result == 7);
    CHECK(truecast_permitted(cast, f32(1e6f), 0x7c00, TRUECAST_NAN_CLASS) == 0);
    truecast_close(cast);

    cast = opened("ieee", "c64", "c64"); /* Complex numbers are copied. */
    CHECK(truecast_cast_one(cast, UINT64_MAX, &result) == TRUECAST_STATUS_DEFINED && result == UINT64_MAX);
    size_t count;
    CHECK(truecast_vectors(cast, TRUECAST_BOUNDARY, NULL, 0, &count) == TRUECAST_STATUS_UNSUPPORTED);
    truecast_close(cast);

    CHECK(truecast_clause(NULL) == NULL);
    CHECK(truecast_cast_one(NULL, 0, &result) == TRUECAST_STATUS_MISUSE);
    CHECK(truecast_permitted(NULL, 0, 0, TRUECAST_NAN_CLASS) == TRUECAST_STATUS_MISUSE);
    truecast_close(NULL);
}

static void arrays(void) {
    truecast_cast *cast = opened("ieee:overflow=error", "f32", "f16");
    float src[3] = {1.0f, 2.0f, 1e6f};
    unsigned char dst[8];
    size_t refused = 9;
    memset(dst, 0xaa, sizeof dst);
    CHECK(truecast_cast_array(cast, src, dst + 1, 2, &refused) == TRUECAST_STATUS_OK && refused == 9);
    CHECK(memcmp(dst, "\xaa\x00\x3c\x00\x40\xaa", 6) == 0); /* Nothing around it is touched. */
    CHECK(truecast_cast_array(cast, src, dst, 3, &refused) == TRUECAST_STATUS_REFUSED && refused == 2);
    CHECK(truecast_cast_array(cast, src, dst, 3, NULL) == TRUECAST_STATUS_REFUSED);
    CHECK(truecast_cast_array(cast, NULL, NULL, 0, NULL) == TRUECAST_STATUS_OK);
    CHECK(truecast_cast_array(cast, NULL, dst, 1, NULL) == TRUECAST_STATUS_MISUSE);
    CHECK(truecast_cast_array(cast, src, NULL, 1, NULL) == TRUECAST_STATUS_MISUSE);
    CHECK(truecast_cast_array(cast, src, dst, SIZE_MAX, NULL) == TRUECAST_STATUS_MISUSE);
    CHECK(truecast_cast_array(NULL, src, dst, 1, NULL) == TRUECAST_STATUS_MISUSE);
    truecast_close(cast);

    cast = opened("ieee", "f32", "f4e2m1"); /* Two in a byte, the first in the low bits; the rest is zero. */
    float small[3] = {1.0f, 0.5f, 6.0f};
    memset(dst, 0xaa, sizeof dst);
    CHECK(truecast_cast_array(cast, small, dst, 3, NULL) == TRUECAST_STATUS_OK);
    CHECK(memcmp(dst, "\x12\x07\xaa", 3) == 0);
    truecast_close(cast);
}

/* Every element of an array is as truecast_cast_one gives it. */
static void vectors(void) {
    truecast_cast *cast = opened("torch@2.15", "f32", "f8e4m3fn");
    size_t count = 0, again = 0;
    CHECK(truecast_vectors(cast, TRUECAST_BOUNDARY, NULL, 0, &count) == TRUECAST_STATUS_OK && count > 1000);
    uint64_t *codes = malloc(count * sizeof *codes);
    CHECK(truecast_vectors(cast, TRUECAST_BOUNDARY, codes, 2, &again) == TRUECAST_STATUS_OK && again == count);
    CHECK(truecast_vectors(cast, TRUECAST_BOUNDARY, codes, count, &again) == TRUECAST_STATUS_OK && again == count);
    uint32_t *src = malloc(count * sizeof *src);
    unsigned char *dst = malloc(count);
    for (size_t i = 0; i < count; i++) {
        CHECK(i == 0 || codes[i - 1] < codes[i]);
        src[i] = (uint32_t)codes[i];
    }
    CHECK(truecast_cast_array(cast, src, dst, count, NULL) == TRUECAST_STATUS_OK);
    for (size_t i = 0; i < count; i++) {
        uint64_t result;
        truecast_status status = truecast_cast_one(cast, codes[i], &result);
        CHECK(status == TRUECAST_STATUS_DEFINED || status == TRUECAST_STATUS_OPEN);
        CHECK(result == dst[i]);
        CHECK(truecast_permitted(cast, codes[i], result, TRUECAST_NAN_BITS) == 1);
    }
    free(dst);
    free(src);
    free(codes);
    CHECK(truecast_vectors(cast, TRUECAST_EXHAUSTIVE, NULL, 0, &count) == TRUECAST_STATUS_UNSUPPORTED);
    CHECK(truecast_vectors(cast, 2, NULL, 0, &count) == TRUECAST_STATUS_MISUSE);
    CHECK(truecast_vectors(cast, TRUECAST_BOUNDARY, NULL, 1, &count) == TRUECAST_STATUS_MISUSE);
    CHECK(truecast_vectors(cast, TRUECAST_BOUNDARY, NULL, 0, NULL) == TRUECAST_STATUS_MISUSE);
    CHECK(truecast_vectors(NULL, TRUECAST_BOUNDARY, NULL, 0, &count) == TRUECAST_STATUS_MISUSE);
    truecast_close(cast);

    cast = opened("ieee", "bf16", "f16");
    CHECK(truecast_vectors(cast, TRUECAST_EXHAUSTIVE, NULL, 0, &count) == TRUECAST_STATUS_OK && count == 65536);
    truecast_close(cast);
}

int main(void) {
    versions();
    types();
    messages();
    names();
    refusals();
    elements();
    arrays();
    vectors();
    return failures ? 1 : 0;
}
