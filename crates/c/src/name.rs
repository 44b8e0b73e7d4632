//! Names for opening a conversion.

use crate::status::guarded;
use crate::text;
use std::ffi::c_char;
use truecast::request::{SPECS, versions};

/// Lists the specifications, each once for each of its versions, oldest first, as `truecast_open` takes them:
/// "onnx@28", "torch@2.15"; "ieee" alone, which has no versions.
///
/// `index` counts from 0. `name` receives the text, cut to `capacity` bytes with its NUL; it may be null if
/// `capacity` is 0.
///
/// Returns the length of the whole text in bytes, without its NUL; 0 if there are fewer names.
///
/// # Safety
/// `name` is null or valid for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn truecast_name(index: usize, name: *mut c_char, capacity: usize) -> usize {
    let found = guarded(None, || names().nth(index)).unwrap_or_default();
    // SAFETY: the caller vouches for `name` and `capacity`.
    unsafe { text::write(&found, name, capacity) };
    found.len()
}

fn names() -> impl Iterator<Item = String> {
    SPECS.iter().flat_map(|spec| {
        let versions = versions(spec);
        let alone = versions.is_empty().then(|| spec.to_string());
        alone.into_iter().chain(versions.into_iter().map(move |version| format!("{spec}@{version}")))
    })
}
