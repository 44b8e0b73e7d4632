//! `truecast check`: are results permitted (`elements`; `tosa` for TOSA), or are the conversions of a model legal
//! (`model`)?

mod elements;
mod groups;
mod model;
mod source;
mod tosa;

use super::{Context, rescale};
use crate::args::CheckArgs;
use crate::failure::Failure;
use crate::policy::operator;
use truecast::request::Standard;

pub fn run(args: &CheckArgs, context: &Context) -> Result<u8, Failure> {
    let named = args.what.to_str().unwrap_or_default();
    if named == "rescale" {
        return tosa::rescale(args, rescale::target(args.policy().spec())?, context);
    }
    let Some(operator) = operator(named) else { return model::run(args, context) };
    let random = source::randomness(args)?;
    // As for `vectors`: the request itself has no stochastic rounding.
    let policy = if random.is_some() { args.policy.without("rounding") } else { args.policy.clone() };
    let request = policy.judging().request_of(operator)?;
    match request.standard {
        Standard::Tosa(cast) if random.is_none() => tosa::cast(args, request.nan, cast.target, context),
        _ => elements::run(args, &request, random, context),
    }
}
