//! Status of a call; failures and panics become a status.

use crate::text;
use std::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How a call ended. Errors are negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// One element: the specification permits exactly this result.
    Defined = 1,
    /// One element: the specification leaves the result open. This one is documented by truecast.
    Open = 2,
    /// An element that the specification or a policy refuses, such as NaN with `nan=error`. It has no result.
    Refused = 3,
    /// An argument is wrong: a null pointer, a number without a meaning, or a size that does not fit into memory.
    Misuse = -1,
    /// A name, version, setting or value is unknown.
    Unknown = -2,
    /// The specification does not convert this pair of types, or the list would be too long.
    Unsupported = -3,
    /// A defect of truecast. The library stays usable.
    Internal = -4,
}

pub(crate) struct Failure {
    pub status: Status,
    pub message: String,
}

impl Failure {
    pub fn misuse(message: &str) -> Failure {
        Failure { status: Status::Misuse, message: message.into() }
    }

    pub fn unknown(error: impl ToString) -> Failure {
        Failure { status: Status::Unknown, message: error.to_string() }
    }

    pub fn unsupported(error: impl ToString) -> Failure {
        Failure { status: Status::Unsupported, message: error.to_string() }
    }
}

#[cfg(panic = "abort")]
compile_error!("a defect would end the program that calls the library: build it with --profile library");

/// Runs a call and returns its answer, or `otherwise` if it panics.
pub(crate) fn guarded<T>(otherwise: T, call: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or(otherwise)
}

/// Runs a call, writes its error message (empty on success), and returns its status.
///
/// # Safety
/// As [`text::write`].
pub(crate) unsafe fn told(message: *mut c_char, capacity: usize, call: impl FnOnce() -> Result<(), Failure>) -> Status {
    let defect = Failure { status: Status::Internal, message: "truecast has a defect: please report this call".into() };
    let result = guarded(Err(defect), call);
    let (status, said) = match &result {
        Ok(()) => (Status::Ok, ""),
        Err(failure) => (failure.status, failure.message.as_str()),
    };
    // SAFETY: the caller vouches for `message` and `capacity`.
    unsafe { text::write(said, message, capacity) };
    status
}
