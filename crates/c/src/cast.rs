//! Conversions: open by name, convert an element or an array, close.

use crate::status::{Failure, Status, guarded, told};
use crate::text;
use crate::types::of_number;
use std::ffi::{CString, c_char, c_void};
use std::num::NonZeroUsize;
use truecast::request::Request;
use truecast::{
    CastError, CastOptions, CastSpec, Caster, DType, Elements, ElementsMut, ErrorKind, Layout, Outcome, cast_one,
};

/// One conversion: a specification with its settings, for one pair of types. It never changes, so any number of
/// threads may use one at the same time.
#[derive(Debug)]
pub struct Cast {
    caster: Caster,
    clause: CString,
}

const _: () = {
    const fn shared_by_threads<T: Send + Sync>() {}
    shared_by_threads::<Cast>();
};

impl Cast {
    pub(crate) fn spec(&self) -> &CastSpec {
        self.caster.spec()
    }

    fn new(words: &str, src: DType, dst: DType) -> Result<Cast, Failure> {
        let request = Request::of_words(words).map_err(Failure::unknown)?;
        let spec = request.resolve(src, dst).map_err(|error| match error.kind() {
            ErrorKind::Usage => Failure::unknown(error),
            _ => Failure::unsupported(error),
        })?;
        if [src, dst].contains(&DType::String) {
            return Err(Failure::unsupported("the C interface does not convert text"));
        }
        let options = CastOptions { threads: NonZeroUsize::MIN, ..CastOptions::default() };
        let caster = Caster::new(&spec, &options).map_err(Failure::unsupported)?;
        let clause = CString::new(spec.clause).expect("a clause has no NUL");
        Ok(Cast { caster, clause })
    }

    /// Converts an array; returns the index of the first refused element, if any.
    ///
    /// # Safety
    /// As [`truecast_cast_array`].
    unsafe fn array(&self, src: *const c_void, dst: *mut c_void, len: usize) -> Result<Option<usize>, Failure> {
        let CastSpec { src: from, dst: to, .. } = *self.spec();
        let bytes = |dtype: DType| {
            let bytes = dtype.bytes_in(Layout::Packed, len as u64).and_then(|bytes| isize::try_from(bytes).ok());
            bytes.map(|bytes| bytes as usize).ok_or_else(|| Failure::misuse("the array does not fit into memory"))
        };
        let (src_bytes, dst_bytes) = (bytes(from)?, bytes(to)?);
        if len == 0 {
            return Ok(None);
        }
        if src.is_null() || dst.is_null() {
            return Err(Failure::misuse("an array is a null pointer"));
        }
        // SAFETY: neither is null (above); each is valid for the bytes of its elements, at most `isize::MAX` (above),
        // and no other thread changes them or reads `dst` during the call (the caller). Every byte is a `u8`.
        let (src, dst) = unsafe {
            (
                std::slice::from_raw_parts(src.cast::<u8>(), src_bytes),
                std::slice::from_raw_parts_mut(dst.cast::<u8>(), dst_bytes),
            )
        };
        let cast = |src, dst| self.caster.cast(Elements::new(from, len, src)?, ElementsMut::new(to, len, dst)?);
        match cast(src, dst) {
            Ok(_) => Ok(None),
            Err(CastError::Value { index, .. }) => Ok(Some(index)),
            Err(error) => Err(Failure::misuse(&error.to_string())),
        }
    }
}

/// Opens a conversion.
///
/// `words` names the specification as `NAME[@VERSION][:SETTING=VALUE,..]`: "torch@2.15", "onnx:saturate=false",
/// "ieee:rounding=up,overflow=saturate". Without a version the newest one applies. `truecast_name` lists names and
/// versions; the settings are those of the command, without the leading dashes.
///
/// `from` and `to` are types (`truecast_type`): of the elements to convert, and of the results.
///
/// `*out` receives the conversion, or null after an error. It belongs to the caller, to be closed with
/// `truecast_close`.
///
/// `message` receives the reason of an error, cut to `capacity` bytes with its NUL; it may be null.
///
/// Returns `TRUECAST_STATUS_OK`; `TRUECAST_STATUS_UNKNOWN` for a name, version, setting or value that does not exist;
/// `TRUECAST_STATUS_UNSUPPORTED` if the specification does not convert this pair, or one of the types is text;
/// `TRUECAST_STATUS_MISUSE` if `words` or `out` is null, or there is no such type.
///
/// # Safety
/// `words` is null or NUL-terminated, `out` is null or valid for one write, `message` for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn truecast_open(
    words: *const c_char,
    from: u32,
    to: u32,
    out: *mut *mut Cast,
    message: *mut c_char,
    capacity: usize,
) -> Status {
    let call = || {
        if out.is_null() {
            return Err(Failure::misuse("the place for the conversion is a null pointer"));
        }
        // SAFETY: not null (above) and valid for a write (the caller).
        unsafe { out.write(std::ptr::null_mut()) };
        // SAFETY: the caller's text lives until the call returns.
        let words = unsafe { text::read(words) }?;
        let (Some(src), Some(dst)) = (of_number(from), of_number(to)) else {
            return Err(Failure::misuse("there is no type of this number"));
        };
        let cast = Box::into_raw(Box::new(Cast::new(words, src, dst)?));
        // SAFETY: as above.
        unsafe { out.write(cast) };
        Ok(())
    };
    // SAFETY: the caller vouches for `message` and `capacity`.
    unsafe { told(message, capacity, call) }
}

/// Closes a conversion and frees its memory. Null is ignored.
///
/// # Safety
/// `cast` is null or from `truecast_open`, was not closed before, and no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn truecast_close(cast: *mut Cast) {
    if !cast.is_null() {
        // SAFETY: `truecast_open` made it as a box, and it has no other user (the caller).
        guarded((), || drop(unsafe { Box::from_raw(cast) }));
    }
}

/// Returns a citation of the conversion's main rule: a section of the specification, and a section of truecast's page on
/// that specification. Null if `cast` is null. The text belongs to the conversion and lives until it is closed.
///
/// # Safety
/// `cast` is null or an open conversion.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn truecast_clause(cast: *const Cast) -> *const c_char {
    // SAFETY: null or open (the caller).
    unsafe { cast.as_ref() }.map_or(std::ptr::null(), |cast| cast.clause.as_ptr())
}

/// Converts one element.
///
/// `code` is the element's bits as a number, as many as `truecast_type_bits` says; higher bits are ignored, and of a
/// truth value (bool, i1) any nonzero code is true. `*result` receives the bits of the result in the same form; it
/// may be null, and is not written unless there is a result.
///
/// Returns `TRUECAST_STATUS_DEFINED`, `TRUECAST_STATUS_OPEN` or `TRUECAST_STATUS_REFUSED`; `TRUECAST_STATUS_MISUSE`
/// if `cast` is null.
///
/// # Safety
/// `cast` is null or an open conversion, `result` is null or valid for one write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn truecast_cast_one(cast: *const Cast, code: u64, result: *mut u64) -> Status {
    // SAFETY: null or open (the caller).
    let Some(cast) = (unsafe { cast.as_ref() }) else { return Status::Misuse };
    guarded(Status::Internal, || {
        let outcome = cast_one(cast.spec(), code);
        if let Some(code) = outcome.code()
            && !result.is_null()
        {
            // SAFETY: not null (above) and valid for a write (the caller).
            unsafe { result.write(code) };
        }
        match outcome {
            Outcome::Defined(_) => Status::Defined,
            Outcome::Undefined { .. } => Status::Open,
            Outcome::Refused { .. } => Status::Refused,
        }
    })
}

/// Converts an array of `count` elements on the calling thread, each as `truecast_cast_one` does. Where the
/// specification leaves a result open, it is the documented one.
///
/// Both arrays hold little-endian elements without gaps, at any alignment; elements narrower than a byte are packed
/// from the lowest bit up. An array has `(count * bits + 7) / 8` bytes, with the bits of
/// `truecast_type_storage_bits`; unused bits of the last byte are ignored in `src` and written as zero in `dst`. The
/// arrays do not overlap. With `count` 0 both may be null.
///
/// `*refused` receives the index of the first refused element, and is written for that status only; it may be null.
/// The content of `dst` is then unspecified.
///
/// Returns `TRUECAST_STATUS_OK` or `TRUECAST_STATUS_REFUSED`; `TRUECAST_STATUS_MISUSE` if a pointer is null or a size
/// exceeds the memory.
///
/// # Safety
/// `cast` is null or an open conversion; `src` is valid for reads and `dst` for writes of their bytes, no other thread
/// writes to them or reads `dst` during the call; `refused` is null or valid for one write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn truecast_cast_array(
    cast: *const Cast,
    src: *const c_void,
    dst: *mut c_void,
    count: usize,
    refused: *mut usize,
) -> Status {
    // SAFETY: null or open (the caller).
    let Some(cast) = (unsafe { cast.as_ref() }) else { return Status::Misuse };
    // SAFETY: the caller vouches for both arrays.
    guarded(Status::Internal, || match unsafe { cast.array(src, dst, count) } {
        Ok(None) => Status::Ok,
        Ok(Some(index)) => {
            if !refused.is_null() {
                // SAFETY: not null (above) and valid for a write (the caller).
                unsafe { refused.write(index) };
            }
            Status::Refused
        }
        Err(failure) => failure.status,
    })
}
