//! `--to`, `--from`, `--rule` and `--keep` as a selection of tensors.

use crate::args::{RuleOrder, SelectArgs};
use crate::failure::Failure;
use crate::words::read_type;
use truecast::select::{Rule, Selection};

/// What was asked for.
pub fn selection(args: &SelectArgs, rules: &RuleOrder) -> Result<Selection, Failure> {
    let rules = self::rules(rules)?;
    if args.to.is_none() && rules.is_empty() {
        return Err(Failure::usage("nothing to do: give --to TYPE, or a --rule GLOB=TYPE"));
    }
    Ok(Selection { to: args.to, from: args.from, rules })
}

/// The rules as they were typed.
pub fn rules(rules: &RuleOrder) -> Result<Vec<Rule>, Failure> {
    rules.iter().map(|(keep, text)| rule(keep, text)).collect()
}

/// Split at the last `=`: globs may hold one, types do not.
fn rule(keep: bool, text: &str) -> Result<Rule, Failure> {
    if keep {
        return Ok(Rule::new(text, None)?);
    }
    let Some((glob, to)) = text.rsplit_once('=') else {
        return Err(Failure::usage(format_args!("rule {text:?} has no type; write GLOB=TYPE")));
    };
    let to = read_type(to).map_err(|error| Failure::usage(format_args!("rule {text:?}: {error}")))?;
    Ok(Rule::new(glob, Some(to))?)
}
