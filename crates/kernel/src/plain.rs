//! Passes over memory without conversion, for `bench`: the speed limit of any conversion (`docs/kernels.md §13`).
//!
//! A pass reads `k` blocks of 64 bytes, joins them by OR, and writes the result `m` times. A conversion from elements
//! of `k` units to elements of `m` units accesses memory in the same way.

use crate::level::{Level, Task};

type Block = [u8; 64];

/// Memory accesses of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plain {
    /// Whether lines are prefetched before they are read.
    pub looks_ahead: bool,
    /// Whether blocks are stored past the caches.
    pub streams: bool,
}

impl Plain {
    /// All passes of this CPU.
    pub const ALL: &[Plain] = if cfg!(target_arch = "x86_64") {
        &[
            Plain { looks_ahead: false, streams: false },
            Plain { looks_ahead: true, streams: false },
            Plain { looks_ahead: false, streams: true },
            Plain { looks_ahead: true, streams: true },
        ]
    } else {
        &[Plain { looks_ahead: false, streams: false }]
    };
}

/// Reads `k` blocks of `src` and writes `m` blocks of `dst`, repeatedly until a buffer ends. Bytes of `dst` in an
/// incomplete line may keep their values.
///
/// # Panics
/// If `k` or `m` is zero.
///
/// # Examples
/// ```
/// use truecast_kernel::{Level, plain::{Plain, pass}};
/// let src: Vec<u8> = (0..256).map(|i| i as u8).collect();
/// let mut dst = vec![0; 64];
/// pass(Level::detect(), Plain::ALL[0], (4, 1), &src, &mut dst);
/// assert!((0..64).all(|i| dst[i] == src[i] | src[64 + i] | src[128 + i] | src[192 + i]));
/// ```
pub fn pass(level: Level, how: Plain, (k, m): (usize, usize), src: &[u8], dst: &mut [u8]) {
    assert!(k > 0 && m > 0, "a pass reads and writes");
    let Plain { looks_ahead, streams } = how;
    let (src, _) = src.as_chunks();
    #[cfg(target_arch = "x86_64")]
    if streams {
        // SAFETY: any 64 bytes are a valid `Line`.
        let (_, lines, _) = unsafe { dst.align_to_mut::<crate::x86::stream::Line>() };
        of_shape(level, looks_ahead, (k, m), src, lines);
        crate::stream::fence();
        return;
    }
    let _ = streams;
    of_shape(level, looks_ahead, (k, m), src, dst.as_chunks_mut::<64>().0);
}

trait Target {
    fn write(&mut self, block: &Block);
}

impl Target for Block {
    #[inline(always)]
    fn write(&mut self, block: &Block) {
        *self = *block;
    }
}

#[cfg(target_arch = "x86_64")]
impl Target for crate::x86::stream::Line {
    #[inline(always)]
    fn write(&mut self, block: &Block) {
        self.stream(block);
    }
}

/// Frequent shapes are compile-time constants; other shapes are loops.
fn of_shape<T: Target>(level: Level, looks_ahead: bool, shape: (usize, usize), src: &[Block], dst: &mut [T]) {
    match shape {
        (1, 1) => level.run(Pass::<T, 1, 1> { looks_ahead, shape, src, dst }),
        (2, 1) => level.run(Pass::<T, 2, 1> { looks_ahead, shape, src, dst }),
        (4, 1) => level.run(Pass::<T, 4, 1> { looks_ahead, shape, src, dst }),
        (1, 2) => level.run(Pass::<T, 1, 2> { looks_ahead, shape, src, dst }),
        (1, 4) => level.run(Pass::<T, 1, 4> { looks_ahead, shape, src, dst }),
        _ => level.run(Pass::<T, 0, 0> { looks_ahead, shape, src, dst }),
    }
}

/// Pass from `K` to `M` blocks. If `K` and `M` are 0, `shape` has the numbers of blocks.
struct Pass<'a, T, const K: usize, const M: usize> {
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "only x86-64 is asked to look ahead"))]
    looks_ahead: bool,
    shape: (usize, usize),
    src: &'a [Block],
    dst: &'a mut [T],
}

impl<T: Target, const K: usize, const M: usize> Task for Pass<'_, T, K, M> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (k, m) = if K == 0 { self.shape } else { (K, M) };
        #[cfg(target_arch = "x86_64")]
        let ahead = crate::x86::ahead::Ahead::of_plain_passes();
        for (from, to) in self.src.chunks_exact(k).zip(self.dst.chunks_exact_mut(m)) {
            #[cfg(target_arch = "x86_64")]
            if self.looks_ahead {
                ahead.prefetch(from, 64 * k);
            }
            let mut joined = from[0];
            for block in &from[1..] {
                for (all, byte) in joined.iter_mut().zip(block) {
                    *all |= byte;
                }
            }
            for line in to {
                line.write(&joined);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_joined_and_repeated() {
        let src: Vec<u8> = (0..64 * 192).map(|i: u32| (i.wrapping_mul(2_654_435_761) >> 24) as u8 & 0x55).collect();
        for level in Level::available() {
            for &how in Plain::ALL {
                for (k, m) in [(1, 1), (2, 1), (4, 1), (1, 2), (1, 4), (3, 16), (64, 1), (6, 1)] {
                    let groups = src.len() / 64 / k;
                    // One extra line, because the buffer may begin inside a line.
                    let mut dst = vec![0xff; 64 * (groups * m + 1)];
                    let skipped = if how.streams { dst.as_ptr().align_offset(64) } else { 0 };
                    pass(level, how, (k, m), &src, &mut dst);
                    for (i, line) in dst[skipped..].chunks_exact(64).take(groups * m).enumerate() {
                        let read = &src[64 * k * (i / m)..][..64 * k];
                        let expected: Vec<u8> =
                            (0..64).map(|j| (0..k).fold(0, |or, b| or | read[64 * b + j])).collect();
                        assert_eq!(line, expected, "{level} {how:?} {k}:{m}, line {i}");
                    }
                }
            }
        }
    }
}
