//! Block types of GGUF files: numbers, sizes, fields, and the places of bits in fields (§9.2).

use Numbers::{Minus, Of, Signed};

/// Twice the values of E2M1; code 8 is +0 (§9.4).
pub const DOUBLED_E2M1: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// Values of the codes of IQ4_NL and IQ4_XS.
pub const IQ4_VALUES: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

#[derive(Clone, Copy)]
struct Row {
    id: u32,
    name: &'static str,
    elements: u64,
    bytes: u64,
    group: u64,
    codes: &'static [Bits],
    numbers: Numbers,
    scales: &'static [Bits],
}

/// Bits of the numbers of elements, or of groups, in a field of a block. A byte has bits of `8 / width` numbers that are
/// `distance` numbers apart, the first one in the lowest bits.
#[derive(Clone, Copy, Debug)]
pub struct Bits {
    /// First byte.
    pub at: usize,
    /// Bits of a number: 1, 2, 4 or 8.
    pub width: usize,
    /// Distance of numbers in a byte. As many bytes have bits of consecutive numbers.
    pub distance: usize,
}

impl Bits {
    #[inline(always)]
    const fn get(&self, block: &[u8], i: usize) -> u32 {
        let Bits { at, width, distance } = *self;
        let in_byte = 8 / width;
        let byte = block[at + i / (in_byte * distance) * distance + i % distance];
        byte as u32 >> (i / distance % in_byte * width) & ((1 << width) - 1)
    }

    /// Puts bits of `numbers`, from bit `from` on.
    #[inline(always)]
    fn put(&self, block: &mut [u8], numbers: &[u8], from: usize) {
        let Bits { at, width, distance } = *self;
        let in_byte = 8 / width;
        let bytes = block[at..][..numbers.len() / in_byte].chunks_exact_mut(distance);
        for (bytes, numbers) in bytes.zip(numbers.chunks_exact(in_byte * distance)) {
            for (i, byte) in bytes.iter_mut().enumerate() {
                let bits = |j| (numbers[i + j * distance] >> from & (255 >> (8 - width))) << (j * width);
                *byte = (0..in_byte).fold(0, |byte, j| byte | bits(j));
            }
        }
    }
}

/// Numbers that the codes of elements mean.
#[derive(Clone, Copy, Debug)]
pub enum Numbers {
    /// The code minus a zero point.
    Minus(u8),
    /// The code as an `i8`.
    Signed,
    /// The value with the code as its index.
    Of(&'static [i8; 16]),
}

/// Defines the types from rows: number in files; elements of a block, and of a group, which shares a scale; fields, named
/// as in ggml, with their bytes; bits of codes in fields, the lowest first; meaning of codes; bits of the groups' scales.
macro_rules! block_types {
    ($($block:ident = $id:literal, $elements:literal, $group:literal, { $($field:ident: $len:literal),* },
       [$($code:ident: $width:literal by $distance:literal),*] $numbers:expr,
       [$($scale:ident: $scale_width:literal by $scale_distance:literal),*];)*) => {
        /// Block type of a GGUF file (§9.2).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        #[allow(missing_docs)] // Names as in the files.
        #[allow(non_camel_case_types)]
        pub enum BlockType { $($block),* }

        impl BlockType {
            /// Every type, in ascending order of numbers.
            pub const ALL: [BlockType; [$($id),*].len()] = [$(BlockType::$block),*];

            #[inline(always)]
            const fn row(self) -> Row {
                match self {
                    $(BlockType::$block => Row {
                        id: $id,
                        name: stringify!($block),
                        elements: $elements,
                        bytes: 0 $(+ $len)*,
                        group: $group,
                        codes: &[$(Bits { at: offset!($block.$code), width: $width, distance: $distance }),*],
                        numbers: $numbers,
                        scales:
                            &[$(Bits { at: offset!($block.$scale), width: $scale_width, distance: $scale_distance }),*],
                    }),*
                }
            }
        }

        /// Bytes of blocks.
        #[allow(dead_code, non_camel_case_types)]
        mod stored {
            $(#[repr(C)] pub struct $block { $(pub $field: [u8; $len]),* })*
        }

        $(
            #[doc = concat!("Fields of a block of `", stringify!($block), "`.")]
            #[derive(Clone, Copy, Debug)]
            #[allow(missing_docs, non_camel_case_types)]
            pub struct $block<'a> {
                $(pub $field: &'a [u8; $len]),*
            }

            impl<'a> $block<'a> {
                /// Splits the first bytes into the fields of a block.
                ///
                /// # Panics
                /// If `bytes` is shorter than a block.
                #[must_use]
                #[inline(always)]
                pub fn of(bytes: &'a [u8]) -> $block<'a> {
                    let rest = bytes;
                    $(let ($field, rest) = rest.split_first_chunk().expect("a whole block");)*
                    let _ = rest;
                    $block { $($field),* }
                }
            }
        )*
    };
}

macro_rules! offset {
    ($block:ident.$field:ident) => {
        core::mem::offset_of!(stored::$block, $field)
    };
}

// `d`, `m` and `dmin` are f16, `m` or `dmin` after `d`.
block_types! {
    Q4_0 = 2, 32, 32, { d: 2, qs: 16 }, [qs: 4 by 16] Minus(8), [];
    Q4_1 = 3, 32, 32, { d: 2, m: 2, qs: 16 }, [qs: 4 by 16] Minus(0), [];
    Q5_0 = 6, 32, 32, { d: 2, qh: 4, qs: 16 }, [qs: 4 by 16, qh: 1 by 1] Minus(16), [];
    Q5_1 = 7, 32, 32, { d: 2, m: 2, qh: 4, qs: 16 }, [qs: 4 by 16, qh: 1 by 1] Minus(0), [];
    Q8_0 = 8, 32, 32, { d: 2, qs: 32 }, [qs: 8 by 32] Signed, [];
    Q8_1 = 9, 32, 32, { d: 2, s: 2, qs: 32 }, [qs: 8 by 32] Signed, [];
    Q2_K = 10, 256, 16, { scales: 16, qs: 64, d: 2, dmin: 2 }, [qs: 2 by 32] Minus(0), [scales: 4 by 16];
    Q3_K = 11, 256, 16, { hmask: 32, qs: 64, scales_l: 8, scales_h: 4, d: 2 },
        [qs: 2 by 32, hmask: 1 by 32] Minus(4), [scales_l: 4 by 8, scales_h: 2 by 4];
    Q4_K = 12, 256, 32, { d: 2, dmin: 2, scales: 12, qs: 128 }, [qs: 4 by 32] Minus(0), [];
    Q5_K = 13, 256, 32, { d: 2, dmin: 2, scales: 12, qh: 32, qs: 128 }, [qs: 4 by 32, qh: 1 by 32] Minus(0), [];
    Q6_K = 14, 256, 16, { ql: 128, qh: 64, scales: 16, d: 2 }, [ql: 4 by 64, qh: 2 by 32] Minus(32), [scales: 8 by 16];
    Q8_K = 15, 256, 256, { d: 4, qs: 256, bsums: 32 }, [qs: 8 by 256] Signed, [];
    IQ2_XXS = 16, 256, 32, { d: 2, qs: 64 }, [] Signed, [];
    IQ2_XS = 17, 256, 16, { d: 2, qs: 64, scales: 8 }, [] Signed, [scales: 4 by 1];
    IQ3_XXS = 18, 256, 32, { d: 2, qs: 64, scales: 32 }, [] Signed, [];
    IQ1_S = 19, 256, 32, { d: 2, qs: 32, qh: 16 }, [] Signed, [];
    IQ4_NL = 20, 32, 32, { d: 2, qs: 16 }, [qs: 4 by 16] Of(&IQ4_VALUES), [];
    IQ3_S = 21, 256, 32, { d: 2, qs: 64, qh: 8, signs: 32, scales: 4 }, [] Signed, [scales: 4 by 1];
    IQ2_S = 22, 256, 16, { d: 2, qs: 32, signs: 32, qh: 8, scales: 8 }, [] Signed, [scales: 4 by 1];
    IQ4_XS = 23, 256, 32, { d: 2, scales_h: 2, scales_l: 4, qs: 128 },
        [qs: 4 by 16] Of(&IQ4_VALUES), [scales_l: 4 by 1, scales_h: 2 by 1];
    IQ1_M = 29, 256, 16, { qs: 32, qh: 16, scales: 8 }, [] Signed, [];
    TQ1_0 = 34, 256, 256, { qs: 48, qh: 4, d: 2 }, [] Minus(1), [];
    TQ2_0 = 35, 256, 256, { qs: 64, d: 2 }, [qs: 2 by 32] Minus(1), [];
    MXFP4 = 39, 32, 32, { e: 1, qs: 16 }, [qs: 4 by 16] Of(&DOUBLED_E2M1), [];
    NVFP4 = 40, 64, 16, { d: 4, qs: 32 }, [qs: 4 by 8] Of(&DOUBLED_E2M1), [];
    Q1_0 = 41, 128, 128, { d: 2, qs: 16 }, [qs: 1 by 1] Of(&[-1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), [];
    Q2_0 = 42, 64, 64, { d: 2, qs: 16 }, [qs: 2 by 1] Minus(1), [];
}

impl BlockType {
    /// Name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// Number in files.
    #[must_use]
    pub const fn id(self) -> u32 {
        self.row().id
    }

    /// Number of elements in a block.
    #[must_use]
    pub const fn elements(self) -> u64 {
        self.row().elements
    }

    /// Number of bytes in a block.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.row().bytes
    }

    /// Number of consecutive elements that share a scale and a bias.
    #[must_use]
    pub const fn group(self) -> u64 {
        self.row().group
    }

    /// Bits of codes, the lowest first. Empty for codebooks, and for TQ1_0, which has digits to base 3.
    #[must_use]
    #[inline(always)]
    pub const fn code_bits(self) -> &'static [Bits] {
        self.row().codes
    }

    /// Number of bits of a code.
    #[must_use]
    pub fn bits(self) -> u8 {
        match (self.code_bits(), self.numbers()) {
            ([], Numbers::Signed) => 8,
            ([], _) => 2,
            (fields, _) => fields.iter().map(|bits| bits.width as u8).sum(),
        }
    }

    /// Meaning of codes.
    #[must_use]
    #[inline(always)]
    pub const fn numbers(self) -> Numbers {
        self.row().numbers
    }

    /// Whether values are `scale * number + bias`.
    #[must_use]
    pub const fn has_bias(self) -> bool {
        use BlockType::{Q2_K, Q4_1, Q4_K, Q5_1, Q5_K};
        matches!(self, Q4_1 | Q5_1 | Q2_K | Q4_K | Q5_K)
    }

    /// Offset of the f16 factor `d`, which most types begin with.
    const fn offset_of_d(self) -> usize {
        match self {
            BlockType::Q2_K => offset!(Q2_K.d),
            BlockType::Q3_K => offset!(Q3_K.d),
            BlockType::Q6_K => offset!(Q6_K.d),
            BlockType::TQ1_0 => offset!(TQ1_0.d),
            BlockType::TQ2_0 => offset!(TQ2_0.d),
            _ => 0,
        }
    }

    /// Code of the f16 factor `d`. MXFP4, NVFP4 and Q8_K have another one.
    #[must_use]
    #[inline(always)]
    pub fn d(self, block: &[u8]) -> u16 {
        match self {
            // A nibble of each word.
            BlockType::IQ1_M => {
                let words = u64::from_le_bytes(*IQ1_M::of(block).scales);
                (0..4).fold(0, |d, word| d | (words >> (16 * word + 12) & 15) << (4 * word)) as u16
            }
            _ => u16_at(&block[self.offset_of_d()..], 0),
        }
    }

    /// Code of the f16 factor after `d`: `m` or `dmin`, in types that [have a bias](BlockType::has_bias).
    #[must_use]
    #[inline(always)]
    pub fn m(self, block: &[u8]) -> u16 {
        u16_at(&block[self.offset_of_d()..], 1)
    }

    /// Puts f16 factors: `d`, and what follows.
    #[inline(always)]
    pub(super) fn put_factors(self, factors: &[u16], block: &mut [u8]) {
        for (bytes, factor) in block[self.offset_of_d()..].chunks_exact_mut(2).zip(factors) {
            bytes.copy_from_slice(&factor.to_le_bytes());
        }
    }

    /// Puts the codes of all elements.
    #[inline(always)]
    pub(super) fn put_codes(self, codes: &[u8], block: &mut [u8]) {
        put(self.row().codes, codes, block);
    }

    /// Puts the codes of the scales of all groups.
    #[inline(always)]
    pub(super) fn put_scales(self, codes: &[u8], block: &mut [u8]) {
        put(self.row().scales, codes, block);
    }

    /// Eight times the number that multiplies the factor `d` in group `g`.
    ///
    /// # Panics
    /// If `block` is shorter than [`BlockType::bytes`], or `g` is out of bounds.
    #[must_use]
    #[inline(always)]
    pub fn eighths(self, block: &[u8], g: usize) -> i32 {
        let code = || joined(self.row().scales, block, g) as i32;
        let odd = |code: i32| 2 * code + 1;
        match self {
            BlockType::Q2_K => 8 * code(),
            BlockType::Q3_K | BlockType::IQ4_XS => 8 * (code() - 32),
            BlockType::Q6_K => 8 * i32::from(code() as i8),
            BlockType::Q4_K | BlockType::Q5_K => 8 * six_bits(&block[4..], g, 0),
            BlockType::IQ2_XS | BlockType::IQ2_S => odd(code()),
            BlockType::IQ3_S => 8 * odd(code()),
            BlockType::IQ2_XXS => odd((u32_at(IQ2_XXS::of(block).qs, 2 * g + 1) >> 28) as i32),
            BlockType::IQ3_XXS => 2 * odd((u32_at(IQ3_XXS::of(block).scales, g) >> 28) as i32),
            BlockType::IQ1_S => odd((u16_at(IQ1_S::of(block).qh, g) >> 12 & 7).into()),
            BlockType::IQ1_M => odd((u16_at(IQ1_M::of(block).scales, g / 4) >> (g % 4 * 3) & 7).into()),
            _ => 8,
        }
    }

    /// Number that multiplies the factor `dmin` in group `g`.
    ///
    /// # Panics
    /// As [`BlockType::eighths`].
    #[must_use]
    #[inline(always)]
    pub fn minimum(self, block: &[u8], g: usize) -> i32 {
        match self {
            BlockType::Q2_K => joined(self.row().scales, block, 16 + g) as i32,
            _ => six_bits(&block[4..], g, 4),
        }
    }

    /// Returns the type with a number in files.
    #[must_use]
    pub fn of_id(id: u32) -> Option<BlockType> {
        BlockType::ALL.into_iter().find(|block| block.id() == id)
    }

    /// Size of a matrix in bytes; `None` if `cols` is not a whole number of blocks.
    #[must_use]
    pub fn bytes_of(self, [rows, cols]: [u64; 2]) -> Option<u64> {
        let blocks = cols.is_multiple_of(self.elements()).then(|| (cols / self.elements()).checked_mul(rows))??;
        blocks.checked_mul(self.bytes()).filter(|bytes| *bytes <= 1 << 60)
    }
}

/// Number `i`, whose bits are in several fields, the lowest first.
#[inline(always)]
pub(super) fn joined(fields: &[Bits], block: &[u8], i: usize) -> u32 {
    let (mut number, mut to) = (0, 0);
    for bits in fields {
        number |= bits.get(block, i) << to;
        to += bits.width;
    }
    number
}

#[inline(always)]
fn put(fields: &[Bits], numbers: &[u8], block: &mut [u8]) {
    let mut from = 0;
    for bits in fields {
        bits.put(block, numbers, from);
        from += bits.width;
    }
}

/// Digit of an element of TQ1_0. A byte is 256/243 of a number with five digits to base 3; the highest is the digit of
/// the first of five elements at equal distances. The last four bytes have four digits each.
///
/// # Panics
/// If `block` is shorter than a block, or `i` is out of bounds.
#[must_use]
#[inline(always)]
pub fn ternary(block: &[u8], i: usize) -> u16 {
    let (byte, digit) = match i {
        0..160 => (block[i % 32], i / 32),
        160..240 => (block[32 + i % 16], (i - 160) / 16),
        _ => (block[48 + i % 4], (i - 240) / 4),
    };
    let below = byte.wrapping_mul([1, 3, 9, 27, 81][digit]);
    (u16::from(below) * 3) >> 8
}

/// Scale (`from` 0) or minimum (`from` 4) of group `g`, 6 bits each, in the 12 bytes of Q4_K and Q5_K:
///
/// ```text
///   bytes 0 .. 3    scale 0..3 in bits 0..5    bits 4..5 of scale 4..7 in bits 6..7
///   bytes 4 .. 7    minimum 0..3               bits 4..5 of minimum 4..7
///   bytes 8 .. 11   bits 0..3 of scale 4..7 in bits 0..3, of minimum 4..7 in bits 4..7
/// ```
#[inline(always)]
fn six_bits(bytes: &[u8], g: usize, from: usize) -> i32 {
    let six = match g {
        0..4 => bytes[from + g] & 63,
        _ => bytes[4 + g] >> from & 15 | bytes[from + g - 4] >> 6 << 4,
    };
    six.into()
}

/// Scales and minima as [`six_bits`] reads them. Codes may have more than six bits.
#[inline(always)]
pub(super) fn put_six_bits(scales: [u8; 8], minima: [u8; 8], bytes: &mut [u8]) {
    for g in 0..4 {
        bytes[g] = scales[g] | scales[g + 4] >> 4 << 6;
        bytes[g + 4] = minima[g] | minima[g + 4] >> 4 << 6;
        bytes[g + 8] = scales[g + 4] & 15 | minima[g + 4] << 4;
    }
}

#[inline(always)]
pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[2 * at], bytes[2 * at + 1]])
}

#[inline(always)]
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, 2 * at)) | u32::from(u16_at(bytes, 2 * at + 1)) << 16
}
