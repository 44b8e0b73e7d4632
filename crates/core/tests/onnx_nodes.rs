//! Legality of nodes: `docs/spec/onnx.md §1.3, §1.4, §1.7, §1.8` as literal rows. Section numbers refer to the page.

use truecast_core::DType::{self, *};
use truecast_core::spec::SpecError;
use truecast_core::spec::onnx::AttributeValue::{self, Int, Other};
use truecast_core::spec::onnx::{Attributes, Cast, DATA_TYPES, DataType, Operator, RoundMode};
use truecast_core::{Outcome, cast_one};

const fn text(text: &str) -> AttributeValue<'_> {
    AttributeValue::String(text.as_bytes())
}

fn read(operator: Operator, opset: u32, attributes: &[(&str, AttributeValue)]) -> Result<Attributes, SpecError> {
    Attributes::read(operator, opset, attributes.iter().copied())
}

fn cast(opset: u32, attributes: &[(&str, AttributeValue)]) -> Result<Attributes, SpecError> {
    read(Operator::Cast, opset, attributes)
}

#[test]
fn data_types() {
    // §1.7, column by column.
    let names = "UNDEFINED FLOAT UINT8 INT8 UINT16 INT16 INT32 INT64 STRING BOOL FLOAT16 DOUBLE UINT32 UINT64 COMPLEX64 \
                 COMPLEX128 BFLOAT16 FLOAT8E4M3FN FLOAT8E4M3FNUZ FLOAT8E5M2 FLOAT8E5M2FNUZ UINT4 INT4 FLOAT4E2M1 \
                 FLOAT8E8M0 UINT2 INT2 FLOAT6E2M3 FLOAT6E3M2";
    assert_eq!(DATA_TYPES.len(), 29);
    for (code, name) in names.split_whitespace().enumerate() {
        let row = DataType::of_code(code as i64).unwrap();
        assert_eq!((row.code as usize, row.name), (code, name));
        assert_eq!(DataType::named(name), Some(row));
        if let Some(dtype) = row.dtype {
            assert_eq!(DataType::of(dtype), Some(row));
            assert_eq!(DType::parse_in(truecast_core::Ecosystem::Onnx, name), Ok(dtype));
        } else {
            assert!(["UNDEFINED", "COMPLEX128"].contains(&name));
        }
    }
    assert_eq!(DataType::of(I48), None);
}

fn kind(result: Result<Attributes, SpecError>) -> &'static str {
    match result {
        Ok(_) => "ok",
        Err(SpecError::Attribute { name, .. }) => name,
        Err(SpecError::UnknownAttribute { .. }) => "unknown",
        Err(SpecError::Type { .. }) => "type",
        Err(SpecError::Version { .. }) => "version",
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn nodes_that_are_illegal() {
    let float = ("to", Int(1));
    type Row<'a> = (u32, &'a [(&'a str, AttributeValue<'a>)], &'a str);
    #[rustfmt::skip]
    let rows: &[Row] = &[
        // §1.3 `to`
        (28, &[], "to"),
        (6, &[("saturate", Int(1))], "saturate"),
        (28, &[float], "ok"),
        (28, &[("to", Int(0))], "to"), (28, &[("to", Int(14))], "to"), (28, &[("to", Int(15))], "to"),
        (28, &[("to", Int(29))], "to"), (28, &[("to", Int(-1))], "to"), (28, &[("to", Int(i64::MAX))], "to"),
        (28, &[("to", text("FLOAT"))], "to"), (6, &[("to", text("FLOAT"))], "to"), (28, &[("to", Other("FLOAT"))], "to"),
        (28, &[float, float], "to"),
        // Cast-1: only upper-case names of Cast-1's own types
        (1, &[("to", text("FLOAT"))], "ok"), (5, &[("to", text("DOUBLE"))], "ok"), (1, &[("to", text("BOOL"))], "ok"),
        (1, &[float], "to"), (5, &[float], "to"), (6, &[float], "ok"),
        (1, &[("to", text("float"))], "to"), (1, &[("to", text("STRING"))], "to"), (1, &[("to", text("BFLOAT16"))], "to"),
        (1, &[("to", text("UNDEFINED"))], "to"), (1, &[("to", text(""))], "to"), (1, &[("to", text("\u{fffd}"))], "to"),
        (1, &[("to", AttributeValue::String(b"\xff"))], "to"),
        // §1.8 (1): type of a later opset
        (8, &[("to", Int(8))], "type"), (9, &[("to", Int(8))], "ok"), (12, &[("to", Int(16))], "type"),
        (13, &[("to", Int(16))], "ok"), (18, &[("to", Int(17))], "type"), (19, &[("to", Int(20))], "ok"),
        (20, &[("to", Int(21))], "type"), (21, &[("to", Int(22))], "ok"), (22, &[("to", Int(23))], "type"),
        (23, &[("to", Int(23))], "ok"), (23, &[("to", Int(24))], "type"), (24, &[("to", Int(24))], "ok"),
        (24, &[("to", Int(25))], "type"), (25, &[("to", Int(26))], "ok"), (27, &[("to", Int(27))], "type"),
        (28, &[("to", Int(28))], "ok"),
        // §1.3 `saturate`
        (18, &[float, ("saturate", Int(1))], "saturate"), (19, &[float, ("saturate", Int(1))], "ok"),
        (19, &[float, ("saturate", Int(0))], "ok"), (19, &[float, ("saturate", Int(2))], "saturate"),
        (28, &[float, ("saturate", Int(-1))], "saturate"), (28, &[float, ("saturate", text("1"))], "saturate"),
        // §1.3 `round_mode`
        (23, &[float, ("round_mode", text("up"))], "round_mode"), (24, &[float, ("round_mode", text("up"))], "ok"),
        (24, &[float, ("round_mode", text("down"))], "ok"), (28, &[float, ("round_mode", text("nearest"))], "ok"),
        (28, &[float, ("round_mode", text("Up"))], "round_mode"), (28, &[float, ("round_mode", text(""))], "round_mode"),
        (28, &[float, ("round_mode", text("even"))], "round_mode"), (28, &[float, ("round_mode", Int(0))], "round_mode"),
        // §1.8 (2)
        (28, &[float, ("axis", Int(0))], "unknown"), (28, &[("To", Int(1))], "unknown"),
        (0, &[float], "version"), (29, &[float], "version"),
    ];
    for &(opset, attributes, expected) in rows {
        assert_eq!(kind(cast(opset, attributes)), expected, "opset {opset}, {attributes:?}");
    }
}

/// Opset, attributes, expected kind.
type Row<'a> = (u32, &'a [(&'a str, AttributeValue<'a>)], &'a str);

/// §1.4: versions 15 to 25, without attribute `to`. CastLike has no version 28.
#[test]
fn cast_like() {
    let rows: &[Row] = &[
        (14, &[], "version"),
        (15, &[], "ok"),
        (15, &[("to", Int(1))], "unknown"),
        (18, &[("saturate", Int(0))], "saturate"),
        (19, &[("saturate", Int(0))], "ok"),
        (23, &[("round_mode", text("down"))], "round_mode"),
        (24, &[("round_mode", text("down"))], "ok"),
        (28, &[("round_mode", text("down")), ("saturate", Int(0))], "ok"),
        (29, &[], "version"),
    ];
    for &(opset, attributes, expected) in rows {
        assert_eq!(kind(read(Operator::CastLike, opset, attributes)), expected, "opset {opset}, {attributes:?}");
    }
    let totals = [(15, 14), (18, 14), (19, 18), (21, 20), (23, 21), (24, 22), (25, 24), (27, 24), (28, 24)];
    for (opset, total) in totals {
        let allowed = DType::ALL.into_iter().filter(|&t| Operator::CastLike.check_type(opset, t).is_ok()).count();
        assert_eq!(allowed, total, "opset {opset}");
    }
    for (src, target) in [(F32, F6E2M3), (F6E3M2, F32)] {
        let cast = read(Operator::CastLike, 28, &[]).unwrap().cast(Operator::CastLike, 28, Some(target)).unwrap();
        assert!(matches!(cast.resolve(src), Err(SpecError::Type { .. })), "{src} to {target}");
        assert!(Cast::to(target).resolve(src).is_ok());
    }
    // §1.4: `round_mode` has an effect; engines give the result of `up`. 1.5 is 80 up and 7f down.
    for (mode, expected) in [("up", 0x80), ("down", 0x7f), ("nearest", 0x80)] {
        let attributes = read(Operator::CastLike, 25, &[("round_mode", text(mode))]).unwrap();
        let spec = attributes.cast(Operator::CastLike, 25, Some(F8E8M0)).unwrap().resolve(F32).unwrap();
        assert_eq!(cast_one(&spec, 1.5f32.to_bits().into()), Outcome::Defined(expected), "{mode}");
    }
    assert_eq!(Attributes::default().cast(Operator::CastLike, 25, None), None);
}

#[test]
fn attributes_are_read() {
    let all = [("round_mode", text("down")), ("to", Int(24)), ("saturate", Int(0))];
    let read = cast(24, &all).unwrap();
    let expected = Attributes { to: Some(F8E8M0), saturate: Some(false), round_mode: Some(RoundMode::Down) };
    assert_eq!(read, expected);
    let cast = read.cast(Operator::Cast, 24, None).unwrap();
    let Cast { operator, to, saturate, round_mode, opset } = cast;
    assert_eq!(
        (operator, to, saturate, round_mode, opset),
        (Operator::Cast, F8E8M0, Some(false), Some(RoundMode::Down), 24)
    );
}

#[test]
fn messages() {
    let message = |result: Result<Attributes, SpecError>| result.unwrap_err().to_string();
    let text18 = message(cast(18, &[("to", Int(17))]));
    for part in ["opset 18", "Cast-13", "f8e4m3fn", "opset 19 has it"] {
        assert!(text18.contains(part), "{text18}");
    }
    let hostile = message(cast(28, &[("to", Int(1)), ("a\nb", Int(1))]));
    assert!(!hostile.contains('\n'), "{hostile}");
    let hostile = message(cast(28, &[("to", Int(1)), ("round_mode", AttributeValue::String(b"\x1b\xff"))]));
    assert!(hostile.contains(r"\xff") && !hostile.contains('\u{1b}'), "{hostile}");
}
