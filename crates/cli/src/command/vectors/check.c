/* Checks results against a file of test vectors. C99, no library.
 *
 *     cc -std=c99 -o check check.c
 *     ./check VECTORS RESULTS   compares a file of results: a line for each input of VECTORS, in the same order
 *     ./check VECTORS           calls convert() below: put the conversion that you test there
 *
 * Prints every wrong line. Exit code: 0 if every result is right, 1 if any is wrong, 2 if a file cannot be read. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Takes the code of a source value, returns the code of the result. */
static uint64_t convert(uint64_t input) {
    return input;
}

typedef struct { char input[32], result[32], mark[32]; int words; unsigned long number; } Line;

static uint64_t mask, first = 1, last = 0; /* which codes are NaN: none until the file says so */

/* Reads the next line that is not a comment; words is 0 at the end of the file. */
static void next(FILE *file, Line *line, int has_nan) {
    char text[256];
    line->words = 0;
    while (line->words < 1 && fgets(text, sizeof text, file)) {
        line->number++;
        if (text[0] != '#') line->words = sscanf(text, "%31s %31s %31s", line->input, line->result, line->mark);
        else if (has_nan) sscanf(text, "# nan %" SCNx64 " %" SCNx64 " %" SCNx64, &mask, &first, &last);
    }
}

static int is_nan(uint64_t code) {
    return first <= (code & mask) && (code & mask) <= last;
}

static int is_right(const char *expected, const char *found) {
    char *end;
    uint64_t a = strtoull(expected, NULL, 16), b = strtoull(found, &end, 16);
    if (expected[0] == '-' || found[0] == '-') return expected[0] == found[0];
    if (end == found || *end) return 0; /* not a code */
    return a == b || (is_nan(a) && is_nan(b));
}

int main(int argc, char **argv) {
    FILE *vectors = argc > 1 ? fopen(argv[1], "r") : NULL, *results = argc > 2 ? fopen(argv[2], "r") : NULL;
    Line vector = {{0}, {0}, {0}, 0, 0}, result = {{0}, {0}, {0}, 0, 0};
    unsigned long lines = 0, wrong = 0;
    if (!vectors || (argc > 2 && !results)) return fprintf(stderr, "usage: check VECTORS [RESULTS]\n"), 2;
    for (next(vectors, &vector, 1); vector.words > 1; next(vectors, &vector, 1), lines++) {
        uint64_t input = strtoull(vector.input, NULL, 16);
        if (results) next(results, &result, 0);
        else if (vector.result[0] == '-') continue; /* convert() has no way to refuse a value */
        else snprintf(result.result, sizeof result.result, "%" PRIx64, convert(input));
        if (results && (result.words < 2 || strtoull(result.input, NULL, 16) != input))
            strcpy(result.result, "no result");
        else if (vector.words > 2 || is_right(vector.result, result.result)) continue;
        printf("line %lu: %s gives %s, not %s\n", vector.number, vector.input, vector.result, result.result);
        wrong++;
    }
    printf("%lu lines, %lu wrong\n", lines, wrong);
    return wrong > 0;
}
