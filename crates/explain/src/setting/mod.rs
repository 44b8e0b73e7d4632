//! The settings of a specification one by one, and whether one matters for a conversion: whether any value of it gives
//! any element another result than another value does.
//!
//! There is no table of which policy matters where, which could contradict the definition: the definition is asked, at
//! the values where conversions differ ([`crate::vectors`]). What settings are called stands in `names`.

mod names;

use crate::request::{Request, Standard};
use crate::vectors::{marks, selection};
use truecast_core::decimal::to_decimal;
use truecast_core::exact::decode;
use truecast_core::format::Specials;
use truecast_core::policy::{IntOverflow, NanRule, NanToInt, Overflow, Subnormals, TextStyle};
use truecast_core::spec::{ieee, onnx, tile, tosa};
use truecast_core::text::{parse_one, print_one};
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
        let Some((first, others)) = resolved.split_first() else { return false };
        let mut inputs = None;
        others.iter().any(|other| match (first, other) {
            (Ok(a), Ok(b)) if a.policy == b.policy && a.undefined == b.undefined => false,
            (Ok(a), Ok(b)) => inputs.get_or_insert_with(|| Inputs::of(src, dst)).tell_apart(a, b),
            (Err(_), Err(_)) => false,
            _ => true,
        })
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
        sources(dst).iter().any(|&src| self.matters(request, src, dst))
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

/// Those that show every difference in a destination. Text holds the values of all types alike, so that a narrow one with
/// every kind of value and an integer are enough; and printing is slow.
fn sources(dst: DType) -> &'static [DType] {
    if dst == DType::String { &[DType::F16, DType::I8] } else { &DType::ALL }
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
    sources(dst).iter().all(|&src| match (a.resolve(src, dst), b.resolve(src, dst)) {
        (Ok(a), Ok(b)) if a.policy == b.policy && a.undefined == b.undefined => true,
        (Ok(a), Ok(b)) => !Inputs::of(src, dst).tell_apart(&a, &b),
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
            Inputs::Texts(texts) => {
                texts.iter().any(|text| parse_one(spec, text.as_bytes()).is_ok_and(|outcome| is_nan(outcome.code())))
            }
        }
}

/// Where two conversions of a pair can differ.
enum Inputs {
    Codes(Vec<u64>),
    Texts(Vec<String>),
}

impl Inputs {
    fn of(src: DType, dst: DType) -> Inputs {
        // Text is printed from every kind of value that the source has: around those of the source itself.
        let numeric = |dtype: DType, or: DType| if dtype.is_numeric() { dtype } else { or };
        match src {
            _ if src.is_numeric() => Inputs::Codes(selection(src, numeric(dst, src))),
            DType::String if dst.is_numeric() => Inputs::Texts(texts(dst)),
            _ => Inputs::Codes(Vec::new()),
        }
    }

    fn tell_apart(&self, a: &CastSpec, b: &CastSpec) -> bool {
        match self {
            Inputs::Codes(codes) if a.dst == DType::String => codes.iter().any(|&c| print_one(a, c) != print_one(b, c)),
            Inputs::Codes(codes) => codes.iter().any(|&c| cast_one(a, c) != cast_one(b, c)),
            Inputs::Texts(texts) => texts.iter().any(|t| parse_one(a, t.as_bytes()) != parse_one(b, t.as_bytes())),
        }
    }
}

/// Texts at which a conversion to `dst` shows what it does.
fn texts(dst: DType) -> Vec<String> {
    let specials = ["nan", "-nan", "inf", "-inf", "0", "-0"].map(String::from);
    specials.into_iter().chain(marks(dst, 8).into_iter().map(to_decimal)).collect()
}
