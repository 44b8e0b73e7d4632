//! Parsers for option values that are words. Completion offers the canonical names; the parsers accept all names that
//! the library understands.

use crate::args::SUITE;
use crate::command::thresholds::DIFFERENT;
use crate::failure::Failure;
use crate::help_text::PAGES;
use crate::inspect_keys;
use crate::number_format::NumberFormat;
use crate::sort_keys::{KEYS, Known};
use crate::synonyms;
use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
use clap::{Arg, Command, error};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::LazyLock;
use truecast::convert::{Measuring, Nibbles};
use truecast::policy::TextStyle;
use truecast::promote::PythonNumber;
use truecast::report::COUNTS;
use truecast::request::{self, SPECS};
use truecast::scaled::Scheme;
use truecast::select::quantize_options::{self, Layer, MxScale, NonFinite, Relayout, Search};
use truecast::setting::Setting;
use truecast::spec::{tile, tosa};
use truecast::{DType, ErrorCode, scaled};

/// Parser of an option value, and the words for completion.
#[derive(Clone, Copy, Debug)]
pub struct Words<T> {
    read: fn(&str) -> Result<T, Failure>,
    list: fn() -> Vec<&'static str>,
}

fn measuring(text: &str) -> Result<Measuring, Failure> {
    Measuring::of_name(text).ok_or_else(|| "unknown word".to_string().into())
}

fn scheme(text: &str, written: &[&str]) -> Result<Scheme, Failure> {
    scaled::scheme(text).map_err(|error| Failure::of_scheme(&error, written))
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Words<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<T, error::Error> {
        let Words { read, list } = *self;
        // Errors of other codes have suggestions of their own.
        let read = move |text: String| {
            read(&text).map_err(|error| match error.code() {
                ErrorCode::InvalidValue => error.of_word(&text, list()),
                _ => error,
            })
        };
        StringValueParser::new().try_map(read).parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.list)().into_iter().map(PossibleValue::new)))
    }
}

pub fn one_of<T: Clone + Send + Sync + 'static>(all: &'static [(&'static str, T)]) -> impl TypedValueParser<Value = T> {
    let value =
        |name: String| all.iter().find(|(known, _)| *known == name).expect("clap takes no other name").1.clone();
    PossibleValuesParser::new(all.iter().map(|(name, _)| *name)).map(value)
}

fn as_typed(text: &str) -> Result<String, Failure> {
    Ok(text.into())
}

// ---- types ----

pub const TYPE: Words<DType> = Words { read: |text| Ok(DType::parse(text)?), list: types };
/// An element type or a P3109 format. Completion omits P3109 formats: there are too many.
pub const FORMAT: Words<NumberFormat> = Words { read: NumberFormat::read, list: types };

pub const OPERAND: Words<String> = Words { read: as_typed, list: operands };

pub fn types() -> Vec<&'static str> {
    DType::ALL.map(DType::name).into()
}

/// Operands of `promote`: types, `dynamic`, and Python's numbers.
pub fn operands() -> Vec<&'static str> {
    types().into_iter().chain(["dynamic"]).chain(PythonNumber::ALL.map(PythonNumber::name)).collect()
}

// ---- specifications ----

pub const SPEC: Words<String> = Words { read: |text| Ok(synonyms::spec(text)), list: specs };
pub const SPEC_AND_SETTINGS: Words<(String, Settings)> = Words { read: spec_and_settings, list: specs };
pub const TOSA: Words<String> = Words { read: as_typed, list: || versions("tosa") };
pub const TILE: Words<String> = Words { read: as_typed, list: || versions("tile") };

pub type Settings = Vec<(&'static str, String)>;

/// Parses the notation in which `differ` and `check` print a specification.
fn spec_and_settings(words: &str) -> Result<(String, Settings), Failure> {
    let (spec, settings) = words.split_once(':').unwrap_or((words, ""));
    let setting = |word: &str| {
        let (name, value) = word.split_once('=').unwrap_or((word, "true"));
        let unknown = || failure!(InvalidAttribute, "no specification has a setting {name:?}");
        Ok((Setting::of_name(name).ok_or_else(unknown)?.name(), value.to_string()))
    };
    let settings = settings.split(',').filter(|word| !word.is_empty()).map(setting).collect::<Result<_, Failure>>()?;
    Ok((synonyms::spec(spec), settings))
}

fn specs() -> Vec<&'static str> {
    VERSIONS.iter().map(String::as_str).collect()
}

fn versions(name: &str) -> Vec<&'static str> {
    specs().into_iter().filter(|spec| spec.split('@').next() == Some(name)).collect()
}

static VERSIONS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let with_versions = |name: &'static str| {
        let each = request::versions(name).into_iter().map(move |version| format!("{name}@{version}"));
        [name.to_string()].into_iter().chain(each)
    };
    SPECS.iter().copied().flat_map(with_versions).collect()
});

// ---- schemes ----

/// Name of a scheme that can be written, with parameters. The files determine the scheme.
pub const SCHEME: Words<String> = Words {
    read: |text| scheme(text, &scaled::written_to_files()).map(|_| text.into()),
    list: scaled::written_to_files,
};
/// A scheme that can be read, by its canonical name.
pub const SCHEME_READ: Words<Scheme> =
    Words { read: |text| text.parse().map_err(|error| Failure::of_scheme(&error, &schemes())), list: schemes };

pub const SCHEME_NAME: Words<String> = Words { read: as_typed, list: schemes };

pub fn schemes() -> Vec<&'static str> {
    scaled::Family::all().map(scaled::Family::name).collect()
}

// ---- the others ----

pub const COLUMN: Words<String> = Words { read: as_typed, list: || columns(Known::Conversions) };
pub const DIFFERENCE_COLUMN: Words<String> = Words { read: as_typed, list: || columns(Known::Differences) };

pub fn columns(known: Known) -> Vec<&'static str> {
    let keys = KEYS.iter().filter(|(_, needs_values, _)| !needs_values || known != Known::Sizes);
    let counts = COUNTS.iter().filter(|count| match known {
        Known::Sizes => false,
        Known::Differences => !count.of_conversions,
        Known::Conversions => true,
    });
    keys.map(|(name, ..)| *name).chain(counts.map(|count| count.name)).collect()
}

pub const INSPECT_COLUMN: Words<String> = Words { read: as_typed, list: inspect_keys::names };

pub const RESCALE_ROUNDING: Words<String> =
    Words { read: as_typed, list: || tosa::rescale::RoundingMode::ALL.map(|mode| mode.name()).into() };
pub const TILE_OPTION: Words<String> = Words { read: as_typed, list: || tile::Options::NAMES.into() };
pub const RUN_PROFILE: Words<String> = Words { read: as_typed, list: computed_profiles };
pub const STRING_STYLE: Words<TextStyle> = Words {
    read: |text| TextStyle::of_name(text).ok_or_else(|| "expected reference or plain".to_string().into()),
    list: || TextStyle::ALL.map(TextStyle::name).into(),
};
pub const VECTORS: Words<String> = Words { read: as_typed, list: vectors };

fn computed_profiles() -> Vec<&'static str> {
    tile::Profile::ALL.map(tile::Profile::name).into_iter().chain(tosa::Freedoms::words()).collect()
}

/// Profiles for computing (`run`), and profiles for judging results of TOSA.
pub fn profiles() -> Vec<&'static str> {
    let judging = tosa::check::Profile::ALL.map(|profile| profile.name());
    let judging = judging.into_iter().filter(|name| !computed_profiles().contains(name));
    computed_profiles().into_iter().chain(judging).collect()
}

pub fn operations() -> Vec<&'static str> {
    vec!["cast", "castlike", "rescale"]
}

pub fn vectors() -> Vec<&'static str> {
    [operations(), vec![SUITE]].concat()
}

pub const SCALE_SEARCH: Words<Search> = Words {
    read: |text| Ok(quantize_options::search(text)?),
    list: || quantize_options::SEARCHES.map(|(n, _)| n).into(),
};
pub const MX_SCALE: Words<MxScale> =
    Words { read: |text| Ok(quantize_options::mx_scale(text)?), list: || MxScale::ALL.map(|(n, _)| n).into() };
pub const NONFINITE: Words<NonFinite> = Words {
    read: |text| Ok(quantize_options::nonfinite(text)?),
    list: || quantize_options::NONFINITE.map(|(n, _)| n).into(),
};
pub const MEASURE: Words<Measuring> = Words { read: measuring, list: || Measuring::ALL.map(Measuring::name).into() };
pub const NIBBLES: Words<Nibbles> =
    Words { read: |text| Ok(text.parse::<Nibbles>()?), list: || Nibbles::ALL.map(Nibbles::name).into() };
pub const RELAYOUT: Words<Relayout> = Words {
    read: |text| Ok(quantize_options::relayout(text)?),
    list: || quantize_options::RELAYOUTS.map(|(n, _)| n).into(),
};
pub const PRESET: Words<Layer> = Words {
    read: |text| text.parse().map_err(|error: quantize_options::UnknownLayer| error.to_string().into()),
    list: || Layer::PRESETS.map(|(name, _)| name).into(),
};

pub const COUNT: Words<String> = Words { read: as_typed, list: counts };
pub const DIFFERENCE: Words<String> = Words { read: as_typed, list: differences };
pub const CHECKED: Words<PathBuf> = Words { read: |text| Ok(text.into()), list: operations };
pub const COMMAND: Words<String> = Words { read: as_typed, list: commands };

/// Counts for `--fail-on`: all except `exact`.
pub fn counts() -> Vec<&'static str> {
    COUNTS.iter().map(|count| count.name).filter(|name| *name != "exact").collect()
}

/// Counts of a comparison. Effects of a policy are omitted, because two files do not show them.
pub fn differences() -> Vec<&'static str> {
    let counts = COUNTS.iter().filter(|count| !count.of_conversions && count.name != "exact");
    [DIFFERENT].into_iter().chain(counts.map(|count| count.name)).collect()
}

pub fn commands() -> Vec<&'static str> {
    PAGES.iter().map(|page| page.command).collect()
}
