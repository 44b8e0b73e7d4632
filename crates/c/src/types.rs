//! Element types by number, an index into [`DType::ALL`].

use crate::status::{Failure, Status, guarded, told};
use crate::text;
use std::ffi::c_char;
use truecast::DType;

pub(crate) fn of_number(number: u32) -> Option<DType> {
    DType::ALL.get(number as usize).copied()
}

/// Finds an element type by a name: truecast's own (`f8e4m3fn`) or another ecosystem's (`FLOAT8E4M3FN`, `bfloat16`,
/// `ov:f8e4m3`). Case does not matter. A name that means several types is an error that lists them.
///
/// `*type` receives the number of the type. Numbers run from 0 without gaps and hold for this version of the library
/// only: store names.
///
/// `message` receives the reason of an error, cut to `capacity` bytes with its NUL; it may be null.
///
/// Returns `TRUECAST_STATUS_OK`; `TRUECAST_STATUS_UNKNOWN` for a name that is unknown or ambiguous;
/// `TRUECAST_STATUS_MISUSE` if `name` or `type` is null.
///
/// # Safety
/// `name` is null or NUL-terminated, `type` is null or valid for one write, `message` for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn truecast_type(
    name: *const c_char,
    r#type: *mut u32,
    message: *mut c_char,
    capacity: usize,
) -> Status {
    let call = || {
        // SAFETY: the caller's text lives until the call returns.
        let name = unsafe { text::read(name) }?;
        let dtype = DType::parse(name).map_err(Failure::unknown)?;
        let number = DType::ALL.iter().position(|&other| other == dtype).expect("every type has a place");
        if r#type.is_null() {
            return Err(Failure::misuse("the place for the type is a null pointer"));
        }
        // SAFETY: not null (above) and valid for a write (the caller).
        unsafe { r#type.write(number as u32) };
        Ok(())
    };
    // SAFETY: the caller vouches for `message` and `capacity`.
    unsafe { told(message, capacity, call) }
}

/// Returns the bits of a code of the type, the number that `truecast_cast_one` takes and gives; 0 for text, and if
/// there is no such type.
#[unsafe(no_mangle)]
pub extern "C" fn truecast_type_bits(r#type: u32) -> u32 {
    guarded(0, || of_number(r#type).map_or(0, DType::code_bits))
}

/// Returns the bits of an element of the type in an array: 8 for a truth value (bool, i1), whose code has 1, and 32
/// for tf32, whose code has 19; for other types the bits of the code. 0 for text, and if there is no such type.
///
/// An array of `count` elements has `(count * bits + 7) / 8` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn truecast_type_storage_bits(r#type: u32) -> u32 {
    guarded(0, || of_number(r#type).and_then(DType::storage_bits).unwrap_or(0))
}

/// Returns truecast's name of a type; null if there is no such type, so that counting up from 0 lists all. The text
/// is static: never free it.
#[unsafe(no_mangle)]
pub extern "C" fn truecast_type_name(r#type: u32) -> *const c_char {
    NAMES.get(r#type as usize).map_or(std::ptr::null(), |name| name.as_ptr().cast())
}

/// Size of a name with its NUL.
const NAME_BYTES: usize = 16;

/// Names of [`DType::ALL`], each padded with at least one NUL.
static NAMES: [[u8; NAME_BYTES]; DType::ALL.len()] = {
    let mut all = [[0; NAME_BYTES]; DType::ALL.len()];
    let mut i = 0;
    while i < all.len() {
        let name = DType::ALL[i].name().as_bytes();
        assert!(name.len() < NAME_BYTES);
        let mut at = 0;
        while at < name.len() {
            all[i][at] = name[at];
            at += 1;
        }
        i += 1;
    }
    all
};
