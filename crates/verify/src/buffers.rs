//! Packing of elements, one at a time; slow and simple.
//!
//! An *element* is the stored form, right-aligned in a `u64`: a code, any byte for bool and i1, or 32 bits of f32 for
//! tf32.

use truecast_core::{DType, Layout};

/// Width of an element in bits.
///
/// # Panics
/// For text.
pub fn width(dtype: DType, layout: Layout) -> usize {
    dtype.bits_in(layout).expect("text has no elements") as usize
}

/// Packs elements; unused bits of the last byte are zero.
pub fn pack(dtype: DType, layout: Layout, elements: impl ExactSizeIterator<Item = u64>) -> Vec<u8> {
    let bits = width(dtype, layout);
    // A constant width is several times as fast, which matters in sweeps.
    match bits {
        8 => return elements.map(|element| element as u8).collect(),
        16 => return elements.flat_map(|element| (element as u16).to_le_bytes()).collect(),
        32 => return elements.flat_map(|element| (element as u32).to_le_bytes()).collect(),
        64 => return elements.flat_map(|element| element.to_le_bytes()).collect(),
        _ => {}
    }
    let mut bytes = Vec::with_capacity((elements.len() * bits).div_ceil(8));
    if bits.is_multiple_of(8) {
        elements.for_each(|element| bytes.extend_from_slice(&element.to_le_bytes()[..bits / 8]));
        return bytes;
    }
    let (mut waiting, mut n_waiting) = (0u32, 0);
    for element in elements {
        waiting |= (element as u32 & ((1 << bits) - 1)) << n_waiting;
        n_waiting += bits;
        while n_waiting >= 8 {
            bytes.push(waiting as u8);
            waiting >>= 8;
            n_waiting -= 8;
        }
    }
    if n_waiting > 0 {
        bytes.push(waiting as u8);
    }
    bytes
}

/// Element `i` of a buffer.
pub fn element(dtype: DType, layout: Layout, bytes: &[u8], i: usize) -> u64 {
    let bits = width(dtype, layout);
    (0..bits).fold(0, |element, bit| {
        let at = i * bits + bit;
        element | ((bytes[at / 8] >> (at % 8) & 1) as u64) << bit
    })
}

/// A list of inputs, and the same list packed.
#[derive(Clone, Debug)]
pub struct Source {
    pub dtype: DType,
    /// Elements, one per `u64`.
    pub elements: Vec<u64>,
    /// Packed elements.
    pub bytes: Vec<u8>,
}

impl Source {
    pub fn new(dtype: DType, elements: Vec<u64>) -> Source {
        let bytes = pack(dtype, Layout::Packed, elements.iter().copied());
        Source { dtype, elements, bytes }
    }

    /// All elements of a type of at most 16 bits.
    pub fn all(dtype: DType) -> Source {
        Source::new(dtype, (0..1 << width(dtype, Layout::Packed)).collect())
    }

    pub fn len(&self) -> usize {
        self.elements.len()
    }

    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bit stream of `docs/spec/onnx.md §3.4`, from the least significant bit.
    #[test]
    #[expect(clippy::unusual_byte_groupings, reason = "grouped by element")]
    fn elements_of_three_bits() {
        let elements = [1u64, 2, 3, 4, 5, 6, 7, 0, 1];
        let packed = pack(DType::U3, Layout::Packed, elements.into_iter());
        assert_eq!(packed, [0b11_010_001, 0b0_101_100_0, 0b000_111_11, 0b001]);
        assert!((0..9).all(|i| element(DType::U3, Layout::Packed, &packed, i) == elements[i]));
        assert_eq!(pack(DType::U3, Layout::Bytes, elements.into_iter()), [1, 2, 3, 4, 5, 6, 7, 0, 1]);
    }

    #[test]
    fn elements_of_whole_bytes() {
        let packed = pack(DType::I48, Layout::Packed, [0x0605_0403_0201u64, 0xffff_ffff_fffe].into_iter());
        assert_eq!(packed, [1, 2, 3, 4, 5, 6, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(element(DType::I48, Layout::Packed, &packed, 1), 0xffff_ffff_fffe);
        assert_eq!(Source::all(DType::F16).bytes.len(), 1 << 17);
    }
}
