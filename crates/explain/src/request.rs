//! A specification with its options, before the types are known: what `--spec` and the policies say.

use std::fmt;
use truecast_core::policy::{IntOverflow, NanRule, NanToInt, Overflow, Subnormals, TextStyle};
use truecast_core::spec::{SpecError, ieee, onnx, openvino, tile, tosa};
use truecast_core::{CastSpec, DType, Rounding};

/// The names of the specifications.
pub const SPECS: [&str; 5] = ["onnx", "tosa", "openvino", "tile", "ieee"];

/// Which standard decides, and how its options are set.
///
/// # Examples
/// ```
/// use truecast_core::DType;
/// use truecast_explain::request::Request;
/// let cast = Request::default().resolve(DType::F32, DType::F16)?;
/// assert_eq!(cast.dst, DType::F16);
/// # Ok::<(), truecast_core::spec::SpecError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The standard.
    pub standard: Standard,
    /// Overrides what becomes of a NaN's sign and payload; works with every standard (`docs/interfaces.md §2`).
    pub nan: Option<NanRule>,
    /// The notation of floating-point numbers as text, with the standards that have text (`docs/interfaces.md §2`).
    pub text: TextStyle,
}

/// A standard with its own options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standard {
    /// ONNX Cast, or CastLike.
    Onnx {
        /// Which of them: they have types and attributes at different opsets.
        operator: onnx::Operator,
        /// Opset of the default domain.
        opset: u32,
        /// `saturate`.
        saturate: Option<bool>,
        /// `round_mode`.
        round_mode: Option<onnx::RoundMode>,
    },
    /// OpenVINO Convert, which has no options.
    OpenVino,
    /// Tile IR; the destination of the cast is replaced by that of each pair.
    Tile {
        /// Attributes, profile and options.
        cast: tile::Cast,
        /// The release as it was asked for.
        rules: tile::Rules,
    },
    /// TOSA CAST.
    Tosa {
        /// Version, profiles and extensions.
        target: tosa::Target,
        /// What the implementation chooses where the text leaves it a choice.
        freedoms: tosa::Freedoms,
    },
    /// Free policies; the destination of the cast is replaced by that of each pair.
    Ieee(ieee::Cast),
}

/// There is no such request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The specification is unknown.
    #[error("unknown specification {name:?}; known are {}", SPECS.join(", "))]
    Specification {
        /// Its name.
        name: String,
    },
    /// The specification has no such attribute or policy, or not this value of it.
    #[error("{spec} has no {name} = {value:?}")]
    Attribute {
        /// The specification.
        spec: String,
        /// The attribute.
        name: String,
        /// The value.
        value: String,
    },
    /// The specification refuses the version or the value.
    #[error(transparent)]
    Spec(#[from] SpecError),
}

impl Default for Request {
    /// ONNX at its newest opset, without options.
    fn default() -> Self {
        let operator = onnx::Operator::Cast;
        let standard = Standard::Onnx { operator, opset: onnx::NEWEST_OPSET, saturate: None, round_mode: None };
        Request { standard, nan: None, text: TextStyle::default() }
    }
}

impl Request {
    /// The same request of another operator of ONNX; `None` if another standard decides.
    #[must_use]
    pub fn of_operator(self, operator: onnx::Operator) -> Option<Request> {
        match self.standard {
            Standard::Onnx { opset, saturate, round_mode, .. } => {
                Some(Request { standard: Standard::Onnx { operator, opset, saturate, round_mode }, ..self })
            }
            _ => None,
        }
    }

    /// Settles every question for a pair.
    ///
    /// # Errors
    /// What the standard forbids.
    pub fn resolve(&self, src: DType, dst: DType) -> Result<CastSpec, SpecError> {
        let mut cast = match self.standard {
            Standard::Onnx { operator, opset, saturate, round_mode } => {
                onnx::Cast { operator, saturate, round_mode, opset, to: dst }.resolve(src)?
            }
            Standard::OpenVino => openvino::Convert::to(dst).resolve(src)?,
            Standard::Tile { cast, .. } => tile::Cast { to: dst, ..cast }.resolve(src)?,
            Standard::Tosa { target, freedoms } => {
                tosa::Cast { target, freedoms, ..tosa::Cast::to(dst) }.resolve(src)?
            }
            Standard::Ieee(options) => ieee::Cast { to: dst, ..options }.resolve(src)?,
        };
        if let Some(nan) = self.nan {
            cast.policy.nan = nan;
        }
        if dst == DType::String && src.is_float() {
            cast.policy.text = self.text;
        }
        Ok(cast)
    }
}

/// `onnx@28 saturate=0`, `ieee overflow=saturate`: the specification, its version, and the options that were set.
impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.spec())?;
        match self.standard {
            // What a file's own release would be is not known here.
            Standard::Tile { cast, .. } => write!(f, "@{}", cast.release)?,
            _ => self.version().iter().try_for_each(|version| write!(f, "@{version}"))?,
        }
        self.attributes().into_iter().try_for_each(|(name, value)| match (name, value.as_str()) {
            // ONNX attributes are integers.
            ("saturate", value) => write!(f, " saturate={}", (value == "true") as u8),
            (name, value) => write!(f, " {name}={value}"),
        })
    }
}

impl Request {
    /// The specification, as `--spec` names it.
    #[must_use]
    pub fn spec(&self) -> &'static str {
        match self.standard {
            Standard::Onnx { .. } => "onnx",
            Standard::OpenVino => "openvino",
            Standard::Tile { .. } => "tile",
            Standard::Tosa { .. } => "tosa",
            Standard::Ieee(_) => "ieee",
        }
    }

    /// Its version, as `--spec NAME@VERSION` names it; `None` where there are no versions.
    #[must_use]
    pub fn version(&self) -> Option<String> {
        match self.standard {
            Standard::Onnx { opset, .. } => Some(opset.to_string()),
            Standard::OpenVino => Some(openvino::VERSION.into()),
            Standard::Tile { rules: tile::Rules::OfFile, .. } => Some("file".into()),
            Standard::Tile { rules: tile::Rules::Of(release), .. } => Some(release.name().into()),
            Standard::Tosa { target, .. } => Some(target.version.name().into()),
            Standard::Ieee(_) => None,
        }
    }

    /// Names and values of the attributes and policies that were given, or that are not the specification's defaults: with
    /// [`spec`](Request::spec) and [`version`](Request::version), all there is to know. `tile-option` may occur several times.
    ///
    /// # Examples
    /// ```
    /// use truecast_core::policy::NanRule;
    /// use truecast_explain::request::Request;
    /// let request = Request { nan: Some(NanRule::Canonical), ..Request::default() };
    /// assert_eq!(request.attributes(), [("nan", "canonical".to_string())]);
    /// let again = Request::from_attributes("onnx", request.version().as_deref(), [("nan", "canonical")])?;
    /// assert_eq!(again, request);
    /// # Ok::<(), truecast_explain::request::RequestError>(())
    /// ```
    pub fn attributes(&self) -> Vec<(&'static str, String)> {
        let mut all: Vec<(&str, Option<String>)> = Vec::new();
        let mut nan = self.nan;
        match self.standard {
            Standard::Onnx { operator, saturate, round_mode, .. } => {
                let is_named = operator != onnx::Operator::Cast;
                all.push(("operator", is_named.then(|| operator.name().into())));
                all.push(("saturate", saturate.map(|s| s.to_string())));
                all.push(("round_mode", round_mode.map(|mode| mode.name().into())));
            }
            Standard::OpenVino => {}
            Standard::Tile { cast, rules } => {
                all.push(("profile", Some(cast.profile.name().into())));
                let is_other = cast.release != rules.release(tile::Release::NEWEST);
                all.push(("release", is_other.then(|| cast.release.name().into())));
                all.push(("rounding", cast.rounding.map(|mode| mode.name().into())));
                all.push(("saturating", cast.saturating.then(|| "true".into())));
                all.extend(cast.options.names().map(|name| ("tile-option", Some(name.into()))));
            }
            Standard::Tosa { target, freedoms } => {
                all.push(("profile", (freedoms != tosa::Freedoms::STRICT).then(|| freedoms.to_string())));
                let defaults = tosa::Target::of(target.version);
                let names = || target.enabled.iter().map(tosa::Feature::name).collect::<Vec<_>>().join(",");
                all.push(("enabled", (target.enabled != defaults.enabled).then(names)));
                all.push(("level", changed(target.level, defaults.level)));
            }
            Standard::Ieee(cast) => {
                let defaults = ieee::Cast::to(cast.to);
                all.push(("rounding", cast.rounding.map(|r| r.name().into())));
                all.push(("overflow", changed(cast.overflow, defaults.overflow)));
                all.push(("inf", cast.inf.map(|inf| lower_case(&inf))));
                all.push(("int-overflow", changed(cast.int_overflow, defaults.int_overflow)));
                all.push(("nan-to-int", changed(cast.nan_to_int, defaults.nan_to_int)));
                all.push(("subnormals", changed(cast.subnormals, defaults.subnormals)));
                nan = nan.or((cast.nan != defaults.nan).then_some(cast.nan));
            }
        }
        all.push(("nan", nan.as_ref().map(lower_case)));
        all.push(("string_style", changed(self.text, TextStyle::default())));
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// The request of a specification, a version (default: the newest) and what [`attributes`](Request::attributes) gave;
    /// `-` and `_` in names are alike.
    ///
    /// # Errors
    /// [`RequestError`] for what the specification does not have.
    pub fn from_attributes<'a>(
        spec: &str,
        version: Option<&str>,
        attributes: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Request, RequestError> {
        let mut request =
            Request { standard: Standard::of_version(spec, version)?, nan: None, text: TextStyle::default() };
        for (name, value) in attributes {
            let unknown = || RequestError::Attribute { spec: spec.into(), name: name.into(), value: value.into() };
            request.set(&name.replace('-', "_"), value)?.ok_or_else(unknown)?;
        }
        Ok(request)
    }

    /// `None` if the standard has no such attribute or value.
    fn set(&mut self, name: &str, value: &str) -> Result<Option<()>, SpecError> {
        if name == "nan" {
            self.nan = one_of([NanRule::Keep, NanRule::Canonical, NanRule::Error], value);
            return Ok(self.nan.map(drop));
        }
        if let (Standard::Onnx { .. } | Standard::Ieee(_), "string_style") = (self.standard, name) {
            return Ok(put(&mut self.text, one_of(TextStyle::ALL, value)));
        }
        const OVERFLOWS: [Overflow; 4] =
            [Overflow::Nonfinite, Overflow::NonfiniteAlways, Overflow::Saturate, Overflow::Error];
        Ok(match (&mut self.standard, name) {
            (Standard::Onnx { operator, .. }, "operator") => {
                put(operator, onnx::Operator::ALL.into_iter().find(|o| o.name() == value))
            }
            (Standard::Onnx { saturate, .. }, "saturate") => put(saturate, value.parse().ok().map(Some)),
            (Standard::Onnx { round_mode, .. }, "round_mode") => put(round_mode, Some(Some(value.parse()?))),
            (Standard::Tile { cast, .. }, "profile") => put(&mut cast.profile, Some(value.parse()?)),
            (Standard::Tile { cast, .. }, "release") => {
                put(&mut cast.release, tile::Release::ALL.into_iter().find(|r| r.name() == value))
            }
            (Standard::Tile { cast, .. }, "rounding") => put(&mut cast.rounding, tile_rounding(value).map(Some)),
            (Standard::Tile { cast, .. }, "saturating") => put(&mut cast.saturating, value.parse().ok()),
            (Standard::Tile { cast, .. }, "tile_option") => Some(cast.options.set(value)?),
            (Standard::Tosa { freedoms, .. }, "profile") => put(freedoms, Some(value.parse()?)),
            (Standard::Tosa { target, .. }, "enabled") => {
                let names = value.split(',').filter(|name| !name.is_empty());
                put(&mut target.enabled, Some(names.map(str::parse).collect::<Result<_, _>>()?))
            }
            (Standard::Tosa { target, .. }, "level") => {
                put(&mut target.level, one_of([tosa::LevelLimit::EightK, tosa::LevelLimit::None], value))
            }
            (Standard::Ieee(cast), "rounding") => put(&mut cast.rounding, rounding(value).map(Some)),
            (Standard::Ieee(cast), "overflow") => put(&mut cast.overflow, one_of(OVERFLOWS, value)),
            (Standard::Ieee(cast), "inf") => put(&mut cast.inf, one_of(OVERFLOWS, value).map(Some)),
            (Standard::Ieee(cast), "int_overflow") => {
                let all = [IntOverflow::Wrap, IntOverflow::Saturate, IntOverflow::Error];
                put(&mut cast.int_overflow, one_of(all, value))
            }
            (Standard::Ieee(cast), "nan_to_int") => {
                put(&mut cast.nan_to_int, one_of([NanToInt::Zero, NanToInt::Saturate, NanToInt::Error], value))
            }
            (Standard::Ieee(cast), "subnormals") => {
                let all = [(false, false), (true, false), (false, true), (true, true)];
                put(&mut cast.subnormals, one_of(all.map(|(source, result)| Subnormals::of(source, result)), value))
            }
            _ => None,
        })
    }
}

impl Standard {
    /// A standard at a version (default: the newest), without options.
    fn of_version(spec: &str, version: Option<&str>) -> Result<Standard, RequestError> {
        let operator = onnx::Operator::Cast;
        Ok(match spec {
            "onnx" => {
                let known = "opsets 1 to 28";
                let number = version.map_or(Ok(onnx::NEWEST_OPSET), str::parse);
                let wrong = |_| SpecError::Version { spec: "onnx", version: version.unwrap_or_default().into(), known };
                let opset = number.map_err(wrong)?;
                operator.version_at(opset)?;
                Standard::Onnx { operator, opset, saturate: None, round_mode: None }
            }
            "openvino" => openvino::version(version).map(|()| Standard::OpenVino)?,
            "tile" => {
                let rules: tile::Rules = version.map_or(Ok(tile::Rules::default()), str::parse)?;
                let release = rules.release(tile::Release::NEWEST);
                Standard::Tile { cast: tile::Cast { release, ..tile::Cast::to(UNSET) }, rules }
            }
            "tosa" => {
                let version = version.map_or(Ok(tosa::Version::default()), str::parse)?;
                Standard::Tosa { target: tosa::Target::of(version), freedoms: tosa::Freedoms::STRICT }
            }
            "ieee" => match version {
                None => Standard::Ieee(ieee::Cast::to(UNSET)),
                Some(version) => {
                    return Err(SpecError::Version { spec: "ieee", version: version.into(), known: "none" }.into());
                }
            },
            _ => return Err(RequestError::Specification { name: spec.into() }),
        })
    }
}

/// Spellings of Tile IR, accepted beside our own (`docs/interfaces.md §2`).
const TILE_ROUNDINGS: [(&str, Rounding); 6] = [
    ("nearest_even", Rounding::NearestEven),
    ("nearest_away", Rounding::NearestAway),
    ("nearest_int_to_zero", Rounding::TowardZero),
    ("zero", Rounding::TowardZero),
    ("positive_inf", Rounding::Up),
    ("negative_inf", Rounding::Down),
];

/// A rounding by its name, or as Tile IR writes it.
fn rounding(text: &str) -> Option<Rounding> {
    let ours = Rounding::ALL.into_iter().find(|rounding| rounding.name() == text);
    ours.or_else(|| TILE_ROUNDINGS.iter().find(|(name, _)| *name == text).map(|(_, rounding)| *rounding))
}

/// A rounding mode of Tile IR by its name, or by that of the same rounding.
fn tile_rounding(text: &str) -> Option<tile::RoundingMode> {
    let same = || TILE_ROUNDINGS.iter().find(|(_, rounding)| rounding.name() == text).map(|(name, _)| *name);
    tile::RoundingMode::of_name(text).or_else(|| tile::RoundingMode::of_name(same()?))
}

/// Stands in a cast whose destination is that of each pair.
const UNSET: DType = DType::F32;

fn put<T>(field: &mut T, value: Option<T>) -> Option<()> {
    value.map(|value| *field = value)
}

fn changed<T: PartialEq + fmt::Debug>(value: T, default: T) -> Option<String> {
    (value != default).then(|| lower_case(&value))
}

fn one_of<T: fmt::Debug, const N: usize>(all: [T; N], text: &str) -> Option<T> {
    all.into_iter().find(|value| lower_case(value) == text)
}

/// The policies are spelled on the command line as their variants are.
fn lower_case(policy: &impl fmt::Debug) -> String {
    format!("{policy:?}").to_lowercase()
}
