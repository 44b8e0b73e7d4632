//! Methods `fp8` and `mxfp8` (§4.1, §4.2, §4.8), and Mistral's configuration (§4.13).

use serde_json::{Map, Value};
use truecast_core::DType;

use super::declaration::Declaration;
use super::value::{block, text, wrong};
use crate::error::Error;
use crate::found::Setting;
use crate::scheme::{Family, Parameters, Scheme};

const MX_BLOCK: [u64; 2] = [1, 32];

/// Reads `fp8`. A module's scales are per block or per tensor, depending on the block size, or have DeepSeek V4's
/// names.
pub(super) fn read(value: &Map<String, Value>, place: &str, expert: Option<DType>) -> Result<Declaration, Error> {
    element(value, place)?;
    let block = block(value.get("weight_block_size"), place, "weight_block_size")?;
    let family = match block {
        Some(MX_BLOCK) => Family::Mxfp8,
        Some(_) => Family::Fp8Block,
        None => Family::Fp8Tensor,
    };
    let parameters = Parameters { block: block.filter(|_| family == Family::Fp8Block), ..Parameters::NONE };
    let first = Setting::of(Scheme { family, parameters });
    let parameters = Parameters { block, ..Parameters::NONE };
    let expert = super::expert(value.get("expert_dtype"), place)?.or(expert);
    let second = Setting { expert, ..Setting::of(Scheme { family: Family::DeepSeekV4, parameters }) };
    Ok(Declaration::for_all(place, [first, second]))
}

fn element(value: &Map<String, Value>, place: &str) -> Result<(), Error> {
    match text(value.get("fmt"), place, "fmt")? {
        None | Some("e4m3" | "e4m3fn" | "float8_e4m3fn") => Ok(()),
        Some(_) => Err(wrong(place, "fmt", &value["fmt"], "e4m3")),
    }
}

pub(super) fn mxfp8(value: &Map<String, Value>, place: &str) -> Result<Declaration, Error> {
    element(value, place)?;
    match block(value.get("weight_block_size"), place, "weight_block_size")? {
        None | Some(MX_BLOCK) => {}
        Some(_) => return Err(wrong(place, "weight_block_size", &value["weight_block_size"], "[1, 32]")),
    }
    Ok(Declaration::for_all(place, [Setting::of(Scheme::of(Family::Mxfp8))]))
}

pub(super) fn mistral(value: &Map<String, Value>, place: &str) -> Result<Declaration, Error> {
    let keys = ["weight_block_size", "block_size"];
    let key = keys.into_iter().find(|key| value.contains_key(*key)).unwrap_or(keys[0]);
    let parameters = Parameters { block: block(value.get(key), place, key)?, ..Parameters::NONE };
    Ok(Declaration::for_all(place, [Setting::of(Scheme { family: Family::MistralFp8, parameters })]))
}
