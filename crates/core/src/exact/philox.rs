//! The generator of random bits: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).

/// Returns the four random words for a key and the lower 64 bits of the counter; its upper 64 bits are 0.
#[inline(always)]
#[must_use]
pub const fn philox4x32(key: u64, counter: u64) -> [u32; 4] {
    rounds([counter as u32, (counter >> 32) as u32, 0, 0], [key as u32, (key >> 32) as u32])
}

#[inline(always)]
const fn rounds(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    let mut round = 0;
    while round < 10 {
        if round > 0 {
            key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
        }
        let product0 = 0xd251_1f53 * counter[0] as u64;
        let product2 = 0xcd9e_8d57 * counter[2] as u64;
        let [high0, low0] = [(product0 >> 32) as u32, product0 as u32];
        let [high2, low2] = [(product2 >> 32) as u32, product2 as u32];
        counter = [high2 ^ counter[1] ^ key[0], low2, high0 ^ counter[3] ^ key[1], low0];
        round += 1;
    }
    counter
}

#[cfg(test)]
mod tests {
    use super::rounds;

    /// Published with the generator.
    #[test]
    fn known_answers() {
        for (counter, key, words) in [
            ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
            ([u32::MAX; 4], [u32::MAX; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
            (
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0],
                [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
            ),
        ] {
            assert_eq!(rounds(counter, key), words);
        }
    }
}
