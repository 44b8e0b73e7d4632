//! Codes on their way into packed bytes ([`Layout::Packed`](truecast_core::Layout::Packed)), one after the other.

use truecast_core::DType;

/// Packed elements that still grow.
#[derive(Clone, Debug)]
pub struct Packer {
    dtype: DType,
    bytes: Vec<u8>,
    len: u64,
    /// The bits of the last byte that are used, if it is not full.
    used: u32,
}

impl Packer {
    /// No elements yet.
    ///
    /// # Panics
    /// If the type is text.
    pub fn new(dtype: DType) -> Packer {
        assert!(dtype.storage_bits().is_some(), "{dtype} has no width");
        Packer { dtype, bytes: Vec::new(), len: 0, used: 0 }
    }

    /// The bytes of so many elements of one code.
    ///
    /// # Panics
    /// If the type is text.
    pub fn splat(dtype: DType, code: u64, len: u64) -> Vec<u8> {
        let of = |len: u64| {
            let mut packer = Packer::new(dtype);
            (0..len).for_each(|_| packer.push(code));
            packer.into_bytes()
        };
        // Eight elements fill whole bytes, whatever their width.
        let mut bytes = of(8).repeat((len / 8) as usize);
        bytes.extend_from_slice(&of(len % 8));
        bytes
    }

    /// Adds an element.
    pub fn push(&mut self, code: u64) {
        let bits = self.dtype.storage_bits().expect("asked when it was made");
        let storage = self.dtype.storage_of_code(code);
        self.len += 1;
        if bits.is_multiple_of(8) {
            self.bytes.extend_from_slice(&storage.to_le_bytes()[..bits as usize / 8]);
            return;
        }
        let wide = (storage as u16) << self.used;
        match (self.used, self.bytes.last_mut()) {
            (1.., Some(last)) => *last |= wide as u8,
            _ => self.bytes.push(wide as u8),
        }
        if self.used + bits > 8 {
            self.bytes.push((wide >> 8) as u8);
        }
        self.used = (self.used + bits) % 8;
    }

    /// Elements so far.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Has no elements yet.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use truecast_core::Layout;
    use truecast_kernel::{Buffer, Elements};

    #[test]
    fn what_is_pushed_is_read_back() {
        for dtype in DType::ALL.iter().copied().filter(|dtype| dtype.is_numeric()) {
            let mask = u64::MAX >> (64 - dtype.code_bits());
            let codes: Vec<u64> = (0..50u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask).collect();
            for len in 0..codes.len() {
                let mut packer = Packer::new(dtype);
                codes[..len].iter().for_each(|&code| packer.push(code));
                let bytes = packer.into_bytes();
                assert_eq!(Some(bytes.len() as u64), dtype.bytes_in(Layout::Packed, len as u64), "{dtype}");
                let buffer: Elements<'_> = Buffer::new(dtype, len, &bytes[..]).unwrap();
                assert_eq!((0..len).map(|i| buffer.get(i)).collect::<Vec<_>>(), codes[..len], "{dtype}");
            }
        }
    }
}
