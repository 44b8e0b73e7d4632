//! Messages of the verifier: place, number, value, types, rule and fix (§5).

use super::{cases, parsed, verified};
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

/// The whole catalogue, and §8.10, word by word.
#[test]
fn catalogue() {
    for (line, expected) in cases(include_str!("messages/verifier.txt")) {
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
        ["1:29: T019: entry k: argument 1 is not a tile; entry arguments must be rank-0 tiles"]
    );
    assert_eq!(
        messages("entry @k(%a: tile<ptr<i4>>) { return }"),
        ["1:1: T014: ptr<i4> points to a type without an address; use ptr<i8>"]
    );
}

/// Conversions in regions are verified too. For an unknown operand, the stated types count.
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
