//! Casts between typed slices. They give the bits that casts of bytes give. Wrong lengths and types give errors.

#![cfg(target_endian = "little")]

use truecast::policy::Overflow;
use truecast::spec::{ieee, onnx};
use truecast::{CastError, CastSpec, DType, Elements, ElementsMut, Error, Layout, can_cast, cast_slice, cast_vec};

fn onnx_cast(src: DType, dst: DType) -> CastSpec {
    onnx::Cast::to(dst).resolve(src).unwrap()
}

#[test]
fn typed_and_untyped_casts_give_the_same_bytes() {
    let src: Vec<f32> = (0..10_001).map(|i| (i as f32 - 5_000.0) * 0.37).collect();
    let bytes: Vec<u8> = src.iter().flat_map(|v| v.to_le_bytes()).collect();
    for dst in [DType::F8E4M3Fn, DType::I4, DType::Bf16, DType::F64, DType::F4E2M1, DType::I2] {
        let spec = onnx_cast(DType::F32, dst);
        let mut expected = vec![0; dst.bytes_in(Layout::Packed, src.len() as u64).unwrap() as usize];
        let from = Elements::new(DType::F32, src.len(), &bytes[..]).unwrap();
        truecast::cast(&spec, from, ElementsMut::new(dst, src.len(), &mut expected).unwrap()).unwrap();
        assert_eq!(cast_vec::<f32, u8>(&spec, &src).unwrap(), expected, "{dst}");
    }
}

#[test]
fn codes_are_unsigned_integers_of_their_width() {
    let x = [1.0f32, -0.5, 3.0e38];
    let bf16: Vec<u16> = cast_vec(&onnx_cast(DType::F32, DType::Bf16), &x).unwrap();
    assert_eq!(bf16, x.map(|v| ((v.to_bits() + 0x7fff + (v.to_bits() >> 16 & 1)) >> 16) as u16));
    let back: Vec<f32> = cast_vec(&onnx_cast(DType::Bf16, DType::F32), &bf16).unwrap();
    assert_eq!(back.iter().map(|v| v.to_bits()).collect::<Vec<_>>(), bf16.map_to_f32_bits());
}

#[test]
fn a_u32_is_no_f32() {
    let spec = onnx_cast(DType::F32, DType::Bf16);
    let refused = cast_vec::<u32, u16>(&spec, &[1]).unwrap_err();
    let expected = CastError::Type { expected: DType::F32, got: DType::U32 };
    assert_eq!(refused.to_string(), expected.to_string());
    assert!(cast_vec::<u16, u32>(&onnx_cast(DType::Bf16, DType::I32), &[1]).is_err());
}

trait ToF32Bits {
    fn map_to_f32_bits(&self) -> Vec<u32>;
}

impl ToF32Bits for Vec<u16> {
    fn map_to_f32_bits(&self) -> Vec<u32> {
        self.iter().map(|code| u32::from(*code) << 16).collect()
    }
}

#[test]
fn narrow_elements_lie_packed_in_bytes() {
    let packed: Vec<u8> = cast_vec(&onnx_cast(DType::F32, DType::I4), &[1.0f32, -1.0, 7.0]).unwrap();
    assert_eq!(packed, [0xf1, 0x07]);
    let mut three = [0i8; 3];
    cast_slice(&onnx_cast(DType::I4, DType::I8), &packed, &mut three).unwrap();
    assert_eq!(three, [1, -1, 7]);
    // The bytes do not show that the last nibble is unused.
    assert_eq!(cast_vec::<u8, i8>(&onnx_cast(DType::I4, DType::I8), &packed).unwrap(), [1, -1, 7, 0]);
    let repacked: Vec<u8> = cast_vec(&ieee::Cast::to(DType::F4E2M1).resolve(DType::I4).unwrap(), &packed).unwrap();
    assert_eq!(repacked, [0xa2, 0x07]); // 1, -1, 6 (7 saturates), 0
}

#[test]
fn what_does_not_fit_is_an_error() {
    let to_f8 = onnx_cast(DType::F32, DType::F8E4M3Fn);
    let mut dst = [0u8; 2];
    let counts = cast_slice(&to_f8, &[1.0f32; 3], &mut dst).unwrap_err();
    assert!(matches!(counts, Error::Cast(CastError::Count { src: 3, dst: 2 })), "{counts}");
    let types = cast_slice(&to_f8, &[1.0f64; 2], &mut dst).unwrap_err();
    assert_eq!(types.to_string(), "this caster takes f32, the buffer holds f64");
    // Signed integers are values, not codes.
    assert!(cast_vec::<f32, i8>(&to_f8, &[1.0]).is_err());
    assert!(cast_vec::<i32, u8>(&to_f8, &[1]).is_err());
    let to_i4 = onnx_cast(DType::F32, DType::I4);
    let lengths = cast_slice(&to_i4, &[1.0f32; 3], &mut [0u8; 3]).unwrap_err();
    assert!(matches!(lengths, Error::Cast(CastError::Length { expected: 2, got: 3, .. })), "{lengths}");
    let refusing = ieee::Cast { overflow: Overflow::Error, ..ieee::Cast::to(DType::F8E4M3Fn) };
    let refused = cast_vec::<f32, u8>(&refusing.resolve(DType::F32).unwrap(), &[1.0, 465.0]).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "element 1, f32 465.0 (0x43e88000), to f8e4m3fn: the value is out of the destination's range"
    );
}

#[test]
fn every_pair_that_can_be_cast_is_planned() {
    for src in DType::ALL {
        for dst in DType::ALL {
            let Ok(spec) = ieee::Cast::to(dst).resolve(src) else {
                assert!(!can_cast(src, dst) || src == dst, "{src} -> {dst}");
                continue;
            };
            assert!(can_cast(src, dst), "{src} -> {dst}");
            let is_text = [src, dst].contains(&DType::String);
            assert!(
                is_text || truecast::Caster::new(&spec, &truecast::CastOptions::default()).is_ok(),
                "{src} -> {dst}"
            );
        }
    }
}

#[cfg(feature = "half")]
#[test]
fn types_of_half_are_elements() {
    use half::{bf16, f16};
    let x = [1.5f32, -2.0, 1e-7, f32::INFINITY];
    let f16s: Vec<f16> = cast_vec(&onnx_cast(DType::F32, DType::F16), &x).unwrap();
    assert_eq!(f16s, x.map(f16::from_f32));
    let bf16s: Vec<bf16> = cast_vec(&onnx_cast(DType::F32, DType::Bf16), &x).unwrap();
    assert_eq!(bf16s, x.map(bf16::from_f32));
}

#[cfg(feature = "float8")]
#[test]
fn types_of_float8_are_elements() {
    let f8: Vec<float8::F8E4M3> = cast_vec(&onnx_cast(DType::F32, DType::F8E4M3Fn), &[1.0f32, 465.0]).unwrap();
    assert_eq!(f8.iter().map(|v| v.to_bits()).collect::<Vec<_>>(), [0x38, 0x7e]);
}
