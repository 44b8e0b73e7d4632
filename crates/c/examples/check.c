/* Checks a converter from f32 to f8e4m3fn against PyTorch's results. The converter is deliberately wrong: it rounds
 * ties away from zero, where PyTorch takes the even neighbor. Exits with 1 if a result is wrong, as a test would. */

#include "truecast.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* What is tested: the bits of an f32 in, those of an f8e4m3fn out. */
static uint8_t convert(uint32_t f32) {
    uint8_t sign = (uint8_t)(f32 >> 24 & 0x80);
    uint32_t magnitude = f32 & 0x7fffffff, exponent = magnitude >> 23;
    if (magnitude > 0x7f800000) {
        return sign | 0x7f; /* NaN */
    }
    if (exponent < 116) {
        return sign; /* below half of the smallest subnormal, 2^-9 */
    }
    if (exponent > 135) {
        return sign | 0x7e; /* saturates to 448 */
    }
    uint32_t significand = (magnitude & 0x7fffff) | 0x800000;
    uint32_t dropped = exponent < 121 ? 141 - exponent : 20; /* subnormals start at 2^-6 */
    uint32_t kept = (significand + (1u << (dropped - 1))) >> dropped;
    uint32_t code = exponent < 121 ? kept : ((exponent - 121) << 3) + kept;
    return sign | (uint8_t)(code > 0x7e ? 0x7e : code);
}

static void fail(const char *what, const char *message) {
    fprintf(stderr, "%s: %s\n", what, message);
    exit(2);
}

/* The results that are permitted: one, or several where the specification leaves it open. */
static void print_permitted(const truecast_cast *cast, uint64_t code) {
    uint64_t result;
    switch (truecast_cast_one(cast, code, &result)) {
    case TRUECAST_STATUS_DEFINED:
        printf("permitted is 0x%02" PRIx64 "\n", result);
        break;
    case TRUECAST_STATUS_OPEN:
        printf("permitted are");
        for (result = 0; result < 256; result++) {
            if (truecast_permitted(cast, code, result, TRUECAST_NAN_CLASS) == 1) {
                printf(" 0x%02" PRIx64, result);
            }
        }
        printf("\n");
        break;
    default:
        printf("no result is permitted\n");
    }
}

int main(void) {
    char message[512];
    uint32_t from, to;
    truecast_cast *cast;
    if (truecast_type("f32", &from, message, sizeof message) != TRUECAST_STATUS_OK ||
        truecast_type("f8e4m3fn", &to, message, sizeof message) != TRUECAST_STATUS_OK) {
        fail("type", message);
    }
    if (truecast_open("torch@2.15", from, to, &cast, message, sizeof message) != TRUECAST_STATUS_OK) {
        fail("torch@2.15", message);
    }

    size_t count;
    truecast_vectors(cast, TRUECAST_BOUNDARY, NULL, 0, &count);
    uint64_t *codes = malloc(count * sizeof *codes);
    if (codes == NULL || truecast_vectors(cast, TRUECAST_BOUNDARY, codes, count, &count) != TRUECAST_STATUS_OK) {
        fail("vectors", "no memory");
    }
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        uint8_t result = convert((uint32_t)codes[i]);
        if (truecast_permitted(cast, codes[i], result, TRUECAST_NAN_CLASS) == 1) {
            continue;
        }
        if (wrong++ < 3) {
            printf("0x%08" PRIx64 " gives 0x%02x, ", codes[i], (unsigned)result);
            print_permitted(cast, codes[i]);
        }
    }
    printf("%zu of %zu results are wrong (%s)\n", wrong, count, truecast_clause(cast));
    free(codes);
    truecast_close(cast);
    return wrong > 0;
}
