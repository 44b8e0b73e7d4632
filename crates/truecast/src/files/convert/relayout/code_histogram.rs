//! How often each code of a tensor stands under each scale, and what its values and those of blocks of NVFP4 have in common:
//! a tensor has few such pairs.

use truecast_core::scaled::Gathering;
use truecast_kernel::Counts;

/// Bytes of a block.
pub(crate) const BLOCK: usize = Gathering::BLOCK.bytes() as usize;
/// Bytes of two codes each that share a scale.
const OF_SCALE: usize = Gathering::GROUP as usize / 2;
/// The scales of a block.
const SCALES: usize = Gathering::BLOCK.elements() as usize / (2 * OF_SCALE);
/// What a byte can be.
const BYTES: usize = 256;

/// Two codes in a byte, under a scale.
pub(crate) struct CodeHistogram {
    seen: Vec<u64>,
}

impl CodeHistogram {
    pub fn new() -> CodeHistogram {
        CodeHistogram { seen: vec![0; BYTES * BYTES] }
    }

    pub fn clear(&mut self) {
        self.seen.fill(0);
    }

    /// Adds blocks.
    pub fn add(&mut self, blocks: &[u8]) {
        for (scale, pairs) in blocks.as_chunks::<BLOCK>().0.iter().flat_map(groups) {
            let of_scale = &mut self.seen[usize::from(scale) * BYTES..][..BYTES];
            pairs.iter().for_each(|byte| of_scale[usize::from(*byte)] += 1);
        }
    }

    /// Scales that stand there, with how often each code stands under them.
    pub fn scales(&self) -> impl Iterator<Item = (u8, [u64; 16])> {
        (0..=0xff).zip(self.seen.chunks(BYTES)).filter_map(|(scale, of_scale)| {
            let mut codes = [0; 16];
            for (byte, n) in of_scale.iter().enumerate() {
                codes[byte & 15] += n;
                codes[byte >> 4] += n;
            }
            codes.iter().any(|n| *n > 0).then_some((scale, codes))
        })
    }
}

/// The groups of a block: a scale, and its codes in pairs.
pub(crate) fn groups(block: &[u8; BLOCK]) -> impl Iterator<Item = (u8, &[u8; OF_SCALE])> {
    let (scales, pairs) = block.split_at(SCALES);
    scales.iter().copied().zip(pairs.as_chunks().0)
}

/// What a report counts of values and what became of them, as bits of f32, each so often.
pub(crate) fn counts([before, after]: &[[u32; 16]; 2], codes: &[u64; 16]) -> Counts {
    let mut counts = Counts::default();
    for ((before, after), n) in before.iter().zip(after).zip(codes).filter(|(_, n)| **n > 0) {
        let [x, y] = [before, after].map(|bits| f64::from(f32::from_bits(*bits)));
        let times = |is_so: bool| if is_so { *n } else { 0 };
        let weight = *n as f64;
        let is_exact = x == y || x.is_nan() && y.is_nan();
        let are_finite = x.is_finite() && y.is_finite();
        counts.add(&Counts {
            elements: *n,
            exact: times(is_exact),
            inexact: times(!is_exact),
            nan_in: times(x.is_nan()),
            inf_in: times(x.is_infinite()),
            zero_in: times(x == 0.0),
            nan_out: times(y.is_nan()),
            inf_out: times(y.is_infinite()),
            flushed_to_zero: times(x != 0.0 && y == 0.0),
            subnormal: times(y != 0.0 && f32::from_bits(*after).is_subnormal()),
            sign_of_zero_lost: times(y == 0.0 && x.is_sign_negative() != y.is_sign_negative()),
            max_abs_error: if are_finite { (y - x).abs() } else { 0.0 },
            max_rel_error: if are_finite && x != 0.0 { ((y - x) / x).abs() } else { 0.0 },
            finite_pairs: times(are_finite),
            noise: if are_finite { weight * (y - x) * (y - x) } else { 0.0 },
            signal: if are_finite { weight * x * x } else { 0.0 },
            image: if are_finite { weight * y * y } else { 0.0 },
            product: if are_finite { weight * x * y } else { 0.0 },
            ..Counts::default()
        });
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_counted() {
        let mut census = CodeHistogram::new();
        let codes = [[0x21; OF_SCALE], [0xf0; OF_SCALE], [0x22; OF_SCALE], [0xff; OF_SCALE]].concat();
        census.add(&[vec![0x38, 0x7f, 0x38, 0x7f], codes].concat());
        let all: Vec<_> = census.scales().collect();
        let with = |pairs: &[(usize, u64)]| {
            pairs.iter().fold([0; 16], |mut all, (code, n)| {
                all[*code] = *n;
                all
            })
        };
        assert_eq!(all, [(0x38, with(&[(1, 8), (2, 24)])), (0x7f, with(&[(0, 8), (15, 24)]))]);
        census.clear();
        assert_eq!(census.scales().count(), 0);
    }

    #[test]
    fn values_are_counted() {
        let (mut before, mut codes) = ([0u32; 16], [0; 16]);
        let mut after = before;
        let put = |[x, y]: [f32; 2], at: usize, of: &mut [[u32; 16]; 2]| {
            (of[0][at], of[1][at]) = (x.to_bits(), y.to_bits());
        };
        let mut both = [before, after];
        put([-0.0, 0.0], 0, &mut both);
        put([3.0, 3.0], 1, &mut both);
        put([-2.0, -2.5], 2, &mut both);
        [before, after] = both;
        (codes[0], codes[1], codes[2]) = (5, 7, 2);
        let found = counts(&[before, after], &codes);
        assert_eq!((found.elements, found.exact, found.inexact, found.zero_in), (14, 12, 2, 5));
        assert_eq!((found.sign_of_zero_lost, found.finite_pairs), (5, 14));
        assert_eq!((found.max_abs_error, found.max_rel_error, found.noise), (0.5, 0.25, 0.5));
        assert_eq!((found.signal, found.image, found.product), (71.0, 75.5, 73.0));
    }
}
