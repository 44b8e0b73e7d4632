//! Types and files of an elementwise check.

use crate::args::CheckArgs;
use crate::command::{rescale, select};
use crate::failure::Failure;
use crate::help_text::page;
use std::path::Path;
use truecast::DType;
use truecast::check::{CheckError, Randomness, stated_type};
use truecast::io::npy::hex::{has_both_columns, is_hex, states_random_bits};

pub struct Asked<'a> {
    pub to: DType,
    pub input: &'a Path,
    pub actual: &'a Path,
}

/// Types and files from the arguments.
///
/// # Errors
/// One error for all missing options.
pub fn asked(args: &CheckArgs) -> Result<Asked<'_>, Failure> {
    let operator = args.what.to_str().unwrap_or_default();
    let scale = if operator == "rescale" { rescale::missing_scale(&args.rescale) } else { Vec::new() };
    match (args.to, &args.input, &args.actual) {
        (Some(to), Some(input), Some(actual)) if scale.is_empty() => Ok(Asked { to, input, actual }),
        (Some(to), Some(both), None) | (Some(to), None, Some(both))
            if scale.is_empty() && is_hex(both) && has_both_columns(both)? =>
        {
            Ok(Asked { to, input: both, actual: both })
        }
        (to, input, actual) => {
            let files =
                [(to.is_none(), "--to TYPE"), (input.is_none(), "--input FILE"), (actual.is_none(), "--actual FILE")];
            let missing = files.into_iter().filter(|(is_missing, _)| *is_missing).map(|(_, flag)| flag);
            let missing: Vec<_> = missing.chain(scale).collect();
            let example = example(operator);
            Err(failure!(MissingArgument, "check {operator} needs {}; for example: {example}", missing.join(", ")))
        }
    }
}

/// Random bits of the results: of a seed, or stated in a `.hex` file. `None` unless they were rounded stochastically.
pub fn randomness(args: &CheckArgs) -> Result<Option<Randomness>, Failure> {
    let random = match (args.seed, args.actual.as_ref().or(args.input.as_ref())) {
        (Some(seed), _) => Some(Randomness::Seed(seed)),
        (None, Some(actual)) if is_hex(actual) => states_random_bits(actual)?.then_some(Randomness::Stated),
        (None, _) => None,
    };
    if args.seed.is_some() || args.policy.get("rounding") == Some(select::STOCHASTIC) {
        select::request(&args.policy.judging(), args.seed, random.is_some())?;
    }
    Ok(random)
}

/// Example from the help of `check`. CastLike has the example of Cast, with the name replaced.
fn example(operator: &str) -> String {
    let lines = page("check").expect("check has a page").examples.iter().map(|(_, line)| *line);
    let known = if operator == "castlike" { "cast" } else { operator };
    let line = { lines }.find(|line| line.split(' ').nth(2) == Some(known)).expect("the page has a line of each");
    line.replacen(&format!(" {known} "), &format!(" {operator} "), 1)
}

pub fn source_type(args: &CheckArgs, input: &Path) -> Result<DType, Failure> {
    match args.from {
        Some(from) => Ok(from),
        None if is_hex(input) => {
            Err(failure!(MissingArgument, "{}: a .hex file does not state its type; give --from TYPE", input.display()))
        }
        None => Ok(stated_type(input).map_err(CheckError::from)?),
    }
}

/// Options of `explain` for the same conversion. `explain` has no equivalent of `--input-unsigned`.
pub fn explain_options(args: &CheckArgs, [from, to]: [DType; 2], spec: &str) -> String {
    let from = if from == DType::F32 { String::new() } else { format!(" --from {from}") };
    format!("--to {to}{from} {}", args.policy.as_typed(spec))
}
