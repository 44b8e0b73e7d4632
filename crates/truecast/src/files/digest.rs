//! Digests of files: SHA-256 for reports (`docs/spec/checkpoints.md §10`), and XXH3 for manifests, which is ten times
//! as fast.

use crate::files::error::Error;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use twox_hash::xxhash3_128::Hasher;

const READ_BYTES: usize = 1 << 20;

/// Returns the length of a file in bytes, and its SHA-256 in lower-case hexadecimal.
///
/// # Errors
/// An unreadable file; [`Error::Interrupted`] once `stop` is set.
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
    sha256_with(path, stop, |_| {})
}

/// [`sha256`], which calls `progress` with the length of each piece that it read.
pub(crate) fn sha256_with(path: &Path, stop: &AtomicBool, progress: impl Fn(u64)) -> Result<(u64, String), Error> {
    let mut digest = Sha256::new();
    let bytes = read(path, stop, |piece| {
        digest.update(piece);
        progress(piece.len() as u64);
    })?;
    Ok((bytes, digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()))
}

/// Passes the file to `see` in pieces; returns its length.
fn read(path: &Path, stop: &AtomicBool, mut see: impl FnMut(&[u8])) -> Result<u64, Error> {
    let failed = |source| truecast_io::Error::Io { path: path.into(), action: "reading", source };
    let (mut file, mut buffer, mut bytes) = (File::open(path).map_err(failed)?, vec![0; READ_BYTES], 0);
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        match file.read(&mut buffer).map_err(failed)? {
            0 => return Ok(bytes),
            n => {
                see(&buffer[..n]);
                bytes += n as u64;
            }
        }
    }
}

/// 128-bit XXH3 in lower-case hexadecimal. Detects damage, not forgery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Checksum(pub String);

impl Checksum {
    /// Checksum of a file, with its length. Calls `progress` with the number of bytes read so far.
    pub fn read(path: &Path, stop: &AtomicBool, progress: &mut dyn FnMut(u64)) -> Result<(u64, Checksum), Error> {
        let (mut sum, mut done) = (Summing::default(), 0);
        let bytes = read(path, stop, |piece| {
            sum.add(piece);
            done += piece.len() as u64;
            progress(done);
        })?;
        Ok((bytes, sum.finish()))
    }
}

#[derive(Clone, Default)]
pub(crate) struct Summing(Hasher);

impl Summing {
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    pub fn finish(self) -> Checksum {
        Checksum(format!("{:032x}", self.0.finish_128()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_do_not_depend_on_pieces() {
        assert_eq!(Summing::default().finish().0, "99aa06d3014798d86001c324468d497f");
        let bytes: Vec<u8> = (0..5000u32).map(|i| ((i * i) >> 3) as u8).collect();
        let sum = |piece: usize| {
            let mut sum = Summing::default();
            bytes.chunks(piece).for_each(|piece| sum.add(piece));
            sum.finish()
        };
        assert!([1, 7, 64, 1000].iter().all(|piece| sum(*piece) == sum(5000)));
        assert_ne!(sum(5000), Summing::default().finish());
    }
}
