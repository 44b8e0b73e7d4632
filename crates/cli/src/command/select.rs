//! Selection of tensors from `--to`, `--from`, `--rule`, `--keep`, `--quantize` and `--keep-preset`; quantization from
//! `--scheme` and its options.

use crate::args::{RuleOrder, SchemeArgs, SelectArgs, WritingArgs};
use crate::failure::{Failure, Mend};
use crate::policy::PolicyArgs;
use std::path::Path;
use truecast::DType;
use truecast::dtype::ParseTypeError;
use truecast::request::Request;
use truecast::scaled::{self, Meaning, Writing};
use truecast::select::quantize_options::{Quantization, QuantizeOptions, SharedGlobalScale};
use truecast::select::{Rule, Selection, SourceScheme};

/// Value of `--rounding` that `--seed` implies.
pub const STOCHASTIC: &str = "stochastic";

pub fn selection(args: &SelectArgs, rules: &RuleOrder) -> Result<Selection, Failure> {
    Ok(Selection { to: args.to, from: args.from, rules: self::rules(rules)?, keep: args.keep_preset.clone() })
}

/// Request of the typed options. `--rounding stochastic` needs a seed, from the command line or a report; the request
/// itself has no stochastic rounding.
pub fn request(policy: &PolicyArgs, seed: Option<u64>, has_report: bool) -> Result<Request, Failure> {
    let is_stochastic = policy.get("rounding") == Some(STOCHASTIC);
    if is_stochastic && seed.is_none() && !has_report {
        return Err(failure!(MissingArgument, "--rounding stochastic needs --seed N"));
    }
    let request = if is_stochastic { policy.without("rounding") } else { policy.clone() }.request()?;
    if seed.is_some() && request.chooses_rounding() {
        Err(failure!(ConflictingOptions, "--seed rounds stochastically; omit the other rounding"))
    } else {
        Ok(request)
    }
}

/// Requires a type or a rule unless the command quantizes or renames tensors. Refuses options of a specification if no tensor is cast.
pub fn check(selection: &Selection, policy: &PolicyArgs, quantizes: bool, renames: bool) -> Result<(), Failure> {
    match quantizes {
        false if selection.to.is_none() && selection.rules.is_empty() && !renames => {
            let missing = failure!(MissingArgument, "nothing to do: give --to TYPE, or a --rule GLOB=TYPE");
            Err(missing.mended(Mend::add("--to bf16").example()))
        }
        true if !selection.casts() && *policy != PolicyArgs::default() => Err(failure!(
            InapplicableOption,
            "--spec and its options apply to casts, and --scheme alone casts nothing; also give --to TYPE"
        )),
        _ => Ok(()),
    }
}

/// Finds the scheme for these sources and destination.
pub fn scheme(args: &WritingArgs, sources: &[&Path], dst: &Path) -> Result<Option<Meaning>, Failure> {
    let found = args.scheme.as_ref().map(|name| scaled::scheme_for(name, sources, dst)).transpose();
    found.map_err(|error| Failure::of_scheme(&error, &scaled::written_to_files()))
}

pub fn writing(args: &WritingArgs, sources: &[&Path], dst: &Path) -> Result<Option<QuantizeOptions>, Failure> {
    let found = scheme(args, sources, dst)?.map(|meaning| meaning.scheme);
    let Some(scheme) = found.filter(|scheme| !scheme.is_plain()) else { return Ok(None) };
    let how = Quantization {
        mx: args.mx_scale,
        nonfinite: args.nonfinite,
        search: args.scale_search.unwrap_or_default(),
        ..Quantization::default()
    };
    let share = |text: &String| {
        SharedGlobalScale::new(text).map_err(|(glob, why)| failure!(InvalidPattern, "--share-global {glob:?}: {why}"))
    };
    let share = args.share_global.iter().map(share).collect::<Result<_, _>>()?;
    let (activation_ranges, imatrix) = (args.activation_ranges.clone(), args.imatrix.clone());
    Ok(Some(QuantizeOptions { scheme, how, share, relayout: args.relayout, activation_ranges, imatrix }))
}

pub fn reading(args: &SchemeArgs) -> SourceScheme {
    let SchemeArgs { from_scheme, trust_scales, nibbles, reference, like, keep_names } = args.clone();
    SourceScheme { from_scheme, trust_scales, nibbles, reference, like, keep_names }
}

fn rules(rules: &RuleOrder) -> Result<Vec<Rule>, Failure> {
    rules.iter().map(|(option, text)| rule(option, text)).collect()
}

/// Parses a rule. The last `=` is the separator, because a glob may contain `=`.
fn rule(option: &str, text: &str) -> Result<Rule, Failure> {
    match option {
        "keep" => return Ok(Rule::new(text, None)?),
        "quantize" => return Ok(Rule::quantize(text)?),
        _ => {}
    }
    let wrong = failure!(InvalidValue, "--rule {text:?} is not GLOB=TYPE");
    let instead = |glob: &str, to: &str| Mend::replace(text, format!("{glob}={to}"));
    let is_type = |word: &str| !matches!(DType::parse(word), Err(ParseTypeError::Unknown { .. }));
    let Some((glob, to)) = text.rsplit_once('=') else {
        return Err(wrong.mended(match text.rsplit_once([':', ' ', '>', ',']) {
            Some((glob, to)) if is_type(to) => instead(glob.trim_end_matches([':', ' ', '-']), to),
            _ => instead(text, "f32").example(),
        }));
    };
    match DType::parse(to) {
        Err(ParseTypeError::Unknown { .. }) if is_type(glob) => Err(wrong.mended(instead(to, glob))),
        Err(_) if glob != "*" && scaled::scheme(to).is_ok_and(|scheme| scheme.family.writing() != Writing::Never) => {
            let said = failure!(
                UnknownType,
                "--rule {text:?}: {to} has scales, and the scheme chooses those; a rule gives a type without scales"
            );
            Err(said.mended(instead(glob, "bf16").example()))
        }
        Err(error) => Err(Failure::from(error).within(format_args!("--rule {text:?}"))),
        Ok(to) => Ok(Rule::new(glob, Some(to))?),
    }
}
