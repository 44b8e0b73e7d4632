//! Methods `awq`, `gptq`, `bitnet` (§4.9 to §4.11) and `bitsandbytes` (§4.16).

use serde_json::{Map, Value};
use truecast_core::scaled::Part;

use super::declaration::Declaration;
use super::value::{count, flag, text, wrong};
use crate::error::Error;
use crate::found::Setting;
use crate::scheme::{Family, Parameters, Scheme};

/// First key of `names` that is present, and its text. The texts of all present keys must agree.
fn agreed<'a>(
    value: &'a Map<String, Value>,
    names: &[&'static str],
    place: &str,
) -> Result<Option<(&'static str, &'a str)>, Error> {
    let mut found: Option<(&'static str, &str)> = None;
    for &name in names {
        match (found, text(value.get(name), place, name)?) {
            (Some((first, known)), Some(other)) if !known.eq_ignore_ascii_case(other) => {
                return Err(wrong(place, name, &value[name], &format!("the value of {first}, {known:?}")));
            }
            (None, Some(text)) => found = Some((name, text)),
            _ => {}
        }
    }
    Ok(found)
}

/// Number under either key. Two numbers must agree.
fn either(value: &Map<String, Value>, names: [&'static str; 2], place: &str) -> Result<Option<u64>, Error> {
    let [first, second] = names.map(|name| count(value.get(name), place, name));
    match (first?, second?) {
        (Some(first), Some(second)) if first != second => {
            Err(wrong(place, names[1], &value[names[1]], &format!("the value of {}, {first}", names[0])))
        }
        (first, second) => Ok(first.or(second)),
    }
}

/// Statement that the codes are symmetric, if `sym` is true.
pub(super) fn symmetric(sym: Option<&Value>, place: &str) -> Result<Option<&'static str>, Error> {
    Ok((flag(sym, place, "sym")? == Some(true)).then_some("sym is true"))
}

pub(super) fn awq(value: &Map<String, Value>, place: &str) -> Result<Declaration, Error> {
    let names = ["bits", "w_bit"];
    if either(value, names, place)?.is_some_and(|bits| bits != 4) {
        let name = names.into_iter().find(|name| value.contains_key(*name)).unwrap_or(names[0]);
        return Err(wrong(place, name, &value[name], "4"));
    }
    if let Some((_, version)) = agreed(value, &["version", "format", "checkpoint_format"], place)?
        && !version.eq_ignore_ascii_case("gemm")
    {
        let what = format!("AWQ version {}", truecast_io::Escaped(&version.to_ascii_lowercase()));
        return Err(Error::Refused { place: place.to_owned(), what, why: "only gemm is read" });
    }
    let group = either(value, ["group_size", "q_group_size"], place)?;
    let parameters = Parameters { group, ..Parameters::NONE };
    let has_zeros = flag(value.get("zero_point"), place, "zero_point")?;
    let without = (has_zeros == Some(false)).then_some("zero_point is false");
    let symmetric = without.or(symmetric(value.get("sym"), place)?);
    let setting = Setting { symmetric, ..Setting::of(Scheme { family: Family::Awq, parameters }) };
    Ok(Declaration::for_all(place, [setting.with(has_zeros == Some(true), Part::Zeros)]))
}

pub(super) fn gptq(value: &Map<String, Value>, place: &str) -> Result<Declaration, Error> {
    let bits = value.get("bits");
    let known = count(bits, place, "bits")?.filter(|bits| [2, 3, 4, 8].contains(bits));
    let bits = known.ok_or_else(|| wrong(place, "bits", bits.unwrap_or(&Value::Null), "2, 3, 4 or 8"))?;
    let family = match agreed(value, &["checkpoint_format", "format"], place)? {
        None | Some((_, "gptq")) => Family::Gptq,
        Some((_, "gptq_v2")) => Family::GptqV2,
        Some((name, _)) => return Err(wrong(place, name, &value[name], "gptq or gptq_v2")),
    };
    let group = count(value.get("group_size"), place, "group_size")?;
    let parameters = Parameters { bits: Some(bits as u32), group, ..Parameters::NONE };
    // `desc_act` orders columns by activation, so a tensor states each column's group number.
    let is_ordered = flag(value.get("desc_act"), place, "desc_act")? == Some(true) && group.is_some();
    let setting =
        Setting { symmetric: symmetric(value.get("sym"), place)?, ..Setting::of(Scheme { family, parameters }) };
    Ok(Declaration::for_all(place, [setting.with(is_ordered, Part::Index)]))
}

/// Reads `bitsandbytes`. Tensors describe the storage of 4-bit weights.
pub(super) fn bitsandbytes(value: &Map<String, Value>, place: &str) -> Result<Declaration, Error> {
    let is_set = |key| Ok::<bool, Error>(flag(value.get(key), place, key)? == Some(true));
    let four = match text(value.get("bnb_4bit_quant_type"), place, "bnb_4bit_quant_type")? {
        None | Some("fp4") => Family::BnbFp4,
        Some("nf4") => Family::BnbNf4,
        Some(_) => return Err(wrong(place, "bnb_4bit_quant_type", &value["bnb_4bit_quant_type"], "nf4 or fp4")),
    };
    let family = match (is_set("load_in_4bit")?, is_set("load_in_8bit")?) {
        (true, false) => four,
        (false, true) => Family::BnbInt8,
        _ => {
            let found = value.get("load_in_4bit").unwrap_or(&Value::Null);
            return Err(wrong(place, "load_in_4bit", found, "true where load_in_8bit is not"));
        }
    };
    let declaration = Declaration::for_all(place, [Setting::of(Scheme::of(family))]);
    declaration.without(value.get("llm_int8_skip_modules"), "llm_int8_skip_modules")
}

pub(super) fn bitnet(value: &Map<String, Value>, place: &str) -> Result<Declaration, Error> {
    let multiplies = match text(value.get("linear_class"), place, "linear_class")? {
        None | Some("bitlinear") => false,
        Some("autobitlinear") => true,
        Some(_) => return Err(wrong(place, "linear_class", &value["linear_class"], "bitlinear or autobitlinear")),
    };
    let setting = Setting { multiplies, ..Setting::of(Scheme::of(Family::BitNet)) };
    Ok(Declaration::for_all(place, [setting]))
}
