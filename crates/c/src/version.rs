//! Versions of the interface and of the library.

use std::ffi::{CStr, c_char};

/// The number of this interface. It changes if a program that was compiled with an older header could misbehave: if a
/// function, a value or an argument is removed or means something else. Additions keep it.
pub const TRUECAST_ABI: u32 = 1;

/// Returns the `TRUECAST_ABI` of the library, for programs that load it while they run.
#[unsafe(no_mangle)]
pub extern "C" fn truecast_abi() -> u32 {
    TRUECAST_ABI
}

const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => panic!("a version has no NUL"),
};

/// Returns the version of the library, such as "0.1.0". The text is static: never free it.
#[unsafe(no_mangle)]
pub extern "C" fn truecast_version() -> *const c_char {
    VERSION.as_ptr()
}
