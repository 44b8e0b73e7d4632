//! Promotion tables of `docs/spec/openvino.md`, which are parsed from the page. Also rules from the page's text.

use std::collections::BTreeMap;
use std::string::String; // not the element type
use truecast_core::DType::{self, *};
use truecast_core::promote::jax::X64;
use truecast_core::promote::openvino::{
    ACCEPTED, ConvertPromoteTypes, REJECTED, SafeMode, TensorType, U64Target, element,
};
use truecast_core::promote::tensorflow::Mode;
use truecast_core::promote::{Element, Input, Operand, Promoted, PromotionError, PythonNumber, Rank, System};
use truecast_core::{CastPolicy, Ecosystem, Exact, Kind, exact};

const PAGE: &str = include_str!("../../../docs/spec/openvino.md");

fn section(heading: &str) -> &'static str {
    let from = PAGE.split(&format!("\n### {heading} ")).nth(1).unwrap_or_else(|| panic!("no section {heading}"));
    from.split("\n##").next().unwrap()
}

/// Cells of the matrix in a section: row, column, content.
fn matrix(heading: &str) -> Vec<(DType, DType, &'static str)> {
    let mut lines = section(heading).split("```").nth(1).unwrap().lines().filter(|l| !l.trim().is_empty());
    let dtype = |name: &str| DType::parse_in(Ecosystem::OpenVino, name).unwrap();
    let columns: Vec<DType> = lines.next().unwrap().split_whitespace().map(dtype).collect();
    let mut cells = Vec::new();
    for line in lines {
        let mut words = line.split_whitespace();
        let row = dtype(words.next().unwrap());
        let words: Vec<_> = words.collect();
        assert_eq!(words.len(), columns.len(), "{heading}: {line}");
        cells.extend(columns.iter().zip(words).map(|(&column, word)| (row, column, word)));
    }
    cells
}

/// `P3`, or the name of the type on the page.
fn shown(outcome: Result<Element, PromotionError>) -> String {
    match outcome {
        Ok(element) => truecast_core::promote::openvino::name(element).into(),
        Err(error) => format!("P{}", error.code().strip_prefix("TC-PRM-0").unwrap()),
    }
}

fn of(promote_unsafe: bool, pytorch_scalar_promotion: bool, target: DType) -> ConvertPromoteTypes {
    let u64_integer_promotion_target = U64Target::new(target).unwrap();
    ConvertPromoteTypes { promote_unsafe, pytorch_scalar_promotion, u64_integer_promotion_target }
}

/// §3.1 to §3.4.
#[test]
fn openvino_matrices() {
    use Rank::*;
    let outside = [(Dimensioned, Dimensioned), (Scalar, Scalar)];
    // Section, promote_unsafe, pytorch_scalar_promotion, ranks of the matrix.
    type Row<'a> = (&'a str, bool, bool, &'a [(Rank, Rank)]);
    let rows: [Row; 6] = [
        ("3.1", false, false, &[(Scalar, Dimensioned), (Dimensioned, Dynamic), outside[0], outside[1]]),
        ("3.1", false, true, &outside),
        ("3.2", true, false, &[(Scalar, Dimensioned), (Dynamic, Dynamic), outside[0], outside[1]]),
        ("3.2", true, true, &outside),
        ("3.3", false, true, &[(Scalar, Dimensioned)]),
        ("3.4", true, true, &[(Scalar, Dimensioned)]),
    ];
    for (heading, promote_unsafe, torch, ranks) in rows {
        let cells = matrix(heading);
        assert_eq!(cells.len(), 17 * 17);
        for &(a, b, cell) in &cells {
            for &(lhs, rhs) in ranks {
                for target in [F32, F64, I64] {
                    let attributes = of(promote_unsafe, torch, target);
                    let (a, b) = (tensor(a, lhs), tensor(b, rhs));
                    let expected = if cell == "U64T" { target.name() } else { cell };
                    let there = attributes.promote(a, b, SafeMode::OpenVino);
                    assert_eq!(shown(there.clone()), expected, "{heading}: {a:?} {b:?}");
                    let back = attributes.promote(b, a, SafeMode::OpenVino);
                    assert_eq!(shown(back), expected, "{heading}, swapped: {a:?} {b:?}");
                }
            }
        }
    }
}

fn tensor(dtype: DType, rank: Rank) -> TensorType {
    TensorType { element: Element::Type(dtype), rank }
}

fn elements() -> Vec<Element> {
    ACCEPTED.into_iter().chain(REJECTED).map(Element::Type).chain([Element::Dynamic]).collect()
}

/// Visits every row of the grid in §3.5.
fn grid(mut visit: impl FnMut(ConvertPromoteTypes, TensorType, TensorType)) {
    for target in [F32, F64, F16, I64, U64, Bool] {
        for (promote_unsafe, torch) in [(false, false), (false, true), (true, false), (true, true)] {
            let with_ranks = |element| Rank::ALL.map(|rank| TensorType { element, rank });
            let tensors: Vec<TensorType> = elements().into_iter().flat_map(with_ranks).collect();
            for lhs in &tensors {
                for rhs in &tensors {
                    visit(of(promote_unsafe, torch, target), *lhs, *rhs);
                }
            }
        }
    }
}

/// §3.5: 146,016 rows, and the number of each outcome.
#[test]
fn outcome_counts() {
    let mut counts = BTreeMap::<String, u32>::new();
    let (mut rows, mut strict) = (0, 0);
    grid(|attributes, a, b| {
        let plain = attributes.promote(a, b, SafeMode::OpenVino);
        let strictly = attributes.promote(a, b, SafeMode::Strict);
        if strictly != plain {
            assert_eq!(strictly.unwrap_err().code(), "TC-PRM-07");
            strict += 1;
        }
        *counts.entry(shown(plain)).or_default() += 1;
        rows += 1;
    });
    assert_eq!((rows, strict), (146_016, 372));
    let mut expected = BTreeMap::new();
    for line in section("3.5").lines().filter(|l| l.starts_with("| ") && !l.contains("outcome")) {
        let cells: Vec<_> = line.split('|').map(str::trim).filter(|c| !c.is_empty()).collect();
        for pair in cells.chunks(2) {
            expected.insert(pair[0].to_string(), pair[1].replace(',', "").parse::<u32>().unwrap());
        }
    }
    assert_eq!(expected.len(), 24);
    assert_eq!(counts, expected);
}

/// §2.6: the modes differ on exactly these pairs.
#[test]
fn strict_pairs() {
    let attributes = |torch| of(false, torch, F32);
    let differs = |torch, a: (DType, Rank), b: (DType, Rank)| {
        let (a, b) = (tensor(a.0, a.1), tensor(b.0, b.1));
        let strict = attributes(torch).promote(a, b, SafeMode::Strict);
        strict != attributes(torch).promote(a, b, SafeMode::OpenVino)
    };
    let scalar_with_tensor = "u4 i4, u8 i4, u8 i8, u16 i8, u16 i16, u32 i16, u32 i32, u64 i32, u64 i64, bf16 f16, \
                              f16 bf16, f8e4m3fn f8e5m2, f8e5m2 f8e4m3fn";
    for a in ACCEPTED {
        for b in ACCEPTED {
            let everywhere = [(U4, F8E5M2), (F8E5M2, U4)].contains(&(a, b));
            for torch in [false, true] {
                for ranks in [(Rank::Dimensioned, Rank::Dimensioned), (Rank::Scalar, Rank::Scalar)] {
                    assert_eq!(differs(torch, (a, ranks.0), (b, ranks.1)), everywhere, "{a} {b}");
                }
            }
            let (s, d) = ((a, Rank::Scalar), (b, Rank::Dimensioned));
            let expected = everywhere || scalar_with_tensor.split(", ").any(|pair| pair == format!("{a} {b}"));
            assert_eq!(differs(true, s, d), expected, "S({a}) D({b})");
            assert_eq!(differs(true, d, s), expected, "D({b}) S({a})");
        }
    }
}

/// §2.7: promotion is commutative. It is associative except for u64 with signed integers.
#[test]
fn algebra() {
    for (target, expected) in [(F32, 84), (F64, 104)] {
        let attributes = of(true, false, target);
        let promote = |a: DType, b: DType| {
            let [a, b] = [a, b].map(|t| tensor(t, Rank::Dimensioned));
            match attributes.promote(a, b, SafeMode::OpenVino) {
                Ok(Element::Type(dtype)) => dtype,
                other => panic!("{other:?}"),
            }
        };
        let mut differ = 0;
        for a in ACCEPTED {
            for b in ACCEPTED {
                assert_eq!(promote(a, b), promote(b, a));
                differ += ACCEPTED.iter().filter(|&&c| promote(promote(a, b), c) != promote(a, promote(b, c))).count();
            }
        }
        assert_eq!(differ, expected, "{target}");
    }
}

/// §2.3, §2.4, §2.5.
#[test]
fn errors_and_attributes() {
    let dimensioned = |dtype| tensor(dtype, Rank::Dimensioned);
    let safe = ConvertPromoteTypes::default();
    assert_eq!(safe, of(false, false, F32));
    for rejected in REJECTED {
        for other in [
            dimensioned(Bool),
            dimensioned(rejected),
            TensorType { element: Element::Dynamic, rank: Rank::Dimensioned },
        ] {
            for attributes in [safe, of(true, true, F32)] {
                let error = attributes.promote(dimensioned(rejected), other, SafeMode::OpenVino).unwrap_err();
                assert!(matches!(error, PromotionError::Element { input: 0, .. }), "{error}");
                let error = attributes.promote(other, dimensioned(rejected), SafeMode::OpenVino).unwrap_err();
                let input = usize::from(other != dimensioned(rejected));
                assert!(matches!(error, PromotionError::Element { input: i, .. } if i == input), "{error}");
            }
        }
    }
    let dynamic = tensor(I8, Rank::Dynamic);
    assert_eq!(of(false, true, F32).promote(dimensioned(U8), dynamic, SafeMode::OpenVino), Ok(Element::Dynamic));
    assert_eq!(shown(safe.promote(dimensioned(U8), dynamic, SafeMode::OpenVino)), "P4");

    for target in U64Target::ALL {
        let name = truecast_core::promote::openvino::name(Element::Type(target));
        for text in [name.to_string(), name.to_uppercase()] {
            assert_eq!(text.parse::<U64Target>().map(U64Target::dtype), Ok(target), "{text}");
        }
    }
    for text in
        ["nf4", "f8e8m0", "f4e2m1", "string", "dynamic", "undefined", "FP32", "BOOL", "BIN", "", "float32", "tf32"]
    {
        assert_eq!(text.parse::<U64Target>().unwrap_err().code(), "TC-PRM-06", "{text}");
    }
    for (legacy, name) in [("FP16", "f16"), ("FP32", "f32"), ("FP64", "f64"), ("BOOL", "boolean"), ("BIN", "u1")] {
        let message = legacy.parse::<U64Target>().unwrap_err().to_string();
        assert!(message.ends_with(&format!("; the spelling here is {name}")), "{message}");
    }
    assert_eq!(element("Undefined"), Some(Element::Dynamic));
    assert_eq!(element("FP32"), None);
}

/// Texts of §2.5, with values for the placeholders.
#[test]
fn messages() {
    use Rank::*;
    let accepted = "boolean, u1, u4, u8, u16, u32, u64, i4, i8, i16, i32, i64, f8e4m3, f8e5m2, bf16, f16, f32, f64";
    let p1 = format!("ConvertPromoteTypes does not take element type u2 (input 1); it takes {accepted}, and dynamic");
    let rows: [((DType, Rank), DType, &str); 7] = [
        ((F8E4M3Fn, Dimensioned), U2, &p1),
        (
            (U8, Dimensioned),
            F8E4M3Fn,
            "safe promotion of u8 with f8e4m3 refused: f8e4m3 has 8 bits and 16 are required; unsafe promotion would give f8e4m3",
        ),
        (
            (I64, Scalar),
            U8,
            "safe scalar promotion refused: a i64 scalar may not become u8; unsafe promotion would give u8",
        ),
        (
            (I8, Dimensioned),
            U16,
            "safe promotion of u16 with i8 refused: a signed integer of 32 bits is required and i8 has 8; unsafe promotion would give i32",
        ),
        (
            (I8, Dimensioned),
            U64,
            "safe promotion of u64 with i8 refused: a signed integer of 128 bits is required and i8 has 8; unsafe promotion would give f64",
        ),
        (
            (F16, Dimensioned),
            Bf16,
            "safe promotion of f16 with bf16 refused: same width, different formats; unsafe promotion would give f32",
        ),
        (
            (U4, Dimensioned),
            F8E5M2,
            "strict promotion refused: u4 -> f8e5m2 does not keep every value of u4; safe mode openvino would give f8e5m2",
        ),
    ];
    for ((a, rank), b, message) in rows {
        // Only scalars are promoted by the scalar rule.
        let attributes = of(false, rank == Scalar, F64);
        let error = attributes.promote(tensor(a, rank), tensor(b, Dimensioned), SafeMode::Strict).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
    let refused = System::Numpy.promote(F16.into(), Bf16.into()).unwrap_err();
    assert_eq!(refused.to_string(), "numpy refuses to promote f16 with bf16");
    let unknown = System::Numpy.promote(U3.into(), Bf16.into()).unwrap_err();
    assert_eq!((unknown.code(), unknown.to_string().as_str()), ("TC-PRM-08", "numpy has no element type u3"));
}

/// `-` is P9, `*` is weak.
fn cell_of(outcome: Result<Promoted, PromotionError>) -> String {
    match outcome {
        Ok(Promoted { element: Element::Type(dtype), is_weak, .. }) => {
            format!("{dtype}{}", if is_weak { "*" } else { "" })
        }
        Err(PromotionError::Refused { .. }) => "-".into(),
        other => panic!("{other:?}"),
    }
}

/// §12.2, §12.3, §12.5. The table of §12.4 is tested in module `tensorflow`.
#[test]
fn matrices_of_other_systems() {
    for (heading, system, size) in
        [("12.2", System::Numpy, 21), ("12.3", System::Jax(X64::On), 21), ("12.5", System::Torch, 13)]
    {
        let cells = matrix(heading);
        assert_eq!(cells.len(), size * size);
        for (a, b, cell) in cells {
            let ours = cell_of(system.promote(a.into(), b.into()));
            let cell = DType::parse_in(Ecosystem::OpenVino, cell).map_or(cell, DType::name);
            // Stated in the text below the matrix of §12.3.
            let weak = heading == "12.3"
                && [a, b].contains(&U64)
                && cell == "f64"
                && a.is_numeric()
                && !a.is_float()
                && !b.is_float();
            assert_eq!(ours, format!("{cell}{}", if weak { "*" } else { "" }), "{heading}: {a} {b}");
        }
    }
    for a in System::TensorFlow(Mode::All).elements().chain(System::Numpy.elements()) {
        let Element::Type(a) = a else { panic!("no dynamic type") };
        for system in [System::Numpy, System::Jax(X64::On), System::Jax(X64::Off)] {
            if let Ok(Promoted { element, .. }) = system.promote(a.into(), a.into()) {
                let narrowed = system == System::Jax(X64::Off) && [F64, I64, U64].contains(&a);
                assert!(narrowed || element == Element::Type(a), "{system:?} {a}");
            }
        }
    }
}

/// §12.3, last paragraph; §12.5, the rules next to the matrix.
#[test]
fn further_rules() {
    // Two types and the result; `-` if the pair is refused.
    let rows = [
        (
            System::Jax(X64::Off),
            "u32 i8 i32, u32 i32 i32, u64 i64 i32, u64 u8 u32, f64 f32 f32, u16 i16 i32, i64 bf16 bf16, \
             f64 f64 f32, u8 i8 i16",
        ),
        (
            System::Torch,
            "u3 bf16 bf16, u6 f32 f32, u4 u4 u4, u4 u8 -, u4 bool -, i4 i4 i4, i4 f32 -, i2 bool -, \
             f8e4m3fn f32 -, f8e8m0 f8e8m0 f8e8m0, f4e2m1 u16 -, f4e2m1 f4e2m1 f4e2m1",
        ),
        (
            System::Numpy,
            "f6e2m3 u4 -, f6e2m3 u2 f6e2m3, f6e3m2 i4 f6e3m2, f8e5m2fnuz f8e4m3fn f8e4m3fn, \
             f8e3m4 f4e2m1 f8e3m4, f8e3m4 u16 -, f8e3m4 f16 -, f8e3m4 f32 f32, i1 i2 i2, i2 u8 -, i2 i64 i64, \
             i1 f16 f16, i1 bf16 -, i2 f8e5m2 -, i1 bool i1",
        ),
    ];
    for (system, rows) in rows {
        for row in rows.split(", ") {
            let [a, b, expected] = row.split(' ').collect::<Vec<_>>()[..] else { panic!("{row}") };
            let [x, y] = [a, b].map(|name| DType::parse(name).unwrap());
            assert_eq!(cell_of(system.promote(x.into(), y.into())), expected, "{system:?} {row}");
            assert_eq!(cell_of(system.promote(y.into(), x.into())), expected, "{system:?} {row}, swapped");
        }
    }
}

fn python(number: PythonNumber) -> Input {
    Input { operand: Operand::Python(number), rank: Rank::Dimensioned }
}

fn scalar(dtype: DType) -> Input {
    Input { rank: Rank::Scalar, ..dtype.into() }
}

/// Tables of Python numbers in §12.2 to §12.5, and the examples in §12.5.
#[test]
fn python_numbers_and_zero_dimensional_tensors() {
    use PythonNumber::{Bool as PyBool, Float, Int};
    let with = |system: System, t: DType| [PyBool, Int, Float].map(|n| cell_of(system.promote(t.into(), python(n))));
    let (numpy, jax, torch, tf) = (System::Numpy, System::Jax(X64::On), System::Torch, System::TensorFlow(Mode::All));
    let rows: [(System, DType, [&str; 3]); 17] = [
        (numpy, Bool, ["bool", "i64", "f64"]),
        (numpy, U8, ["u8", "u8", "f64"]),
        (numpy, I64, ["i64", "i64", "f64"]),
        (numpy, F16, ["f16", "f16", "f16"]),
        (numpy, Bf16, ["-", "-", "-"]),
        (numpy, U4, ["-", "-", "-"]),
        (jax, Bool, ["bool", "i64*", "f64*"]),
        (jax, U4, ["u4", "u4", "-"]),
        (jax, U64, ["u64", "u64", "f64*"]),
        (jax, F8E4M3Fn, ["f8e4m3fn", "f8e4m3fn", "f8e4m3fn"]),
        (System::Jax(X64::Off), Bool, ["bool", "i32*", "f32*"]),
        (System::Jax(X64::Off), I64, ["i32", "i32", "f32*"]),
        (torch, F16, ["f16", "f16", "f16"]),
        (torch, I32, ["i32", "i32", "f32"]),
        (torch, Bool, ["bool", "i64", "f32"]),
        (tf, I64, ["i64", "i64", "f64*"]),
        (tf, Bool, ["bool", "i32*", "f32*"]),
    ];
    for (system, dtype, expected) in rows {
        assert_eq!(with(system, dtype), expected, "{system:?} {dtype}");
    }
    assert_eq!(with(System::TensorFlow(Mode::Safe), I64), ["i64", "i64", "-"]);
    let torch = |a: Input, b: Input| cell_of(System::Torch.promote(a, b));
    for (a, b, expected) in [
        (scalar(I64), U8.into(), "u8"),
        (scalar(F16), I8.into(), "f16"),
        (scalar(F64), Bf16.into(), "bf16"),
        (scalar(U64), I8.into(), "i8"),
        (I32.into(), python(Float), "f32"),
        (F16.into(), python(Float), "f16"),
        (Bool.into(), python(Int), "i64"),
        (scalar(I32), python(Float), "f32"),
        (scalar(U64), scalar(I8), "-"),
    ] {
        assert_eq!(torch(a, b), expected, "{a:?} {b:?}");
        assert_eq!(torch(b, a), expected, "{b:?} {a:?}");
    }
    let openvino = System::OpenVino(ConvertPromoteTypes::default(), SafeMode::OpenVino);
    let refused = openvino.promote(python(Int), U8.into()).unwrap_err();
    assert_eq!(refused.to_string(), "openvino has no element type py:int");
}

/// §12.6: TensorFlow's modes equal OpenVINO's safe and unsafe modes, except for u64 with a signed integer.
#[test]
fn tensorflow_is_openvino() {
    let types = [Bool, U8, U16, U32, U64, I8, I16, I32, I64, Bf16, F16, F32, F64];
    for (mode, promote_unsafe) in [(Mode::Safe, false), (Mode::All, true)] {
        let openvino = System::OpenVino(of(promote_unsafe, false, F64), SafeMode::OpenVino);
        for a in types {
            for b in types {
                let element = |system: System| system.promote(a.into(), b.into()).map(|p| p.element).ok();
                assert_eq!(element(openvino), element(System::TensorFlow(mode)), "{a} {b} {mode:?}");
            }
        }
    }
    for refused in [F8E4M3Fn, I4, U2] {
        assert_eq!(cell_of(System::TensorFlow(Mode::All).promote(refused.into(), refused.into())), "-");
    }
}

#[test]
fn embedding_is_what_conversion_keeps() {
    for a in DType::ALL.into_iter().filter(|t| t.is_numeric() && t.code_bits() <= 16) {
        for b in DType::ALL.into_iter().filter(|t| t.is_numeric() && *t != a) {
            // Bool takes any number but keeps none. Code books and fixed point are not compared.
            if matches!(b.kind(), Kind::Bool | Kind::Book(_) | Kind::Fixed(_)) || matches!(a.kind(), Kind::Fixed(_)) {
                continue;
            }
            let kept = (0..1u64 << a.code_bits()).all(|code| {
                let value = exact::decode(a, code);
                let encoded = exact::encode(b, &CastPolicy::IEEE, value);
                let back = encoded.code.map(|code| exact::decode(b, code));
                match (value, back) {
                    (Exact::Nan { .. }, Some(Exact::Nan { .. })) => true,
                    (Exact::Inf { neg }, Some(Exact::Inf { neg: n })) => neg == n,
                    (Exact::Finite { sig: 0, .. }, Some(Exact::Finite { sig, .. })) => sig == 0,
                    (Exact::Finite { neg, sig, exp, .. }, Some(Exact::Finite { neg: n, sig: s, exp: e, .. })) => {
                        let reduced = |sig: u64, exp: i32| {
                            (sig >> sig.trailing_zeros().min(63), exp + sig.trailing_zeros() as i32)
                        };
                        neg == n && reduced(sig, exp) == reduced(s, e)
                    }
                    _ => false,
                }
            });
            assert_eq!(a.embeds_in(b), kept, "{a} in {b}");
        }
    }
}

/// Versions in the headings of `docs/spec/openvino.md §12`.
#[test]
fn releases() {
    for (system, heading) in [
        (System::Numpy, "### 12.2 NumPy "),
        (System::Jax(X64::On), "### 12.3 JAX "),
        (System::TensorFlow(Mode::All), "### 12.4 TensorFlow "),
        (System::Torch, "### 12.5 PyTorch "),
    ] {
        let said = PAGE.lines().find_map(|line| line.strip_prefix(heading)).unwrap().replace(" with ", ", ");
        assert!(said.starts_with(system.version()), "{heading}{said}");
    }
    assert!(
        PAGE.contains(&format!("openvino=={}", System::OpenVino(Default::default(), Default::default()).version()))
    );
}
