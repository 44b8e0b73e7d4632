//! Buffers whose size comes from a file: allocated if memory allows; otherwise an error states the size.

use std::io;

/// Allocates a zeroed buffer.
///
/// # Errors
/// [`io::ErrorKind::OutOfMemory`], with the number of bytes.
///
/// # Examples
/// ```
/// assert_eq!(truecast_io::zeros(3)?, [0; 3]);
/// assert!(truecast_io::zeros(u64::MAX).is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn zeros(bytes: u64) -> io::Result<Vec<u8>> {
    let len = checked_room(bytes)?;
    let mut made = Vec::new();
    made.try_reserve_exact(len).map_err(|_| none(bytes))?;
    made.resize(len, 0);
    Ok(made)
}

/// Number of bytes as a `usize`, after checking that this many can be allocated now. Protects code that aborts
/// without memory.
///
/// # Errors
/// Errors of [`zeros`].
pub(crate) fn checked_room(bytes: u64) -> io::Result<usize> {
    let len = usize::try_from(bytes).map_err(|_| none(bytes))?;
    Vec::<u8>::new().try_reserve_exact(len).map_err(|_| none(bytes))?;
    Ok(len)
}

fn none(bytes: u64) -> io::Error {
    io::Error::new(io::ErrorKind::OutOfMemory, format!("no memory for {bytes} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_machine_has_is_an_error() {
        assert_eq!(zeros(3).unwrap(), [0; 3]);
        for bytes in [1 << 60, u64::MAX] {
            let error = zeros(bytes).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
            assert_eq!(error.to_string(), format!("no memory for {bytes} bytes"));
        }
    }
}
