//! `truecast rescale`; `check rescale` uses the same options.

use super::Context;
use crate::args::{RescaleArgs, RescaleAttributes};
use crate::failure::Failure;
use crate::message::quoted;
use crate::number::{count, grouped};
use crate::signals;
use serde_json::{Value, json};
use std::path::Path;
use std::str::FromStr;
use truecast::DType;
use truecast::io::Existing;
use truecast::io::atomic::leftover;
use truecast::paths;
use truecast::request::Standard;
use truecast::rescale::{self, RescaleOptions, RescaleRequest, element_type, integers, rescale, scales};
use truecast::spec::tosa::rescale::{Channel, RoundingMode};
use truecast::spec::tosa::{Rescale, Target, signless};

pub fn run(args: &RescaleArgs, context: &Context) -> Result<u8, Failure> {
    let existing = if args.force { Existing::Replace } else { Existing::Refuse };
    let operands = [&args.options.multiplier, &args.options.shift, &args.options.scale].into_iter().flatten();
    { operands }.filter(|text| is_file(text)).try_for_each(|text| paths::check_other(Path::new(text), &args.dst))?;
    let request = request(&args.options, &args.rounding, target(&args.spec)?, element_type(&args.src)?, args.to)?;
    let options = RescaleOptions { existing, max_memory: args.max_memory, exec: context.exec };
    super::tell_leftovers(leftover::beside(&args.dst), existing, context);
    let counts = rescale(&request, &args.src, &args.dst, &options, &signals::stop_flag(context.json))?;
    let [from, to] = request.op.types();
    let object = || {
        let [source, destination] = [&args.src, &args.dst].map(|path| path.display().to_string());
        json!({
            "source": source, "destination": destination, "options": provenance(&request), "from": from.name(),
            "to": to.name(), "multiplier": request.multipliers, "shift": request.shifts,
            "elements": counts.elements, "saturated": counts.saturated
        })
    };
    let text = || {
        let (elements, saturated) = (count(counts.elements, "element"), grouped(counts.saturated));
        let scales = args.options.scale.as_ref().map_or(String::new(), |_| chosen(&request));
        let options = context.terminal.wrap(&format!("options: {}\n", typed(args, &request)));
        format!("{options}{scales}{from} to {to}: {elements}, {saturated} saturated\n")
    };
    context.report("rescale", object, text)?;
    Ok(0)
}

fn typed(args: &RescaleArgs, request: &RescaleRequest) -> String {
    let options = &args.options;
    let mut words = vec![format!("--spec tosa@{} --to {}", request.target.version.name(), args.to)];
    let scales = [("multiplier", &options.multiplier), ("shift", &options.shift), ("scale", &options.scale)];
    words.extend(scales.into_iter().filter_map(|(name, text)| Some(format!("--{name} {}", quoted(text.as_ref()?)))));
    let points = [("input-zp", options.input_zp), ("output-zp", options.output_zp)];
    words.extend(points.into_iter().filter(|(_, zp)| *zp != 0).map(|(name, zp)| format!("--{name} {zp}")));
    let mode = request.op.rounding;
    words.extend((mode != RoundingMode::Single).then(|| format!("--rounding {}", mode.name())));
    let switches = [
        ("scale32", options.scale32),
        ("per-channel", options.per_channel),
        ("input-unsigned", options.input_unsigned),
        ("output-unsigned", options.output_unsigned),
    ];
    words.extend(switches.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| format!("--{name}")));
    words.join(" ")
}

/// `docs/interfaces.md §6`
fn provenance(request: &RescaleRequest) -> Value {
    let RescaleRequest { op, multipliers, shifts, input_zp, output_zp, target } = request;
    json!({
        "spec": "tosa", "version": target.version.name(), "rounding": op.rounding.name(), "scale32": op.scale32,
        "per_channel": op.per_channel, "input_unsigned": op.input_unsigned, "output_unsigned": op.output_unsigned,
        "input_zp": input_zp, "output_zp": output_zp, "multiplier": multipliers, "shift": shifts
    })
}

/// Version, profiles and extensions, from a name such as `tosa` or `tosa@1.0`.
pub fn target(spec: &str) -> Result<Target, Failure> {
    let asked = crate::policy::PolicyArgs { spec: Some(spec.into()), ..Default::default() }.request()?;
    match asked.standard {
        Standard::Tosa(cast) => Ok(cast.target),
        _ => Err(failure!(InapplicableOption, "RESCALE is an operator of TOSA; --spec {spec} does not have it")),
    }
}

pub fn missing_scale(options: &RescaleAttributes) -> Vec<&'static str> {
    let parts = [("--multiplier M", &options.multiplier), ("--shift S", &options.shift)];
    parts.into_iter().filter(|(_, given)| options.scale.is_none() && given.is_none()).map(|(flag, _)| flag).collect()
}

/// Request of the typed options. Unsigned types set `input_unsigned` and `output_unsigned`.
pub fn request(
    options: &RescaleAttributes,
    rounding: &str,
    target: Target,
    from: DType,
    to: DType,
) -> Result<RescaleRequest, Failure> {
    let (input, input_unsigned) = (signless(from), signless(from) != from);
    let (output, output_unsigned) = (signless(to), signless(to) != to);
    let op = Rescale {
        input,
        output,
        scale32: options.scale32,
        rounding: self::rounding(rounding)?,
        per_channel: options.per_channel,
        input_unsigned: input_unsigned || options.input_unsigned,
        output_unsigned: output_unsigned || options.output_unsigned,
    };
    let (multipliers, shifts) = match &options.scale {
        Some(text) => of_scales(text, options.scale32)?,
        None => match (&options.multiplier, &options.shift) {
            (Some(multiplier), Some(shift)) => (whole("--multiplier", multiplier)?, whole("--shift", shift)?),
            _ => {
                let missing = missing_scale(options).join(" and ");
                return Err(failure!(MissingArgument, "RESCALE needs {missing}, or else --scale X"));
            }
        },
    };
    let many = multipliers.len().max(shifts.len());
    if many > 1 && !options.per_channel {
        return Err(failure!(
            InvalidValue,
            "{many} scales; --per-channel takes one scale for each index of the last dimension, without it there is only \
             one scale"
        ));
    }
    Ok(RescaleRequest { op, multipliers, shifts, input_zp: options.input_zp, output_zp: options.output_zp, target })
}

/// Checks the type of the input. An unsigned type has the effect of `--input-unsigned`.
pub fn state_input(request: &mut RescaleRequest, from: DType, input: &Path) -> Result<(), Failure> {
    if signless(from) != request.op.input {
        let (path, found) = (input.display(), request.op.input);
        let wide = if found == DType::I48 { ", which arrays store in 64 bits" } else { "" };
        return Err(failure!(TypeNotApplicable, "--from {from}: {path} holds {found}{wide}"));
    }
    request.op.input_unsigned |= signless(from) != from;
    Ok(())
}

pub fn attributes(request: &RescaleRequest) -> String {
    let RescaleRequest { op, multipliers, shifts, input_zp, output_zp, .. } = request;
    let (multiplier, shift) = (multipliers[0], shifts[0]);
    let (rounding, scale32) = (op.rounding.name(), op.scale32 as u8);
    format!(
        "multiplier={multiplier} shift={shift} input_zp={input_zp} output_zp={output_zp} scale32={scale32} \
         rounding={rounding}"
    )
}

fn rounding(text: &str) -> Result<RoundingMode, Failure> {
    RoundingMode::of_name(text)
        .ok_or_else(|| failure!(InvalidValue, "--rounding {text:?} is not one of single, double, inexact"))
}

fn is_file(text: &str) -> bool {
    text.to_ascii_lowercase().ends_with(".npy")
}

/// Multipliers and shifts for scales: comma-separated numbers, or a file with floats.
fn of_scales(text: &str, scale32: bool) -> Result<(Vec<i64>, Vec<i64>), Failure> {
    let scales: Vec<f64> = if is_file(text) { scales(Path::new(text))? } else { numbers("--scale", "a number", text)? };
    let channel = |scale: f64| {
        Channel::of_scale(scale, scale32).map_err(|error| Failure::from(rescale::RescaleFailure::from(error)))
    };
    let channels = scales.into_iter().map(channel).collect::<Result<Vec<_>, _>>()?;
    Ok(channels.iter().map(|c| (i64::from(c.multiplier), i64::from(c.shift))).unzip())
}

/// Largest number of channels whose multiplier and shift are printed.
const FEW: usize = 8;

/// Multipliers and shifts as text, one line per channel.
fn chosen(request: &RescaleRequest) -> String {
    let all = request.multipliers.iter().zip(&request.shifts);
    let one = |(&multiplier, &shift): (&i64, &i64)| {
        let scale = Channel { multiplier: multiplier as i32, shift: shift as i8 }.scale();
        format!("multiplier {multiplier}, shift {shift}: {scale}\n")
    };
    let rest = request.multipliers.len().saturating_sub(FEW);
    let more = if rest > 0 { format!("and {rest} more, all of them with --json\n") } else { String::new() };
    all.take(FEW).map(one).chain([more]).collect()
}

/// Integers: comma-separated numbers, or an array in a file.
fn whole(flag: &str, text: &str) -> Result<Vec<i64>, Failure> {
    if is_file(text) {
        return Ok(integers(Path::new(text))?);
    }
    let is_scale = flag == "--multiplier" && text.parse::<f64>().is_ok();
    numbers(flag, "an integer", text).map_err(|wrong| match is_scale {
        true => wrong.with_hint("--scale takes a factor in place of --multiplier and --shift"),
        false => wrong,
    })
}

fn numbers<T: FromStr>(flag: &str, what: &str, text: &str) -> Result<Vec<T>, Failure> {
    let wrong = |part| failure!(InvalidValue, "{flag} {part:?} is neither {what} nor a .npy file");
    text.split(',').map(|part| part.trim().parse().map_err(|_| wrong(part))).collect()
}
