//! §9.

use super::{parsed, verified, without_places};
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

/// The last conversion of a module.
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

/// Both dialects, with everything optional left out and put in.
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

/// §9.3: a location is kept, and said where the operation is wrong.
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

/// Operations that are not read end where the next statement begins; their regions are read.
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

/// What is printed is read back as the same module; a second printing changes nothing.
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
    let rows = [
        (
            "entry @k() {\n  %a = ftof %b : tile<f32> -> tile<f16>\n}",
            "2:13: T015: expected a value that was defined before, found \"%b\"",
        ),
        (
            "entry @k(%a: tile<f32>) {\n %b = ftof %a : tile<f32> tile<f16> }",
            "2:27: T015: expected \"->\" after the operand type, found \"tile\"",
        ),
        (
            "entry @k(%a: tile<f32>) {\n %b = ftof : tile<f32> }",
            "2:12: T015: expected an operand, as %name, found \":\"",
        ),
        ("entry k() {}", "1:7: T015: expected the name of the entry, as @name, found \"k\""),
        ("entry @k() {", "1:13: T015: expected an operation, found the end of the text"),
        ("module {", "1:9: T015: expected \"}\", found the end of the text"),
        ("}", "1:1: T015: expected \"entry\", \"module\" or another operation of Tile IR, found \"}\""),
        ("entry @k() {\n  \"cuda_tile.ftof\"(%a) }", "2:3: T015: expected an operation, found a string"),
        (
            "entry @k(%a: tile<f32>) { ftof %a : tile<f32> -> tile<f16> }",
            "1:27: T015: expected one result, as %name = before ftof, found 0 names",
        ),
        (
            "entry @k(%a: tile<f32>) { %b:2 = ftof %a : tile<f32> -> tile<f16> }",
            "1:34: T015: expected one result, as %name = before ftof, found 1 names",
        ),
        ("entry @k(%a: tile<f32>, %a: tile<f32>) { }", "1:25: T015: expected a new name, found %a again"),
        ("entry @k() { %x = foo (] }", "1:24: T015: expected balanced brackets, found \"]\""),
        ("entry @k() { %x = foo \"abc\n\" }", "1:23: T015: expected a closing quote, found the end of the line"),
        ("entry @k() { ä }", "1:14: T015: expected a token, found 'ä'"),
        ("// é\nentry @k() { % }", "2:14: T015: expected a name, found '%'"),
    ];
    for (source, expected) in rows {
        assert_eq!(error(source), expected, "{source}");
    }
}

/// T014 and T016, and the attributes of T009 to T011.
#[test]
fn types_and_literals() {
    let rows = [
        ("%c = constant <i8: 256> : tile<i8>", "4:20: T016: constant of i8: 256 is out of range: -128 to 255"),
        (
            "%c = constant <f32: 2> : tile<f32>",
            "4:21: T016: constant of f32: \"2\" is not a float; write a decimal point, or 0x and the bits",
        ),
        (
            "%c = constant <f32: 1.0> : tile<f16>",
            "4:16: T016: constant of f16: the literal says \"f32\"; write the element type of tile<f16>",
        ),
        (
            "%c = constant <f32: -0x1> : tile<f32>",
            "4:22: T016: constant of f32: a bit pattern has no minus sign; set its sign bit",
        ),
        (
            "%c = constant <tf32: 0x80000> : tile<tf32>",
            "4:22: T016: constant of tf32: 0x80000 is not a pattern of 19 bits",
        ),
        (
            "%c = constant <f8E8M0FNU: -1.0> : tile<f8E8M0FNU>",
            "4:28: T016: constant of f8E8M0FNU: the type has no negative values",
        ),
        (
            "%c = constant <i4: 1> : tile<i4>",
            "4:20: T016: constant of i4: i4 has no constants; make one of i8 and use trunci",
        ),
        ("%c = constant <i8: [1, 2]> : tile<i8>", "4:20: T016: constant of i8: a scalar takes one number, not a list"),
        (
            "%c = constant <i8: [1, 2]> : tile<4xi8>",
            "4:20: T016: constant of i8: 2 elements where the shape of tile<4xi8> says 4",
        ),
        (
            "%c = constant <i8: [[1], [2]]> : tile<2xi8>",
            "4:21: T016: constant of i8: the list is nested deeper than the shape of tile<2xi8>",
        ),
        (
            "%c = constant <i8: [1, 2]> : tile<2x1xi8>",
            "4:21: T016: constant of i8: the list is nested less deeply than the shape of tile<2x1xi8>",
        ),
        ("%c = constant <i8: []> : tile<2xi8>", "4:21: T016: constant of i8: a list must not be empty"),
        (
            "%c = constant <i8: 1> : tile<ptr<i8>>",
            "4:16: T016: constant of ptr<i8>: the literal says \"i8\"; write the element type of tile<ptr<i8>>",
        ),
        ("%c = constant <u8: 1> : tile<u8>", "4:25: T014: \"u8\" is not an element type of Tile IR"),
        (
            "%c = bitcast %f : tile<ptr<ptr<i8>>> -> tile<f32>",
            "4:28: T014: ptr<a pointer> points to a type without an address; use ptr<i8>",
        ),
        (
            "%c = int_to_ptr %f : tile<f32> -> ptr<i8>",
            "4:35: T014: conversions take tiles; a single pointer is written tile<ptr<..>>",
        ),
        (
            "%c = bitcast %f : tile<99999999999999999999xf32> -> tile<f32>",
            "4:19: T014: dimension 99999999999999999999 is too large",
        ),
    ];
    for (line, expected) in rows {
        assert_eq!(error(&in_entry(line)), expected, "{line}");
    }
    let found = [
        (
            "%c = exti %i : tile<4xi32> -> tile<4xi64>",
            "4:14: T009: %c: exti: write signed or unsigned after the operand",
        ),
        (
            "%c = itof %i sgned : tile<4xi32> -> tile<4xf32>",
            "4:14: T009: %c: itof: unknown signedness \"sgned\"; write signed or unsigned after the operand",
        ),
        (
            "%c = trunci %i overflow<nsw> : tile<4xi32> -> tile<4xi8>",
            "4:25: T010: %c: trunci: unknown overflow attribute \"nsw\"; use none, no_signed_wrap, no_unsigned_wrap or no_wrap",
        ),
        (
            "%c = ftof %f rounding<up> : tile<4xf32> -> tile<4xf16>",
            "4:23: T011: %c: ftof: unknown rounding mode \"up\"; use nearest_even, zero, negative_inf, positive_inf, nearest_away",
        ),
        (
            "%c = ftoi %f signed rounding<down> : tile<4xf32> -> tile<4xi8>",
            "4:30: T011: %c: ftoi: unknown rounding mode \"down\"; use nearest_int_to_zero",
        ),
    ];
    for (line, expected) in found {
        let module = parsed(&in_entry(line));
        assert_eq!(module.findings.iter().map(|e| e.to_string()).collect::<Vec<_>>(), [expected]);
    }
}

/// §4.7: text is of the newest version unless it is said to be older.
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

/// §9.3: a text is a module of this dialect, or it is none.
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
    // A module may be empty; that nothing can be run is said.
    for empty in ["module {}", "cuda_tile.module @m { global @g <f32: 1.0> : tile<f32> }"] {
        let report = verified(&parsed(empty));
        assert_eq!((report.errors, report.conversions), (vec![], 0), "{empty}");
        assert_eq!(report.warnings[0].to_string(), "1:1: T021: the module has no entry, so that nothing in it is run");
    }
    assert_eq!(print(&parsed("module {}")).unwrap(), "module {\n}\n");
}

/// T018: operations that no release has; T013: operations that come later.
#[test]
fn unknown_operations() {
    let found = |line: &str, version| {
        let module = parse(&in_entry(line), version).unwrap();
        module.findings.iter().map(|e| e.to_string()).collect::<Vec<_>>()
    };
    let rows = [
        (
            "%r = ftfo %f rounding<full> : tile<4xf32> -> tile<4xf16>",
            "4:6: T018: operation \"ftfo\" is not known in Tile IR; did you mean \"ftof\"?",
        ),
        (
            "%r = cuda_tile.fto1 %f : tile<4xf32>",
            "4:6: T018: operation \"fto1\" is not known in Tile IR; did you mean \"ftof\"?",
        ),
        ("store_view %f", "4:1: T018: operation \"store_view\" is not known in Tile IR"),
        // What follows an operation that is not read does not vanish in it.
        ("assert %f, \"text\" : tile<i1>\ntosa.cast %f", "5:1: T018: operation \"tosa.cast\" is not known in Tile IR"),
        (
            "%l = loop {\n %x = extii %f : tile<4xf32>\n continue\n}",
            "5:7: T018: operation \"extii\" is not known in Tile IR; did you mean \"exti\"?",
        ),
    ];
    for (line, expected) in rows {
        assert_eq!(found(line, Release::NEWEST), [expected], "{line}");
    }
    // The other operations of the dialect, from the release on that has them.
    assert_eq!(found("%r = addf %f, %f rounding<nearest_even> : tile<4xf32>", Release::V13_1), [""; 0]);
    let atan2 = "%r = atan2 %f, %f : tile<4xf32>";
    assert_eq!(found(atan2, Release::V13_2), [""; 0]);
    let newer =
        "4:6: T013: operation atan2 needs file version 13.2, this file is 13.1; save the module as version 13.2";
    assert_eq!(found(atan2, Release::V13_1), [newer]);
    // The dialect's own builds have more, which no file holds: told, and read for what is inside.
    let module = parsed(
        "cuda_tile.module @m { testing$func @f(%a: tile<f32>) { %r = ftof %a : tile<f32> -> tile<f32> return } }",
    );
    let report = verified(&module);
    assert_eq!(report.errors.iter().map(|e| e.code()).collect::<Vec<_>>(), ["T007"]);
    assert_eq!(report.warnings.iter().map(|e| e.code()).collect::<Vec<_>>(), ["T018", "T021"]);
}
