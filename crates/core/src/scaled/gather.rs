//! Codes and scales of NVFP4 that lie in planes, put into the blocks of a GGUF file (`docs/spec/checkpoints.md §8`, §9.5):
//! what becomes of either plane, the factor beside them, and what becomes of each value.
//!
//! A block holds the same codes and scales, but zeros and scales have no sign there, and the global scale is multiplied by
//! last: `RN32(RN32(c * s) * g)` instead of `RN32(c * RN32(s * g))`.

use super::blocks::BlockType;
use super::dequantize::{effective_scale, f32_bits};
use super::layout::{Code, Coding, Global, GlobalRule, Layout, Plane, Planes};
use super::packing::Packing;
use super::part::Parts;
use super::repack::{Change, Repacking};
use crate::dtype::DType;
use crate::exact::Exact;
use core::array::from_fn;

/// What blocks are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gathering {
    /// How the global scale is combined with the first, and its bits, if there is one.
    pub global: Option<(GlobalRule, u32)>,
}

/// What becomes of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ValueChange {
    /// It is the same, to the bit.
    Same,
    /// It is a zero of the other sign.
    Unsigned,
    /// It is a neighbor among the numbers of f32: [`LAST_BITS`] of them further at most.
    Rounded,
    /// It is another.
    Lost,
}

/// Between two roundings in one order and two in the other lie fewer numbers of f32.
pub const LAST_BITS: u32 = 4;

impl ValueChange {
    /// Of two values as bits of f32.
    ///
    /// # Examples
    /// ```
    /// use truecast_core::scaled::ValueChange;
    /// let of = |a: f32, b: f32| ValueChange::of(a.to_bits(), b.to_bits());
    /// assert_eq!((of(1.0, 1.0), of(-0.0, 0.0)), (ValueChange::Same, ValueChange::Unsigned));
    /// assert_eq!((of(1.0, 1.0f32.next_down()), of(1.0, 1.000_001)), (ValueChange::Rounded, ValueChange::Lost));
    /// ```
    #[must_use]
    pub fn of(before: u32, after: u32) -> ValueChange {
        let is_number = |bits: u32| f32::from_bits(bits).is_finite();
        match () {
            () if before == after => ValueChange::Same,
            () if (before | after) << 1 == 0 => ValueChange::Unsigned,
            () if is_number(before) && is_number(after) && before.abs_diff(after) <= LAST_BITS => ValueChange::Rounded,
            () => ValueChange::Lost,
        }
    }
}

impl Gathering {
    /// Elements and bytes of a block are those of this type.
    pub const BLOCK: BlockType = BlockType::Nvfp4;
    /// Elements that share a scale.
    pub const GROUP: u64 = BlockType::Nvfp4.group();

    /// The bits of the factor, if there is one: the effective scale of the scale 1.
    #[must_use]
    pub fn factor(&self) -> Option<u32> {
        let one = Exact::Finite { neg: false, sig: 1, exp: 0, sticky: false };
        let (rule, bits) = self.global?;
        Some(f32_bits(effective_scale(rule, one, Code::Float(DType::F32).value(bits.into()))))
    }

    /// The planes of codes and scales in rows, put into blocks instead. Blocks have scales without a sign.
    #[must_use]
    pub fn in_blocks(rows: [Repacking; 2]) -> [Repacking; 2] {
        let [codes, scales] = rows.map(|how| Repacking { to: how.to.packed(Packing::Nvfp4Blocks), ..how });
        [codes, Repacking { change: Change::Magnitude, ..scales }]
    }

    /// The scale of a block, for one of f8e4m3fn, if blocks have it: no NaN, nothing below zero.
    #[must_use]
    pub fn scale(code: u8) -> Option<u8> {
        let scales = [Plane::of(DType::F8E4M3Fn); 2];
        Change::Magnitude.code(scales, code.into()).map(|code| code as u8)
    }

    /// The values of all codes under a scale as bits of f32: where they come from, and in a block.
    #[must_use]
    pub fn values(&self, scale: u8) -> [[u32; 16]; 2] {
        let planes = Planes::times(Plane::of(DType::F4E2M1), Plane::of(DType::F8E4M3Fn), [1, 16]);
        let global = self.global.map(|(rule, _)| Global { rule, block: [1, 16] });
        let before = Layout::new(1, [1, 16], Coding::Planes(Planes { global, ..planes }));
        let blocks = Coding::Blocks { block: Gathering::BLOCK, factor: global.is_some() };
        let after = Layout::new(1, [1, 64], blocks);
        let codes: [u8; 8] = from_fn(|i| (2 * i + 0x10 * (2 * i + 1)) as u8);
        let [old, new] = [self.global.map(|(_, bits)| bits), self.factor()].map(|bits| bits.unwrap_or(0).to_le_bytes());
        let (scales, mut block) = ([scale], [0; 36]);
        for i in 0..16 {
            Packing::Nvfp4Blocks.set(4, [1, 64], [0, i], &mut block, i);
        }
        Packing::Nvfp4Blocks.set(8, [1, 4], [0, 0], &mut block, (scale & 0x7f).into());
        let of_planes = Parts { codes: &codes, scales: &scales, global: &old, ..Parts::default() };
        let of_blocks = Parts { codes: &block, global: &new, ..Parts::default() };
        // Every code and every scale has a value in both.
        let value = |layout: &Layout, parts: &Parts<'_>, i| layout.value(parts, i as u64).unwrap_or(u32::MAX);
        [from_fn(|i| value(&before, &of_planes, i)), from_fn(|i| value(&after, &of_blocks, i))]
    }

    /// What becomes of the values of all codes under a scale.
    ///
    /// # Examples
    /// ```
    /// use truecast_core::scaled::{ValueChange, Gathering, GlobalRule};
    /// let how = |second: f32| Gathering { global: Some((GlobalRule::Times, second.to_bits())) };
    /// let changes = how(0.25).changes(0x3c);
    /// assert_eq!((changes[7], changes[8], changes[15]), (ValueChange::Same, ValueChange::Unsigned, ValueChange::Same));
    /// // 3 * RN32(1.375 * 0.1) is another f32 than RN32(4.125 * 0.1).
    /// assert_eq!(how(0.1).changes(0x3b)[5], ValueChange::Rounded);
    /// assert_eq!(how(0.25).changes(0x7f), [ValueChange::Lost; 16]); // NaN
    /// ```
    #[must_use]
    pub fn changes(&self, scale: u8) -> [ValueChange; 16] {
        if Gathering::scale(scale).is_none() {
            return [ValueChange::Lost; 16];
        }
        let [before, after] = self.values(scale);
        from_fn(|i| ValueChange::of(before[i], after[i]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(second: f32) -> Gathering {
        Gathering { global: Some((GlobalRule::Times, second.to_bits())) }
    }

    fn block_of(codes: &[u8; 64], scales: [u8; 4]) -> [u8; 36] {
        let mut block = [0; 36];
        for (i, scale) in (0..).zip(scales) {
            Packing::Nvfp4Blocks.set(8, [1, 4], [0, i], &mut block, scale.into());
        }
        for (i, code) in (0..).zip(codes) {
            Packing::Nvfp4Blocks.set(4, [1, 64], [0, i], &mut block, (*code).into());
        }
        block
    }

    /// §9.5: scales 38 40 48 50, data byte 0 = 21 and data byte 8 = 21: elements 0, 8, 16, 24 are 0.5, 1.0, 1.0, 2.0.
    #[test]
    fn the_vector_of_the_page() {
        let mut codes = [0; 64];
        (codes[0], codes[8], codes[16], codes[24]) = (1, 2, 1, 2);
        let block = block_of(&codes, [0x38, 0x40, 0x48, 0x50]);
        assert_eq!(block[..4], [0x38, 0x40, 0x48, 0x50]);
        let data: Vec<(usize, u8)> = block[4..].iter().copied().enumerate().filter(|(_, byte)| *byte != 0).collect();
        assert_eq!(data, [(0, 0x21), (8, 0x21)]);
        // Byte 8k + j holds elements 16k + j and 16k + j + 8.
        for at in 0..64usize {
            let mut one = [0; 64];
            one[at] = 9;
            let (k, j) = (at / 16, at % 16);
            let expected = if j < 8 { 0x09 } else { 0x90 };
            assert_eq!(block_of(&one, [0; 4])[4 + 8 * k + j % 8], expected, "{at}");
        }
    }

    /// f32 rounds as the page does, so its own products are what is expected.
    #[test]
    fn values_are_those_of_f32() {
        let e2m1 = [0.0f32, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
        let number = |code: u8| match (code >> 3 & 15, f32::from(code & 7)) {
            (0, fraction) => fraction * 2f32.powi(-9),
            (field, fraction) => (8.0 + fraction) * 2f32.powi(i32::from(field) - 10),
        };
        for second in [1.0, 0.1, 1.0 / 2688.0, 3e-39, 1e38] {
            for scale in [0x00, 0x01, 0x07, 0x08, 0x38, 0x3c, 0x5d, 0x7e] {
                let s = number(scale);
                for (rule, effective, factor) in [
                    (GlobalRule::Times, s * second, second),
                    (GlobalRule::Divide, s / second, 1.0 / second),
                    (GlobalRule::Amax, s * (second / 2688.0), second / 2688.0),
                ] {
                    let how = Gathering { global: Some((rule, second.to_bits())) };
                    assert_eq!(how.factor(), Some(factor.to_bits()));
                    let bits = |x: f32| if x.is_nan() { 0x7fc0_0000 } else { x.to_bits() };
                    let [before, after] = how.values(scale);
                    for (code, magnitude) in e2m1.into_iter().enumerate() {
                        let old = magnitude * effective;
                        assert_eq!([before[code], before[code + 8]], [bits(old), bits(-old)]);
                        let new = (2.0 * magnitude) * (s / 2.0) * factor;
                        let negative = if code == 0 { new } else { -new };
                        assert_eq!([after[code], after[code + 8]], [bits(new), bits(negative)]);
                    }
                }
            }
        }
    }

    #[test]
    fn powers_of_two_lose_signs_of_zeros_only() {
        for how in [times(0.25), times(2f32.powi(-20)), Gathering { global: None }] {
            for scale in (0..=0x7e).filter(|scale| *scale != 0) {
                let expected = from_fn(|code| if code == 8 { ValueChange::Unsigned } else { ValueChange::Same });
                assert_eq!(how.changes(scale), expected, "{scale:#x}");
            }
            // Zero times anything; minus zero, whose sign is lost.
            assert_eq!(how.changes(0x00)[7..10], [ValueChange::Same, ValueChange::Unsigned, ValueChange::Same]);
            assert_eq!(how.changes(0x80)[7..10], [ValueChange::Unsigned, ValueChange::Same, ValueChange::Unsigned]);
        }
    }

    #[test]
    fn what_is_lost() {
        for scale in [0x7f, 0xff, 0x81, 0xb8, 0xfe] {
            assert_eq!(times(0.25).changes(scale), [ValueChange::Lost; 16], "{scale:#x}");
        }
        // 2^-9 / 1e-39 is a number, 1 / 1e-39 is none.
        let divides = Gathering { global: Some((GlobalRule::Divide, 1e-39f32.to_bits())) };
        assert_eq!(divides.changes(0x01)[2], ValueChange::Lost);
        let inverse = Gathering { global: Some((GlobalRule::Divide, 2f32.powi(12).to_bits())) };
        assert_eq!((inverse.factor(), inverse.changes(0x3d)[5]), (Some(2f32.powi(-12).to_bits()), ValueChange::Same));
    }
}
