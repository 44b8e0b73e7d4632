//! Memory that is allocated and touched once, and used by every row of a measurement.

use std::collections::TryReserveError;

/// A buffer that begins at a multiple of 2 MiB and whose pages exist: every byte was written.
#[derive(Debug)]
pub struct Pool {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

/// Alignment to a huge page, so that the system treats the buffer the same way in every run.
const ALIGNMENT: usize = 2 << 20;

impl Pool {
    /// Allocates a buffer of `len` bytes, all zero.
    ///
    /// # Errors
    /// If the memory cannot be allocated.
    pub fn new(len: usize) -> Result<Pool, TryReserveError> {
        let mut memory: Vec<u8> = Vec::new();
        memory.try_reserve_exact(len.saturating_add(ALIGNMENT))?;
        let start = memory.as_ptr().align_offset(ALIGNMENT);
        memory.resize(start + len, 0);
        Ok(Pool { memory, start, len })
    }

    /// Returns the bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.start..][..self.len]
    }

    /// Returns the bytes for writing.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..][..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn begins_at_a_huge_page() {
        for len in [0, 1, 3 << 20] {
            let mut pool = Pool::new(len).unwrap();
            assert!(pool.bytes().as_ptr().addr().is_multiple_of(ALIGNMENT));
            assert_eq!((pool.bytes().len(), pool.bytes_mut().len()), (len, len));
        }
        assert!(Pool::new(usize::MAX).is_err());
    }
}
