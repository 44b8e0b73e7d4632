//! Arguments that every check of elements needs: types and files.

use crate::args::CheckArgs;
use crate::command::rescale;
use crate::failure::Failure;
use crate::help_text::page;
use std::path::Path;
use truecast::DType;
use truecast::check::{CheckError, stated_type};

/// The destination type and the files of a check.
pub struct Asked<'a> {
    pub to: DType,
    pub input: &'a Path,
    pub actual: &'a Path,
}

/// Returns the types and files of the check. One error names all missing options.
pub fn asked(args: &CheckArgs) -> Result<Asked<'_>, Failure> {
    let operator = args.what.to_str().unwrap_or_default();
    let scale = if operator == "rescale" { rescale::missing_scale(&args.rescale) } else { Vec::new() };
    match (args.to, &args.input, &args.actual) {
        (Some(to), Some(input), Some(actual)) if scale.is_empty() => Ok(Asked { to, input, actual }),
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

/// Returns the example of the operator in the help of `check`; for CastLike, the adapted example of Cast.
fn example(operator: &str) -> String {
    let lines = page("check").expect("check has a page").examples.iter().map(|(_, line)| *line);
    let known = if operator == "castlike" { "cast" } else { operator };
    let line = { lines }.find(|line| line.split(' ').nth(2) == Some(known)).expect("the page has a line of each");
    line.replacen(&format!(" {known} "), &format!(" {operator} "), 1)
}

/// Returns the type of the input: the typed one, or the type in the header of its file.
pub fn source_type(args: &CheckArgs, input: &Path) -> Result<DType, Failure> {
    match args.from {
        Some(from) => Ok(from),
        None => Ok(stated_type(input).map_err(CheckError::from)?),
    }
}

/// Returns the options with which `explain` answers for the same conversion. `explain` has no equivalent of
/// `--input-unsigned`.
pub fn explain_options(args: &CheckArgs, [from, to]: [DType; 2], spec: &str) -> String {
    let from = if from == DType::F32 { String::new() } else { format!(" --from {from}") };
    format!("--to {to}{from} {}", args.policy.as_typed(spec))
}
