//! `--spec` and the policies as typed, and the request that they mean. Reference: `docs/interfaces.md §2`.
//!
//! That every option belongs to the chosen specification is settled before (`options`).

use crate::failure::Failure;
use crate::suggest::did_you_mean;
use crate::words::{self, SPECS};
use clap::{Args, ValueEnum};
use truecast::Rounding;
use truecast::policy::{IntOverflow, NanRule, NanToInt, Overflow, Subnormals, TextStyle};
use truecast::request::{self, Request, Standard};
use truecast::spec::{SpecError, ieee, onnx, openvino, tile, tosa};

/// The specification and its options.
#[derive(Args, Debug, Clone, Default, PartialEq)]
pub struct PolicyArgs {
    /// Specification that decides: onnx, onnx@OPSET, tosa, tosa@VERSION, openvino, tile, tile@RELEASE or ieee (default onnx;
    /// where only one exists, that one)
    #[arg(long, value_name = "NAME[@VERSION]", value_parser = words::SPEC, hide_possible_values = true)]
    pub spec: Option<String>,
    /// ONNX: saturate out-of-range values of 8-bit floats (default true)
    #[arg(long, value_name = "BOOL")]
    pub saturate: Option<bool>,
    /// ONNX: rounding to f8e8m0 (default up)
    #[arg(long, value_name = "MODE", value_parser = words::ROUND_MODE)]
    pub round_mode: Option<String>,
    /// ieee, tile: rounding (default nearest-even to floats and toward-zero to integers)
    #[arg(long, value_name = "MODE", value_parser = words::ROUNDING)]
    pub rounding: Option<String>,
    /// ieee: finite values beyond the largest (default nonfinite)
    #[arg(long, value_name = "WHAT")]
    pub overflow: Option<OverflowArg>,
    /// ieee: infinities (default as --overflow)
    #[arg(long, value_name = "WHAT")]
    pub inf: Option<OverflowArg>,
    /// ieee: integers out of range (default wrap)
    #[arg(long, value_name = "WHAT")]
    pub int_overflow: Option<IntOverflowArg>,
    /// ieee: NaN to an integer (default zero)
    #[arg(long, value_name = "WHAT")]
    pub nan_to_int: Option<NanToIntArg>,
    /// ieee: subnormals (default keep)
    #[arg(long, value_name = "WHAT")]
    pub subnormals: Option<SubnormalsArg>,
    /// Tile IR: clamp in ftoi
    #[arg(long)]
    pub saturating: bool,
    /// Tile IR: whose values, spec (default), hw or seed. TOSA: what the implementation chooses where the text leaves a
    /// choice, strict (default) or flush, toward-zero and others with + between them; in `check` whose rules (default: the
    /// version's text)
    #[arg(long, value_name = "PROFILE", value_parser = words::PROFILE)]
    pub profile: Option<String>,
    /// Tile IR: choices where its sources differ
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = words::TILE_OPTION)]
    pub tile_option: Vec<String>,
    /// Sign and payload of NaN, with every specification (default keep)
    #[arg(long, value_name = "WHAT")]
    pub nan: Option<NanArg>,
    /// onnx, ieee: floating-point numbers as text: as the reference evaluator writes them (1e-05), or plain, without an
    /// exponent (default reference)
    #[arg(long, value_name = "STYLE")]
    pub string_style: Option<StringStyleArg>,
}

/// Where nothing else says whose rules apply.
const DEFAULT_SPEC: &str = "onnx";

/// The conversion that an operation on the command line names.
pub fn operator(name: &str) -> Option<onnx::Operator> {
    onnx::Operator::ALL.into_iter().find(|operator| operator.name().eq_ignore_ascii_case(name))
}

/// The profile and the options of Tile IR.
pub fn tile_values(profile: Option<&str>, options: &[String]) -> Result<(tile::Profile, tile::Options), Failure> {
    let known = tile::Profile::ALL.map(tile::Profile::name);
    let read = |text: &str| text.parse().map_err(|error: SpecError| Failure::from(error).of_word(text, known));
    let profile = profile.map(read).transpose()?.unwrap_or_default();
    let mut values = tile::Options::default();
    options.iter().try_for_each(|text| values.set(text))?;
    Ok((profile, values))
}

/// The release of `tile@..`.
pub fn tile_rules(version: Option<&str>) -> Result<tile::Rules, Failure> {
    Ok(version.map(str::parse).transpose()?.unwrap_or_default())
}

macro_rules! choices {
    ($($(#[$doc:meta])* $name:ident => $target:ident { $($variant:ident),* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
        pub enum $name { $(#[allow(missing_docs)] $variant),* }
        impl From<$name> for $target {
            fn from(typed: $name) -> $target {
                match typed { $($name::$variant => $target::$variant),* }
            }
        }
    )*};
}

choices! {
    /// `--overflow`, `--inf`.
    OverflowArg => Overflow { Nonfinite, Saturate, Error }
    /// `--int-overflow`.
    IntOverflowArg => IntOverflow { Wrap, Saturate, Error }
    /// `--nan-to-int`.
    NanToIntArg => NanToInt { Zero, Saturate, Error }
    /// `--nan`.
    NanArg => NanRule { Keep, Canonical, Error }
    /// `--subnormals`.
    SubnormalsArg => Subnormals { Keep, Flush }
    /// `--string-style`.
    StringStyleArg => TextStyle { Reference, Plain }
}

fn value_name(choice: impl ValueEnum) -> String {
    choice.to_possible_value().map_or(String::new(), |value| value.get_name().into())
}

fn rounding(text: &str) -> Result<Rounding, Failure> {
    request::rounding(text)
        .ok_or_else(|| unknown_rounding("unknown rounding", text, &Rounding::ALL.map(Rounding::name)))
}

/// Those that Tile IR has.
fn tile_roundings() -> Vec<&'static str> {
    Rounding::ALL.map(Rounding::name).into_iter().filter(|name| request::tile_rounding(name).is_some()).collect()
}

fn unknown_rounding(what: &str, text: &str, known: &[&str]) -> Failure {
    let meant = did_you_mean(text, known.iter().copied());
    Failure::usage(format_args!("{what} {text:?}{meant}")).with_hint(&format!("known are {}", known.join(", ")))
}

impl PolicyArgs {
    /// The specification as typed, or the default of commands that convert.
    pub fn spec(&self) -> &str {
        self.spec.as_deref().unwrap_or(DEFAULT_SPEC)
    }

    /// The same with another specification, if none was typed.
    pub fn or_spec(&self, name: &str) -> PolicyArgs {
        PolicyArgs { spec: Some(self.spec.clone().unwrap_or_else(|| name.into())), ..self.clone() }
    }

    /// The options that were typed, as they are typed, for a line to copy; `spec` with the version that was in force.
    pub fn as_typed(&self, spec: &str) -> String {
        let chosen = |name: &str, value: Option<String>| value.map(|value| format!(" --{name} {value}"));
        let own = [
            chosen("saturate", self.saturate.map(|s| s.to_string())),
            chosen("round-mode", self.round_mode.clone()),
            chosen("rounding", self.rounding.clone()),
            chosen("overflow", self.overflow.map(value_name)),
            chosen("inf", self.inf.map(value_name)),
            chosen("int-overflow", self.int_overflow.map(value_name)),
            chosen("nan-to-int", self.nan_to_int.map(value_name)),
            chosen("subnormals", self.subnormals.map(value_name)),
            self.saturating.then(|| " --saturating".into()),
            chosen("string-style", self.string_style.map(value_name)),
            chosen("nan", self.nan.map(value_name)),
        ];
        let tile = self.tile_option.iter().map(|option| format!(" --tile-option {option}"));
        let profile = chosen("profile", self.profile.clone()).filter(|_| spec.starts_with("tile"));
        format!("--spec {spec}") + &own.into_iter().flatten().chain(profile).chain(tile).collect::<String>()
    }

    /// What was asked for.
    pub fn request(&self) -> Result<Request, Failure> {
        let (name, version) = match self.spec().split_once('@') {
            Some((name, version)) => (name, Some(version)),
            None => (self.spec(), None),
        };
        let standard = match name {
            "onnx" => self.onnx(version)?,
            "tosa" => self.tosa(version)?,
            "openvino" => self.openvino(version)?,
            "tile" => self.tile(version)?,
            "ieee" => self.ieee(version)?,
            _ => {
                let meant = did_you_mean(name, SPECS);
                let unknown = Failure::usage(format_args!("unknown specification {name:?}{meant}"));
                return Err(unknown.with_hint(&format!("known are {}", SPECS.join(", "))));
            }
        };
        let text = self.string_style.map_or(TextStyle::default(), TextStyle::from);
        Ok(Request { standard, nan: self.nan.map(NanRule::from), text })
    }

    /// What is asked for of a named conversion: every specification casts, CastLike is ONNX's.
    pub fn request_of(&self, operator: onnx::Operator) -> Result<Request, Failure> {
        let request = self.request()?;
        match operator {
            onnx::Operator::Cast => Ok(request),
            other => request.of_operator(other).ok_or_else(|| {
                let (name, spec) = (other.name(), self.spec());
                Failure::usage(format_args!("{name} is an operator of --spec onnx; this is --spec {spec}"))
            }),
        }
    }

    /// The same for a command that judges by it: the profiles of TOSA are then those of the checker, which reads them itself.
    pub fn judging(&self) -> PolicyArgs {
        let is_tosa = self.spec().split('@').next() == Some("tosa");
        PolicyArgs { profile: self.profile.clone().filter(|_| !is_tosa), ..self.clone() }
    }

    fn onnx(&self, version: Option<&str>) -> Result<Standard, Failure> {
        let opset = match version {
            None => onnx::NEWEST_OPSET,
            Some(text) => text
                .parse()
                .map_err(|_| Failure::usage(format_args!("onnx version {text:?} is not an opset from 1 to 28")))?,
        };
        onnx::Operator::Cast.version_at(opset)?;
        let round_mode = self.round_mode.as_deref().map(str::parse).transpose()?;
        Ok(Standard::Onnx { operator: onnx::Operator::Cast, opset, saturate: self.saturate, round_mode })
    }

    fn tosa(&self, version: Option<&str>) -> Result<Standard, Failure> {
        let version = version.map_or(Ok(tosa::Version::default()), str::parse)?;
        let known = tosa::Freedoms::words;
        let read = |text: &str| text.parse().map_err(|error: SpecError| Failure::from(error).of_word(text, known()));
        let freedoms = self.profile.as_deref().map_or(Ok(tosa::Freedoms::STRICT), read)?;
        Ok(Standard::Tosa { target: tosa::Target::of(version), freedoms })
    }

    fn openvino(&self, version: Option<&str>) -> Result<Standard, Failure> {
        openvino::version(version)?;
        Ok(Standard::OpenVino)
    }

    fn tile(&self, version: Option<&str>) -> Result<Standard, Failure> {
        let rules = tile_rules(version)?;
        let rounding = self.rounding.as_deref().map(|text| {
            request::tile_rounding(text)
                .ok_or_else(|| unknown_rounding("tile has no rounding mode", text, &tile_roundings()))
        });
        let (profile, options) = tile_values(self.profile.as_deref(), &self.tile_option)?;
        let defaults = tile::Cast::to(truecast::DType::F32);
        let cast = tile::Cast {
            rounding: rounding.transpose()?,
            saturating: self.saturating,
            release: rules.release(tile::Release::NEWEST),
            profile,
            options,
            ..defaults
        };
        Ok(Standard::Tile { cast, rules })
    }

    fn ieee(&self, version: Option<&str>) -> Result<Standard, Failure> {
        if let Some(version) = version {
            return Err(Failure::usage(format_args!("ieee has no versions; drop @{version}")));
        }
        // The destination type is set for each pair.
        let defaults = ieee::Cast::to(truecast::DType::F32);
        Ok(Standard::Ieee(ieee::Cast {
            rounding: self.rounding.as_deref().map(rounding).transpose()?,
            overflow: self.overflow.map_or(defaults.overflow, Overflow::from),
            inf: self.inf.map(Overflow::from),
            int_overflow: self.int_overflow.map_or(defaults.int_overflow, IntOverflow::from),
            nan_to_int: self.nan_to_int.map_or(defaults.nan_to_int, NanToInt::from),
            subnormals: self.subnormals.map_or(defaults.subnormals, Subnormals::from),
            ..defaults
        }))
    }
}
