//! The settings of a specification one by one, and whether one matters for a conversion: whether any value of it gives
//! any element another result than another value does.
//!
//! There is no table of which policy matters where, which could contradict the definition: the definition is asked, at
//! the values where conversions differ ([`crate::vectors`]), unless the pair never meets such a value. The names of
//! settings stand in `names`.

mod names;

use crate::request::{Request, Standard};
use crate::vectors::{marks, selection, specials};
use truecast_core::decimal::to_decimal;
use truecast_core::exact::decode;
use truecast_core::format::Specials;
use truecast_core::policy::{CastPolicy, IntOverflow, NanRule, NanToInt, Overflow, Subnormals, TextStyle};
use truecast_core::spec::{ieee, onnx, tile, tosa};
use truecast_core::text::{parse_one, print_one, printing};
use truecast_core::{CastSpec, DType, Exact, Kind, Rounding, cast_one};

/// One setting of a [`Request`].
///
/// # Examples
/// ```
/// use truecast_core::DType;
/// use truecast_explain::{request::Request, setting::Setting};
/// let onnx = Request::default();
/// assert!(Setting::Saturate.matters(&onnx, DType::F32, DType::F8E4M3Fn));
/// assert!(!Setting::Saturate.matters(&onnx, DType::F32, DType::F16)); // 70000 is Inf whatever it says
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Setting {
    /// ONNX: values out of range of 8-bit floats.
    Saturate,
    /// ONNX: rounding to f8e8m0.
    RoundMode,
    /// `ieee`, Tile IR: rounding.
    Rounding,
    /// `ieee`: finite values beyond the largest.
    Overflow,
    /// `ieee`: infinities.
    Inf,
    /// `ieee`: integers out of range.
    IntOverflow,
    /// `ieee`: NaN to an integer.
    NanToInt,
    /// `ieee`: subnormals.
    Subnormals,
    /// Tile IR: the flag of ftoi.
    Saturating,
    /// Tile IR: whose values. TOSA: what the implementation chooses.
    Profile,
    /// Tile IR: an option, as [`tile::Options::names`] has it.
    TileOption(&'static str),
    /// Sign and payload of NaN, with every specification.
    Nan,
    /// ONNX, `ieee`: the notation of floating-point numbers as text.
    TextStyle,
}

const OVERFLOWS: [Overflow; 3] = [Overflow::Nonfinite, Overflow::Saturate, Overflow::Error];

impl Setting {
    /// Whether some value of the setting gives some element of `src` another result than another value does, everything
    /// else being as in the request.
    ///
    /// What the request has for the setting does not count; a value that the specification refuses for the pair is a
    /// difference. Settings that the specification does not have do not matter.
    ///
    /// Cost: about a millisecond.
    #[must_use]
    pub fn matters(self, request: &Request, src: DType, dst: DType) -> bool {
        let resolved: Vec<_> = self.every_value(request).iter().map(|r| r.resolve(src, dst)).collect();
        if resolved.iter().any(Result::is_ok) && resolved.iter().any(Result::is_err) {
            return true;
        }
        let mut all = resolved.into_iter().flatten();
        let Some(first) = all.next() else { return false };
        let others: Vec<CastSpec> = all.filter(|other| !are_alike(&first, other)).collect();
        !others.is_empty() && Inputs::of(src, dst).tell_apart(&first, &others)
    }

    /// Whether the setting has a meaning for a destination: it [matters](Setting::matters) for some source.
    ///
    /// # Examples
    /// ```
    /// use truecast_core::DType;
    /// use truecast_explain::{request::Request, setting::Setting};
    /// let onnx = Request::default();
    /// assert!(Setting::Saturate.has_meaning(&onnx, DType::F8E4M3Fn)); // though nothing of i4 is out of its range
    /// assert!(!Setting::Saturate.has_meaning(&onnx, DType::F16));
    /// ```
    #[must_use]
    pub fn has_meaning(self, request: &Request, dst: DType) -> bool {
        sources(dst).into_iter().any(|src| self.matters(request, src, dst))
    }

    /// The request with each value that the setting can have.
    fn every_value(self, request: &Request) -> Vec<Request> {
        let with = |standard| Request { standard, ..*request };
        let of_ieee = |change: &dyn Fn(&mut ieee::Cast)| {
            let Standard::Ieee(mut cast) = request.standard else { return None };
            change(&mut cast);
            Some(with(Standard::Ieee(cast)))
        };
        let of_tile = |change: &dyn Fn(&mut tile::Cast)| {
            let Standard::Tile { mut cast, rules } = request.standard else { return None };
            change(&mut cast);
            Some(with(Standard::Tile { cast, rules }))
        };
        let of_onnx = |change: &dyn Fn(&mut Option<bool>, &mut Option<onnx::RoundMode>)| {
            let Standard::Onnx { operator, opset, mut saturate, mut round_mode } = request.standard else {
                return None;
            };
            change(&mut saturate, &mut round_mode);
            Some(with(Standard::Onnx { operator, opset, saturate, round_mode }))
        };
        let all: Vec<Option<Request>> = match self {
            Setting::Saturate => [true, false].map(|s| of_onnx(&|saturate, _| *saturate = Some(s))).into(),
            Setting::RoundMode => onnx::RoundMode::ALL.map(|m| of_onnx(&|_, mode| *mode = Some(m))).into(),
            Setting::Rounding => {
                let ieee = Rounding::ALL.map(|r| of_ieee(&|cast| cast.rounding = Some(r)));
                let modes = tile::RoundingMode::ALL.iter().copied();
                let tile = modes.map(|mode| of_tile(&|cast| cast.rounding = Some(mode)));
                ieee.into_iter().chain(tile).collect()
            }
            Setting::Overflow => OVERFLOWS.map(|o| of_ieee(&|cast| cast.overflow = o)).into(),
            Setting::Inf => OVERFLOWS.map(|o| of_ieee(&|cast| cast.inf = Some(o))).into(),
            Setting::IntOverflow => [IntOverflow::Wrap, IntOverflow::Saturate, IntOverflow::Error]
                .map(|o| of_ieee(&|cast| cast.int_overflow = o))
                .into(),
            Setting::NanToInt => {
                let all = [NanToInt::Zero, NanToInt::Saturate, NanToInt::Error];
                all.map(|n| of_ieee(&|cast| cast.nan_to_int = n)).into()
            }
            Setting::Subnormals => {
                [Subnormals::Keep, Subnormals::Flush].map(|s| of_ieee(&|cast| cast.subnormals = s)).into()
            }
            Setting::Saturating => [false, true].map(|s| of_tile(&|cast| cast.saturating = s)).into(),
            Setting::Profile => {
                let tile = tile::Profile::ALL.map(|p| of_tile(&|cast| cast.profile = p));
                let tosa = tosa::Freedoms::ENDS.map(|freedoms| match request.standard {
                    Standard::Tosa { target, .. } => Some(with(Standard::Tosa { target, freedoms })),
                    _ => None,
                });
                tile.into_iter().chain(tosa).collect()
            }
            Setting::TileOption(name) => {
                let without = |options: tile::Options| {
                    let mut others = tile::Options::default();
                    for other in options.names().filter(|other| *other != name) {
                        others.set(other).expect("it is on");
                    }
                    others
                };
                let switch = |on: bool| {
                    of_tile(&|cast| {
                        cast.options = without(cast.options);
                        if on {
                            cast.options.set(name).ok();
                        }
                    })
                };
                [false, true].map(switch).into()
            }
            Setting::Nan => {
                let all = [NanRule::Keep, NanRule::Canonical, NanRule::Error];
                all.map(|nan| Some(Request { nan: Some(nan), ..*request })).into()
            }
            Setting::TextStyle => TextStyle::ALL.map(|text| Some(Request { text, ..*request })).into(),
        };
        all.into_iter().flatten().collect()
    }
}

/// Those that show every difference in a destination, the slowest last. Text holds the values of all types alike, so that
/// a narrow one with every kind of value and an integer are enough to be printed.
fn sources(dst: DType) -> Vec<DType> {
    match dst {
        DType::String => vec![DType::F16, DType::I8],
        _ => DType::ALL.into_iter().filter(|src| *src != DType::String).chain([DType::String]).collect(),
    }
}

/// Nothing that a conversion of the pair looks at differs, so that no element has to be asked.
fn are_alike(a: &CastSpec, b: &CastSpec) -> bool {
    seen(a) == seen(b) && a.undefined == b.undefined
}

/// The policy as conversions of the pair see it: what they never come to is that of [`CastPolicy::IEEE`].
///
/// By the kind of the destination, as [`truecast_core::exact::encode`] branches; by what the source does not have; and
/// where every value of the source is a value of the destination, nothing is rounded.
fn seen(spec: &CastSpec) -> CastPolicy {
    let CastSpec { src, dst, policy: own, .. } = *spec;
    let ieee = CastPolicy::IEEE;
    let CastPolicy { to_float, to_int, overflow, int_overflow, nan_to_int, text, .. } = ieee;
    let mut seen = match dst.kind() {
        Kind::String => printing(&own),
        Kind::Bool => CastPolicy { nan: own.nan, ..ieee },
        Kind::Int(_) => {
            let CastPolicy { to_int, int_overflow, nan_to_int, nan, .. } = own;
            CastPolicy { to_int, int_overflow, nan_to_int, nan, ..ieee }
        }
        _ => CastPolicy { to_int, int_overflow, nan_to_int, text, ..own },
    };
    let (has_inf, has_nan) = match (src.kind(), dst.kind()) {
        (Kind::Float(f), _) => (f.inf_code().is_some(), f.nan_code().is_some()),
        // Text of infinities and NaN is no number to an integer (`docs/spec/onnx.md §6.5`).
        (Kind::String, Kind::Int(_)) => (false, false),
        (Kind::Complex(_) | Kind::String, _) => (true, true),
        _ => (false, false),
    };
    if !has_inf {
        seen.inf = ieee.inf;
    }
    if !has_nan {
        seen = CastPolicy { nan: ieee.nan, nan_to_int, ..seen };
    }
    if !src.is_float() {
        seen.text = text;
    }
    let has_subnormals = |dtype: DType| matches!(dtype.kind(), Kind::Float(f) if f.has_zero);
    let flushes_source = own.subnormals.flushes_source() && has_subnormals(src);
    seen.subnormals = Subnormals::of(flushes_source, own.subnormals.flushes_result() && has_subnormals(dst));
    if src.embeds_in(dst) {
        seen = CastPolicy { to_float, to_int, overflow, int_overflow, ..seen };
    }
    seen
}

/// Whether two requests give every element of every source the same result in `dst`.
///
/// # Examples
/// ```
/// use truecast_core::{DType, policy::NanRule};
/// use truecast_explain::{request::Request, setting::agree};
/// let onnx = Request::default();
/// let keep = Request { nan: Some(NanRule::Keep), ..onnx };
/// assert!(agree(&onnx, &keep, DType::F16)); // it says the default
/// assert!(!agree(&onnx, &Request { nan: Some(NanRule::Canonical), ..onnx }, DType::F16));
/// ```
#[must_use]
pub fn agree(a: &Request, b: &Request, dst: DType) -> bool {
    sources(dst).into_iter().all(|src| match (a.resolve(src, dst), b.resolve(src, dst)) {
        (Ok(a), Ok(b)) => are_alike(&a, &b) || !Inputs::of(src, dst).tell_apart(&a, &[b]),
        (a, b) => a.is_err() == b.is_err(),
    })
}

/// Whether it matters for some element that NaN is compared bit for bit: a result is NaN, and NaN has several codes.
///
/// # Examples
/// ```
/// use truecast_core::{DType, spec::onnx::Cast};
/// use truecast_explain::setting::exact_nan_matters;
/// assert!(exact_nan_matters(&Cast::to(DType::F16).resolve(DType::F32)?));
/// assert!(!exact_nan_matters(&Cast::to(DType::F8E4M3Fnuz).resolve(DType::F32)?)); // has one NaN
/// assert!(!exact_nan_matters(&Cast::to(DType::F16).resolve(DType::I32)?)); // no NaN comes out
/// # Ok::<(), truecast_core::spec::SpecError>(())
/// ```
#[must_use]
pub fn exact_nan_matters(spec: &CastSpec) -> bool {
    let several = match spec.dst.kind() {
        Kind::Float(f) => {
            f.nan_code().is_some() && (f.signed || f.inf_code().is_some()) && f.specials != Specials::Fnuz
        }
        _ => false,
    };
    let is_nan = |code: Option<u64>| code.is_some_and(|c| matches!(decode(spec.dst, c), Exact::Nan { .. }));
    several
        && match Inputs::of(spec.src, spec.dst) {
            Inputs::Codes(codes) => codes.iter().any(|&code| is_nan(cast_one(spec, code).code())),
            Inputs::Texts(marks) => Inputs::texts(&marks)
                .any(|text| parse_one(spec, text.as_bytes()).is_ok_and(|outcome| is_nan(outcome.code()))),
        }
}

/// Where two conversions of a pair can differ.
enum Inputs {
    Codes(Vec<u64>),
    /// What text says beside [`SPECIAL_TEXTS`].
    Texts(Vec<Exact>),
}

const SPECIAL_TEXTS: [&str; 6] = ["nan", "-nan", "inf", "-inf", "0", "-0"];

impl Inputs {
    fn of(src: DType, dst: DType) -> Inputs {
        // Text is printed from every kind of value that the source has: around those of the source itself.
        let numeric = |dtype: DType, or: DType| if dtype.is_numeric() { dtype } else { or };
        match src {
            // Printing is slow, and what it can differ in shows at the specials, so they come first.
            _ if src.is_numeric() => Inputs::Codes([specials(src), selection(src, numeric(dst, src))].concat()),
            DType::String if dst.is_numeric() => Inputs::Texts(ends_first(marks(dst, 8))),
            _ => Inputs::Codes(Vec::new()),
        }
    }

    /// Texts at which a conversion shows what it does. Each is long, and made only when it is needed.
    fn texts(marks: &[Exact]) -> impl Iterator<Item = String> + use<'_> {
        SPECIAL_TEXTS.into_iter().map(String::from).chain(marks.iter().map(|mark| to_decimal(*mark)))
    }

    /// One of the others gives some element another result than `a`.
    fn tell_apart(&self, a: &CastSpec, others: &[CastSpec]) -> bool {
        fn differ<R: PartialEq>(a: &CastSpec, others: &[CastSpec], result: impl Fn(&CastSpec) -> R) -> bool {
            #[cfg(test)]
            tests::ASKED.set(tests::ASKED.get() + usize::from([a.src, a.dst].contains(&DType::String)));
            let given = result(a);
            others.iter().any(|other| result(other) != given)
        }
        match self {
            Inputs::Codes(codes) if a.dst == DType::String => {
                codes.iter().any(|&code| differ(a, others, |spec| print_one(spec, code)))
            }
            Inputs::Codes(codes) => codes.iter().any(|&code| differ(a, others, |spec| cast_one(spec, code))),
            Inputs::Texts(marks) => {
                Inputs::texts(marks).any(|text| differ(a, others, |spec| parse_one(spec, text.as_bytes())))
            }
        }
    }
}

/// The first, the last, the second, the last but one, ..: what is left out of the range and what is subnormal soon.
fn ends_first(marks: Vec<Exact>) -> Vec<Exact> {
    let half = marks.len().div_ceil(2);
    let pairs = marks.iter().zip(marks.iter().rev()).take(half);
    pairs.flat_map(|(first, last)| [*first, *last]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        /// Texts that were printed or read on this thread, once for all policies.
        pub static ASKED: Cell<usize> = const { Cell::new(0) };
    }

    fn requests() -> impl Iterator<Item = Request> {
        let others = [
            Standard::Tosa { target: tosa::Target::default(), freedoms: tosa::Freedoms::STRICT },
            Standard::OpenVino,
            Standard::Tile { cast: tile::Cast::to(DType::F32), rules: tile::Rules::default() },
            Standard::Ieee(ieee::Cast::to(DType::F32)),
        ];
        let other = |standard| Request { standard, ..Request::default() };
        [Request::default()].into_iter().chain(others.map(other))
    }

    /// Text is long to print and to read. Whatever is asked is answered by a few texts: where one of the types is long, by
    /// less than forty, and else at most by every code of 8 bits and its marks.
    #[test]
    fn few_texts_are_tried() {
        let (mut asked, mut long) = (0, 0);
        for request in requests() {
            for setting in Setting::all() {
                for dtype in DType::ALL {
                    let questions: [&dyn Fn() -> bool; 4] = [
                        &|| setting.matters(&request, dtype, DType::String),
                        &|| setting.matters(&request, DType::String, dtype),
                        &|| setting.has_meaning(&request, dtype),
                        &|| agree(&request, &Request { nan: Some(NanRule::Canonical), ..request }, dtype),
                    ];
                    for (i, question) in questions.into_iter().enumerate() {
                        ASKED.set(0);
                        question();
                        let texts = ASKED.get();
                        let is_long = matches!(dtype, DType::F64 | DType::F32 | DType::Tf32 | DType::Bf16);
                        let most = if is_long { 40 } else { 1500 };
                        assert!(texts <= most, "{setting:?} {request}: {dtype}, question {i}: {texts}");
                        (asked, long) = (asked + texts, long + usize::from(is_long && texts > 0));
                    }
                }
            }
        }
        assert!(asked > 1000 && long > 30, "{asked} {long}");
    }

    /// What is not seen changes nothing: at every code of narrow sources, under policies of every kind.
    #[test]
    fn what_is_not_seen_does_not_matter() {
        let mut random = 0x9e37_79b9_7f4a_7c15u64;
        let mut pick = |n: usize| {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (random >> 33) as usize % n
        };
        let narrow = DType::ALL.into_iter().filter(|dtype| dtype.is_numeric() && dtype.code_bits() <= 8);
        let sources: Vec<DType> = narrow.chain([DType::F16]).collect();
        let mut hidden = 0;
        for &src in &sources {
            for dst in DType::ALL.into_iter().filter(|dtype| dtype.is_numeric()) {
                for _ in 0..4 {
                    let overflow = |i: usize| OVERFLOWS[i];
                    let policy = CastPolicy {
                        to_float: Rounding::ALL[pick(Rounding::ALL.len())],
                        to_int: Rounding::ALL[pick(Rounding::ALL.len())],
                        overflow: overflow(pick(3)),
                        inf: overflow(pick(3)),
                        nan: [NanRule::Keep, NanRule::Canonical, NanRule::Error][pick(3)],
                        int_overflow: [IntOverflow::Wrap, IntOverflow::Saturate, IntOverflow::Error][pick(3)],
                        nan_to_int: [NanToInt::Zero, NanToInt::Saturate, NanToInt::Error][pick(3)],
                        subnormals: [Subnormals::Keep, Subnormals::Flush][pick(2)],
                        ..CastPolicy::IEEE
                    };
                    let spec = CastSpec { src, dst, policy, undefined: &[], clause: "" };
                    let reduced = CastSpec { policy: seen(&spec), ..spec };
                    hidden += usize::from(reduced.policy != policy);
                    for code in (0..1u64 << src.code_bits()).step_by(if src == DType::F16 { 7 } else { 1 }) {
                        assert_eq!(
                            cast_one(&spec, code),
                            cast_one(&reduced, code),
                            "{src} to {dst}, {code:#x}: {policy:?}"
                        );
                    }
                }
            }
        }
        assert!(hidden > 1000, "{hidden}");
    }
}
