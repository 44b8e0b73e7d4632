//! Sentences that describe the conversion.

use super::source::Source;
use super::{Question, code_text};
use crate::exact_decimal;
use crate::number::count;
use crate::output::bits;
use crate::policy::PolicyArgs;
use truecast::decimal::to_decimal;
use truecast::exact::decode;
use truecast::explain::{Answer, Decision, Decoded, Explanation};
use truecast::setting::Setting;
use truecast::{DType, Exact, FloatFormat, Kind, Rounding};

/// Formats a value; `exact` requests every digit.
pub fn value(exact: bool, value: Exact) -> String {
    if exact { to_decimal(value) } else { exact_decimal::shown(value) }
}

/// Describes the rounding of the typed number to the source type. `None` if the number is exact.
pub fn reading(args: &Question, source: &Source) -> Option<String> {
    if source.exact {
        return None;
    }
    let (typed, from) = (&args.value, args.from);
    // `--from string` accepts fewer notations, and some specifications convert no text.
    let of_text = Setting::of_name("string-style").expect("a setting of the table");
    let has_text = |spec: &str| !of_text.values(spec.split('@').next().unwrap_or(spec)).is_empty();
    let is_text = !typed.contains(['/', 'x', 'X', '_']) && args.policy.spec.as_deref().is_none_or(has_text);
    if let Some(wider) = &source.beyond {
        let read = to_decimal(decode(from, source.code));
        let wider = wider.iter().map(|dtype| dtype.name()).chain(is_text.then_some("string"));
        let takes: Vec<String> = wider.map(|name| format!("--from {name}")).collect();
        let takes = if takes.is_empty() { String::new() } else { format!("; {} takes it", takes.join(" or ")) };
        let largest = match from.kind() {
            Kind::Float(f) => {
                let largest = decode(from, f.max_code());
                let every = to_decimal(largest);
                format!(" (largest {})", if every.len() > 9 { exact_decimal::scientific(largest, 3) } else { every })
            }
            _ => String::new(),
        };
        return Some(format!("{typed} is out of the range of {from}{largest} and was read as {read}{takes}"));
    }
    let off = source.off_by.as_ref().map_or(String::new(), |off| {
        let by = exact_decimal::scientific(off.value, 3);
        let (than, by) = by.strip_prefix('-').map_or(("smaller", by.as_str()), |by| ("larger", by));
        format!("; the {} is {than} by {by} ({} ulp)", args.from, ulps(off.ulps, false))
    });
    let itself = if is_text { format!("; --from string takes {typed} itself") } else { String::new() };
    Some(format!("{typed} rounded to {from} when it was read{off}{itself}"))
}

/// A number of ulps, written with up to five decimals. `≈` marks a rounded number.
pub fn ulps(x: f64, is_tie: bool) -> String {
    if x >= 1e4 {
        return format!("≈{x:.1e}");
    }
    let rounded = format!("{x:.5}");
    let text = rounded.trim_end_matches('0').trim_end_matches('.');
    // Except for a tie, 0.5 is the f64 of a number close to one half.
    let is_exact = text.parse() == Ok(x) && (x != 0.5 || is_tie);
    if is_exact { text.into() } else { format!("≈{text}") }
}

pub fn decision(args: &Question, e: &Explanation, source: &Source) -> String {
    let n = &e.neighbors;
    if let (Some(_), [answer]) = (args.random, e.answers.as_slice())
        && !matches!(n.decision, Decision::Exact | Decision::NotRounded)
    {
        let policy = &answer.interpretation.cast.policy;
        let is_int = matches!(e.to.kind(), Kind::Int(_));
        let rounding = if is_int { policy.to_int } else { policy.to_float };
        return format!(
            "stochastic: the random bits and the bits that are cut off round {}",
            match rounding {
                Rounding::TowardZero => "toward zero",
                _ => "away from zero",
            }
        );
    }
    if let Some(said) = as_asked(args, e) {
        return said;
    }
    match (n.decision, e.to.kind()) {
        (Decision::Exact, _) => exact(args, e, source),
        (Decision::NotRounded, _) => match e.source.value {
            Exact::Nan { .. } => nan(&e.source, e.to),
            _ => infinity(e.to),
        },
        (_, Kind::Bool) => "bool: zero is false, every other value is true".into(),
        (_, Kind::Int(_)) => integer(args, e),
        (Decision::Other, kind) => no_room(e.to, kind, e),
        (_, Kind::Book(_)) => book(args, e),
        _ => float(args, e),
    }
}

/// Describes the effect of the chosen rounding, if it differs from the default rounding.
fn as_asked(args: &Question, e: &Explanation) -> Option<String> {
    let n = &e.neighbors;
    let neutral = PolicyArgs { spec: args.policy.spec.clone(), ..PolicyArgs::default() };
    let [Answer { interpretation, outcome }] = e.answers.as_slice() else { return None };
    let is_far = n.is_out_of_range && matches!(e.to.kind(), Kind::Int(_));
    let rounds = matches!(n.decision, Decision::Below | Decision::Tie | Decision::Above) && !is_far;
    if args.policy == neutral || !rounds {
        return None;
    }
    let policy = interpretation.cast.policy;
    let rounding = match e.to.kind() {
        Kind::Int(_) => policy.to_int,
        Kind::Float(_) | Kind::Fixed(_) if policy.to_float != Rounding::NearestEven => policy.to_float,
        _ => return None,
    };
    let code = outcome.code()?;
    let is_at = |element: &Option<Decoded>| element.as_ref().is_some_and(|element| element.code == code);
    let goes = match () {
        () if is_at(&n.below) => "goes to the neighbor below,",
        () if is_at(&n.above) => "goes to the neighbor above,",
        () => "goes out of range and becomes",
    };
    let value = value(args.exact, decode(e.to, code));
    Some(format!("rounding {}: {goes} {} = {value}", rounding.name(), bits(code, e.to.code_bits())))
}

fn exact(args: &Question, e: &Explanation, source: &Source) -> String {
    let code = e.neighbors.below.as_ref().map_or(String::new(), |b| format!(", code {}", code_text(b)));
    match source.exact {
        _ if e.scaled.is_some() => format!("exact: the scaled value is a value of {}{code}", e.to),
        true => format!("exact: the value is a value of {}{code}", e.to),
        false => format!("exact: {} rounded to {} is a value of {}{code}", args.value, args.from, e.to),
    }
}

fn float(args: &Question, e: &Explanation) -> String {
    let n = &e.neighbors;
    let value = |v| value(args.exact, v);
    let negative = matches!(e.source.value, Exact::Finite { neg: true, .. });
    let tie_rule = || {
        let inner = n.below.as_ref().or(n.above.as_ref());
        let (Some(m), Some(inner)) = (n.midpoint, inner) else { return String::new() };
        let even = |element: &Decoded| element.code & 1 == 0;
        let kept = match (&n.below, &n.above) {
            (Some(a), Some(_)) if even(a) => a,
            (Some(_), Some(b)) => b,
            _ if even(inner) => inner,
            _ => {
                let code = code_text(inner);
                let goes = if n.decision == Decision::Tie { "goes" } else { "would go" };
                return format!("a tie at {} {goes} up, to overflow, because {code} is odd", value(m));
            }
        };
        let goes = if n.decision == Decision::Tie { "goes" } else { "would go" };
        format!("a tie at {} {goes} to the even code {} = {}", value(m), code_text(kept), value(kept.value))
    };
    let goes = match n.decision {
        // The value is beyond the last midpoint, on the side away from zero.
        Decision::Below | Decision::Above if n.beyond.is_some() && (n.decision == Decision::Below) == negative => {
            "rounds beyond the largest finite value, overflow; "
        }
        Decision::Below => "goes to the neighbor below; ",
        Decision::Above => "goes to the neighbor above; ",
        _ => "",
    };
    format!("to nearest even: {goes}{}{}", tie_rule(), otherwise_rounded(args, e))
}

/// Text such as `; nearest-up: 0x81 = 4`. The text lists the answers under roundings that round a tie to the other
/// neighbor.
fn otherwise_rounded(args: &Question, e: &Explanation) -> String {
    let n = &e.neighbors;
    let to_nearest_even = match (n.decision, &n.below) {
        (Decision::Below, below) => below,
        (Decision::Tie, Some(below)) if below.code & 1 == 0 => &n.below,
        _ => &n.above,
    };
    let mut text = String::new();
    for rounding in [Rounding::NearestAway, Rounding::NearestUp] {
        let rounded = e.answers.iter().filter(|answer| answer.interpretation.cast.policy.to_float == rounding);
        let mut codes: Vec<Option<u64>> = rounded.map(|answer| answer.outcome.code()).collect();
        codes.dedup();
        let [Some(code)] = codes[..] else { continue };
        let is_it = |neighbor: &&Decoded| neighbor.code == code;
        let other = [&n.below, &n.above].into_iter().flatten().find(is_it);
        if let Some(other) = other.filter(|_| to_nearest_even.as_ref().is_none_or(|even| even.code != code)) {
            text += &format!("; {}: {} = {}", rounding.name(), code_text(other), value(args.exact, other.value));
        }
    }
    text
}

fn integer(args: &Question, e: &Explanation) -> String {
    let n = &e.neighbors;
    let value = |v| value(args.exact, v);
    let is_negative = matches!(e.source.value, Exact::Finite { neg: true, .. });
    let named = |element: &Decoded| format!("{} = {}", code_text(element), value(element.value));
    let (inner, outer) = if is_negative { (&n.above, &n.below) } else { (&n.below, &n.above) };
    let Some(kept) = inner.as_ref().filter(|_| !n.is_out_of_range) else {
        return format!("out of range of {}", e.to);
    };
    let goes_out = || format!("{}, out of range", n.beyond.as_ref().map_or(String::new(), |(step, _)| value(*step)));
    let away = || outer.as_ref().map_or_else(goes_out, named);
    let is_odd = kept.code & 1 == 1;
    let nearest = match (n.decision, is_negative) {
        (Decision::Tie, _) if is_odd => away(),
        (Decision::Above, false) | (Decision::Below, true) => away(),
        _ => named(kept),
    };
    format!("toward zero: {}; to nearest even: {nearest}", named(kept))
}

/// Source: `docs/spec/openvino.md §1.3`.
fn book(args: &Question, e: &Explanation) -> String {
    let n = &e.neighbors;
    let (Some(below), Some(above), Some(threshold)) = (&n.below, &n.above, n.threshold) else { return String::new() };
    let side = if n.decision == Decision::Below { "below" } else { "above" };
    format!(
        "by thresholds: up to {} the code is {}, above it {}; goes to the neighbor {side}",
        value(args.exact, threshold),
        code_text(below),
        code_text(above)
    )
}

fn no_room(to: DType, kind: Kind, e: &Explanation) -> String {
    let says = "each specification defines the result";
    match (kind, e.source.value) {
        (Kind::Float(f), Exact::Finite { neg: true, sig: 1.., .. }) if !f.signed => {
            format!("negative, and {to} has no sign: {says}")
        }
        (Kind::Float(f), Exact::Finite { sig: 0, .. }) if !f.has_zero => format!("{to} has no zero: {says}"),
        (Kind::Float(_), _) => format!("between zero, which {to} does not have, and its smallest value: {says}"),
        (Kind::Book(_), _) => format!("beyond the last value of {to}, which represents all values out of range"),
        _ => format!("{to} cannot represent it: {says}"),
    }
}

fn infinity(to: DType) -> String {
    let says = "each specification defines the result";
    match to.kind() {
        Kind::Bool => "an infinity is not zero, so it is true".into(),
        Kind::Float(f) if f.inf_code().is_some() => {
            format!("not rounded: {to} has infinities, so the value stays infinite unless a specification saturates")
        }
        Kind::Float(f) if f.nan_code().is_some() => {
            format!(
                "not rounded: {to} has no infinity; the result is NaN, or the largest value if a specification saturates"
            )
        }
        Kind::Float(_) | Kind::Fixed(_) | Kind::Book(_) => {
            format!("not rounded: {to} has neither infinity nor NaN; the result is the last value on that side")
        }
        _ => format!("not rounded: an integer has no infinity; {says}"),
    }
}

/// Describes a NaN, and its parts after the conversion (`ARCHITECTURE.md §8`, one NaN rule).
fn nan(source: &Decoded, to: DType) -> String {
    let says = "each specification defines the result";
    let Some(parts) = source.nan() else { return String::new() };
    let what = match parts.is_quiet {
        Some(quiet) => format!(
            "a {} NaN, sign {}, payload {:#x} of {}",
            if quiet { "quiet" } else { "signaling" },
            parts.neg as u8,
            parts.payload,
            count(parts.payload_bits.into(), "bit")
        ),
        None => format!("a NaN, sign {}; {} has no payload", parts.neg as u8, source.dtype),
    };
    let becomes = match to.kind() {
        _ if to == source.dtype => "the same type: its bits are kept, unless a specification says otherwise".into(),
        Kind::Float(f) => in_float(source, to, &f, parts.is_quiet).unwrap_or(format!("{to} has no NaN: {says}")),
        Kind::Bool => "it is not zero, so it is true".into(),
        Kind::Int(_) => format!("an integer has no NaN: {says}"),
        _ => format!("{to} has no NaN: {says}"),
    };
    format!("{what}; {becomes}")
}

fn in_float(source: &Decoded, to: DType, f: &FloatFormat, is_quiet: Option<bool>) -> Option<String> {
    let code = bits(f.nan_code()?, to.code_bits());
    let sign = if f.signed && f.has_negative_zero() { "its sign is kept" } else { "its sign is lost" };
    let kept = u32::from(f.man_bits).saturating_sub(1).min(source.nan().map_or(0, |n| n.payload_bits));
    let kept = count(kept.into(), "bit");
    Some(match (f.inf_code(), is_quiet) {
        (Some(_), Some(quiet)) => {
            let quieted = if quiet { "" } else { "it becomes quiet; " };
            format!("{quieted}{sign}, and the leading {kept} of the payload, unless a specification says otherwise")
        }
        _ => format!("it becomes the NaN {code} of {to}: {sign}, the payload is lost"),
    })
}
