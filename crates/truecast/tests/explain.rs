//! `explain` compared with the reference definition: neighbors and decision must lead to the defined code, for every
//! special code of every type.

use truecast::explain::{Decision, explain, rounding_error};
use truecast::{
    DType, Exact, Kind, Outcome, cast_one,
    decimal::to_decimal,
    exact::decode,
    literal::ratio,
    spec::{ieee, tile},
};

fn numeric() -> impl Iterator<Item = DType> {
    DType::ALL.into_iter().filter(|t| t.is_numeric())
}

/// Special codes of a wide type: zeros, ends of the subnormal and normal ranges, infinities and NaN, and the codes next
/// to these. A narrow type has all codes.
fn special(dtype: DType) -> Vec<u64> {
    let bits = dtype.code_bits();
    if bits <= 8 {
        return (0..1 << bits).collect();
    }
    let mask = u64::MAX >> (64 - bits);
    let sign = 1 << (bits - 1);
    let mut codes = vec![0, 1, 2, 3, mask, sign - 1, sign];
    if let Kind::Float(f) = dtype.kind() {
        codes.extend([f.min_normal_code(), f.max_code(), f.inf_code().unwrap_or(0), f.nan_code().unwrap_or(0)]);
        codes.push((f.bias as u64) << f.man_bits); // 1
        codes.push(((f.bias as u64) << f.man_bits) + (1 << (f.man_bits - 1))); // 1.5
    }
    let near = codes.clone().into_iter().flat_map(|c| [c.wrapping_sub(1), c, c.wrapping_add(1)]);
    near.flat_map(|c| [c & mask, (c ^ sign) & mask]).collect()
}

fn tile_elements(from: DType, to: DType, code: u64) -> Vec<Outcome> {
    let of = |attributes: tile::Cast| {
        let meaning = move |profile| tile::Cast { profile, ..attributes }.meaning(from).unwrap();
        tile::Profile::ALL.map(|profile| meaning(profile).element(code).outcome)
    };
    tile::Cast::to(to).every_attribute(from).into_iter().flat_map(of).collect()
}

#[test]
fn answers_are_those_of_the_definition() {
    for (from, to) in numeric().flat_map(|from| numeric().map(move |to| (from, to))) {
        for code in special(from) {
            let e = explain(from, code, to);
            assert_eq!(e.source.value, decode(from, code));
            assert!(e.answers.iter().any(|a| a.interpretation.spec == "ieee"), "{from} to {to}");
            for answer in e.answers {
                let spec = answer.interpretation.cast;
                assert_eq!((spec.src, spec.dst), (from, to));
                let i = &answer.interpretation;
                let of_tile = || tile_elements(from, to, code).contains(&answer.outcome);
                let right = if i.spec == "tile" { of_tile() } else { answer.outcome == cast_one(&spec, code) };
                assert!(right, "{from} {code:#x} to {to}: {answer:?}");
            }
        }
    }
}

#[test]
fn the_picture_leads_to_the_code() {
    let floats = || numeric().filter(|t| matches!(t.kind(), Kind::Float(_)));
    for (from, to) in numeric().flat_map(|from| floats().map(move |to| (from, to))) {
        let nearest_even = ieee::Cast::to(to).resolve(from).unwrap();
        for code in special(from) {
            let n = explain(from, code, to).neighbors;
            let Outcome::Defined(result) = cast_one(&nearest_even, code) else { continue };
            let value = to_decimal(decode(from, code));
            let said = format!("{from} {code:#x} = {value} to {to}: {n:?}");
            let code_of = |element: &Option<truecast::explain::Decoded>| element.as_ref().map(|e| e.code);
            let negative = matches!(decode(from, code), Exact::Finite { neg: true, .. });
            let outward = if negative { Decision::Below } else { Decision::Above };
            match n.decision {
                // FNUZ and unsigned types drop the sign of zero.
                Decision::Exact if value.trim_start_matches('-') == "0" => {
                    assert!(matches!(decode(to, result), Exact::Finite { sig: 0, .. }), "{said}");
                }
                Decision::Exact => assert_eq!(to_decimal(decode(to, result)), value, "{said}"),
                decision if n.beyond.is_some() && decision == outward => {
                    let Kind::Float(f) = to.kind() else { unreachable!() };
                    let magnitude = result & f.magnitude_mask();
                    assert!(magnitude > f.max_code() || f.nan_code().is_none_or(|nan| nan == result), "{said}");
                }
                Decision::Below => assert_eq!(Some(result), code_of(&n.below), "{said}"),
                Decision::Above => assert_eq!(Some(result), code_of(&n.above), "{said}"),
                Decision::Tie => {
                    assert!(n.beyond.is_some() || result & 1 == 0, "{said}");
                    assert!(
                        [code_of(&n.below), code_of(&n.above)].contains(&Some(result)) || n.beyond.is_some(),
                        "{said}"
                    );
                }
                _ => {}
            }
        }
    }
}

#[test]
fn neighbors_of_a_code_are_the_adjacent_finite_values() {
    let number = |value: Exact| to_decimal(value).parse::<f64>().unwrap();
    for dtype in numeric().filter(|t| t.code_bits() <= 8 && t.kind() != Kind::Bool) {
        let codes = || 0..1 << dtype.code_bits();
        let mut values: Vec<f64> = codes().map(|code| number(decode(dtype, code))).filter(|x| x.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        values.dedup(); // -0 equals 0
        for code in codes() {
            let element = explain(dtype, code, DType::F32).source;
            let here = number(element.value);
            let expected = match values.iter().position(|x| *x == here) {
                Some(at) => [at.checked_sub(1).map(|at| values[at]), values.get(at + 1).copied()],
                None => [None, None],
            };
            assert_eq!(element.adjacent().map(|e| e.map(|e| number(e.value))), expected, "{dtype} {code:#x}");
            for neighbor in expected.into_iter().flatten() {
                let middle = decode(DType::F64, f64::midpoint(here, neighbor).to_bits());
                let error = rounding_error(&ratio(&to_decimal(middle)).unwrap(), &element);
                assert_eq!(error.map(|error| error.ulps), Some(0.5), "{dtype} {code:#x} from {neighbor}");
            }
        }
    }
}

#[test]
fn high_bits_of_a_code_do_not_matter() {
    for from in numeric().filter(|t| t.code_bits() < 64) {
        let high = 1 << from.code_bits();
        assert_eq!(explain(from, high | 1, DType::F16).source.code, 1, "{from}");
        let answers = |code| explain(from, code, DType::F16).answers.into_iter().map(|a| a.outcome).collect::<Vec<_>>();
        assert_eq!(answers(high | 1), answers(1), "{from}");
    }
}
