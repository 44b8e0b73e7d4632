//! `--spec` and its settings as typed, and the request that they describe (`docs/interfaces.md §2`).
//!
//! The library's table of settings defines the options and parses their values. `options` has checked that the settings
//! belong to the specification.

use crate::failure::Failure;
use crate::suggest::closest;
use crate::synonyms;
use crate::value_parsers::{self, Settings};
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Args, Command, Error, FromArgMatches, Id};
use std::ffi::OsStr;
use truecast::request::{Request, RequestError, SPECS};
use truecast::setting::Setting;
use truecast::spec::onnx;
use truecast::spec::table::INTEGER;
use truecast::{DType, ErrorCode, Kind};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct PolicyArgs {
    /// Name of the specification, such as `onnx@28`.
    pub spec: Option<String>,
    /// Names and values, in the order of the table.
    pub settings: Settings,
}

pub fn spec_help(default: &str) -> String {
    format!("Whose rules decide, such as onnx, ptx or torch (default {default}); all: truecast help specs")
}

impl Args for PolicyArgs {
    fn group_id() -> Option<Id> {
        Some("PolicyArgs".into())
    }

    fn augment_args(command: Command) -> Command {
        let spec =
            Arg::new("spec").long("spec").value_name("NAME[@VERSION]").value_parser(value_parsers::SPEC_AND_SETTINGS);
        let all: Vec<Arg> = [spec.hide_possible_values(true).help(spec_help(DEFAULT_SPEC))]
            .into_iter()
            .chain(Setting::all().map(option))
            .collect();
        let group = ArgGroup::new("PolicyArgs").multiple(true).args(all.iter().map(Arg::get_id));
        command.group(group).args(all)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn option(setting: &'static Setting) -> Arg {
    let arg = Arg::new(setting.name()).long(setting.name()).help(setting.about());
    match setting.value_name {
        None => arg.action(ArgAction::SetTrue),
        Some(name) => {
            let action = if setting.is_list() { ArgAction::Append } else { ArgAction::Set };
            let negative = setting.is_integer();
            arg.value_name(name).value_parser(Words(setting)).action(action).allow_negative_numbers(negative)
        }
    }
}

/// Value parser that offers the values of a setting for completion. Any text is accepted here; the request parses the
/// value.
#[derive(Clone)]
struct Words(&'static Setting);

impl TypedValueParser for Words {
    type Value = String;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let values = match self.0 {
            setting if setting.is_integer() => return None,
            setting if setting.name() == "profile" => value_parsers::profiles(),
            setting => setting.every_value(),
        };
        Some(Box::new(values.into_iter().map(PossibleValue::new)))
    }
}

/// Name of the rounding of the conversion that the arguments name, if its specification has no other rounding.
pub fn only_rounding(command: &str, matches: &ArgMatches) -> Option<&'static str> {
    let typed = |id| matches.try_get_raw(id).ok().flatten().and_then(|mut values| values.next()?.to_str());
    if typed("seed").is_some() {
        return None;
    }
    // `explain` has no default specification.
    let default = (command != "explain").then_some(DEFAULT_SPEC);
    let spec = matches.try_get_one::<(String, Settings)>("spec").ok()?.map(|(spec, _)| spec.as_str()).or(default)?;
    let [src, dst] = [typed("from").unwrap_or("f32"), typed("to")?].map(DType::parse);
    let (src, dst) = (src.ok()?, dst.ok()?);
    let name = spec.split('@').next()?;
    let cast = Request::of_words(spec).ok().filter(|_| values(name, "rounding").is_empty())?.resolve(src, dst).ok()?;
    match dst.kind() {
        Kind::Float(_) if dst != DType::F8E8M0 => Some(cast.policy.to_float.name()),
        Kind::Int(_) if src.is_float() => Some(cast.policy.to_int.name()),
        _ => None,
    }
}

impl FromArgMatches for PolicyArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let typed = |setting: &Setting| -> Vec<(&'static str, String)> {
            let values: Vec<String> = match setting.value_name {
                None => Vec::from_iter(matches.get_flag(setting.name()).then(|| "true".into())),
                Some(_) => matches.get_many(setting.name()).into_iter().flatten().cloned().collect(),
            };
            values.into_iter().map(|value| (setting.name(), value)).collect()
        };
        let all = Setting::all().flat_map(typed);
        Ok(match matches.get_one::<(String, Settings)>("spec").cloned() {
            Some((spec, settings)) => {
                PolicyArgs { spec: Some(spec), settings: settings.into_iter().chain(all).collect() }
            }
            None => PolicyArgs { spec: None, settings: all.collect() },
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Specification of commands that convert, if `--spec` is not typed.
pub const DEFAULT_SPEC: &str = "onnx";

pub fn operator(name: &str) -> Option<onnx::Operator> {
    onnx::Operator::ALL.into_iter().find(|operator| operator.name().eq_ignore_ascii_case(name))
}

pub fn named(words: &str) -> Result<Request, Failure> {
    Request::of_words(words).map_err(refused)
}

fn refused(error: RequestError) -> Failure {
    match error {
        RequestError::Specification { name } => {
            let unknown = failure!(UnknownSpec, "unknown specification {name:?}");
            let unknown = unknown.of_word(&name, SPECS.iter().copied().chain(synonyms::specs()));
            unknown.with_hint(&format!("known specifications are {}", SPECS.join(", ")))
        }
        RequestError::Attribute { spec, name, value } => match values(&spec, &name) {
            known if known.is_empty() => {
                failure!(InvalidAttribute, "{spec} has no setting {name:?}")
            }
            known if known == [INTEGER] => {
                failure!(InvalidAttribute, "--{name} {value:?} is not an integer")
            }
            known => {
                // The first word of a name, such as `nearest` of nearest-even, may be near.
                let first_word =
                    |name: &&str| name.split(['-', '_']).next().is_some_and(|word| closest(&value, [word]).is_some());
                let meant = closest(&value, known.clone()).or_else(|| known.iter().copied().find(first_word));
                failure!(InvalidAttribute, "--{name} {value:?} is not one of {}", known.join(", "))
                    .meaning(&value, meant)
            }
        },
        RequestError::Spec(error) => error.into(),
        error => Failure::new(ErrorCode::InvalidAttribute, error),
    }
}

fn values(spec: &str, setting: &str) -> Vec<&'static str> {
    Setting::of_name(setting).map_or(Vec::new(), |setting| setting.values(spec))
}

/// Name of a rounding in the specification, from a synonym. Other values are unchanged.
fn meant<'a>(spec: &str, setting: &str, value: &'a str) -> &'a str {
    let known = if setting == "rounding" { values(spec, setting) } else { Vec::new() };
    if known.contains(&value) { value } else { synonyms::rounding(value, &known).unwrap_or(value) }
}

impl PolicyArgs {
    pub fn spec(&self) -> &str {
        self.spec.as_deref().unwrap_or(DEFAULT_SPEC)
    }

    fn parts(&self) -> (&str, Option<&str>) {
        self.spec().split_once('@').map_or((self.spec(), None), |(name, version)| (name, Some(version)))
    }

    /// The last typed value of a setting.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.settings.iter().rfind(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    pub fn without(&self, name: &str) -> PolicyArgs {
        let settings = self.settings.iter().filter(|(known, _)| *known != name).cloned().collect();
        PolicyArgs { settings, ..self.clone() }
    }

    /// Copy with the specification `name` if none was typed.
    pub fn or_spec(&self, name: &str) -> PolicyArgs {
        PolicyArgs { spec: Some(self.spec.clone().unwrap_or_else(|| name.into())), ..self.clone() }
    }

    /// The options as text for a command line. `spec` includes the version in use.
    pub fn as_typed(&self, spec: &str) -> String {
        let option = |(name, value): &(&str, String)| match *name {
            "profile" if !spec.starts_with("tile") => String::new(),
            name if Setting::of_name(name).is_some_and(Setting::is_flag) => format!(" --{name}"),
            name => format!(" --{name} {value}"),
        };
        format!("--spec {spec}") + &self.settings.iter().map(option).collect::<String>()
    }

    pub fn request(&self) -> Result<Request, Failure> {
        let (spec, version) = self.parts();
        // Without a choice of roundings, a typed rounding is the only rounding.
        let is_choice = |(name, _): &&(&str, String)| *name != "rounding" || !values(spec, name).is_empty();
        let settings = || self.settings.iter().filter(is_choice).map(|(name, value)| (*name, meant(spec, name, value)));
        Request::from_attributes(spec, version, settings()).map_err(|error| match error {
            RequestError::Spec(error) => match settings().find(|(name, value)| !values(spec, name).contains(value)) {
                Some((name, value)) => Failure::from(error).of_word(value, values(spec, name)),
                None => error.into(),
            },
            error => refused(error),
        })
    }

    /// Request for an operator. Only ONNX has CastLike.
    pub fn request_of(&self, operator: onnx::Operator) -> Result<Request, Failure> {
        let request = self.request()?;
        match operator {
            onnx::Operator::Cast => Ok(request),
            other => request.of_operator(other).ok_or_else(|| {
                let (name, spec) = (other.name(), self.spec());
                failure!(InapplicableOption, "{name} is an operator of --spec onnx; this is --spec {spec}")
            }),
        }
    }

    /// Options for a command that checks results. `profile` of TOSA is omitted: the checker handles it.
    pub fn judging(&self) -> PolicyArgs {
        if self.parts().0 == "tosa" { self.without("profile") } else { self.clone() }
    }
}
