//! `truecast explain`. `source` parses the value, `picture` draws it among its neighbors, `sentences` describes the
//! conversion, `projection` handles P3109 formats.

mod distinct;
mod every_type;
mod picture;
mod printing;
mod projection;
mod sentences;
mod source;

use super::formats::json_text;
use super::{Context, differences};
use crate::args::ExplainArgs;
use crate::command::select::STOCHASTIC;
use crate::exact_decimal;
use crate::failure::{Failure, Mend};
use crate::number::significant;
use crate::number_format::NumberFormat;
use crate::output::bits;
use crate::policy::PolicyArgs;
pub use distinct::{Distinct, results};
use serde_json::{Value, json};
use source::Source;
pub use source::not_a_number;
use truecast::decimal::to_decimal;
use truecast::exact::{RandomBits, decode};
use truecast::explain::{
    Absent, Answer, Decoded, Explanation, Neighbors, absent, explain, explain_text, explain_tile, explain_tile_as,
    explain_under,
};
use truecast::request::{Request, Standard, Tile};
use truecast::setting::Setting;
use truecast::spec::{Interpretation, interpretations, tile};
use truecast::{DType, ErrorCode, Exact, Kind, Outcome, cast_one};

pub struct Question {
    pub value: String,
    pub from: DType,
    pub to: DType,
    /// Print all digits.
    pub exact: bool,
    pub clauses: bool,
    pub random: Option<RandomBits>,
    /// Show both results of stochastic rounding, with their probabilities.
    pub is_stochastic: bool,
    pub policy: PolicyArgs,
}

pub fn run(args: &ExplainArgs, context: &Context) -> Result<u8, Failure> {
    let (from, to) = match (args.from, args.to) {
        (_, None) => return every_type::run(args, context),
        (_, Some(NumberFormat::P3109(to))) => return projection::run(args, to, context),
        (None, Some(NumberFormat::Type(to))) => (DType::F32, to),
        (Some(NumberFormat::Type(from)), Some(NumberFormat::Type(to))) => (from, to),
        (Some(NumberFormat::P3109(from)), Some(NumberFormat::Type(_))) => {
            let why =
                format_args!("{from} is not an element type; without --to, explain shows its value in every type");
            return Err(Failure::new(ErrorCode::InvalidValue, why));
        }
    };
    let (value, random) = (args.value.clone(), args.random_bits);
    let is_stochastic = args.policy.get("rounding") == Some(STOCHASTIC);
    let policy = if is_stochastic { args.policy.without("rounding") } else { args.policy.clone() };
    let policy = if is_stochastic || random.is_some() { policy.or_spec("ieee") } else { policy };
    let clauses = args.clauses || context.wide;
    pair(&Question { value, from, to, exact: args.exact, clauses, random, is_stochastic, policy }, context)
}

fn pair(args: &Question, context: &Context) -> Result<u8, Failure> {
    for dtype in [args.from, args.to] {
        if matches!(dtype.kind(), Kind::Complex(_)) {
            return Err(failure!(InvalidValue, "{dtype} has no numeric value to explain"));
        }
    }
    if (args.random.is_some() || args.is_stochastic) && (args.from == DType::String || !is_numbers(args.to)) {
        return Err(failure!(InvalidValue, "{} to {} is not rounded by random bits", args.from, args.to));
    }
    let asked = asked(args)?;
    if args.to == DType::String {
        let mut asked = asked.interpretations(args);
        if args.policy.get("string-style").is_some() {
            let text = args.policy.request()?.text;
            asked.iter_mut().for_each(|interpretation| interpretation.cast.policy.text = text);
        }
        return printing::run(args, asked, context);
    }
    let (source, explanation) = explained(args, asked)?;
    let render = if args.clauses { picture::with_clauses } else { picture::render };
    let text = || render(args, &explanation, &source, &context.terminal);
    context.answer("explain", || to_json(args, &explanation, &source), text)?;
    Ok(0)
}

/// Explains a number under every specification. The types must be numeric.
pub fn of_number(args: &Question) -> Result<(Source, Explanation), Failure> {
    explained(args, Asked::Everything)
}

fn explained(args: &Question, asked: Asked) -> Result<(Source, Explanation), Failure> {
    Ok(match args.from {
        DType::String => {
            let everything = matches!(asked, Asked::Everything);
            let explained = explain_text(args.value.as_bytes(), args.to, asked.interpretations(args));
            let mut explained = explained.map_err(|e| not_a_number(&args.value, e))?;
            if everything {
                explained.absent = absent(args.from, args.to);
            }
            (Source::text(), explained)
        }
        from => {
            let source = Source::read(&args.value, from)?;
            let (code, to) = (source.code, args.to);
            let asked = match args.random {
                Some(random) => {
                    let bits = format!("random bits {}/{}", random.bits(), random.count());
                    Asked::These(vec![rounded_by(random, &bits, args, code)?])
                }
                None if args.is_stochastic => Asked::These(both_roundings(args, code)?),
                None => asked,
            };
            let explained = match asked {
                Asked::Everything => explain(from, code, to),
                Asked::These(all) => explain_under(from, code, to, all),
                Asked::Tile(cast) => explain_tile(from, code, to, &cast)?,
                Asked::TileAs(cast) => explain_tile_as(from, code, &cast)?,
            };
            (source, explained)
        }
    })
}

enum Asked {
    /// All specifications, with every set of attributes.
    Everything,
    These(Vec<Interpretation>),
    /// Tile IR with every set of attributes. Some conversions of Tile IR have no `CastSpec`.
    Tile(tile::Cast),
    /// Tile IR with exactly these attributes.
    TileAs(tile::Cast),
}

impl Asked {
    /// Answers of the specifications. Empty for Tile IR, which has no conversions of text.
    fn interpretations(self, args: &Question) -> Vec<Interpretation> {
        match self {
            Asked::Everything => interpretations(args.from, args.to),
            Asked::These(all) => all,
            Asked::Tile(_) | Asked::TileAs(_) => Vec::new(),
        }
    }
}

fn asked(args: &Question) -> Result<Asked, Failure> {
    let (from, to) = (args.from, args.to);
    if args.policy.spec.is_none() {
        // `--string-style` needs no `--spec`, because the style applies to all specifications.
        return if args.policy.without("string-style").settings.is_empty() {
            Ok(Asked::Everything)
        } else {
            let missing = failure!(
                MissingArgument,
                "the options of a specification need --spec NAME: without --spec, explain shows every specification with \
                 its own options"
            );
            let setting = args.policy.settings.first().and_then(|(name, _)| Setting::of_name(name));
            let resolves = |spec: &&str| {
                args.policy.or_spec(spec).request().is_ok_and(|request| request.resolve(from, to).is_ok())
            };
            Err(match setting.map_or(Vec::new(), Setting::specs).into_iter().find(resolves) {
                Some(spec) => missing.mended(Mend::add(format!("--spec {spec}")).example()),
                None => missing,
            })
        };
    }
    let request = args.policy.request()?;
    let plain = PolicyArgs { spec: args.policy.spec.clone(), ..PolicyArgs::default() }.request()?;
    let has_options = request != plain;
    let is_text = [from, to].contains(&DType::String);
    if let (Standard::Tile(Tile { cast, .. }), false) = (request.standard, is_text) {
        let cast = tile::Cast { to, ..cast };
        return Ok(if has_options { Asked::TileAs(cast) } else { Asked::Tile(cast) });
    }
    let cast = request.resolve(from, to)?;
    Ok(Asked::These(if has_options { vec![chosen(&request, cast)] } else { request.interpretations(from, to)? }))
}

/// True if the values of the type form a grid, so that random bits can decide the rounding.
fn is_numbers(dtype: DType) -> bool {
    matches!(dtype.kind(), Kind::Float(_) | Kind::Int(_) | Kind::Fixed(_))
}

/// Answer of the specification with a rounding that random bits decide.
fn rounded_by(random: RandomBits, name: &str, args: &Question, code: u64) -> Result<Interpretation, Failure> {
    let request = args.policy.request()?;
    let mut answer = chosen(&request, request.resolve(args.from, args.to)?.with_random_bits(code, random));
    let separator = if answer.attributes.is_empty() { "" } else { ", " };
    answer.attributes += separator;
    answer.attributes += name;
    Ok(answer)
}

/// The results of stochastic rounding with their probabilities. A value of the destination has one result.
fn both_roundings(args: &Question, code: u64) -> Result<Vec<Interpretation>, Failure> {
    const ALL: u64 = 1 << RandomBits::MOST;
    let by = |bits, count: u64| {
        let share: f64 = significant(count as f64 / ALL as f64, 6).parse().expect("a number");
        let name = format!("probability={share}");
        rounded_by(RandomBits::new(bits, RandomBits::MOST).expect("below 2^32"), &name, args, code)
    };
    let outcome = |bits| Ok::<_, Failure>(cast_one(&by(bits, ALL)?.cast, code));
    let toward_zero = outcome(0)?;
    // Random bits below `most` round toward zero, all others away from it.
    let (mut least, mut most) = (0, ALL);
    while most - least > 1 {
        let bits = (least + most) / 2;
        *if outcome(bits)? == toward_zero { &mut least } else { &mut most } = bits;
    }
    let away = if most < ALL { Some(by(most, ALL - most)?) } else { None };
    Ok([by(0, most)?].into_iter().chain(away).collect())
}

/// Answer that a specification gives under the typed options.
fn chosen(request: &Request, cast: truecast::CastSpec) -> Interpretation {
    let name = request.to_string();
    let (name, attributes) = name.split_once(' ').unwrap_or((&name, ""));
    let version = name.split_once('@').map_or("", |(_, version)| version);
    Interpretation { spec: request.spec(), version: version.into(), attributes: attributes.replace(' ', ", "), cast }
}

/// Decimal digits of the value, or the typed text if an [`Exact`] cannot hold all digits.
fn value_of(args: &Question, value: Exact) -> String {
    match value {
        Exact::Finite { sticky: true, .. } => args.value.trim().into(),
        _ => to_decimal(value),
    }
}

fn code_text(element: &Decoded) -> String {
    if element.dtype == DType::String {
        return String::new();
    }
    bits(element.code, element.dtype.code_bits())
}

fn neighbors_json<E>(n: &Neighbors<E>, element: impl Fn(&E) -> Value) -> Value {
    let beyond = n.beyond.as_ref();
    let beyond = beyond.map(|(step, code)| json!({ "value": to_decimal(*step), "code": code.as_ref().map(&element) }));
    json!({
        "below": n.below.as_ref().map(&element), "above": n.above.as_ref().map(&element), "beyond": beyond,
        "midpoint": n.midpoint.map(to_decimal), "threshold": n.threshold.map(to_decimal), "ulp": n.steps
    })
}

pub fn to_json(args: &Question, e: &Explanation, source: &Source) -> Value {
    let element = |x: &Decoded| json!({ "bits": code_text(x), "value": json_text(to_decimal(x.value)) });
    let [previous, next] = e.source.adjacent();
    let mut read = json!({
        "bits": code_text(&e.source), "exact": json_text(value_of(args, e.source.value)), "rounded": !source.exact,
        "previous": previous.as_ref().map(element), "next": next.as_ref().map(element)
    });
    if let Some(scaled) = e.scaled {
        read["scaled"] = json_text(to_decimal(scaled)).into();
    }
    if let Some(off) = &source.off_by {
        read["error"] = exact_decimal::json(off.value);
        read["error_ulp"] = json!(off.ulps);
    }
    if let Some(nan) = e.source.nan() {
        read["nan"] = json!({ "negative": nan.neg, "quiet": nan.is_quiet, "payload": format!("{:#x}", nan.payload) });
    }
    let mut neighbors = neighbors_json(&e.neighbors, element);
    neighbors["decision"] = json!(sentences::decision(args, e, source));
    let results = e.answers.iter().map(|Answer { interpretation: i, outcome }| {
        let (bits, value) = match outcome.code() {
            Some(code) => (bits(code, e.to.code_bits()), json_text(to_decimal(decode(e.to, code)))),
            None => ("-".into(), "refused".into()),
        };
        let undefined = match outcome {
            Outcome::Undefined { reason, .. } => json!(reason),
            _ => Value::Null,
        };
        json!({
            "spec": i.spec, "group": i.group().name(), "version": i.version, "attributes": i.attributes, "to": e.to.name(), "bits": bits,
            "value": value, "undefined": undefined, "clause": i.cast.clause
        })
    });
    let lacking = |a: &Absent| json!({ "spec": a.spec, "version": a.version, "why": a.why });
    json!({
        "value": args.value, "from": args.from.name(), "to": args.to.name(), "source": read, "neighbors": neighbors,
        "answers": distinct::to_json(e), "results": results.collect::<Value>(), "absent": e.absent.iter().map(lacking).collect::<Value>(),
        "known_differences": differences::to_json(e)
    })
}
