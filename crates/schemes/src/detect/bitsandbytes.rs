//! Groups that a tensor describes: 4-bit storage of bitsandbytes (§4.16).

use serde_json::Value;

use super::claims::Claims;
use super::markers::parse;
use crate::declared::wrong;
use crate::detection::Dropped;
use crate::error::Error;
use crate::found::{QuantState, Setting};
use crate::scheme::{Family, Scheme};

/// Part of the describing tensor's name, between the weight's name and `nf4` or `fp4`.
const STATE: &str = ".quant_state.bitsandbytes__";

pub(super) fn tensors(claims: &mut Claims<'_>) -> Result<(), Error> {
    for number in 0..claims.index.len() {
        let tensor = claims.index.tensor(number);
        let Some((name, kind)) = tensor.name.rsplit_once(STATE) else { continue };
        let place = format!("tensor {}", truecast_io::Escaped(&tensor.name));
        let Some(codes) = claims.index.find(name) else {
            let why = format!("{} is missing", truecast_io::Escaped(name));
            return Err(Error::Orphan { tensor: tensor.name.to_string(), what: "marker", why });
        };
        let family = match kind {
            "nf4" => Family::BnbNf4,
            "fp4" => Family::BnbFp4,
            _ => return Err(Error::Unsupported { place, scheme: format!("bnb:{kind}") }),
        };
        let value = parse(&place, &String::from_utf8_lossy(&claims.read(number)?))?;
        let state = Some(read(&value, &place)?);
        claims.drop(number, Dropped::Marker);
        claims.claim(&Setting { bitsandbytes: state, ..Setting::of(Scheme::of(family)) }, name, codes)?;
        claims.set_original(value.get("dtype").and_then(Value::as_str));
    }
    Ok(())
}

fn read(value: &Value, place: &str) -> Result<QuantState, Error> {
    let error = |key: &str, expected| wrong(place, key, value.get(key).unwrap_or(&Value::Null), expected);
    let size = |key| {
        let size = value.get(key).and_then(Value::as_u64).filter(|n| (1..=1 << 20).contains(n));
        size.ok_or_else(|| error(key, "a number from 1 to 2^20"))
    };
    let shape = value.get("shape").and_then(Value::as_array).filter(|shape| (1..=8).contains(&shape.len()));
    let shape = shape.and_then(|shape| shape.iter().map(Value::as_u64).collect());
    let nested = match value.get("nested_blocksize") {
        None | Some(Value::Null) => None,
        Some(_) => {
            let offset = value.get("nested_offset").and_then(Value::as_f64);
            let offset = offset.ok_or_else(|| error("nested_offset", "a number"))? as f32;
            Some((size("nested_blocksize")?, offset.to_bits()))
        }
    };
    Ok(QuantState { shape: shape.ok_or_else(|| error("shape", "a shape"))?, block: size("blocksize")?, nested })
}
