//! SHA-256 of files that were written, for reports (`docs/spec/checkpoints.md §10`).

use crate::files::error::Error;
use sha2::Digest;
use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes that are read at once.
const READ_BYTES: usize = 1 << 20;

/// The length of a file in bytes, and its SHA-256 in lower-case hexadecimal digits.
///
/// # Errors
/// Reading; [`Error::Interrupted`] once `stop` is set.
///
/// # Examples
/// ```
/// use std::sync::atomic::AtomicBool;
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("abc");
/// std::fs::write(&path, "abc")?;
/// let (bytes, digest) = truecast::digest::sha256(&path, &AtomicBool::new(false))?;
/// assert_eq!(bytes, 3);
/// assert_eq!(digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"); // FIPS 180-2, B.1
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn sha256(path: &Path, stop: &AtomicBool) -> Result<(u64, String), Error> {
    let failed = |source| truecast_io::Error::Io { path: path.into(), action: "reading", source };
    let mut file = File::open(path).map_err(failed)?;
    let (mut digest, mut bytes) = (Sha256::new(), 0);
    let mut buffer = vec![0; READ_BYTES];
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        match file.read(&mut buffer).map_err(failed)? {
            0 => break,
            n => {
                digest.add(&buffer[..n]);
                bytes += n as u64;
            }
        }
    }
    Ok((bytes, digest.finish()))
}

/// A digest that is taken of bytes as they come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sha256(sha2::Sha256);

impl Sha256 {
    pub fn new() -> Sha256 {
        Sha256::default()
    }

    /// More bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// In lower-case hexadecimal digits.
    pub fn finish(self) -> String {
        let mut text = String::new();
        self.0.finalize().iter().for_each(|byte| write!(text, "{byte:02x}").expect("a string takes everything"));
        text
    }
}
