//! `awq` and `gptq` (§4.9, §4.10).

use serde_json::{Map, Value};

use super::declaration::Declaration;
use super::value::{count, wrong};
use crate::error::Error;
use crate::found::Setting;
use crate::scheme::{Family, Parameters, Scheme};

/// The first of two names that is there.
fn either<'a>(value: &'a Map<String, Value>, names: [&'static str; 2]) -> (&'static str, Option<&'a Value>) {
    let name = names.into_iter().find(|name| value.contains_key(*name)).unwrap_or(names[0]);
    (name, value.get(name))
}

pub(super) fn awq(value: &Map<String, Value>, place: &str) -> Result<Declaration, Error> {
    let (key, bits) = either(value, ["bits", "w_bit"]);
    if count(bits, place, key)?.is_some_and(|bits| bits != 4) {
        return Err(wrong(place, key, &value[key], "4"));
    }
    match value.get("version").and_then(Value::as_str).map(str::to_ascii_lowercase).as_deref() {
        None | Some("gemm") => {}
        Some(version) => {
            let what = format!("AWQ version {}", truecast_io::Shown(version));
            return Err(Error::Refused { place: place.to_owned(), what, why: "only gemm is read" });
        }
    }
    let (key, group) = either(value, ["group_size", "q_group_size"]);
    let parameters = Parameters { group: count(group, place, key)?, ..Parameters::NONE };
    Ok(Declaration::for_all(place, [Setting::of(Scheme { family: Family::Awq, parameters })]))
}

pub(super) fn gptq(value: &Map<String, Value>, place: &str) -> Result<Declaration, Error> {
    let bits = value.get("bits");
    let known = count(bits, place, "bits")?.filter(|bits| [2, 3, 4, 8].contains(bits));
    let bits = known.ok_or_else(|| wrong(place, "bits", bits.unwrap_or(&Value::Null), "2, 3, 4 or 8"))?;
    let family = match value.get("checkpoint_format") {
        None | Some(Value::Null) => Family::Gptq,
        Some(Value::String(format)) if format == "gptq" => Family::Gptq,
        Some(Value::String(format)) if format == "gptq_v2" => Family::GptqV2,
        Some(other) => return Err(wrong(place, "checkpoint_format", other, "gptq or gptq_v2")),
    };
    let group = count(value.get("group_size"), place, "group_size")?;
    let parameters = Parameters { bits: Some(bits as u32), group, ..Parameters::NONE };
    Ok(Declaration::for_all(place, [Setting::of(Scheme { family, parameters })]))
}
