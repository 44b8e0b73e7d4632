//! [`Request`]: a specification with its options, before the types are known (`--spec` and policies).

mod ieee;
mod onnx;
mod openvino;
mod specification;
mod table;
mod tile;
mod tosa;

use specification::{Named, Specification, changed};
use std::fmt;
use std::sync::LazyLock;
pub use tile::Tile;
use truecast_core::policy::{NanRule, TextStyle};
use truecast_core::spec::table::{TABLES, Table};
use truecast_core::spec::{self, Interpretation, SpecError};
use truecast_core::{CastSpec, DType};

pub(crate) use specification::SWITCH;

/// Defines [`Standard`]: a variant per specification, with the type of its attributes.
macro_rules! standards {
    ($($(#[$about:meta])* $variant:ident($of:ty),)*) => {
        /// Names of all specifications; tables come last.
        pub static SPECS: LazyLock<Vec<&'static str>> =
            LazyLock::new(|| [$(<$of>::NAME),*].into_iter().chain(TABLES.map(|table| table.name)).collect());

        /// A standard with its own options. The destination type is a placeholder.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Standard {
            $($(#[$about])* $variant($of),)*
            /// A library, language or chip.
            Table(spec::table::Cast),
        }

        macro_rules! of_each {
            ($standard:expr, $one:ident => $what:expr) => {
                match $standard {
                    $(Standard::$variant($one) => $what,)*
                    Standard::Table($one) => $what,
                }
            };
        }

        /// Expands an expression for the type of the named specification.
        macro_rules! of_name {
            ($name:expr, $one:ident => $what:expr, $none:expr) => {
                $(if $name == <$of>::NAME {
                    type $one = $of;
                    $what
                } else)* {
                    $none
                }
            };
        }

        impl Standard {
            /// A standard at a version, with no options. The default is the newest version.
            fn of_version(name: &str, version: Option<&str>) -> Result<Standard, RequestError> {
                $(if name == <$of>::NAME {
                    return Ok(Standard::$variant(<$of>::of_version(version)?));
                })*
                let unknown = || RequestError::Specification { name: name.into() };
                spec::table::Cast::find(name, version)?.map(Standard::Table).ok_or_else(unknown)
            }
        }
    };
}

standards! {
    /// ONNX Cast, or CastLike.
    Onnx(spec::onnx::Cast),
    /// TOSA CAST.
    Tosa(spec::tosa::Cast),
    /// OpenVINO Convert, which has no options.
    OpenVino(spec::openvino::Convert),
    /// Tile IR.
    Tile(Tile),
    /// Free policies.
    Ieee(spec::ieee::Cast),
}

/// A standard with its options, and the options of every standard.
///
/// # Examples
/// ```
/// use truecast_core::DType;
/// use truecast::request::Request;
/// let cast = Request::default().resolve(DType::F32, DType::F16)?;
/// assert_eq!(cast.dst, DType::F16);
/// # Ok::<(), truecast_core::spec::SpecError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Specification with its own options.
    pub standard: Standard,
    /// Rule for a NaN's sign and payload; replaces the rule of the standard (`docs/interfaces.md §2`).
    pub nan: Option<NanRule>,
    /// Notation of floating-point numbers as text (`docs/interfaces.md §2`).
    pub text: TextStyle,
}

/// An invalid request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The error messages name the fields.
pub enum RequestError {
    /// The specification is unknown.
    #[error("unknown specification {name:?}; known specifications are {}", SPECS.join(", "))]
    Specification { name: String },
    /// The specification lacks the attribute, or this value of the attribute.
    #[error("{spec} has no {name} = {value:?}")]
    Attribute { spec: String, name: String, value: String },
    /// The specification refuses the version or a value.
    #[error(transparent)]
    Spec(#[from] SpecError),
}

impl Default for Request {
    fn default() -> Self {
        let standard = Standard::Onnx(spec::onnx::Cast::to(specification::UNSET));
        Request { standard, nan: None, text: TextStyle::default() }
    }
}

/// Description of a specification in one line; empty for an unknown name.
#[must_use]
pub fn about(spec: &str) -> &'static str {
    of_name!(spec, Of => Of::ABOUT, Table::of_name(spec).map_or("", |table| table.about))
}

/// Versions of a specification, oldest first.
#[must_use]
pub fn versions(spec: &str) -> Vec<String> {
    let of_table =
        || Table::of_name(spec).map_or(&[][..], |table| table.versions).iter().map(|version| version.to_string());
    of_name!(spec, Of => Of::versions(), of_table().collect())
}

/// Words that a specification accepts for a setting; empty if the specification lacks the setting.
pub(crate) fn values(spec: &str, setting: &str) -> Vec<&'static str> {
    match setting {
        "nan" if SPECS.contains(&spec) => NanRule::ALL.map(NanRule::name).into(),
        "string-style" if of_name!(spec, Of => Of::HAS_TEXT, false) => TextStyle::ALL.map(TextStyle::name).into(),
        _ => {
            of_name!(spec, Of => Of::values(setting), Table::of_name(spec).map_or(Vec::new(), |table| table.values(setting)))
        }
    }
}

impl Request {
    /// Replaces the ONNX operator; `None` for other standards.
    #[must_use]
    pub fn of_operator(self, operator: spec::onnx::Operator) -> Option<Request> {
        match self.standard {
            Standard::Onnx(cast) => {
                Some(Request { standard: Standard::Onnx(spec::onnx::Cast { operator, ..cast }), ..self })
            }
            _ => None,
        }
    }

    /// Resolves the request for a pair of types.
    ///
    /// # Errors
    /// The standard forbids the pair or an option.
    pub fn resolve(&self, src: DType, dst: DType) -> Result<CastSpec, SpecError> {
        let mut cast = of_each!(self.standard, of => Specification::resolve(&of, src, dst))?;
        if let Some(nan) = self.nan {
            cast.policy.nan = nan;
        }
        if dst == DType::String && src.is_float() {
            cast.policy.text = self.text;
        }
        Ok(cast)
    }

    /// Lists the interpretations of a pair, one per value of the attributes. Empty for Tile IR, where a pair may be
    /// several operations; use [`explain`](crate::explain).
    ///
    /// # Errors
    /// The standard forbids the pair.
    pub fn interpretations(&self, src: DType, dst: DType) -> Result<Vec<Interpretation>, SpecError> {
        of_each!(self.standard, of => of.interpretations(src, dst))
    }
}

/// Text such as `onnx@28 saturate=0` or `ieee overflow=saturate`.
impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.spec())?;
        of_each!(self.standard, of => of.release()).iter().try_for_each(|release| write!(f, "@{release}"))?;
        self.attributes().into_iter().try_for_each(|(name, value)| match (name, value.as_str()) {
            // Attributes of ONNX are integers.
            ("saturate", value) => write!(f, " saturate={}", (value == "true") as u8),
            (name, value) => write!(f, " {name}={value}"),
        })
    }
}

impl Request {
    /// Name, as in `--spec NAME`.
    #[must_use]
    pub fn spec(&self) -> &'static str {
        of_each!(self.standard, of => of.name())
    }

    /// Version, as in `--spec NAME@VERSION`; `None` without versions.
    #[must_use]
    pub fn version(&self) -> Option<String> {
        of_each!(self.standard, of => of.version())
    }

    /// Names and values of attributes and policies that were given or differ from the defaults.
    /// [`spec`](Request::spec), [`version`](Request::version) and these attributes define the request. `tile-option`
    /// may repeat.
    ///
    /// # Examples
    /// ```
    /// use truecast_core::policy::NanRule;
    /// use truecast::request::Request;
    /// let request = Request { nan: Some(NanRule::Canonical), ..Request::default() };
    /// assert_eq!(request.attributes(), [("nan", "canonical".to_string())]);
    /// let again = Request::from_attributes("onnx", request.version().as_deref(), [("nan", "canonical")])?;
    /// assert_eq!(again, request);
    /// # Ok::<(), truecast::request::RequestError>(())
    /// ```
    pub fn attributes(&self) -> Vec<(&'static str, String)> {
        let mut all = of_each!(self.standard, of => of.attributes());
        let nan = match self.standard {
            Standard::Ieee(cast) => self.nan.or((cast.nan != NanRule::Keep).then_some(cast.nan)),
            _ => self.nan,
        };
        all.push(("nan", nan.map(|nan| nan.to_string())));
        all.push(("string_style", changed(self.text, TextStyle::default())));
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// True if a rounding was chosen; random bits are then impossible.
    #[must_use]
    pub fn chooses_rounding(&self) -> bool {
        self.attributes().iter().any(|(name, value)| match *name {
            "rounding" | "round_mode" | "round-mode" => true,
            "profile" => value.contains("toward-zero"),
            _ => false,
        })
    }

    /// Builds a request from specification, version (default: the newest) and [`attributes`](Request::attributes). `-`
    /// and `_` in names are equivalent.
    ///
    /// # Errors
    /// [`RequestError`] for an unknown name, version or value.
    pub fn from_attributes<'a>(
        spec: &str,
        version: Option<&str>,
        attributes: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Request, RequestError> {
        let mut request =
            Request { standard: Standard::of_version(spec, version)?, nan: None, text: TextStyle::default() };
        for (name, value) in attributes {
            let unknown = || RequestError::Attribute { spec: spec.into(), name: name.into(), value: value.into() };
            request.set(&name.replace('_', "-"), value)?.ok_or_else(unknown)?;
        }
        Ok(request)
    }

    /// Parses a request: `NAME[@VERSION][:SETTING=VALUE,..]`, such as `torch@2.15` or `onnx:saturate=false`.
    ///
    /// # Errors
    /// Errors of [`from_attributes`](Request::from_attributes).
    ///
    /// # Examples
    /// ```
    /// use truecast::request::Request;
    /// assert_eq!(Request::of_words("onnx@28:saturate=false")?.to_string(), "onnx@28 saturate=0");
    /// # Ok::<(), truecast::request::RequestError>(())
    /// ```
    pub fn of_words(words: &str) -> Result<Request, RequestError> {
        let (name, settings) = words.split_once(':').unwrap_or((words, ""));
        let (spec, version) = name.split_once('@').map_or((name, None), |(spec, version)| (spec, Some(version)));
        let settings = settings.split(',').filter(|setting| !setting.is_empty());
        Request::from_attributes(
            spec,
            version,
            settings.map(|setting| setting.split_once('=').unwrap_or((setting, "true"))),
        )
    }

    fn set(&mut self, name: &str, value: &str) -> Result<Option<()>, SpecError> {
        match name {
            "nan" => {
                self.nan = NanRule::of_name(value);
                Ok(self.nan.map(drop))
            }
            "string-style" if !values(self.spec(), "string-style").is_empty() => {
                Ok(specification::put(&mut self.text, TextStyle::of_name(value)))
            }
            _ => of_each!(&mut self.standard, of => of.set(name, value)),
        }
    }
}
