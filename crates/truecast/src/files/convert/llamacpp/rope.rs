//! Rotary positions: their base, and how they are scaled to longer contexts.

use super::fields::{CONFIG, Fields, refused};
use super::models::Kind;
use crate::files::convert::error::CheckpointError;
use std::f32::consts::PI;
use truecast_io::gguf::Keys;

/// Base of transformers without the field, and of llama.cpp without the key.
const BASE: f64 = 10_000.0;
/// Most elements of a head. Heads of real models have up to 512.
const MOST_ELEMENTS: u32 = 1 << 16;

/// Scaling of Llama 3: a divisor for each frequency, which is a tensor.
#[derive(Debug)]
struct Llama3 {
    factor: f64,
    low: f64,
    high: f64,
    original: u32,
}

#[derive(Debug)]
pub(super) struct Rope {
    base: f64,
    pub keys: Keys,
    llama3: Option<Llama3>,
}

impl Rope {
    pub fn new(kind: &Kind, fields: &Fields) -> Result<Rope, CheckpointError> {
        let (place, values) = match (fields.object("rope_scaling")?, fields.object("rope_parameters")?) {
            (Some(values), _) if !values.is_empty() => ("rope_scaling", values.clone()),
            (_, values) => ("rope_parameters", values.cloned().unwrap_or_default()),
        };
        let mut whole = Fields { place: format!("{CONFIG}: {place}"), values };
        let mut local = None;
        if kind.architecture == "gemma3" {
            let sliding = nested(&whole, "sliding_attention")?;
            let name = field_of_type(&sliding);
            if sliding.text(name)?.is_some_and(|kind| kind != "default") {
                return Err(sliding.unexpected(name, "default"));
            }
            local = match sliding.f64("rope_theta")? {
                Some(base) => Some(base),
                None => Some(fields.f64("rope_local_base_freq")?.unwrap_or(BASE)),
            };
            whole = if whole.get("full_attention").is_some() { nested(&whole, "full_attention")? } else { whole };
        } else if let Some(name) = whole.values.keys().find(|name| name.ends_with("_attention")) {
            return Err(refused(format!("{}.{name} is not known for {}", whole.place, kind.model_type)));
        }
        let base = whole.f64("rope_theta")?.or(fields.f64("rope_theta")?).unwrap_or(BASE);
        for rotated in [&whole, fields] {
            if rotated.f64("partial_rotary_factor")?.is_some_and(|factor| factor != 1.0) {
                return Err(rotated.unexpected("partial_rotary_factor", "1"));
            }
        }
        let (mut keys, mut llama3) = (Keys::new(), None);
        let key = |name: &str| format!("{}.rope.{name}", kind.architecture);
        // The converter writes no base for Gemma 2, whose models have the usual one.
        if kind.architecture != "gemma2" || base != BASE {
            keys.set(&key("freq_base"), &(base as f32));
        }
        if let Some(local) = local {
            keys.set(&key("freq_base_swa"), &(local as f32));
        }
        let name = field_of_type(&whole);
        let needed = |name: &str| whole.f64(name)?.ok_or_else(|| whole.unexpected(name, ""));
        let original = || {
            let name = "original_max_position_embeddings";
            match fields.u32(name)?.or(whole.u32(name)?) {
                Some(original) => Ok(original),
                None => fields.needed_u32("max_position_embeddings"),
            }
        };
        match whole.text(name)? {
            None | Some("default") => {}
            // llama.cpp takes back a factor of attention that only YaRN has.
            Some("linear") if kind.architecture != "deepseek2" => {
                keys.set(&key("scaling.type"), "linear");
                keys.set(&key("scaling.factor"), &(needed("factor")? as f32));
            }
            Some("yarn") => {
                let factor = needed("factor")?;
                keys.set(&key("scaling.type"), "yarn");
                keys.set(&key("scaling.factor"), &(factor as f32));
                keys.set(&key("scaling.original_context_length"), &original()?);
                for (name, value) in yarn(kind, &whole, factor)? {
                    keys.set(&key(&format!("scaling.{name}")), &(value as f32));
                }
            }
            Some("llama3") if kind.architecture == "llama" => {
                let [factor, low, high] = ["factor", "low_freq_factor", "high_freq_factor"].map(needed);
                llama3 = Some(Llama3 { factor: factor?, low: low?, high: high?, original: original()? });
            }
            Some(_) => return Err(whole.unexpected(name, "default, yarn, linear (except deepseek) or llama3 (llama)")),
        }
        Ok(Rope { base, keys, llama3 })
    }

    /// Divisors of the frequencies of Llama 3, by the converter's operations: in f32, quotients as products with a
    /// reciprocal.
    pub fn factors(&self, head_dim: u32) -> Result<Option<Vec<f32>>, CheckpointError> {
        let Some(Llama3 { factor, low, high, original }) = self.llama3 else { return Ok(None) };
        if head_dim > MOST_ELEMENTS {
            return Err(refused(format!("{CONFIG}: head_dim is {head_dim}, expected at most {MOST_ELEMENTS}")));
        }
        let original = f64::from(original);
        let divisor = |i: u32| {
            let exponent = i as f32 / head_dim as f32;
            let frequency = f64::from(self.base as f32).powf(f64::from(exponent)) as f32;
            let wavelength = frequency.recip().recip() * (2.0 * PI);
            if wavelength < (original / high) as f32 {
                1.0
            } else if wavelength > (original / low) as f32 {
                factor as f32
            } else {
                let smooth = (wavelength.recip() * original as f32 - low as f32) / (high - low) as f32;
                ((1.0 - smooth) / factor as f32 + smooth).recip()
            }
        };
        Ok(Some((0..head_dim).step_by(2).map(divisor).collect()))
    }
}

/// Keys of YaRN. llama.cpp reads them for other types only, and computes with its own values.
fn yarn(kind: &Kind, whole: &Fields, factor: f64) -> Result<Vec<(&'static str, f64)>, CheckpointError> {
    let usual = if factor > 1.0 { 0.1 * factor.ln() + 1.0 } else { 1.0 };
    let rows = [
        ("extrapolation_factor", "yarn_ext_factor", 1.0),
        ("attention_factor", "yarn_attn_factor", usual),
        ("attn_factor", "yarn_attn_factor", usual),
        ("beta_fast", "yarn_beta_fast", 32.0),
        ("beta_slow", "yarn_beta_slow", 1.0),
    ];
    let mut more = Vec::new();
    for (name, key, expected) in rows {
        let Some(value) = whole.f64(name)? else { continue };
        if (value - expected).abs() > 1e-6 {
            return Err(whole.unexpected(name, &expected.to_string()));
        }
        more.push((key, value));
    }
    let (one, all) = (whole.f64("mscale")?, whole.f64("mscale_all_dim")?);
    match (kind.architecture, all) {
        // llama.cpp scales attention, and not the rotated vectors, which is the same if both are equal.
        ("deepseek2", Some(all)) if all != 0.0 && one == Some(all) => more.push(("yarn_log_multiplier", 0.1 * all)),
        ("deepseek2", _) => return Err(whole.unexpected("mscale_all_dim", "the value of mscale")),
        _ if one.or(all).is_some() => return Err(whole.unexpected("mscale", "none")),
        _ => {}
    }
    Ok(more)
}

/// Name of the field that states the scaling.
fn field_of_type(fields: &Fields) -> &'static str {
    if fields.get("rope_type").is_some() { "rope_type" } else { "type" }
}

fn nested(fields: &Fields, name: &str) -> Result<Fields, CheckpointError> {
    Ok(Fields { place: format!("{}.{name}", fields.place), values: fields.object(name)?.cloned().unwrap_or_default() })
}
