//! Packing of elements that are not 1, 2, 4 or 8 bytes: the bit stream of `docs/spec/onnx.md §3.4`, and i48.
//!
//! Unpacked, an element of fewer than 8 bits is a byte, and an i48 is sign-extended to 8 bytes.

use crate::level::{Level, Task};

struct UnpackBytes<'a, const BITS: usize, const PER_BYTE: usize> {
    src: &'a [u8],
    dst: &'a mut [[u8; PER_BYTE]],
}

impl<const BITS: usize, const PER_BYTE: usize> Task for UnpackBytes<'_, BITS, PER_BYTE> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (codes, byte) in self.dst.iter_mut().zip(self.src) {
            for (i, code) in codes.iter_mut().enumerate() {
                *code = (byte >> (i * BITS)) & mask::<BITS>();
            }
        }
    }
}

struct PackBytes<'a, const BITS: usize, const PER_BYTE: usize> {
    src: &'a [[u8; PER_BYTE]],
    dst: &'a mut [u8],
}

impl<const BITS: usize, const PER_BYTE: usize> Task for PackBytes<'_, BITS, PER_BYTE> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (byte, codes) in self.dst.iter_mut().zip(self.src) {
            *byte = 0;
            for (i, code) in codes.iter().enumerate() {
                *byte |= (code & mask::<BITS>()) << (i * BITS);
            }
        }
    }
}

/// Unpacks the elements that fill whole bytes. Returns how many elements were unpacked.
fn unpack_bytes<const BITS: usize, const PER_BYTE: usize>(
    level: Level,
    src: &[u8],
    dst: &mut [u8],
    len: usize,
) -> usize {
    let (dst, _) = dst[..len].as_chunks_mut();
    let done = dst.len() * PER_BYTE;
    let task = UnpackBytes::<BITS, PER_BYTE> { src, dst };
    if const { BITS == 1 } {
        level.run(task)
    } else {
        level.run_at_most_avx2(task)
    }
    done
}

/// Packs the elements that fill whole bytes. Returns how many elements were packed.
fn pack_bytes<const BITS: usize, const PER_BYTE: usize>(level: Level, src: &[u8], dst: &mut [u8], len: usize) -> usize {
    let (src, _) = src[..len].as_chunks();
    let done = src.len() * PER_BYTE;
    let task = PackBytes::<BITS, PER_BYTE> { src, dst };
    if const { BITS == 1 } {
        level.run(task)
    } else {
        level.run_at_most_avx2(task)
    }
    done
}

const fn mask<const BITS: usize>() -> u8 {
    (1 << BITS) - 1
}

/// One byte per element.
fn unpack_bits<const BITS: usize>(src: &[u8], dst: &mut [u8], len: usize) {
    // Eight elements have BITS whole bytes.
    let (groups, rest) = dst[..len].as_chunks_mut::<8>();
    let (sources, tail) = src.as_chunks::<BITS>();
    for (group, bytes) in groups.iter_mut().zip(sources) {
        let word = little_endian(bytes);
        for (i, code) in group.iter_mut().enumerate() {
            *code = (word >> (i * BITS)) as u8 & mask::<BITS>();
        }
    }
    let tail = if rest.is_empty() { tail } else { &src[groups.len() * BITS..] };
    let word = little_endian(&tail[..(rest.len() * BITS).div_ceil(8)]);
    for (i, code) in rest.iter_mut().enumerate() {
        *code = (word >> (i * BITS)) as u8 & mask::<BITS>();
    }
}

fn pack_bits<const BITS: usize>(src: &[u8], dst: &mut [u8], len: usize) {
    let join = |codes: &[u8]| codes.iter().rev().fold(0u64, |word, code| word << BITS | (code & mask::<BITS>()) as u64);
    let (groups, rest) = src[..len].as_chunks::<8>();
    let (targets, _) = dst.as_chunks_mut::<BITS>();
    for (target, group) in targets.iter_mut().zip(groups) {
        target.copy_from_slice(&join(group).to_le_bytes()[..BITS]);
    }
    let tail_bytes = (rest.len() * BITS).div_ceil(8);
    dst[groups.len() * BITS..][..tail_bytes].copy_from_slice(&join(rest).to_le_bytes()[..tail_bytes]);
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | *byte as u64)
}

/// Unpacks `len` elements of `bits` bits.
///
/// # Panics
/// If `bits` is not 1, 2, 3, 4, 6 or 48.
pub(crate) fn unpack(level: Level, bits: u32, src: &[u8], dst: &mut [u8], len: usize) {
    let done = match bits {
        1 => unpack_bytes::<1, 8>(level, src, dst, len),
        2 => unpack_bytes::<2, 4>(level, src, dst, len),
        4 => unpack_bytes::<4, 2>(level, src, dst, len),
        _ => 0,
    };
    let (src, dst, len) = (&src[done * bits as usize / 8..], &mut dst[done..], len - done);
    match bits {
        1 => unpack_bits::<1>(src, dst, len),
        2 => unpack_bits::<2>(src, dst, len),
        3 => unpack_bits::<3>(src, dst, len),
        4 => unpack_bits::<4>(src, dst, len),
        6 => unpack_bits::<6>(src, dst, len),
        48 => {
            for (d, s) in dst.as_chunks_mut::<8>().0.iter_mut().zip(src.as_chunks::<6>().0) {
                let word = little_endian(s);
                *d = (((word << 16) as i64) >> 16).to_le_bytes();
            }
        }
        _ => unreachable!("no type is {bits} bits wide"),
    }
}

/// Packs `len` elements; the unused bits of the last byte become zero.
///
/// # Panics
/// If `bits` is not 1, 2, 3, 4, 6 or 48.
pub(crate) fn pack(level: Level, bits: u32, src: &[u8], dst: &mut [u8], len: usize) {
    let done = match bits {
        1 => pack_bytes::<1, 8>(level, src, dst, len),
        2 => pack_bytes::<2, 4>(level, src, dst, len),
        4 => pack_bytes::<4, 2>(level, src, dst, len),
        _ => 0,
    };
    let (src, dst, len) = (&src[done..], &mut dst[done * bits as usize / 8..], len - done);
    match bits {
        1 => pack_bits::<1>(src, dst, len),
        2 => pack_bits::<2>(src, dst, len),
        3 => pack_bits::<3>(src, dst, len),
        4 => pack_bits::<4>(src, dst, len),
        6 => pack_bits::<6>(src, dst, len),
        48 => {
            for (d, s) in dst.as_chunks_mut::<6>().0.iter_mut().zip(src.as_chunks::<8>().0) {
                d.copy_from_slice(&s[..6]);
            }
        }
        _ => unreachable!("no type is {bits} bits wide"),
    }
}
