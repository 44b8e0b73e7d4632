//! `--spec` and the policies as typed, and the request that they mean. Reference: `docs/interfaces.md §2`.
//!
//! A flag that the chosen specification does not have is an error, never ignored.

use crate::failure::Failure;
use clap::{Args, ValueEnum};
use truecast::Rounding;
use truecast::policy::{IntOverflow, NanRule, NanToInt, Overflow, Subnormals};
use truecast::request::{Request, Standard};
use truecast::spec::{ieee, onnx, tosa};

/// The specification and its options.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Specification")]
pub struct PolicyArgs {
    /// Specification that decides: onnx, onnx@OPSET, tosa@1.0, tosa@1.1 or ieee
    #[arg(long, value_name = "NAME[@VERSION]", default_value = "onnx")]
    pub spec: String,
    /// ONNX: saturate out-of-range values of 8-bit floats (default true)
    #[arg(long, value_name = "BOOL")]
    pub saturate: Option<bool>,
    /// ONNX: rounding to f8e8m0, one of up, down, nearest (default up)
    #[arg(long, value_name = "MODE")]
    pub round_mode: Option<String>,
    /// ieee: rounding to floats and integers (default nearest-even and toward-zero)
    #[arg(long, value_name = "ROUNDING")]
    pub rounding: Option<String>,
    /// ieee: finite values beyond the largest (default nonfinite)
    #[arg(long)]
    pub overflow: Option<OverflowArg>,
    /// ieee: infinities (default as --overflow)
    #[arg(long)]
    pub inf: Option<OverflowArg>,
    /// ieee: integers out of range (default wrap)
    #[arg(long)]
    pub int_overflow: Option<IntOverflowArg>,
    /// ieee: NaN to an integer (default zero)
    #[arg(long)]
    pub nan_to_int: Option<NanToIntArg>,
    /// ieee: subnormals (default keep)
    #[arg(long)]
    pub subnormals: Option<SubnormalsArg>,
    /// Sign and payload of NaN, with every specification (default keep)
    #[arg(long)]
    pub nan: Option<NanArg>,
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

fn rounding(text: &str) -> Result<Rounding, Failure> {
    let ours = Rounding::ALL.into_iter().find(|r| r.name() == text);
    let tile = TILE_ROUNDINGS.iter().find(|(name, _)| *name == text).map(|(_, r)| *r);
    ours.or(tile).ok_or_else(|| {
        let known: Vec<_> = Rounding::ALL.iter().map(|r| r.name()).collect();
        Failure::usage(format_args!("unknown rounding {text:?}; known are {}", known.join(", ")))
    })
}

impl PolicyArgs {
    /// What was asked for.
    pub fn request(&self) -> Result<Request, Failure> {
        let (name, version) = match self.spec.split_once('@') {
            Some((name, version)) => (name, Some(version)),
            None => (self.spec.as_str(), None),
        };
        let standard = match name {
            "onnx" => self.onnx(version)?,
            "tosa" => self.tosa(version)?,
            "ieee" => self.ieee(version)?,
            _ => {
                return Err(Failure::usage(format_args!("unknown specification {name:?}; known are onnx, tosa, ieee")));
            }
        };
        Ok(Request { standard, nan: self.nan.map(NanRule::from) })
    }

    fn onnx(&self, version: Option<&str>) -> Result<Standard, Failure> {
        self.refuse("onnx", &self.flags_of_ieee())?;
        let opset = match version {
            None => onnx::NEWEST_OPSET,
            Some(text) => text
                .parse()
                .map_err(|_| Failure::usage(format_args!("onnx version {text:?} is not an opset from 1 to 28")))?,
        };
        onnx::Operator::Cast.version_at(opset)?;
        let round_mode = self.round_mode.as_deref().map(str::parse).transpose()?;
        Ok(Standard::Onnx { opset, saturate: self.saturate, round_mode })
    }

    fn tosa(&self, version: Option<&str>) -> Result<Standard, Failure> {
        self.refuse("tosa", &[self.flags_of_onnx().as_slice(), self.flags_of_ieee().as_slice()].concat())?;
        let version = version.map_or(Ok(tosa::Version::default()), str::parse)?;
        Ok(Standard::Tosa { target: tosa::Target::of(version) })
    }

    fn flags_of_onnx(&self) -> [(&'static str, bool); 2] {
        [("--saturate", self.saturate.is_some()), ("--round-mode", self.round_mode.is_some())]
    }

    fn flags_of_ieee(&self) -> [(&'static str, bool); 6] {
        [
            ("--rounding", self.rounding.is_some()),
            ("--overflow", self.overflow.is_some()),
            ("--inf", self.inf.is_some()),
            ("--int-overflow", self.int_overflow.is_some()),
            ("--nan-to-int", self.nan_to_int.is_some()),
            ("--subnormals", self.subnormals.is_some()),
        ]
    }

    fn ieee(&self, version: Option<&str>) -> Result<Standard, Failure> {
        self.refuse("ieee", &self.flags_of_onnx())?;
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

    fn refuse(&self, spec: &str, flags: &[(&str, bool)]) -> Result<(), Failure> {
        match flags.iter().find(|(_, given)| *given) {
            Some((flag, _)) => {
                let other = if self.flags_of_onnx().iter().any(|(name, _)| name == flag) { "onnx" } else { "ieee" };
                Err(Failure::usage(format_args!("{flag} is not an option of {spec}; it belongs to --spec {other}")))
            }
            None => Ok(()),
        }
    }
}
