//! §3, §4 and §8.10.

use super::*;
use truecast_core::spec::tile::types::{Malformed, NUMBERS};

/// §3.1: spelling, tag, first release, bits.
#[test]
fn number_types() {
    let rows = [
        ("i1", 0, "13.1", 1),
        ("i4", 22, "13.3", 4),
        ("i8", 1, "13.1", 8),
        ("i16", 2, "13.1", 16),
        ("i32", 3, "13.1", 32),
        ("i64", 4, "13.1", 64),
        ("f16", 5, "13.1", 16),
        ("bf16", 6, "13.1", 16),
        ("f32", 7, "13.1", 32),
        ("tf32", 8, "13.1", 19),
        ("f64", 9, "13.1", 64),
        ("f8E4M3FN", 10, "13.1", 8),
        ("f8E5M2", 11, "13.1", 8),
        ("f8E8M0FNU", 18, "13.2", 8),
        ("f4E2M1FN", 19, "13.3", 4),
        ("fnv8E5M3FNU", 130, "13.4", 8),
    ];
    assert_eq!(rows.len(), NUMBERS.len());
    for (name, tag, since, bits) in rows {
        let row = Number::of_name(name).unwrap();
        assert_eq!((row.tag, row.since.name(), row.dtype.code_bits()), (tag, since, bits), "{name}");
        assert_eq!(element(name).to_string(), name);
    }
    assert_eq!(Number::of_name("fp8e4m3fn"), Number::of_name("f8E4M3FN"));
    assert_eq!(Number::of_name("fp8e5m2"), Number::of_name("f8E5M2"));
    for unknown in ["F32", "u8", "f8e4m3fn", "index", ""] {
        assert_eq!(Number::of_name(unknown), None, "{unknown}");
    }
}

/// §3.8: numbers of the enumerations.
#[test]
fn attribute_numbers() {
    let names = |n: usize, name: &dyn Fn(u64) -> Option<&'static str>| {
        (0..=n as u64).map(|i| name(i).unwrap_or("-")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(2, &|i| Signedness::of_number(i).map(Signedness::name)), "unsigned signed -");
    assert_eq!(
        names(4, &|i| IntegerOverflow::of_number(i).map(IntegerOverflow::name)),
        "none no_signed_wrap no_unsigned_wrap no_wrap -"
    );
    assert_eq!(
        names(8, &|i| RoundingMode::of_number(i).map(RoundingMode::name)),
        "nearest_even zero negative_inf positive_inf approx full nearest_int_to_zero nearest_away -"
    );
    assert_eq!(RoundingMode::of_number(u64::MAX), None);
    assert_eq!(RoundingMode::NearestAway.since(), Release::V13_4);
}

/// §3.7.
#[test]
fn tile_types() {
    let tile = |shape: &[u64], name: &str| TileType { shape: shape.to_vec(), element: element(name) };
    for (shape, name) in [
        (&[][..], "f32"),
        (&[1], "f32"),
        (&[1, 1, 1 << 24], "i1"),
        (&[2], "f4E2M1FN"),
        (&[1, 2], "f4E2M1FN"),
        (&[], "ptr f4E2M1FN"),
        (&[], "i4"),
        (&[4], "ptr i1"),
    ] {
        assert_eq!(tile(shape, name).check(), Ok(()), "{shape:?} {name}");
    }
    assert!(matches!(tile(&[4, 0], "f32").check(), Err(Malformed::Dimension { dimension: 0, .. })));
    assert!(matches!(tile(&[3], "f32").check(), Err(Malformed::Dimension { dimension: 3, .. })));
    assert!(matches!(tile(&[1 << 25], "f32").check(), Err(Malformed::Elements(_))));
    assert!(matches!(tile(&[1 << 40, 1 << 40], "f32").check(), Err(Malformed::Elements(_))));
    assert!(matches!(tile(&[], "f4E2M1FN").check(), Err(Malformed::HalfByte(_))));
    assert!(matches!(tile(&[1, 1], "f4E2M1FN").check(), Err(Malformed::HalfByte(_))));
    assert!(matches!(tile(&[1], "ptr f4E2M1FN").check(), Err(Malformed::PackedPointers(_))));
    assert!(matches!(tile(&[], "ptr i4").check(), Err(Malformed::Pointee(_))));
    assert_eq!(tile(&[4, 8], "ptr f8E5M2").to_string(), "tile<4x8xptr<f8E5M2>>");
    assert_eq!(tile(&[], "tf32").to_string(), "tile<tf32>");
}

const FLOATS: [&str; 10] = ["f64", "f32", "tf32", "bf16", "f16", "ue5m3", "e4m3", "e5m2", "e8m0", "e2m1"];

/// §4.4, row by row; `-` is the same type.
const MATRIX: [[&str; 10]; 10] = [
    ["-", "EZNP", "EZ", "EZ", "EZ", "E", "E", "E", "ZP", "E"],
    ["EZNPA", "-", "EZA", "EZ", "EZ", "E", "E", "E", "ZP", "E"],
    ["EZNPA", "EZNPA", "-", "EZ", "EZ", "E", "E", "E", "ZP", "E"],
    ["EZNPA", "EZNPA", "EZNPA", "-", "EZ", "E", "E", "E", "ZP", "E"],
    ["EZNPA", "EZNPA", "EZNPA", "EZ", "-", "E", "E", "E", "ZP", "E"],
    ["EZNPA", "EZNPA", "EZNPA", "EZNPA", "EZ", "-", "E", "E", "ZP", "E"],
    ["EZNPA", "EZNPA", "EZNPA", "EZNPA", "EZNPA", "E", "-", "E", "ZP", "E"],
    ["EZNPA", "EZNPA", "EZNPA", "EZNPA", "EZNPA", "E", "E", "-", "ZP", "E"],
    ["EZNPA", "EZ", "EZ", "EZ", "EZ", "E", "E", "E", "-", "E"],
    ["EZNPA", "EZNPA", "EZNPA", "EZNPA", "EZNPA", "E", "E", "E", "ZP", "-"],
];

/// Cell of the matrix in §4.4. §4.6 adapts the cell to a release.
fn accepted(release: Release, row: usize, column: usize) -> &'static str {
    match (release, FLOATS[column]) {
        _ if row == column => "",
        (Release::V13_1 | Release::V13_2, _) => "E",
        (Release::V13_3, "e8m0") => "ZP",
        (Release::V13_3, _) => "E",
        _ => MATRIX[row][column],
    }
}

/// For every release, pair and mode, ftof accepts exactly the modes of the tables.
#[test]
fn rounding_matrix() {
    for release in Release::ALL {
        for (row, src) in FLOATS.iter().enumerate() {
            for (column, dst) in FLOATS.iter().enumerate() {
                let expected: Vec<_> = accepted(release, row, column).chars().map(mode).collect();
                for rounding in RoundingMode::ALL {
                    let result = Conversion::Ftof { rounding }.check_pair(
                        element(src),
                        element(dst),
                        release,
                        Profile::Spec,
                        &OFF,
                    );
                    let what = format!("{release}: {src} to {dst} {rounding}");
                    match (&result, row == column) {
                        (Err(e), true) => assert_eq!(e.code(), "T007", "{what}"),
                        (Err(e), false) => {
                            assert_eq!(e.code(), "T008", "{what}");
                            assert!(!expected.contains(&rounding), "{what}: {e}");
                            let Violation::Rounding { allowed, .. } = e else { panic!("{what}") };
                            let mut listed = allowed.to_vec();
                            listed.sort();
                            let mut wanted = expected.clone();
                            wanted.sort();
                            assert_eq!(listed, wanted, "{what}: the message lists what is allowed");
                        }
                        (Ok(()), _) => assert!(expected.contains(&rounding), "{what}"),
                    }
                }
            }
        }
    }
}

/// §4.10: profile `seed` accepts every mode that the text of 13.1 lists and defines, for the types of 13.1. Other
/// profiles and newer types follow the release.
#[test]
fn rounding_modes_of_the_text() {
    let old = ["f64", "f32", "tf32", "bf16", "f16", "e4m3", "e5m2"];
    let accepted = |conversion: &dyn Fn(RoundingMode) -> Conversion, src, dst, release, profile| {
        let is_legal = |rounding: &RoundingMode| {
            conversion(*rounding).check_pair(element(src), element(dst), release, profile, &OFF).is_ok()
        };
        RoundingMode::ALL.iter().copied().filter(is_legal).map(RoundingMode::name).collect::<Vec<_>>().join(" ")
    };
    let ftof = |rounding| Conversion::Ftof { rounding };
    let ftoi = |rounding| Conversion::Ftoi { signedness: Signedness::Signed, rounding, saturating: false };
    let itof = |rounding| Conversion::Itof { signedness: Signedness::Signed, rounding };
    const FOUR: &str = "nearest_even zero negative_inf positive_inf";
    for release in Release::ALL {
        for src in old {
            for dst in old.into_iter().filter(|dst| *dst != src) {
                let by_text = accepted(&ftof, src, dst, release, Profile::Seed);
                let away = accepted(&ftof, src, dst, release, Profile::Spec).contains("nearest_away");
                assert_eq!(by_text, if away { format!("{FOUR} nearest_away") } else { FOUR.into() }, "{src} {dst}");
            }
            for integer in ["i1", "i8", "i16", "i32", "i64"] {
                let seed = |conversion, a, b| accepted(conversion, a, b, release, Profile::Seed);
                assert_eq!(seed(&ftoi, src, integer), format!("{FOUR} nearest_int_to_zero"));
                assert_eq!(seed(&itof, integer, src), FOUR);
                for profile in [Profile::Spec, Profile::Hw] {
                    assert_eq!(accepted(&ftoi, src, integer, release, profile), "nearest_int_to_zero");
                    assert_eq!(accepted(&itof, integer, src, release, profile), "nearest_even");
                }
            }
        }
        for (src, dst) in [("f32", "e8m0"), ("e8m0", "f32"), ("f32", "e2m1"), ("f64", "ue5m3")] {
            let of = |profile| accepted(&ftof, src, dst, release, profile);
            assert_eq!(of(Profile::Seed), of(Profile::Spec), "{src} {dst}");
        }
    }
    let refused =
        ftoi(RoundingMode::Approx).check_pair(element("f32"), element("i8"), Release::NEWEST, Profile::Seed, &OFF);
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .ends_with("nearest_int_to_zero, nearest_even, zero, negative_inf, positive_inf")
    );
}

const ALL: [&str; 18] = [
    "i1", "i4", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "tf32", "f64", "e4m3", "e5m2", "e8m0", "e2m1",
    "ue5m3", "ptr i8", "ptr f32",
];

fn is_legal(conversion: Conversion, src: &str, dst: &str, release: Release, options: &Options) -> bool {
    conversion.check_pair(element(src), element(dst), release, Profile::Spec, options).is_ok()
}

/// Every pair, against the classes of §4.3.
#[test]
fn bitcast_classes() {
    let classes: [&[&str]; 7] = [
        &["i8", "e4m3", "e5m2", "e8m0", "ue5m3"],
        &["i16", "f16", "bf16"],
        &["i32", "f32"],
        &["i64", "f64"],
        &["i1"],
        &["tf32"],
        &["e2m1"],
    ];
    let together = |a: &str, b: &str| classes.iter().any(|c| c.contains(&a) && c.contains(&b));
    let tf32_as_32 = Options { tf32_as_32_bit: true, ..OFF };
    for src in ALL {
        for dst in ALL {
            let legal = is_legal(Conversion::Bitcast, src, dst, Release::NEWEST, &OFF);
            assert_eq!(legal, together(src, dst), "{src} to {dst}");
            let word = |name: &str| ["tf32", "i32", "f32"].contains(&name);
            let legal = is_legal(Conversion::Bitcast, src, dst, Release::NEWEST, &tf32_as_32);
            assert_eq!(legal, together(src, dst) || word(src) && word(dst), "{src} to {dst}, tf32_as_32_bit");
        }
    }
}

/// Every pair, against §4.2.
#[test]
fn integer_and_pointer_pairs() {
    let exti: [(&str, &[&str]); 5] = [
        ("i1", &["i4", "i8", "i16", "i32", "i64"]),
        ("i4", &["i8", "i16", "i32", "i64"]),
        ("i8", &["i16", "i32", "i64"]),
        ("i16", &["i32", "i64"]),
        ("i32", &["i64"]),
    ];
    let widens = |a: &str, b: &str| exti.iter().any(|(src, all)| *src == a && all.contains(&b));
    let integer = |name: &str| ["i1", "i8", "i16", "i32", "i64"].contains(&name);
    let pointer = |name: &str| name.starts_with("ptr");
    for src in ALL {
        for dst in ALL {
            for signedness in Signedness::ALL {
                let newest = |conversion| is_legal(conversion, src, dst, Release::NEWEST, &OFF);
                let what = format!("{src} to {dst} {signedness}");
                let floats = |name| FLOATS.contains(&name);
                assert_eq!(newest(Conversion::Exti { signedness }), widens(src, dst), "exti {what}");
                assert_eq!(newest(ftoi(signedness, true)), floats(src) && integer(dst), "ftoi {what}");
                let to_float = floats(dst) && dst != "e8m0";
                assert_eq!(newest(itof(signedness)), integer(src) && to_float, "itof {what}");
                let in_13_2 = is_legal(itof(signedness), src, dst, Release::V13_2, &OFF);
                assert_eq!(in_13_2, integer(src) && floats(dst), "itof {what} in 13.2");
            }
            for overflow in IntegerOverflow::ALL {
                let legal = is_legal(Conversion::Trunci { overflow }, src, dst, Release::NEWEST, &OFF);
                assert_eq!(legal, widens(dst, src), "trunci {src} to {dst}");
            }
            for (conversion, expected) in [
                (Conversion::IntToPtr, src == "i64" && pointer(dst)),
                (Conversion::PtrToInt, pointer(src) && dst == "i64"),
                (Conversion::PtrToPtr, pointer(src) && pointer(dst)),
            ] {
                assert_eq!(is_legal(conversion, src, dst, Release::NEWEST, &OFF), expected, "{src} to {dst}");
            }
        }
    }
}

/// ftoi and itof have one mode each, in every release.
#[test]
fn one_mode_each() {
    for release in Release::ALL {
        for rounding in RoundingMode::ALL {
            let signedness = Signedness::Signed;
            let ftoi = Conversion::Ftoi { signedness, rounding, saturating: false };
            assert_eq!(is_legal(ftoi, "f32", "i32", release, &OFF), rounding == RoundingMode::NearestIntToZero);
            let itof = Conversion::Itof { signedness, rounding };
            assert_eq!(is_legal(itof, "i32", "f32", release, &OFF), rounding == RoundingMode::NearestEven);
        }
    }
}

/// §8.10.
#[test]
fn one_defect_each() {
    use Signedness::Signed;
    let rows: [(Conversion, &str, &str, &str); 14] = [
        (Conversion::Exti { signedness: Signed }, "i8", "i8", "T005"),
        (Conversion::Trunci { overflow: IntegerOverflow::None }, "i8", "i16", "T006"),
        (ftof('E'), "f16", "f16", "T007"),
        (ftof('Z'), "f32", "e4m3", "T008"),
        (ftof('E'), "f32", "e8m0", "T008"),
        (Conversion::Ftof { rounding: RoundingMode::Approx }, "f32", "f16", "T008"),
        (
            Conversion::Ftoi { signedness: Signed, rounding: RoundingMode::Zero, saturating: false },
            "f32",
            "i32",
            "T008",
        ),
        (Conversion::Itof { signedness: Signed, rounding: RoundingMode::Zero }, "i32", "f32", "T008"),
        (itof(Signed), "i32", "e8m0", "T012"),
        (itof(Signed), "i4", "f32", "T001"),
        (Conversion::Bitcast, "i32", "f16", "T003"),
        (Conversion::Bitcast, "tf32", "i32", "T003"),
        (Conversion::Bitcast, "ptr i8", "i64", "T004"),
        (Conversion::IntToPtr, "i32", "ptr i8", "T001"),
    ];
    let tile = |shape: &[u64], name| TileType { shape: shape.to_vec(), element: element(name) };
    for (conversion, src, dst, code) in rows {
        let error =
            conversion.check(&tile(&[4], src), &tile(&[4], dst), Release::NEWEST, Profile::Spec, &OFF).unwrap_err();
        assert_eq!(error.code(), code, "{src} to {dst}: {error}");
    }
    let error =
        ftof('E').check(&tile(&[4], "f32"), &tile(&[2], "f16"), Release::NEWEST, Profile::Spec, &OFF).unwrap_err();
    assert_eq!(error.code(), "T002");
}

/// §4.1: of two errors, the earlier step is reported.
#[test]
fn order_of_errors() {
    let tile = |shape: &[u64], name| TileType { shape: shape.to_vec(), element: element(name) };
    let code = |conversion: Conversion, src, dst| {
        conversion.check(&src, &dst, Release::NEWEST, Profile::Spec, &OFF).unwrap_err()
    };
    let operand_first = code(itof(Signedness::Signed), tile(&[4], "f32"), tile(&[4], "i8"));
    assert!(operand_first.to_string().contains("operand element f32"), "{operand_first}");
    assert_eq!(code(ftof('E'), tile(&[4], "i32"), tile(&[2], "f16")).code(), "T001");
    assert_eq!(code(ftof('Z'), tile(&[4], "f32"), tile(&[2], "e4m3")).code(), "T002");
    assert_eq!(code(ftof('E'), tile(&[3], "i32"), tile(&[3], "f16")).code(), "T014");
}

/// Other messages of §5 are tested with the module readers.
#[test]
fn message_of_shapes() {
    let shapes = Violation::Shape { op: Op::Ftof, operand: vec![4], result: vec![2, 2] };
    let shapes = shapes.to_string();
    assert!(shapes.starts_with("ftof: operand shape [4] and result shape [2x2] differ"), "{shapes}");
}
