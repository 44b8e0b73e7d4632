//! Parses and prints elements in text (§9.4, §9.5).

use truecast_core::policy::{CastPolicy, NanSubstitute, Unrepresentable};
use truecast_core::spec::tile::{ElementType, types::spelling};
use truecast_core::{CastSpec, DType, Exact, Kind, Rounding, cast_one, exact::decode};

use crate::tile::error::{NO_I4, shown};

/// Code that a literal means. `atom` is its text without the sign, and `neg` its sign.
///
/// # Errors
/// The reason why the text is not a literal of the type (T016).
pub(super) fn code(dtype: DType, neg: bool, atom: &str) -> Result<u64, String> {
    if dtype == DType::I4 {
        return Err(NO_I4.into());
    }
    let hex = atom.strip_prefix("0x");
    match dtype.kind() {
        Kind::Int(_) if matches!(atom, "true" | "false") => match (dtype, neg) {
            (DType::I1, false) => Ok((atom == "true") as u64),
            _ => Err(format!("{atom} is an i1 literal")),
        },
        Kind::Int(_) => integer(dtype, neg, atom, hex),
        _ => float(dtype, neg, atom, hex),
    }
}

/// Parses an integer. Types below 64 bits accept the signed and the unsigned range; i64 accepts only the signed
/// range.
fn integer(dtype: DType, neg: bool, atom: &str, hex: Option<&str>) -> Result<u64, String> {
    let bits = dtype.code_bits();
    let magnitude = match hex {
        Some(digits) => i128::from_str_radix(digits, 16),
        None => atom.parse(),
    };
    let is_digits = |text: &str| text.starts_with(|c: char| c.is_ascii_alphanumeric());
    let magnitude = magnitude.ok().filter(|_| is_digits(hex.unwrap_or(atom)));
    let magnitude = magnitude.ok_or_else(|| format!("\"{}\" is not an integer", shown(atom)))?;
    let value = if neg { -magnitude } else { magnitude };
    let low = -(1i128 << (bits - 1));
    let high = if bits == 64 { i64::MAX.into() } else { (1i128 << bits) - 1 };
    if !(low..=high).contains(&value) {
        return Err(format!("{value} is out of range: {low} to {high}"));
    }
    Ok(match dtype {
        DType::I1 => (value != 0) as u64,
        _ => value as u64 & (u64::MAX >> (64 - bits)),
    })
}

fn float(dtype: DType, neg: bool, atom: &str, hex: Option<&str>) -> Result<u64, String> {
    let bits = dtype.code_bits();
    if let Some(digits) = hex {
        if neg {
            return Err("a bit pattern has no minus sign; set its sign bit".into());
        }
        let significant = digits.trim_start_matches('0');
        let code = match (digits, significant) {
            ("", _) => None,
            (_, "") => Some(0),
            _ => u64::from_str_radix(significant, 16).ok().filter(|_| !significant.starts_with('+')),
        };
        let code = code.filter(|c| bits == 64 || c >> bits == 0);
        return code.ok_or_else(|| format!("0x{} is not a pattern of {bits} bits", shown(digits)));
    }
    let is_decimal = atom.starts_with(|c: char| c.is_ascii_digit()) && atom.contains(['.', 'e', 'E']);
    let value: Option<f64> = if is_decimal { atom.parse().ok() } else { None };
    let value = value
        .ok_or_else(|| format!("\"{}\" is not a float; write a decimal point, or 0x and the bits", shown(atom)))?;
    let unsigned = matches!(dtype.kind(), Kind::Float(f) if !f.signed);
    if neg && unsigned {
        return Err("the type has no negative values".into());
    }
    Ok(from_f64(dtype, if neg { -value } else { value }))
}

/// Rounds the f64 of a literal to the element type: to nearest even, or for e8m0 to the nearest power of two (ties
/// upward).
///
/// Overflow becomes Inf if the type has Inf, else NaN if the type has NaN, else the largest value.
fn from_f64(dtype: DType, value: f64) -> u64 {
    let to_float = if dtype == DType::F8E8M0 { Rounding::NearestUp } else { Rounding::NearestEven };
    let policy = CastPolicy {
        to_float,
        vanishing: Unrepresentable::Smallest,
        nan_substitute: NanSubstitute::MaxPositive,
        ..CastPolicy::IEEE
    };
    let clause = "Tile IR literals; docs/spec/tile-ir.md §9.4";
    let cast = CastSpec { src: DType::F64, dst: dtype, policy, undefined: &[], clause };
    cast_one(&cast, value.to_bits()).code().expect("no policy of literals refuses a value")
}

/// Shortest decimal with a point that reads back as the same element. NaN and Inf are written as bits.
pub(super) fn text(element: ElementType, code: u64) -> String {
    let dtype = element.storage();
    match (dtype, dtype.kind()) {
        (DType::I1, _) => (code != 0).to_string(),
        (_, Kind::Int(f)) => f.value(code).to_string(),
        _ => match decode(dtype, code) {
            Exact::Finite { neg, sig, exp, .. } => {
                let magnitude = shortest(dtype, sig as f64 * 2f64.powi(exp / 2) * 2f64.powi(exp - exp / 2), neg);
                format!("{}{magnitude}", if neg { "-" } else { "" })
            }
            _ => format!("0x{code:0width$X}", width = dtype.code_bits().div_ceil(4) as usize),
        },
    }
}

fn shortest(dtype: DType, magnitude: f64, neg: bool) -> String {
    let signed = |x: f64| if neg { -x } else { x };
    let code = from_f64(dtype, signed(magnitude));
    let rounded = (0..17)
        .map(|digits| format!("{magnitude:.digits$e}"))
        .find_map(|text| text.parse::<f64>().ok().filter(|&x| from_f64(dtype, signed(x)) == code))
        .unwrap_or(magnitude);
    let text = format!("{rounded:?}");
    match text.split_once('e') {
        Some((mantissa, exponent)) if !mantissa.contains('.') => format!("{mantissa}.0e{exponent}"),
        _ => text,
    }
}

pub(super) fn element_name(element: ElementType) -> String {
    match element {
        ElementType::Number(n) => spelling(n).into(),
        pointer => pointer.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use DType::*;

    /// Rows of §9.4.
    #[test]
    fn what_literals_mean() {
        let rows: [(DType, bool, &str, Option<u64>); 44] = [
            (I8, true, "128", Some(0x80)),
            (I8, false, "255", Some(0xff)),
            (I8, false, "256", None),
            (I8, true, "129", None),
            (I16, false, "65535", Some(0xffff)),
            (I32, true, "2147483648", Some(0x8000_0000)),
            (I32, false, "4294967296", None),
            (I64, false, "9223372036854775807", Some(i64::MAX as u64)),
            (I64, false, "9223372036854775808", None),
            (I64, true, "9223372036854775808", Some(1 << 63)),
            (I64, false, "340282366920938463463374607431768211456", None),
            (I8, true, "0x10", Some(0xf0)),
            (I8, false, "0x", None),
            (I8, false, "0x+1", None),
            (I8, false, "1.0", None),
            (I1, true, "1", Some(1)),
            (I1, false, "1", Some(1)),
            (I1, false, "2", None),
            (I1, false, "true", Some(1)),
            (I1, false, "false", Some(0)),
            (I8, false, "true", None),
            (I4, false, "1", None),
            (F32, false, "1.5", Some(0x3fc0_0000)),
            (F32, true, "0.0", Some(0x8000_0000)),
            (F32, false, "1e5", Some(0x47c3_5000)),
            (F32, false, "2", None),
            (F32, false, "inf", None),
            (F32, false, "nan", None),
            (F32, false, "0x7FC00000", Some(0x7fc0_0000)),
            (F32, true, "0x1", None),
            (F32, false, "0x100000000", None),
            (F32, false, "0x0000000001", Some(1)),
            (Tf32, false, "0x3FE00", Some(0x3fe00)),
            (Tf32, false, "0x80000", None),
            (F16, false, "70000.0", Some(0x7c00)),
            (F8E4M3Fn, false, "1000.0", Some(0x7f)),
            (F8E8M0, false, "1e40", Some(0xff)),
            (F8E5M3Fnu, false, "1e6", Some(0xff)),
            (F4E2M1, false, "100.0", Some(7)),
            (F8E8M0, false, "1.5", Some(0x80)),
            (F8E8M0, false, "0.0", Some(0)),
            (F8E8M0, true, "0.0", None),
            (F8E5M3Fnu, true, "1.0", None),
            (F4E2M1, false, "0x10", None),
        ];
        for (dtype, neg, atom, expected) in rows {
            assert_eq!(code(dtype, neg, atom).ok(), expected, "{dtype} {neg} {atom}");
        }
    }

    /// Rounding to f64 turns 1 + 2^-11 + 2^-60 into a tie of f16.
    #[test]
    fn literals_round_twice() {
        let text = "1.00048828125000000086736173798840354720596224069595336914062";
        assert_eq!(code(F16, false, text), Ok(0x3c00));
    }

    /// All codes of the narrow types.
    #[test]
    fn printed_elements_are_read_back() {
        for dtype in [I1, I8, I16, F16, Bf16, Tf32, F8E4M3Fn, F8E5M2, F8E8M0, F4E2M1, F8E5M3Fnu] {
            for bits in 0..1u64 << dtype.code_bits() {
                let text = text(ElementType::Number(dtype), bits);
                let (neg, atom) = text.strip_prefix('-').map_or((false, &*text), |atom| (true, atom));
                assert_eq!(code(dtype, neg, atom), Ok(bits), "{dtype} {bits:x} as {text}");
            }
        }
        let shown = |dtype, code| text(ElementType::Number(dtype), code);
        assert_eq!(shown(F32, 0x3fc0_0000), "1.5");
        assert_eq!(shown(F32, 0x3dcc_cccd), "0.1");
        assert_eq!(shown(F8E4M3Fn, 1), "0.002");
        assert_eq!(shown(F32, 1), "1.0e-45");
        assert_eq!(shown(F64, 1), "5.0e-324");
        assert_eq!(shown(F64, u64::MAX), "0xFFFFFFFFFFFFFFFF");
        assert_eq!(shown(Tf32, 0x3fc00), "0x3FC00");
        assert_eq!(shown(F16, 0xfc00), "0xFC00");
    }
}
