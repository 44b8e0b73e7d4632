//! RESCALE of consecutive integers under each rounding.

use super::{dtype, invalid, number};
use crate::failure::Failure;
use serde::Deserialize;
use serde_json::{Value, json};
use truecast::decimal::to_decimal;
use truecast::rescale::RescaleRequest;
use truecast::spec::tosa::rescale::{Bound, Channel, RoundingMode, inexact_interval};
use truecast::spec::tosa::{Rescale, Target, signless};
use truecast::{Exact, Kind};

#[derive(Deserialize)]
pub struct Asked {
    scale: Option<String>,
    multiplier: Option<i64>,
    shift: Option<i64>,
    from: String,
    to: String,
    #[serde(default)]
    input_zp: i64,
    #[serde(default)]
    output_zp: i64,
    /// True if it is absent.
    scale32: Option<bool>,
    low: i64,
    high: i64,
}

/// Largest number of inputs in an answer.
const MOST: i64 = 1000;

pub fn answer(asked: &Asked) -> Result<Value, Failure> {
    let [from, to] = [dtype(&asked.from)?, dtype(&asked.to)?];
    let (Kind::Int(input), Kind::Int(output)) = (from.kind(), to.kind()) else {
        return Err(invalid("RESCALE converts integers"));
    };
    let count = asked.high.checked_sub(asked.low).filter(|count| (0..MOST).contains(count));
    let count = count.ok_or_else(|| invalid(format_args!("low to high must be 1 to {MOST} integers")))?;
    let scale32 = asked.scale32.unwrap_or(true);
    let (multiplier, shift) = match (&asked.scale, asked.multiplier, asked.shift) {
        (Some(scale), ..) => {
            let channel = Channel::of_scale(number(scale)?, scale32).map_err(invalid)?;
            (channel.multiplier.into(), channel.shift.into())
        }
        (None, Some(multiplier), Some(shift)) => (multiplier, shift),
        _ => return Err(invalid("RESCALE needs a scale, or a multiplier and a shift")),
    };
    let resolved = |rounding| {
        let op = Rescale {
            rounding,
            scale32,
            input_unsigned: signless(from) != from,
            output_unsigned: signless(to) != to,
            ..Rescale::new(signless(from), signless(to))
        };
        let (multipliers, shifts, target) = (vec![multiplier], vec![shift], Target::default());
        let Asked { input_zp, output_zp, .. } = *asked;
        let request = RescaleRequest { op, multipliers, shifts, input_zp, output_zp, target };
        request.resolve(&[1]).map_err(|error| Failure::new(error.error_code(), error))
    };
    // Without scale32, double rounding does not exist.
    let modes = RoundingMode::ALL.into_iter().filter(|mode| scale32 || *mode != RoundingMode::Double);
    let specs = modes.map(resolved).collect::<Result<Vec<_>, _>>()?;
    let row = |value: i64| {
        let holds_value = (input.min()..=input.max()).contains(&value.into());
        let exact = exact(asked, multiplier, shift, value);
        let mut row = json!({ "input": value, "exact": exact, "single": null, "double": null, "inexact": null });
        if !holds_value {
            row["why"] = json!(format!("{value} is not a value of {from}"));
        }
        for spec in specs.iter().filter(|_| holds_value) {
            let code = input.code(value.into());
            match spec.rescale_one(0, code) {
                Ok(result) => row[spec.rounding.name()] = json!(output.value(result.code) as i64),
                Err(requirement) => row["why"] = json!(requirement.to_string()),
            }
            if spec.rounding == RoundingMode::Inexact {
                row["permitted"] = json!(inexact_interval(spec, 0, code, Bound::Released).ok());
            }
        }
        row
    };
    let rows: Vec<Value> = (asked.low..=asked.low + count).map(row).collect();
    let scale =
        Exact::Finite { neg: multiplier < 0, sig: multiplier.unsigned_abs(), exp: -(shift as i32), sticky: false };
    Ok(json!({ "multiplier": multiplier, "shift": shift, "scale": to_decimal(scale), "rows": rows }))
}

/// Product before rounding, plus the output zero point; rounded to f64.
fn exact(asked: &Asked, multiplier: i64, shift: i64, value: i64) -> f64 {
    let product = (value as f64 - asked.input_zp as f64) * multiplier as f64;
    product * 2f64.powi(-(shift as i32)) + asked.output_zp as f64
}
