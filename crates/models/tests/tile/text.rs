//! Text (§9).

use super::{cases, parsed, verified, without_places};
use truecast_core::spec::tile::{Conversion, IntegerOverflow, Release, RoundingMode, Signedness};
use truecast_models::tile::module::{Operation, Statement};
use truecast_models::tile::text::{parse, print};

fn error(source: &str) -> String {
    parse(source, Release::NEWEST).expect_err(source).to_string()
}

fn in_entry(line: &str) -> String {
    let constants = "%f = constant <f32: 1.0> : tile<4xf32>\n%i = constant <i32: 1> : tile<4xi32>\n";
    format!("entry @k() {{\n{constants}{line}\nreturn }}")
}

fn found(line: &str, version: Release) -> Vec<String> {
    parse(&in_entry(line), version).unwrap().findings.iter().map(|e| e.to_string()).collect()
}

fn conversion(line: &str) -> Conversion {
    let module = parsed(&in_entry(line));
    assert_eq!(module.findings, [], "{line}");
    let body = &module.functions[0].body;
    let found = body.iter().rev().find_map(|s| match s.operation {
        Operation::Convert { conversion, .. } => Some(conversion),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("{line}: {body:?}"))
}

#[test]
fn forms_of_conversions() {
    use RoundingMode::*;
    use Signedness::*;
    let rows = [
        ("%r = bitcast %f : tile<4xf32> -> tile<4xi32>", Conversion::Bitcast),
        ("%r = cuda_tile.exti %i unsigned : tile<4xi32> -> tile<4xi64>", Conversion::Exti { signedness: Unsigned }),
        ("%r = trunci %i : tile<4xi32> -> tile<4xi8>", Conversion::Trunci { overflow: IntegerOverflow::None }),
        (
            "%r = trunci %i overflow<no_signed_wrap> {a = 1} : !cuda_tile.tile<4xi32> -> !cuda_tile.tile<4xi8> loc(\"x\")",
            Conversion::Trunci { overflow: IntegerOverflow::NoSignedWrap },
        ),
        ("%r = ftof %f  : tile<4xf32> -> tile<4xf16>", Conversion::Ftof { rounding: NearestEven }),
        ("%r = ftof %f rounding<zero> : tile<4xf32> -> tile<4xf16>", Conversion::Ftof { rounding: Zero }),
        (
            "%r = ftoi %f signed : tile<4xf32> -> tile<4xi8>",
            Conversion::Ftoi { signedness: Signed, rounding: NearestIntToZero, saturating: false },
        ),
        (
            "%r = ftoi %f unsigned rounding<nearest_int_to_zero> saturating : tile<4xf32> -> tile<4xi8>",
            Conversion::Ftoi { signedness: Unsigned, rounding: NearestIntToZero, saturating: true },
        ),
        (
            "%r = itof %i signed rounding<nearest_even> : tile<4xi32> -> tile<4xfp8e4m3fn>",
            Conversion::Itof { signedness: Signed, rounding: NearestEven },
        ),
    ];
    for (line, expected) in rows {
        assert_eq!(conversion(line), expected, "{line}");
    }
}

/// Dialect B: a module, prefixes, locations, hints, no final return.
#[test]
fn dialect_b() {
    let module = parsed(
        "cuda_tile.module @m attributes {x = [1]} {
           entry @k(%a: !cuda_tile.tile<f32> {cuda_tile.div = 1} loc(unknown), %p : tile<ptr<i8>>)
               optimization_hints=<sm_100 = {num_cta = 2}> {
             // a comment -> : <
             %0 = cuda_tile.ftof %a : tile<f32> -> tile<f16> loc(callsite(\"f\" at \"g\"))
             %1 = cuda_tile.ptr_to_ptr %p : tile<ptr<i8>> -> tile<!cuda_tile.ptr<f32>>
           } loc(unknown)
         }
         // -----
         cuda_tile.module { cuda_tile.entry @\"odd name\"() { cuda_tile.return } }",
    );
    let names: Vec<_> = module.functions.iter().map(|f| &*f.name).collect();
    assert_eq!(names, ["k", "odd name"]);
    let report = verified(&module);
    assert_eq!((report.errors.len(), report.conversions), (0, 2));
    assert_eq!(report.warnings.iter().map(|w| w.code()).collect::<Vec<_>>(), ["T020"]);
}

/// §9.3: a location is kept, and appears in errors.
#[test]
fn locations() {
    let module = parsed(
        "entry @k(%a: tile<f32> loc(\"argument\")) {
           %0 = ftof %a : tile<f32> -> tile<f32> loc(fused<\"x\">[\"k.py\":12:3, callsite(\"f\"
             at \"g\")])
           %1 = ftof %a : tile<f32> -> tile<f32>
           return loc(\"k.py\":14:1)
         } loc(unknown)",
    );
    let kept: Vec<_> = module.functions[0].body.iter().map(|s| s.location.as_deref()).collect();
    let first = r#"(fused<"x">["k.py":12:3, callsite("f" at "g")])"#;
    assert_eq!(kept, [Some(first), None, Some(r#"("k.py":14:1)"#)]);
    let messages: Vec<_> = verified(&module).errors.iter().map(|e| e.to_string()).collect();
    assert!(messages[0].starts_with("2:17: T007") && messages[0].ends_with(&format!("; loc{first}")), "{messages:?}");
    assert!(!messages[1].contains("loc"), "{messages:?}");
}

fn conversions(statements: &[Statement]) -> usize {
    statements
        .iter()
        .map(|s| match &s.operation {
            Operation::Convert { .. } => 1,
            Operation::Opaque { regions, .. } => regions.iter().map(|r| conversions(r)).sum(),
            _ => 0,
        })
        .sum()
}

/// Opaque operations end where the next statement begins. Their regions are read.
#[test]
fn other_operations() {
    let module = parsed(
        "entry @k(%p: tile<ptr<f32>>) {
           %bid:3, %n = get_tile_block_id : tile<i32>, tile<i32>, tile<i32>
           %view = make_tensor_view %p, shape = [4, 8], strides = [8, 1] : tensor_view<4x8xf32, strides=[8,1]>
           %t, %token = load_view_tko weak %view[%bid#1, %n] token = %p : partition_view<tile=(4x8), tensor_view<?x?xf32>> -> tile<4x8xf32>, token
           %h = ftof %t : tile<4x8xf32> -> tile<4x8xf16>
           store_ptr_tko weak %p, %h : tile<ptr<f32>>, tile<4x8xf16> -> token
           assert %n, \"text with } and return\" : tile<i1>
           %sum = for %i in (%bid#0 to %n, step %n) : tile<i32> iter_values(%acc = %h) -> (tile<4x8xf16>) {
             %x = ftof %acc : tile<4x8xf16> -> tile<4x8xf32>
             %r = if %n -> (tile<4x8xf32>) {
               %y = ftof %x : tile<4x8xf32> -> tile<4x8xf64>
               yield %y : tile<4x8xf64>
             } else {
               yield %x : tile<4x8xf32>
             }
             continue %x : tile<4x8xf32>
           }
           %red = reduce %t dim=0 identities=[0.0 : f32] : tile<4x8xf32> -> tile<8xf32> (%l: tile<f32>, %m: tile<f32>) {
             ^bb0(%l: tile<f32>, %m: tile<f32>):
             %z = ftof %l : tile<f32> -> tile<f64>
             yield %z : tile<f64>
           }
           %last = ftof %sum : tile<4x8xf16> -> tile<4x8xf64>
           return
         }",
    );
    assert_eq!(module.findings, []);
    let body = &module.functions[0].body;
    assert_eq!(conversions(body), 5);
    assert_eq!(body.len(), 10, "{body:#?}");
    assert_eq!(verified(&module).errors, []);
    assert!(print(&module).unwrap_err().to_string().contains("get_tile_block_id"));
}

/// A printed module reads back as an equal module. A second print gives an equal text.
#[test]
fn printing() {
    let source = "entry @k(%a: tile<i32>, %p: tile<ptr<tf32>>) {
  %0 = constant <f32: [[1.5, -0.25], [0x7FC00000, 1.0e-45]]> : tile<2x2xf32>
  %1 = ftof %0 rounding<zero> : tile<2x2xf32> -> tile<2x2xbf16>
  %2 = ftoi %1 signed saturating : tile<2x2xbf16> -> tile<2x2xi8>
  %3 = exti %2 unsigned : tile<2x2xi8> -> tile<2x2xi32>
  %4 = trunci %3 overflow<no_wrap> : tile<2x2xi32> -> tile<2x2xi4>
  %c = constant <i1: true> : tile<4xi1>
  %bytes = constant <i8: [-1, 0, 1, 127]> : tile<4xi8>
  %5 = unpack %bytes : tile<4xi8> -> tile<2xf16>
  %6 = ptr_to_int %p : tile<ptr<tf32>> -> tile<i64>
  return
}
";
    let module = parsed(source);
    assert_eq!(print(&module).unwrap(), source);
    let loose = source.replace("  ", "\t // c\n").replace(" : ", ":").replace(", ", " ,");
    assert_eq!(without_places(&parsed(&loose)), without_places(&module));
}

/// T015 with line and column.
#[test]
fn syntax_errors() {
    for (source, expected) in cases(include_str!("messages/syntax.txt")) {
        assert_eq!(error(source), expected, "{source}");
    }
}

/// T014 and T016, and the attributes of T009 to T011.
#[test]
fn types_and_literals() {
    for (line, expected) in cases(include_str!("messages/types.txt")) {
        assert_eq!(error(&in_entry(line)), expected, "{line}");
    }
    for (line, expected) in cases(include_str!("messages/attributes.txt")) {
        assert_eq!(found(line, Release::NEWEST), [expected], "{line}");
    }
}

/// §4.7: text has the newest version by default.
#[test]
fn version_gates() {
    let codes = |version, line: &str| {
        let module = parse(&in_entry(line), version).unwrap();
        module.findings.iter().map(|e| e.code()).collect::<Vec<_>>()
    };
    let ue5m3 = "%a = ftof %f : tile<4xf32> -> tile<4xfnv8E5M3FNU>";
    let away = "%a = ftof %f rounding<nearest_away> : tile<4xf32> -> tile<4xtf32>";
    let saturating = "%a = ftoi %f signed saturating : tile<4xf32> -> tile<4xi8>";
    for line in [ue5m3, away, saturating] {
        assert_eq!(codes(Release::V13_3, line), ["T013"], "{line}");
        assert_eq!(codes(Release::V13_4, line), [""; 0], "{line}");
    }
}

/// §9.3: texts that are not modules of this dialect.
#[test]
fn what_is_no_module() {
    const EXPECTED: &str = "T015: expected \"entry\", \"module\" or another operation of Tile IR, found";
    let rows = [
        ("", "1:1", "the end of the text"),
        ("// nothing\n", "2:1", "the end of the text"),
        ("hello world", "1:1", "\"hello\""),
        ("{}", "1:1", "\"{\""),
        ("entri @k() { return }", "1:1", "\"entri\"; did you mean \"entry\"?"),
        (
            "module attributes {} {\n  func.func @main(%x: tensor<5xf32>) -> tensor<5xf16> {\n\
             %y = tosa.cast %x : (tensor<5xf32>) -> tensor<5xf16>\n return %y : tensor<5xf16>\n } }",
            "2:3",
            "\"func.func\"",
        ),
    ];
    for (source, place, found) in rows {
        assert_eq!(error(source), format!("{place}: {EXPECTED} {found}"));
    }
    // A module may be empty. Running an empty module is an error.
    for empty in ["module {}", "cuda_tile.module @m { global @g <f32: 1.0> : tile<f32> }"] {
        let report = verified(&parsed(empty));
        assert_eq!((report.errors, report.conversions), (vec![], 0), "{empty}");
        assert_eq!(report.warnings[0].to_string(), "1:1: T021: the module has no entry, so nothing in it runs");
    }
    assert_eq!(print(&parsed("module {}")).unwrap(), "module {\n}\n");
}

/// T018: unknown operations. T013: operations of later releases.
#[test]
fn unknown_operations() {
    for (line, expected) in cases(include_str!("messages/operations.txt")) {
        assert_eq!(found(line, Release::NEWEST), [expected], "{line}");
    }
    // Operations of the dialect other than conversions, from their first release.
    assert_eq!(found("%r = addf %f, %f rounding<nearest_even> : tile<4xf32>", Release::V13_1), [""; 0]);
    let atan2 = "%r = atan2 %f, %f : tile<4xf32>";
    assert_eq!(found(atan2, Release::V13_2), [""; 0]);
    let newer =
        "4:6: T013: operation atan2 needs file version 13.2, this file is 13.1; save the module as version 13.2";
    assert_eq!(found(atan2, Release::V13_1), [newer]);
    // Operations of test builds are reported, and their regions are read.
    let module = parsed(
        "cuda_tile.module @m { testing$func @f(%a: tile<f32>) { %r = ftof %a : tile<f32> -> tile<f32> return } }",
    );
    let report = verified(&module);
    assert_eq!(report.errors.iter().map(|e| e.code()).collect::<Vec<_>>(), ["T007"]);
    assert_eq!(report.warnings.iter().map(|e| e.code()).collect::<Vec<_>>(), ["T018", "T021"]);
}
