/*
 * truecast: exact conversions of tensor elements, as the specifications define them, bit for bit.
 *
 * crates/c/README.md says how to build and link; docs/interfaces.md section 9 is the contract. This file is made from
 * the sources: do not edit it.
 *
 * Every function may be called from any thread at any time, as long as no thread closes a conversion that another one
 * uses. No function throws an exception or keeps a pointer of the caller. Texts are UTF-8. A null pointer is never a
 * crash; "Safety" lists what the caller ensures.
 */


#ifndef TRUECAST_H
#define TRUECAST_H

#include <stddef.h>
#include <stdint.h>

/**
 * The number of this interface. It changes if a program that was compiled with an older header could misbehave: if a
 * function, a value or an argument is removed or means something else. Additions keep it.
 */
#define TRUECAST_ABI 1

/**
 * Any NaN is right where a NaN is.
 */
#define TRUECAST_NAN_CLASS 0

/**
 * A NaN has to have the bits that truecast gives. The names of languages, chips and libraries do not state which NaN
 * they give.
 */
#define TRUECAST_NAN_BITS 1

/**
 * Specials, and each value, midpoint and limit of the destination with its neighbors.
 */
#define TRUECAST_BOUNDARY 0

/**
 * Every code, of sources of 16 bits or fewer.
 */
#define TRUECAST_EXHAUSTIVE 1

/**
 * How a call ended. Errors are negative.
 */
enum truecast_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * Done.
     */
    TRUECAST_STATUS_OK = 0,
    /**
     * One element: the specification permits exactly this result.
     */
    TRUECAST_STATUS_DEFINED = 1,
    /**
     * One element: the specification leaves the result open. This one is documented by truecast.
     */
    TRUECAST_STATUS_OPEN = 2,
    /**
     * An element that the specification or a policy refuses, such as NaN with `nan=error`. It has no result.
     */
    TRUECAST_STATUS_REFUSED = 3,
    /**
     * An argument is wrong: a null pointer, a number without a meaning, or a size that does not fit into memory.
     */
    TRUECAST_STATUS_MISUSE = -1,
    /**
     * A name, version, setting or value is unknown.
     */
    TRUECAST_STATUS_UNKNOWN = -2,
    /**
     * The specification does not convert this pair of types, or the list would be too long.
     */
    TRUECAST_STATUS_UNSUPPORTED = -3,
    /**
     * A defect of truecast. The library stays usable.
     */
    TRUECAST_STATUS_INTERNAL = -4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum truecast_status truecast_status;
#else
typedef int32_t truecast_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * One conversion: a specification with its settings, for one pair of types. It never changes, so any number of
 * threads may use one at the same time.
 */
typedef struct truecast_cast truecast_cast;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Returns the `TRUECAST_ABI` of the library, for programs that load it while they run.
 */
uint32_t truecast_abi(void);

/**
 * Returns the version of the library, such as "0.1.0". The text is static: never free it.
 */
const char *truecast_version(void);

/**
 * Finds an element type by a name: truecast's own (`f8e4m3fn`) or another ecosystem's (`FLOAT8E4M3FN`, `bfloat16`,
 * `ov:f8e4m3`). Case does not matter. A name that means several types is an error that lists them.
 *
 * `*type` receives the number of the type. Numbers run from 0 without gaps and hold for this version of the library
 * only: store names.
 *
 * `message` receives the reason of an error, cut to `capacity` bytes with its NUL; it may be null.
 *
 * Returns `TRUECAST_STATUS_OK`; `TRUECAST_STATUS_UNKNOWN` for a name that is unknown or ambiguous;
 * `TRUECAST_STATUS_MISUSE` if `name` or `type` is null.
 *
 * # Safety
 * `name` is null or NUL-terminated, `type` is null or valid for one write, `message` for `capacity` bytes.
 */
truecast_status truecast_type(const char *name, uint32_t *type, char *message, size_t capacity);

/**
 * Returns the bits of a code of the type, the number that `truecast_cast_one` takes and gives; 0 for text, and if
 * there is no such type.
 */
uint32_t truecast_type_bits(uint32_t type);

/**
 * Returns the bits of an element of the type in an array: 8 for a truth value (bool, i1), whose code has 1, and 32
 * for tf32, whose code has 19; for other types the bits of the code. 0 for text, and if there is no such type.
 *
 * An array of `count` elements has `(count * bits + 7) / 8` bytes.
 */
uint32_t truecast_type_storage_bits(uint32_t type);

/**
 * Returns truecast's name of a type; null if there is no such type, so that counting up from 0 lists all. The text
 * is static: never free it.
 */
const char *truecast_type_name(uint32_t type);

/**
 * Lists the specifications, each once for each of its versions, oldest first, as `truecast_open` takes them:
 * "onnx@28", "torch@2.15"; "ieee" alone, which has no versions.
 *
 * `index` counts from 0. `name` receives the text, cut to `capacity` bytes with its NUL; it may be null if
 * `capacity` is 0.
 *
 * Returns the length of the whole text in bytes, without its NUL; 0 if there are fewer names.
 *
 * # Safety
 * `name` is null or valid for `capacity` bytes.
 */
size_t truecast_name(size_t index, char *name, size_t capacity);

/**
 * Opens a conversion.
 *
 * `words` names the specification as `NAME[@VERSION][:SETTING=VALUE,..]`: "torch@2.15", "onnx:saturate=false",
 * "ieee:rounding=up,overflow=saturate". Without a version the newest one applies. `truecast_name` lists names and
 * versions; the settings are those of the command, without the leading dashes.
 *
 * `from` and `to` are types (`truecast_type`): of the elements to convert, and of the results.
 *
 * `*out` receives the conversion, or null after an error. It belongs to the caller, to be closed with
 * `truecast_close`.
 *
 * `message` receives the reason of an error, cut to `capacity` bytes with its NUL; it may be null.
 *
 * Returns `TRUECAST_STATUS_OK`; `TRUECAST_STATUS_UNKNOWN` for a name, version, setting or value that does not exist;
 * `TRUECAST_STATUS_UNSUPPORTED` if the specification does not convert this pair, or one of the types is text;
 * `TRUECAST_STATUS_MISUSE` if `words` or `out` is null, or there is no such type.
 *
 * # Safety
 * `words` is null or NUL-terminated, `out` is null or valid for one write, `message` for `capacity` bytes.
 */
truecast_status truecast_open(const char *words,
                              uint32_t from,
                              uint32_t to,
                              truecast_cast **out,
                              char *message,
                              size_t capacity);

/**
 * Closes a conversion and frees its memory. Null is ignored.
 *
 * # Safety
 * `cast` is null or from `truecast_open`, was not closed before, and no other thread uses it.
 */
void truecast_close(truecast_cast *cast);

/**
 * Returns a citation of the conversion's main rule: a section of the specification, and a section of truecast's page on
 * that specification. Null if `cast` is null. The text belongs to the conversion and lives until it is closed.
 *
 * # Safety
 * `cast` is null or an open conversion.
 */
const char *truecast_clause(const truecast_cast *cast);

/**
 * Converts one element.
 *
 * `code` is the element's bits as a number, as many as `truecast_type_bits` says; higher bits are ignored, and of a
 * truth value (bool, i1) any nonzero code is true. `*result` receives the bits of the result in the same form; it
 * may be null, and is not written unless there is a result.
 *
 * Returns `TRUECAST_STATUS_DEFINED`, `TRUECAST_STATUS_OPEN` or `TRUECAST_STATUS_REFUSED`; `TRUECAST_STATUS_MISUSE`
 * if `cast` is null.
 *
 * # Safety
 * `cast` is null or an open conversion, `result` is null or valid for one write.
 */
truecast_status truecast_cast_one(const truecast_cast *cast, uint64_t code, uint64_t *result);

/**
 * Converts an array of `count` elements on the calling thread, each as `truecast_cast_one` does. Where the
 * specification leaves a result open, it is the documented one.
 *
 * Both arrays hold little-endian elements without gaps, at any alignment; elements narrower than a byte are packed
 * from the lowest bit up. An array has `(count * bits + 7) / 8` bytes, with the bits of
 * `truecast_type_storage_bits`; unused bits of the last byte are ignored in `src` and written as zero in `dst`. The
 * arrays do not overlap. With `count` 0 both may be null.
 *
 * `*refused` receives the index of the first refused element, and is written for that status only; it may be null.
 * The content of `dst` is then unspecified.
 *
 * Returns `TRUECAST_STATUS_OK` or `TRUECAST_STATUS_REFUSED`; `TRUECAST_STATUS_MISUSE` if a pointer is null or a size
 * exceeds the memory.
 *
 * # Safety
 * `cast` is null or an open conversion; `src` is valid for reads and `dst` for writes of their bytes, no other thread
 * writes to them or reads `dst` during the call; `refused` is null or valid for one write.
 */
truecast_status truecast_cast_array(const truecast_cast *cast,
                                    const void *src,
                                    void *dst,
                                    size_t count,
                                    size_t *refused);

/**
 * Says whether the specification permits a result.
 *
 * `code` is the element that was converted and `result` what some other code made of it, both as in
 * `truecast_cast_one`. `nan` is `TRUECAST_NAN_CLASS` or `TRUECAST_NAN_BITS`.
 *
 * Returns 1 if it is permitted: the only right result, or one of several where the specification leaves it open.
 * Returns 0 if not, and for every result of an element that is refused; `TRUECAST_STATUS_MISUSE` if `cast` is null
 * or `nan` is neither.
 *
 * # Safety
 * `cast` is null or an open conversion.
 */
int32_t truecast_permitted(const truecast_cast *cast, uint64_t code, uint64_t result, uint32_t nan);

/**
 * Lists the elements that a test of the conversion should try, ascending as unsigned numbers, each once. They depend
 * on the types, not on the specification.
 *
 * `extent` is `TRUECAST_BOUNDARY` or `TRUECAST_EXHAUSTIVE`; sources of 8 bits or fewer are always listed whole.
 *
 * `codes` receives the first `capacity` of them; it may be null if `capacity` is 0. `*count` receives how many there
 * are: call once with `capacity` 0, then with room for all. The list is the same in each call.
 *
 * Returns `TRUECAST_STATUS_OK`; `TRUECAST_STATUS_UNSUPPORTED` if every code of a source wider than 16 bits is
 * wanted, or the types have no values to list (c64); `TRUECAST_STATUS_MISUSE` if a pointer is null or `extent` is
 * neither.
 *
 * # Safety
 * `cast` is null or an open conversion, `codes` is valid for `capacity` writes, `count` is null or valid for one
 * write.
 */
truecast_status truecast_vectors(const truecast_cast *cast,
                                 uint32_t extent,
                                 uint64_t *codes,
                                 size_t capacity,
                                 size_t *count);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TRUECAST_H */
