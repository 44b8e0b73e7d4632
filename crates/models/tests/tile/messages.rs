//! The messages of the verifier as people read them: place, number, value, types, rule and repair (§5).

use super::{parsed, verified};
use truecast_core::spec::tile::{Options, Profile, Release, Rules};

fn messages(source: &str) -> Vec<String> {
    verified(&parsed(source)).errors.iter().map(|e| e.to_string()).collect()
}

fn of_line(line: &str) -> String {
    let source = format!(
        "entry @k(%p: tile<ptr<i8>>, %w: tile<i64>, %b: tile<i8>) {{
  %f = constant <f32: 1.0> : tile<4xf32>
  %i = constant <i32: 1> : tile<4xi32>
{line}
  return
}}"
    );
    let all = messages(&source);
    assert_eq!(all.len(), 1, "{line}: {all:?}");
    all[0].clone()
}

/// §8.10 and the rest of the catalogue, word by word.
#[test]
fn catalogue() {
    let rows = [
        (
            "%r = exti %b signed : tile<i8> -> tile<i8>",
            "4:6: T005: %r (tile<i8> -> tile<i8>): exti: i8 (8 bits) to i8 (8 bits) does not widen; remove the operation",
        ),
        (
            "%r = trunci %b : tile<i8> -> tile<i16>",
            "4:6: T006: %r (tile<i8> -> tile<i16>): trunci: i8 (8 bits) to i16 (16 bits) does not narrow; use exti",
        ),
        (
            "%r = ftof %f : tile<4xf32> -> tile<4xf32>",
            "4:6: T007: %r (tile<4xf32> -> tile<4xf32>): ftof: operand and result are both f32; remove the operation",
        ),
        (
            "%r = ftof %f rounding<zero> : tile<4xf32> -> tile<4xf8E4M3FN>",
            "4:6: T008: %r (tile<4xf32> -> tile<4xf8E4M3FN>): ftof: zero is not allowed for f32 to f8E4M3FN in release 13.5; allowed: nearest_even",
        ),
        (
            "%r = ftoi %f signed rounding<zero> : tile<4xf32> -> tile<4xi32>",
            "4:6: T008: %r (tile<4xf32> -> tile<4xi32>): ftoi: zero is not allowed for f32 to i32 in release 13.5; allowed: nearest_int_to_zero",
        ),
        (
            "%r = itof %i signed : tile<4xi32> -> tile<4xf8E8M0FNU>",
            "4:6: T012: %r (tile<4xi32> -> tile<4xf8E8M0FNU>): itof: integers cannot be converted to f8E8M0FNU; convert i32 to f32, then ftof with zero or positive_inf",
        ),
        (
            "%r = bitcast %i : tile<4xi32> -> tile<4xf16>",
            "4:6: T003: %r (tile<4xi32> -> tile<4xf16>): bitcast: i32 has 32 bits, f16 has 16 bits; change the width first (exti or trunci of integers, ftof of floats), or convert values with ftoi or itof",
        ),
        (
            "%r = bitcast %p : tile<ptr<i8>> -> tile<i64>",
            "4:6: T004: %r (tile<ptr<i8>> -> tile<i64>): bitcast: ptr<i8> to i64: pointers cannot be bitcast; use ptr_to_int, int_to_ptr or ptr_to_ptr",
        ),
        (
            "%r = int_to_ptr %b : tile<i8> -> tile<ptr<i8>>",
            "4:6: T001: %r (tile<i8> -> tile<ptr<i8>>): int_to_ptr: operand element i8 is not i64; allowed: i64 (use exti or trunci before or after)",
        ),
        (
            "%r = ftof %f : tile<4xf32> -> tile<2xf16>",
            "4:6: T002: %r (tile<4xf32> -> tile<2xf16>): ftof: operand shape [4] and result shape [2] differ; conversions work element by element, so give the result the operand's shape",
        ),
        (
            "%r = ftof %f : tile<4xf64> -> tile<4xf16>",
            "4:6: T001: %r: ftof: operand %f is tile<4xf32>, the operation says tile<4xf64>; write the operand's own type",
        ),
        (
            "%r = ftof %f : tile<3xf32> -> tile<3xf16>",
            "4:6: T014: %r (tile<3xf32> -> tile<3xf16>): ftof: operand type tile<3xf32> has a dimension of 3, which is not a positive power of two; pad the tile",
        ),
        (
            "%r = constant <f32: 1.0> : tile<0xf32>",
            "4:6: T014: tile<0xf32> has a dimension of 0, which is not a positive power of two; pad the tile",
        ),
        (
            "%r = constant <f32: 1.0> : tile<33554432xf32>",
            "4:6: T014: tile<33554432xf32> has more than 16777216 elements; split the tile",
        ),
        (
            "%r = constant <f4E2M1FN: 1.0> : tile<f4E2M1FN>",
            "4:6: T014: tile<f4E2M1FN> has an odd number of 4-bit elements; f4E2M1FN tiles need a dimension of at least 2",
        ),
        ("return %w : tile<i64>", "4:1: T019: entry k: returns 1 values; an entry returns nothing"),
        (
            "%r = pack %f : tile<4xf32> -> tile<4xi8>",
            "4:6: T002: %r (tile<4xf32> -> tile<4xi8>): pack: 128 bits do not fill 4 bytes; give the bytes that many",
        ),
        (
            "%r = unpack %f : tile<4xf32> -> tile<8xf16>",
            "4:6: T001: %r (tile<4xf32> -> tile<8xf16>): unpack: the bytes are f32; they must be i8",
        ),
        (
            "%r = pack %b : tile<i8> -> tile<i8>",
            "4:6: T001: %r (tile<i8> -> tile<i8>): pack: i8 has 8 bits already; use bitcast",
        ),
    ];
    for (line, expected) in rows {
        assert_eq!(of_line(line), expected, "{line}");
    }
}

#[test]
fn signatures() {
    assert_eq!(
        messages("entry @k(%a: tile<4xi32>) { return }"),
        ["1:1: T019: entry k: argument 0 is tile<4xi32>; entry arguments must be rank-0 tiles"]
    );
    assert_eq!(
        messages("entry @k(%a: tile<i32>, %t: token) { return }"),
        ["1:29: T019: entry k: argument 1 is no tile; entry arguments must be rank-0 tiles"]
    );
    assert_eq!(
        messages("entry @k(%a: tile<ptr<i4>>) { return }"),
        ["1:1: T014: ptr<i4> points to a type without an address; use ptr<i8>"]
    );
}

/// Conversions in regions are verified; one whose operand is not understood is verified by its own types.
#[test]
fn regions_and_opaque_operands() {
    let all = messages(
        "entry @k() {
  %x = load_view_tko weak : partition_view<tile=(4)> -> tile<4xf32>, token
  %y = ftof %x rounding<zero> : tile<4xf32> -> tile<4xf8E5M2>
  for %i in (%x to %x, step %x) : tile<i32> {
    %z = exti %i signed : tile<i32> -> tile<i8>
    continue
  }
  return
}",
    );
    let codes: Vec<_> = all.iter().map(|m| m.split(": ").take(2).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(codes, ["3:8 T008", "5:10 T005"]);
}

/// §4.6: the same module under each release.
#[test]
fn releases() {
    let source = "entry @k() {
  %f = constant <f32: 1.0> : tile<4xf32>
  %i = constant <i32: 1> : tile<4xi32>
  %a = ftof %f rounding<zero> : tile<4xf32> -> tile<4xbf16>
  %b = ftof %f rounding<zero> : tile<4xf32> -> tile<4xf8E8M0FNU>
  %c = ftof %f : tile<4xf32> -> tile<4xf8E8M0FNU>
  %d = itof %i signed : tile<4xi32> -> tile<4xf8E8M0FNU>
  return
}";
    let of = |release| {
        let module = truecast_models::tile::text::parse(source, release).unwrap();
        let report = truecast_models::tile::check(&module, Rules::OfFile, Profile::Spec, &Options::default());
        let lines = |errors: &[truecast_models::tile::Diagnostic]| {
            errors
                .iter()
                .map(|e| format!("{} {}", e.place.to_string().split(':').next().unwrap(), e.code()))
                .collect::<Vec<_>>()
                .join(", ")
        };
        (lines(&report.errors), lines(&report.warnings))
    };
    let quiet = String::new;
    assert_eq!(of(Release::V13_1), ("4 T008, 5 T008, 5 T013, 7 T012".into(), "6 T008".into()));
    assert_eq!(of(Release::V13_2), ("4 T008, 5 T008".into(), "6 T008, 7 T012".into()));
    assert_eq!(of(Release::V13_3), ("4 T008, 6 T008, 7 T012".into(), quiet()));
    for release in [Release::V13_4, Release::V13_5] {
        assert_eq!(of(release), ("6 T008, 7 T012".into(), quiet()));
    }
}
