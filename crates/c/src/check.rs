//! Checks of results from other code: inputs to try, and whether a result is permitted.

use crate::cast::Cast;
use crate::status::{Status, guarded};
use truecast::CastSpec;
use truecast::permitted::{NanComparison, Verdict, check_code};
use truecast::vectors::{Extent, inputs_scaled};

/// Any NaN is right where a NaN is.
pub const TRUECAST_NAN_CLASS: u32 = 0;
/// A NaN has to have the bits that truecast gives. The names of languages, chips and libraries do not state which NaN
/// they give.
pub const TRUECAST_NAN_BITS: u32 = 1;

/// Specials, and each value, midpoint and limit of the destination with its neighbors.
pub const TRUECAST_BOUNDARY: u32 = 0;
/// Every code, of sources of 16 bits or fewer.
pub const TRUECAST_EXHAUSTIVE: u32 = 1;

/// Says whether the specification permits a result.
///
/// `code` is the element that was converted and `result` what some other code made of it, both as in
/// `truecast_cast_one`. `nan` is `TRUECAST_NAN_CLASS` or `TRUECAST_NAN_BITS`.
///
/// Returns 1 if it is permitted: the only right result, or one of several where the specification leaves it open.
/// Returns 0 if not, and for every result of an element that is refused; `TRUECAST_STATUS_MISUSE` if `cast` is null
/// or `nan` is neither.
///
/// # Safety
/// `cast` is null or an open conversion.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn truecast_permitted(cast: *const Cast, code: u64, result: u64, nan: u32) -> i32 {
    let nan = match nan {
        TRUECAST_NAN_CLASS => NanComparison::Class,
        TRUECAST_NAN_BITS => NanComparison::Bits,
        _ => return Status::Misuse as i32,
    };
    // SAFETY: null or open (the caller).
    let Some(cast) = (unsafe { cast.as_ref() }) else { return Status::Misuse as i32 };
    guarded(Status::Internal as i32, || {
        !matches!(check_code(cast.spec(), code, result, nan), Verdict::Wrong { .. }) as i32
    })
}

/// Lists the elements that a test of the conversion should try, ascending as unsigned numbers, each once. They depend
/// on the types, not on the specification.
///
/// `extent` is `TRUECAST_BOUNDARY` or `TRUECAST_EXHAUSTIVE`; sources of 8 bits or fewer are always listed whole.
///
/// `codes` receives the first `capacity` of them; it may be null if `capacity` is 0. `*count` receives how many there
/// are: call once with `capacity` 0, then with room for all. The list is the same in each call.
///
/// Returns `TRUECAST_STATUS_OK`; `TRUECAST_STATUS_UNSUPPORTED` if every code of a source wider than 16 bits is
/// wanted, or the types have no values to list (c64); `TRUECAST_STATUS_MISUSE` if a pointer is null or `extent` is
/// neither.
///
/// # Safety
/// `cast` is null or an open conversion, `codes` is valid for `capacity` writes, `count` is null or valid for one
/// write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn truecast_vectors(
    cast: *const Cast,
    extent: u32,
    codes: *mut u64,
    capacity: usize,
    count: *mut usize,
) -> Status {
    let extent = match extent {
        TRUECAST_BOUNDARY => Extent::Boundary,
        TRUECAST_EXHAUSTIVE => Extent::Exhaustive,
        _ => return Status::Misuse,
    };
    // SAFETY: null or open (the caller).
    let Some(cast) = (unsafe { cast.as_ref() }) else { return Status::Misuse };
    if count.is_null() || codes.is_null() && capacity > 0 {
        return Status::Misuse;
    }
    guarded(Status::Internal, || {
        let CastSpec { src, dst, policy, .. } = *cast.spec();
        let Ok(all) = inputs_scaled(src, dst, &[policy.scale_exponent], extent) else { return Status::Unsupported };
        let len = all.len().min(capacity);
        if len > 0 {
            // SAFETY: `codes` is not null (above) and has room for `capacity` of them (the caller); `all` is Rust's
            // own memory.
            unsafe { codes.copy_from_nonoverlapping(all.as_ptr(), len) };
        }
        // SAFETY: not null (above) and valid for a write (the caller).
        unsafe { count.write(all.len()) };
        Status::Ok
    })
}
