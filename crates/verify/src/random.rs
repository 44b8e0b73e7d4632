//! Random streams of the checks; the printed seed repeats a run.

/// SplitMix64 generator.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Stream that depends only on seed and purpose, so that units may run in any order.
    pub fn new(seed: u64, purpose: &[u64]) -> Random {
        purpose.iter().fold(Random(seed), |mut stream, part| {
            let mixed = stream.bits() ^ part.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            Random(mixed)
        })
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Random number below `n`, which must not be 0.
    pub fn below(&mut self, n: u64) -> u64 {
        (((self.bits() >> 32) as u128 * n as u128) >> 32) as u64
    }

    pub fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }

    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            list.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}
