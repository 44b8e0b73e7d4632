//! Random bits for tests.

/// SplitMix64. `TRUECAST_SEED` repeats a run.
pub struct Random(u64);

impl Random {
    pub fn new(test: &str) -> Self {
        let clock = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
        let seed =
            std::env::var("TRUECAST_SEED").map_or_else(|_| clock(), |s| s.parse().expect("TRUECAST_SEED is a number"));
        println!("{test}: TRUECAST_SEED={seed}");
        Self(seed)
    }
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
