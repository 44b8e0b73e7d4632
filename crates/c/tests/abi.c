/* What a program compiled with an older header relies on, for TRUECAST_ABI 1. A change here needs the next number. */

#include "truecast.h"

_Static_assert(TRUECAST_ABI == 1, "the number of the interface");

_Static_assert(sizeof(truecast_status) == 4, "a status is an int32_t");
_Static_assert(TRUECAST_STATUS_OK == 0, "value");
_Static_assert(TRUECAST_STATUS_DEFINED == 1, "value");
_Static_assert(TRUECAST_STATUS_OPEN == 2, "value");
_Static_assert(TRUECAST_STATUS_REFUSED == 3, "value");
_Static_assert(TRUECAST_STATUS_MISUSE == -1, "value");
_Static_assert(TRUECAST_STATUS_UNKNOWN == -2, "value");
_Static_assert(TRUECAST_STATUS_UNSUPPORTED == -3, "value");
_Static_assert(TRUECAST_STATUS_INTERNAL == -4, "value");

_Static_assert(TRUECAST_NAN_CLASS == 0, "value");
_Static_assert(TRUECAST_NAN_BITS == 1, "value");
_Static_assert(TRUECAST_BOUNDARY == 0, "value");
_Static_assert(TRUECAST_EXHAUSTIVE == 1, "value");

typedef truecast_status status;
typedef const truecast_cast *cast;

/* Each function with its type. Volatile, so that the linker has to find it. */
static uint32_t (*volatile const f01)(void) = truecast_abi;
static const char *(*volatile const f02)(void) = truecast_version;
static status (*volatile const f03)(const char *, uint32_t *, char *, size_t) = truecast_type;
static uint32_t (*volatile const f04)(uint32_t) = truecast_type_bits;
static uint32_t (*volatile const f05)(uint32_t) = truecast_type_storage_bits;
static const char *(*volatile const f06)(uint32_t) = truecast_type_name;
static size_t (*volatile const f07)(size_t, char *, size_t) = truecast_name;
static status (*volatile const f08)(const char *, uint32_t, uint32_t, truecast_cast **, char *, size_t) = truecast_open;
static void (*volatile const f09)(truecast_cast *) = truecast_close;
static const char *(*volatile const f10)(cast) = truecast_clause;
static status (*volatile const f11)(cast, uint64_t, uint64_t *) = truecast_cast_one;
static status (*volatile const f12)(cast, const void *, void *, size_t, size_t *) = truecast_cast_array;
static int32_t (*volatile const f13)(cast, uint64_t, uint64_t, uint32_t) = truecast_permitted;
static status (*volatile const f14)(cast, uint32_t, uint64_t *, size_t, size_t *) = truecast_vectors;

int main(void) {
    int found = f01 && f02 && f03 && f04 && f05 && f06 && f07 && f08 && f09 && f10 && f11 && f12 && f13 && f14;
    return found && f01() == TRUECAST_ABI ? 0 : 1;
}
