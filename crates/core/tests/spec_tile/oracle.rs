//! Independent oracle. It has all values of a format as f64, searches the neighbors of a number, and compares the
//! number with their midpoint. f64 holds every f32, and every value and midpoint of a format of at most 19 bits.

use super::*;
use truecast_core::Outcome;

/// Columns of §3.1.
struct Format {
    name: &'static str,
    exponent_bits: u32,
    fraction_bits: u32,
    bias: i32,
    signed: bool,
    max: u64,
    /// True for an IEEE-like format: Inf is above `max`, NaN above Inf. Otherwise, only NaN can be above `max`.
    inf: bool,
}

#[rustfmt::skip]
const FORMATS: [Format; 8] = [
    Format { name: "f16", exponent_bits: 5, fraction_bits: 10, bias: 15, signed: true, max: 0x7BFF, inf: true },
    Format { name: "bf16", exponent_bits: 8, fraction_bits: 7, bias: 127, signed: true, max: 0x7F7F, inf: true },
    Format { name: "tf32", exponent_bits: 8, fraction_bits: 10, bias: 127, signed: true, max: 0x3FBFF, inf: true },
    Format { name: "e4m3", exponent_bits: 4, fraction_bits: 3, bias: 7, signed: true, max: 0x7E, inf: false },
    Format { name: "e5m2", exponent_bits: 5, fraction_bits: 2, bias: 15, signed: true, max: 0x7B, inf: true },
    Format { name: "e8m0", exponent_bits: 8, fraction_bits: 0, bias: 127, signed: false, max: 0xFE, inf: false },
    Format { name: "e2m1", exponent_bits: 2, fraction_bits: 1, bias: 1, signed: true, max: 0x7, inf: false },
    Format { name: "ue5m3", exponent_bits: 5, fraction_bits: 3, bias: 15, signed: false, max: 0xFE, inf: false },
];

impl Format {
    fn sign(&self) -> u64 {
        if self.signed { 1 << (self.exponent_bits + self.fraction_bits) } else { 0 }
    }

    fn bits(&self) -> u32 {
        self.exponent_bits + self.fraction_bits + self.signed as u32
    }

    /// Value of a magnitude; above `max`, exponents continue.
    fn magnitude(&self, code: u64) -> f64 {
        let field = (code >> self.fraction_bits) as i32;
        let fraction = (code & ((1 << self.fraction_bits) - 1)) as f64 / (1u64 << self.fraction_bits) as f64;
        match field {
            _ if self.name == "e8m0" => 2f64.powi(field - self.bias),
            0 => fraction * 2f64.powi(1 - self.bias),
            _ => (1.0 + fraction) * 2f64.powi(field - self.bias),
        }
    }

    /// `None` for NaN.
    fn value(&self, code: u64) -> Option<f64> {
        let magnitude = code & !self.sign();
        let value = match magnitude {
            m if m <= self.max => self.magnitude(m),
            m if self.inf && m == self.max + 1 => f64::INFINITY,
            _ => return None,
        };
        Some(if code & self.sign() != 0 { -value } else { value })
    }

    /// §6.3 for a magnitude: the rounded code, `max + 1` on overflow.
    fn round(&self, x: f64, letter: char, negative: bool) -> u64 {
        // The largest code whose value is at most x, by bisection.
        let (mut floor, mut above) = (0, self.max + 1);
        if x < self.magnitude(0) {
            return 0; // below the smallest value of e8m0
        }
        while above - floor > 1 {
            let middle = (floor + above) / 2;
            *(if self.magnitude(middle) <= x { &mut floor } else { &mut above }) = middle;
        }
        let (low, high) = (self.magnitude(floor), self.magnitude(floor + 1));
        if low == x {
            return floor;
        }
        let middle = (low + high) / 2.0;
        let up = match letter {
            'Z' => false,
            'P' => !negative,
            'N' => negative,
            'A' => x >= middle,
            'E' => x > middle || (x == middle && floor & 1 == 1),
            _ => panic!("{letter}"),
        };
        floor + up as u64
    }

    /// Code that §6.7 gives in profile `spec` for a number or Inf. Also returns whether the result is undefined (U5).
    fn convert(&self, x: f64, letter: char) -> (u64, bool) {
        let negative = x.is_sign_negative();
        let sign = if negative { self.sign() } else { 0 };
        let unsigned_loss = negative && x != 0.0 && !self.signed;
        let saturates = self.bits() <= 8;
        let magnitude = match x.abs() {
            0.0 => 0,
            x if x.is_infinite() => self.max + !saturates as u64,
            x if self.name == "e8m0" => self.round(x, letter, false).min(self.max),
            x => {
                let rounded = self.round(x, letter, negative);
                let stops = letter == 'Z' || letter == 'N' && !negative || letter == 'P' && negative;
                rounded.min(self.max + !(saturates || stops) as u64)
            }
        };
        (magnitude | sign, unsigned_loss)
    }
}

/// Sources for a destination. They are every code of the narrow formats, and f32 and f64 around every value and
/// midpoint of the destination.
fn sources(dst: &Format) -> Vec<(&'static str, u64, Option<f64>)> {
    let mut all = Vec::new();
    for src in FORMATS.iter().filter(|f| f.name != dst.name && f.name != "tf32") {
        all.extend((0..1u64 << src.bits()).map(|code| (src.name, code, src.value(code))));
    }
    let step = if dst.bits() > 8 { 61 } else { 1 };
    let marks = (0..=dst.max).step_by(step).flat_map(|m| {
        let (low, high) = (dst.magnitude(m), dst.magnitude(m + 1));
        [low, (low + high) / 2.0]
    });
    for x in marks.chain([dst.magnitude(dst.max), f64::MAX, f64::MIN_POSITIVE, f64::INFINITY, 1e-300, 0.0]) {
        for neighbor in [x.next_down(), x, x.next_up()] {
            for x in [neighbor, -neighbor].into_iter().filter(|x| !x.is_nan()) {
                all.push(("f64", x.to_bits(), Some(x)));
                let narrow = x as f32;
                for narrow in [narrow.next_down(), narrow, narrow.next_up()].into_iter().filter(|x| !x.is_nan()) {
                    all.push(("f32", narrow.to_bits().into(), Some(narrow.into())));
                }
            }
        }
    }
    all
}

#[test]
fn ftof_against_tables() {
    let mut compared = 0u64;
    for dst in &FORMATS {
        let sources = sources(dst);
        for &(src, code, value) in &sources {
            let Some(x) = value else { continue };
            let modes = rounding_modes(Op::Ftof, number(src), number(dst.name), Release::NEWEST);
            for letter in "EZNPA".chars().filter(|&l| modes.contains(&mode(l))) {
                let meaning = ftof(letter).meaning(element(src), element(dst.name), Profile::Spec, &OFF).unwrap();
                let (expected, undefined) = dst.convert(x, letter);
                let found = meaning.element(code).outcome;
                let what = format!("{src} {code:X} = {x:e} to {} {letter}", dst.name);
                assert_eq!(found.code(), Some(expected), "{what}");
                assert_eq!(matches!(found, Outcome::Undefined { .. }), undefined, "{what}");
                compared += 1;
            }
        }
    }
    assert!(compared > 1_000_000, "{compared}");
}

/// `saturating` equals Rust's `as`: clamped, and NaN is 0.
#[test]
fn saturating_ftoi_against_rust() {
    let check = |src: &str, code: u64, x: f64| {
        let rows = [
            ("i8", x as i8 as u64 & 0xFF, x as u8 as u64),
            ("i16", x as i16 as u64 & 0xFFFF, x as u16 as u64),
            ("i32", x as i32 as u64 & 0xFFFF_FFFF, x as u32 as u64),
            ("i64", x as i64 as u64, x as u64),
        ];
        for (dst, signed, unsigned) in rows {
            for (signedness, expected) in [(Signedness::Signed, signed), (Signedness::Unsigned, unsigned)] {
                for profile in Profile::ALL {
                    let flagged = ftoi(signedness, true).meaning(element(src), element(dst), profile, &OFF).unwrap();
                    assert_eq!(flagged.element(code).outcome, Outcome::Defined(expected), "{src} {code:X} to {dst}");
                }
                // Without `saturating`, profile `spec` gives this code too. The code is defined if and only if the
                // truncated value fits.
                let plain = ftoi(signedness, false).meaning(element(src), element(dst), Profile::Spec, &OFF).unwrap();
                let outcome = plain.element(code).outcome;
                let width = number(dst).code_bits() as i32;
                let (low, high) = match signedness {
                    Signedness::Signed => (-2f64.powi(width - 1), 2f64.powi(width - 1)),
                    Signedness::Unsigned => (0.0, 2f64.powi(width)),
                };
                let fits = x.trunc() >= low && x.trunc() < high;
                assert_eq!(outcome.code(), Some(expected), "{src} {code:X} to {dst}");
                assert_eq!(matches!(outcome, Outcome::Defined(_)), fits, "{src} {code:X} to {dst} {signedness}");
            }
        }
    };
    for format in FORMATS.iter().filter(|f| f.bits() <= 8) {
        (0..1u64 << format.bits()).for_each(|code| check(format.name, code, format.value(code).unwrap_or(f64::NAN)));
    }
    for edge in [7, 8, 15, 16, 31, 32, 63, 64] {
        let at = 2f64.powi(edge);
        for x in [at.next_down(), at, at.next_up(), at - 1.0, at - 0.5, at + 0.5, 0.5, 0.0, f64::INFINITY] {
            for x in [x, -x] {
                check("f64", x.to_bits(), x);
                check("f32", (x as f32).to_bits().into(), (x as f32).into());
            }
        }
    }
}

/// Every 16-bit integer, in profile `hw`, which saturates.
#[test]
fn itof_against_tables() {
    for dst in FORMATS.iter().filter(|f| f.name != "e8m0") {
        for signedness in Signedness::ALL {
            let meaning = itof(signedness).meaning(element("i16"), element(dst.name), Profile::Hw, &OFF).unwrap();
            for n in 0..=u16::MAX {
                let x = match signedness {
                    Signedness::Signed => f64::from(n as i16),
                    Signedness::Unsigned => f64::from(n),
                };
                let (expected, _) = dst.convert(x, 'E');
                assert_eq!(meaning.element(n.into()).outcome, Outcome::Defined(expected), "{x} to {}", dst.name);
            }
        }
    }
}

/// Formats in the text of 13.1.
fn old_formats() -> impl Iterator<Item = &'static Format> {
    FORMATS.iter().filter(|f| ["f16", "bf16", "tf32", "e4m3", "e5m2"].contains(&f.name))
}

/// §4.10: profile `seed` rounds as in the text, also where no release accepts the mode.
#[test]
fn ftof_of_the_text() {
    for dst in old_formats() {
        for (src, code, value) in sources(dst) {
            let (Some(x), true) = (value, Number::of_name(src).is_some_and(|n| n.since == Release::V13_1)) else {
                continue;
            };
            for letter in "EZNP".chars() {
                let (from, to) = (element(src), element(dst.name));
                assert_eq!(ftof(letter).check_pair(from, to, Release::NEWEST, Profile::Seed, &OFF), Ok(()));
                let meaning = ftof(letter).meaning(from, to, Profile::Seed, &OFF).unwrap();
                let expected = Outcome::Defined(dst.convert(x, letter).0);
                assert_eq!(meaning.element(code).outcome, expected, "{src} {code:X} = {x:e} to {} {letter}", dst.name);
            }
        }
    }
}

/// §4.10, §6.9: an integer out of range becomes Inf or NaN, unless the mode rounds toward the largest finite value.
#[test]
fn itof_of_the_text() {
    for dst in old_formats() {
        for letter in "EZNP".chars() {
            let itof = Conversion::Itof { signedness: Signedness::Signed, rounding: mode(letter) };
            for (src, step) in [("i16", 1i64), ("i32", 0x1_2345)] {
                let meaning = itof.meaning(element(src), element(dst.name), Profile::Seed, &OFF).unwrap();
                let end = if step == 1 { i64::from(i16::MAX) } else { i64::from(i32::MAX) };
                for n in (-end - 1..=end).step_by(step as usize) {
                    let (x, negative) = (n as f64, n < 0);
                    let beyond = dst.round(x.abs(), letter, negative) > dst.max;
                    let stops = letter == 'Z' || letter == 'N' && !negative || letter == 'P' && negative;
                    let sign = if negative { dst.sign() } else { 0 };
                    // Inf, or the NaN of e4m3, is one above the largest finite code.
                    let expected = if beyond && !stops { (dst.max + 1) | sign } else { dst.convert(x, letter).0 };
                    let width = if step == 1 { 0xFFFF } else { 0xFFFF_FFFF };
                    let found = meaning.element(n as u64 & width).outcome;
                    assert_eq!(found, Outcome::Defined(expected), "{n} to {} {letter}", dst.name);
                }
            }
        }
    }
}

/// §4.10, §6.8. The tests are floor, ceiling, nearest even and truncation, then values out of range in profile `seed`.
#[test]
fn ftoi_of_the_text() {
    type Rounded = fn(f64) -> f64;
    let modes: [(RoundingMode, Rounded); 5] = [
        (RoundingMode::NearestEven, f64::round_ties_even),
        (RoundingMode::Zero, f64::trunc),
        (RoundingMode::NegativeInf, f64::floor),
        (RoundingMode::PositiveInf, f64::ceil),
        (RoundingMode::NearestIntToZero, f64::trunc),
    ];
    let marks = [0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.5, 126.5, 127.5, 128.0, 128.5, 255.5, 256.0, 32767.5, 65535.5, 1e9];
    for (rounding, round) in modes {
        for x in marks.into_iter().flat_map(|x: f64| [x.next_down(), x, x.next_up()]).flat_map(|x| [x, -x]) {
            let of = |dst, signedness| {
                let ftoi = Conversion::Ftoi { signedness, rounding, saturating: false };
                let meaning = ftoi.meaning(element("f64"), element(dst), Profile::Seed, &OFF).unwrap();
                meaning.element(x.to_bits()).outcome
            };
            let whole = round(x);
            let what = format!("{x:e} {rounding}");
            assert_eq!(of("i8", Signedness::Signed), Outcome::Defined(whole as i8 as u64 & 0xFF), "{what}");
            assert_eq!(of("i8", Signedness::Unsigned), Outcome::Defined(whole as u8 as u64), "{what}");
            assert_eq!(of("i16", Signedness::Signed), Outcome::Defined(whole as i16 as u64 & 0xFFFF), "{what}");
            assert_eq!(of("i64", Signedness::Unsigned), Outcome::Defined(whole as u64), "{what}");
            let bit = whole.clamp(0.0, 1.0) as u64;
            assert_eq!(of("i1", Signedness::Unsigned), Outcome::Defined(bit), "{what}");
        }
    }
}
