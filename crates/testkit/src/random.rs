//! Pseudo-random numbers for tests.

/// Seed of a test: `TRUECAST_SEED` to repeat a run, otherwise the clock. Prints the seed.
///
/// # Panics
/// If `TRUECAST_SEED` is not a number.
pub fn seed(test: &str) -> u64 {
    let clock = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    let seed =
        std::env::var("TRUECAST_SEED").map_or_else(|_| clock(), |s| s.parse().expect("TRUECAST_SEED is a number"));
    println!("{test}: TRUECAST_SEED={seed}");
    seed
}

/// Pseudo-random number below `n`, determined by `i`.
pub fn drawn(i: usize, n: usize) -> usize {
    ((i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize % n
}

/// SplitMix64 generator.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Generator with the [`seed`] of a test, which differs in every run.
    pub fn new(test: &str) -> Self {
        Self(seed(test))
    }

    /// Generator with a fixed seed.
    pub fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 random bits.
    #[allow(clippy::should_implement_trait)] // it never ends, so it is not an iterator
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Random element of a nonempty list.
    pub fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.next() as usize % list.len()]
    }

    /// Number of 1 to `bits` bits; every width has the same probability.
    pub fn up_to(&mut self, bits: u32) -> u64 {
        let width = 1 + (self.next() % u64::from(bits)) as u32;
        self.next() >> (64 - width)
    }

    /// Signed number of 1 to `bits` bits; every width has the same probability.
    pub fn signed(&mut self, bits: u32) -> i64 {
        let width = 1 + (self.next() % u64::from(bits)) as u32;
        (self.next() << (64 - width)) as i64 >> (64 - width)
    }
}
