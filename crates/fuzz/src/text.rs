//! Text as elements. In both directions, the fast code must agree with the reference definition. Two bytes select type,
//! rounding and style.

use truecast_core::policy::TextStyle;
use truecast_core::spec::onnx::Cast;
use truecast_core::text::{parse_one, print_one};
use truecast_core::{DType, Outcome, Rounding};
use truecast_kernel::text::{TextCaster, Texts, utf32};

const TYPES: [DType; 14] = {
    use DType::*;
    [Bool, I4, U8, I32, U64, I64, F4E2M1, F8E4M3Fn, F8E8M0, F8E5M2Fnuz, F16, Bf16, F32, F64]
};

const ROUNDINGS: [Rounding; 4] = [Rounding::NearestEven, Rounding::TowardZero, Rounding::Up, Rounding::ToOdd];

/// The rest of the input is a number as text.
pub fn text(input: &[u8]) {
    let Some((&[dtype, how], text)) = input.split_first_chunk::<2>() else { return };
    let dtype = TYPES[usize::from(dtype) % TYPES.len()];
    let mut parse = Cast::to(dtype).resolve(DType::String).expect("text becomes any of these");
    parse.policy.to_float = ROUNDINGS[usize::from(how) % ROUNDINGS.len()];
    let size = dtype.storage_bits().map_or(1, |bits| bits.div_ceil(8)) as usize;
    let mut codes = vec![0; size];
    let parsed = TextCaster::new(&parse).expect("a pair with text").parse([text], &mut codes);
    let storage = |code| dtype.storage_of_code(code).to_le_bytes();
    match (parse_one(&parse, text), parsed) {
        (Ok(Outcome::Defined(code) | Outcome::Undefined { code, .. }), Ok(())) => {
            assert_eq!(codes, storage(code)[..size], "{dtype} {:?}", parse.policy);
            printed(dtype, how, code, &codes);
        }
        (Ok(Outcome::Refused { .. }) | Err(_), Err(error)) => crate::harmless(error),
        (defined, fast) => panic!("{dtype}: {defined:?}, but {fast:?}"),
    }
    let mut cell = Vec::new();
    utf32::read(text, &mut cell);
    assert!(std::str::from_utf8(&cell).is_ok());
}

/// Compares the text of a code with the reference definition.
fn printed(dtype: DType, how: u8, code: u64, codes: &[u8]) {
    let mut print = Cast::to(DType::String).resolve(dtype).expect("any of these becomes text");
    print.policy.text = if how & 64 == 0 { TextStyle::Reference } else { TextStyle::Plain };
    let mut texts = Texts::default();
    TextCaster::new(&print).expect("a pair with text").print(codes, &mut texts).expect("ONNX refuses no value");
    let expected = print_one(&print, code).expect("ONNX refuses no value");
    assert_eq!(texts.iter().next(), Some(expected.as_bytes()), "{dtype} {code:#x}");
}
