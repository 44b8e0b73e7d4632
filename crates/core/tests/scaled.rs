//! Definition of dequantization. Tests compare the vectors of `docs/spec/checkpoints.md`, packings, and arithmetic in
//! the machine's f32.

use truecast_core::exact::decode;
use truecast_core::format::{BF16, F16, F32};
use truecast_core::scaled::*;
use truecast_core::spec::ieee;
use truecast_core::{DType, Exact, cast_one};
use truecast_testkit::random::Random;

fn layout(rows: u64, cols: u64, planes: Planes) -> Layout {
    Layout::new(1, [rows, cols], Coding::Planes(planes))
}

fn cast(value: u32, dst: DType) -> u64 {
    cast_one(&ieee::Cast::to(dst).resolve(DType::F32).unwrap(), value.into()).code().unwrap()
}

fn f32_of(code: u32) -> Exact {
    decode(DType::F32, code.into())
}

/// §3.4.
#[test]
fn forms() {
    let rows: [(u8, u32, u32, u64, u64); 5] = [
        (0x03, 0x3BA1AAAB, 0x37F28000, 0x37F2, 0x01E5),
        (0x05, 0x369B999A, 0x33428000, 0x3342, 0x0001),
        (0x07, 0x38D9B6DC, 0x35BE8000, 0x35BE, 0x0018),
        (0x09, 0x3AA58E39, 0x37BA4000, 0x37BA, 0x0174),
        (0x0A, 0x3AEA3333, 0x38126000, 0x3812, 0x024A),
    ];
    for (code, scale, product, bf16, f16) in rows {
        let planes = Planes::times(Plane::of(DType::F8E4M3Fn), Plane::of(DType::F32), [128, 128]);
        let (codes, scales) = ([code], scale.to_le_bytes());
        let value =
            layout(1, 1, planes).value(&Parts { codes: &codes, scales: &scales, ..Parts::default() }, 0).unwrap();
        assert_eq!((value, cast(value, DType::Bf16), cast(value, DType::F16)), (product, bf16, f16), "{code:02x}");
    }
}

#[test]
fn arithmetic_is_that_of_f32() {
    let mut random = Random::seeded(7);
    let special = [0, 1, 0x007f_ffff, 0x0080_0000, 0x3f80_0000, 0x7f7f_ffff, 0x7f80_0000, 0x7fc0_0000];
    let mut number = |i: u32| {
        let bits = random.next() as u32;
        match i % 4 {
            0 => special[bits as usize % special.len()] | bits & 1 << 31,
            1 => 0x3f00_0000 + (bits & 0x81ff_ffff), // about 1
            2 => bits & 0x81ff_ffff,                 // about the smallest
            _ => bits,
        }
    };
    for i in 0..400_000u32 {
        let [a, b, c] = [number(i), number(i / 4), number(i / 16)];
        let [x, y, z] = [a, b, c].map(f32::from_bits);
        let terms = Terms { code: f32_of(a), scale: f32_of(b), global: None, bias: Some(f32_of(c)) };
        let same = |form, expected: f32| {
            let got = f32::from_bits(value_of(form, &F32, &terms));
            assert!(
                got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan(),
                "{form:?} of {a:08x} {b:08x} {c:08x}: {:08x}, not {:08x}",
                got.to_bits(),
                expected.to_bits()
            );
        };
        same(Form::Times, x * y);
        same(Form::Divide, x / y);
        same(Form::Affine, x * y + z);
        for (rule, scale) in
            [(GlobalRule::Times, y * z), (GlobalRule::Divide, y / z), (GlobalRule::Amax, y * (z / 2688.0))]
        {
            let got = f32::from_bits(value_of(
                Form::Times,
                &F32,
                &Terms { global: Some((rule, f32_of(c))), bias: None, ..terms },
            ));
            let expected = x * scale;
            assert!(
                got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan(),
                "{rule:?} {a:x} {b:x} {c:x}"
            );
        }
    }
}

/// Form A6 rounds to the type of the scales after each step (§3.2). In bf16, 3 * 85 = 255 and 255 + 0.75 = 256.
#[test]
fn affine_rounds_twice_to_the_type_of_the_scales() {
    let of = |f, scale: f32, bias: f32| {
        let terms = Terms {
            code: decode(DType::U8, 3),
            scale: f32_of(scale.to_bits()),
            global: None,
            bias: Some(f32_of(bias.to_bits())),
        };
        f32::from_bits(value_of(Form::Affine, f, &terms))
    };
    assert_eq!(of(&BF16, 85.0, 0.75), 256.0);
    assert_eq!(of(&F16, 85.0, 0.0625), 255.0); // a tie of 255 and 255.125
    assert_eq!(of(&F32, 85.0, 0.0625), 255.0625);
    // 3 * 85.5 = 256.5 rounds to 256 before 1 is added. 257 is a tie and rounds to 256.
    assert_eq!(of(&BF16, 85.5, 1.0), 256.0);
}

/// §3.6: NaN is canonical, with the sign of a NaN code. Zeros keep their sign.
#[test]
fn nan_and_zeros() {
    let value = |codes: DType, code: u8, scales: DType, scale: u32| {
        let planes = Planes::times(Plane::of(codes), Plane::of(scales), [1, 32]);
        let bytes = scale.to_le_bytes();
        let scales = &bytes[..scales.storage_bits().unwrap() as usize / 8];
        let parts = Parts { codes: &[code], scales, ..Parts::default() };
        layout(1, 1, planes).value(&parts, 0).unwrap()
    };
    let (e4m3, e2m1, f32, e8m0) = (DType::F8E4M3Fn, DType::F4E2M1, DType::F32, DType::F8E8M0);
    assert_eq!(value(e4m3, 0x7f, f32, 0x3f80_0000), 0x7fc0_0000);
    assert_eq!(value(e4m3, 0xff, f32, 0x3f80_0000), 0xffc0_0000);
    assert_eq!(value(e4m3, 0xff, f32, 0xffc0_0001), 0xffc0_0000);
    assert_eq!(value(e4m3, 0xb8, f32, 0xffc0_0001), 0x7fc0_0000); // a NaN scale: positive
    assert_eq!(value(e2m1, 0x0f, e8m0, 0xff), 0x7fc0_0000);
    assert_eq!(value(e4m3, 0x80, f32, 0x7f80_0000), 0x7fc0_0000); // -0 times Inf
    assert_eq!(value(e4m3, 0xb8, f32, 0x7f80_0000), 0xff80_0000);
    assert_eq!(value(e4m3, 0x80, f32, 0x3f80_0000), 0x8000_0000);
    assert_eq!(value(e2m1, 0x08, e8m0, 0x7f), 0x8000_0000);
    assert_eq!(value(e2m1, 0x07, e8m0, 0), 0x0140_0000); // 6 * 2^-127, §3.5
    assert_eq!(value(e2m1, 0x01, e8m0, 0), 0x0020_0000);
}

fn fields(packing: Packing, bits: u32, shape: [u64; 2], bytes: &[u8]) -> Vec<u64> {
    assert_eq!(packing.bytes(bits, shape), Some(bytes.len() as u64), "{packing:?} {bits} {shape:?}");
    let at = (0..shape[0]).flat_map(|r| (0..shape[1]).map(move |c| [r, c]));
    at.map(|at| packing.get(bits, shape, at, bytes)).collect()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

/// §3.7 to §3.9, §4.4.1, §4.4.2, §4.9.
#[test]
fn packings_of_the_page() {
    let twelve = [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3];
    assert_eq!(fields(Packing::WORDS, 3, [1, 12], &words(&[0x88FA_C688, 0x0000_0006])), twelve);
    assert_eq!(fields(Packing::Padded, 3, [1, 12], &words(&[0x08FA_C688, 0x0000_001A])), twelve);
    assert_eq!(fields(Packing::Columns { word: 32 }, 3, [12, 1], &words(&[0x88FA_C688, 0x0000_0006])), twelve);
    assert_eq!(fields(Packing::PaddedColumns, 3, [12, 1], &words(&[0x08FA_C688, 0x0000_001A])), twelve);
    assert_eq!(fields(Packing::WORDS, 4, [1, 8], &words(&[0x7654_3210])), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(fields(Packing::Padded, 4, [1, 8], &words(&[0x7654_3210])), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(fields(Packing::Awq, 4, [1, 8], &words(&[0x7654_3210])), [0, 4, 1, 5, 2, 6, 3, 7]);
    assert_eq!(fields(Packing::AwqColumns, 4, [8, 1], &words(&[0x7654_3210])), [0, 4, 1, 5, 2, 6, 3, 7]);
    assert_eq!(fields(Packing::BYTES, 6, [1, 4], &[0x81, 0x30, 0x10]), [1, 2, 3, 4]);
    assert_eq!(fields(Packing::BYTES, 4, [1, 4], &[0x21, 0x43]), [1, 2, 3, 4]);
    assert_eq!(fields(Packing::HighFirst, 4, [1, 4], &[0x12, 0x34]), [1, 2, 3, 4]);
    // Rows of ModelOpt's INT4: byte (i, k) holds rows 2i and 2i + 1.
    assert_eq!(fields(Packing::Columns { word: 8 }, 4, [2, 2], &[0x31, 0x42]), [1, 2, 3, 4]);
    // BitNet: field i of byte row r is row i * M/4 + r.
    assert_eq!(fields(Packing::Planes, 2, [8, 1], &[0b11_10_01_00, 0b00_01_10_11]), [0, 3, 1, 2, 2, 1, 3, 0]);
    // Rows start at a byte or word.
    assert_eq!(fields(Packing::BYTES, 3, [2, 3], &[0b1000_1000, 0, 0b0101_0001, 1]), [0, 1, 2, 1, 2, 5]);
}

/// §3.8: the byte of [r, c] is ((r / 128) nc + c / 4) 512 + (r % 32) 16 + ((r % 128) / 32) 4 + c % 4.
#[test]
fn swizzled_scales() {
    let shape = [130, 6];
    let mut bytes = vec![0u8; 256 * 8];
    assert_eq!(Packing::Swizzled.bytes(8, shape), Some(256 * 8));
    for (at, place) in
        [([0, 0], 0), ([1, 0], 16), ([32, 0], 4), ([0, 3], 3), ([0, 4], 512), ([129, 5], 1024 + 512 + 17)]
    {
        bytes[place] = 0xa5;
        assert_eq!(Packing::Swizzled.get(8, shape, at, &bytes), 0xa5, "{at:?}");
        Packing::Swizzled.set(8, shape, at, &mut bytes, 0);
        assert_eq!(bytes[place], 0);
    }
}

#[test]
fn fields_do_not_overlap() {
    let widths = [1..=8, 1..=8, 4..=4, 1..=8, 4..=4, 1..=8, 1..=8, 4..=4, 4..=4, 2..=2, 8..=8];
    for (packing, widths) in Packing::ALL.into_iter().zip(widths) {
        for bits in widths {
            for shape in [[8, 8], [16, 24], [128, 16], [136, 40]] {
                let n = packing.bytes(bits, shape).unwrap_or_else(|| panic!("{packing:?} {bits} {shape:?}"));
                let mut used = vec![false; n as usize * 8];
                for at in (0..shape[0]).flat_map(|r| (0..shape[1]).map(move |c| [r, c])) {
                    for i in 0..bits {
                        let bit = packing.bit(bits, shape, at, i) as usize;
                        assert!(!std::mem::replace(&mut used[bit], true), "{packing:?} {bits} {shape:?} {at:?} {i}");
                    }
                }
            }
        }
    }
}

/// Form A4 with zero points on the grid, in GPTQ's first format (§4.10). The stored number is z - 1, and 2^b - 1 wraps
/// to 0. The matrix is transposed, and has an index of row groups.
#[test]
fn gptq() {
    let planes = Planes {
        zero: Zero::Grid { plane: Plane { code: Code::unsigned(4), packing: Packing::WORDS }, plus: 1 },
        group: Group::OfRow,
        ..Planes::times(
            Plane { code: Code::unsigned(4), packing: Packing::Columns { word: 32 } },
            Plane::of(DType::F16),
            [8, 1],
        )
    };
    let layout = Layout { transposed: true, ..layout(16, 2, planes) };
    // Column 0 has codes 0..15, column 1 the reverse. Group 0 has zero points 8 and 0, group 1 has 1 and 1.
    let codes = words(&[0x7654_3210, 0x89AB_CDEF, 0xFEDC_BA98, 0x0123_4567]);
    let zeros = words(&[0xF7, 0x00]);
    let scales: Vec<u8> = [0x3c00u16, 0x4000, 0x3800, 0xbc00].iter().flat_map(|s| s.to_le_bytes()).collect();
    let index = words(&[0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]);
    let parts = Parts { codes: &codes, zeros: &zeros, scales: &scales, index: &index, ..Parts::default() };
    layout.check_parts(&parts).unwrap();
    assert_eq!(layout.out(), [2, 16]);
    for k in 0..16 {
        let (q, r) = (k as f32, 15.0 - k as f32);
        let expected = if k % 2 == 0 { [q - 8.0, r * 2.0] } else { [(q - 1.0) * 0.5, 1.0 - r] };
        let got = [layout.value(&parts, k).unwrap(), layout.value(&parts, 16 + k).unwrap()].map(f32::from_bits);
        assert_eq!(got, expected, "{k}");
    }
    let index = words(&[0, 1, 0, 1, 0, 1, 2, 1, 0, 1, 0, 1, 0, 1, 0, 1]);
    let wrong = layout.value(&Parts { index: &index, ..parts }, 6);
    assert_eq!(wrong, Err(ScaledError::Index { index: 6, group: 2, groups: 2 }));
}

/// §4.11: (code - 1) / scale; code 3 is excluded.
#[test]
fn bitnet() {
    let codes = Plane { code: Code::unsigned(2), packing: Packing::Planes };
    let planes = Planes {
        zero: Zero::Constant(1),
        form: Form::Divide,
        refused: Some(3),
        ..Planes::times(codes, Plane::of(DType::Bf16), [4, 1])
    };
    let layout = layout(4, 1, planes);
    let parts = Parts { codes: &[0b11_10_01_00], scales: &0x4040u16.to_le_bytes(), ..Parts::default() };
    let value = |i| layout.value(&parts, i).map(f32::from_bits);
    assert_eq!([value(0), value(1), value(2)], [Ok(-1.0 / 3.0), Ok(0.0), Ok(1.0 / 3.0)]);
    assert_eq!(value(3), Err(ScaledError::Code { index: 3, code: 3 }));
}

/// Incomplete blocks at edges, several matrices, padding rows and columns.
#[test]
fn grids_and_matrices() {
    let planes = Planes::times(Plane::of(DType::F8E4M3Fn), Plane::of(DType::F32), [2, 3]);
    let layout = Layout { kept: [3, 4], ..Layout::new(2, [3, 5], Coding::Planes(planes)) };
    let codes = [0x38; 30]; // 1.0
    let scales: Vec<u8> = (1..=8u32).flat_map(|s| (s as f32).to_le_bytes()).collect();
    let parts = Parts { codes: &codes, scales: &scales, ..Parts::default() };
    layout.check_parts(&parts).unwrap();
    let values: Vec<f32> = (0..layout.elements()).map(|i| f32::from_bits(layout.value(&parts, i).unwrap())).collect();
    let first = [1., 1., 1., 2., 1., 1., 1., 2., 3., 3., 3., 4.];
    assert_eq!(values[..12], first);
    assert_eq!(values[12..], first.map(|v| v + 4.0));
}

#[test]
fn layouts_that_are_none() {
    let good = Planes::times(Plane::of(DType::F8E4M3Fn), Plane::of(DType::F32), [128, 128]);
    let wrong = |planes: Planes| assert!(layout(4, 8, planes).check().is_err(), "{planes:?}");
    layout(4, 8, good).check().unwrap();
    wrong(Planes { scales: Scales { block: [0, 1], ..good.scales }, ..good });
    wrong(Planes { zero: Zero::Constant(8), ..good });
    wrong(Planes { codes: Plane::of(DType::F16), ..good });
    wrong(Planes { codes: Plane::of(DType::F8E4M3Fn).packed(Packing::Awq), ..good });
    wrong(Planes { codes: Plane { code: Code::unsigned(0), packing: Packing::WORDS }, ..good });
    wrong(Planes { codes: Plane::of(DType::U8), ..good });
    wrong(Planes { scales: Scales { plane: Plane::of(DType::U8), ..good.scales }, ..good });
    wrong(Planes { global: Some(Global { rule: GlobalRule::Times, block: [1, 0] }), ..good });
    let huge = Layout::new(u64::MAX, [u64::MAX, u64::MAX], Coding::Planes(good));
    assert!(huge.check().is_err());
    let blocks = Coding::Blocks { block: BlockType::Q8_0, factor: false };
    assert!(Layout::new(1, [1, 31], blocks).check().is_err());
    assert_eq!(Layout::new(1, [2, 64], blocks).part_bytes(Part::Codes), Ok(Some(4 * 34)));
    let size = layout(4, 8, good).check_parts(&Parts { codes: &[0; 32], ..Parts::default() });
    assert_eq!(size, Err(ScaledError::Size { part: Part::Scales, expected: 4, got: 0 }));
}
