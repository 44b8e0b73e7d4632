//! Step 7 and §5.5: unclaimed tensors are plain, unless name or type suggests a part of a quantized weight.

use foldhash::{HashSet, HashSetExt};
use truecast_core::{DType, Kind};

use super::claims::Claims;
use super::leftover::{Owners, Verdict};
use super::signatures;
use crate::checkpoint::Index;
use crate::detection::{Detection, Dropped};
use crate::error::Error;
use crate::finding::Effect;
use crate::table::Name::Sibling;

const AUXILIARY: &str = "weight_scale weight_scale_inv weight_scale_2 weight_global_scale scale_weight qscale_weight \
    weight_zero_point weight_g_idx weight_shape qzeros g_idx absmax comfy_quant";

/// Last components of names. The tensors are factors of activations, or terms that are added to the weight.
const FACTORS: &str = "pre_quant_scale svdquant_lora_a svdquant_lora_b svd_up svd_down weight_offset smooth_factor smooth_scale \
    theta oweight forward_hadamard_matrix backward_hadamard_matrix";

const CODES: [&str; 2] = ["weight_packed", "qweight"];

/// True for the name of a tensor that needs other tensors: a scale, a zero point, a shape of packed codes, or codes.
///
/// Source: `docs/spec/checkpoints.md §5.5`.
///
/// # Examples
/// ```
/// use truecast_schemes::is_auxiliary;
/// assert!(is_auxiliary("layers.0.mlp.weight_scale_inv") && !is_auxiliary("layers.0.norm.scale"));
/// ```
pub fn is_auxiliary(name: &str) -> bool {
    let last = name.rsplit_once('.').map_or(name, |(_, last)| last);
    is_in(AUXILIARY, last) || CODES.contains(&last) || last.ends_with("_scale_inv")
}

pub(super) fn check(mut claims: Claims<'_>) -> Result<Detection, Error> {
    signatures::refuse_known(&claims)?;
    let owners = Owners::of(&claims);
    let (mut unclear, mut copied) = (Vec::new(), 0);
    for number in 0..claims.index.len() {
        if claims.is_claimed(number) {
            continue;
        }
        let tensor = claims.index.tensor(number);
        let (module, last) = tensor.name.rsplit_once('.').unwrap_or(("", &tensor.name));
        match owners.verdict(tensor) {
            Verdict::Dropped(reason) => {
                claims.drop(number, reason);
                continue;
            }
            Verdict::Unclear => {
                unclear.push(&tensor.name);
                continue;
            }
            Verdict::Other => {}
        }
        if is_in(FACTORS, last) && owners.is_quantized(module) {
            claims.check_ones(number)?;
            claims.drop(number, Dropped::Ones);
            continue;
        }
        if let Some(what) = auxiliary(&claims.index, &tensor.name, last) {
            return Err(orphan(&claims.index, &tensor.name, what));
        }
        if is_narrow_float(tensor.dtype) && !claims.groups.is_empty() {
            return Err(Error::Unscaled { tensor: tensor.name.to_string(), dtype: tensor.dtype });
        }
        let is_packed = matches!(tensor.dtype, DType::U8 | DType::I8 | DType::I32 | DType::U32);
        copied += usize::from(is_packed && last == "weight");
    }
    signatures::refuse_unexplained(&claims)?;
    check_names(&claims)?;
    if let ([first, ..], false) = (unclear.as_slice(), claims.groups.is_empty()) {
        claims.warnings.push(format!(
            "{} tensors, such as {}, have the name of a scale of activations or caches, but another place or shape; they are kept",
            unclear.len(),
            truecast_io::Escaped(first)
        ));
    }
    if copied > 0 {
        claims
            .warnings
            .push(format!("{copied} tensors named weight hold integers that no scheme explains; they are copied"));
    }
    let findings = std::mem::take(&mut claims.findings);
    let told = findings.iter().filter(|finding| finding.check.effect() == Effect::Warned);
    claims.warnings.extend(told.map(ToString::to_string));
    let (roles, groups, choices, warnings) = claims.into_parts();
    let mut schemes = Vec::new();
    for group in &groups {
        if !schemes.contains(&group.scheme) {
            schemes.push(group.scheme);
        }
    }
    Ok(Detection { roles, groups, schemes, choices, warnings, findings })
}

fn is_in(names: &str, name: &str) -> bool {
    names.split_whitespace().any(|known| known == name)
}

fn check_names(claims: &Claims<'_>) -> Result<(), Error> {
    let mut names = HashSet::new();
    for group in &claims.groups {
        let other = claims.index.find(&group.name).filter(|number| !claims.is_claimed(*number));
        if !names.insert(&group.name) || other.is_some() {
            let codes = claims.index.tensor(group.parts[0].1).name.clone();
            return Err(Error::Collision { tensor: group.name.to_string(), codes: codes.to_string() });
        }
    }
    Ok(())
}

/// Role that the tensor's name implies: scale, codes or blocks. `None` for an independent tensor.
fn auxiliary(index: &Index<'_>, name: &str, last: &str) -> Option<&'static str> {
    let sibling = |from: &str, to: &str| {
        let front = name.strip_suffix(from)?;
        index.find(&format!("{front}{to}"))
    };
    let weight = |of: &[DType]| {
        let logical = Sibling(if last == "scales" { "scales" } else { "scale" }).logical(name)?;
        index.dtype_of(&logical).filter(|dtype| of.contains(dtype))
    };
    match last {
        _ if is_in(AUXILIARY, last) || last.ends_with("_scale_inv") => Some("scale"),
        _ if CODES.contains(&last) => Some("codes"),
        _ if sibling("_blocks", "_scales").is_some() => Some("blocks"),
        _ if sibling("_scales", "_blocks").is_some() => Some("scale"),
        "scale" if weight(&[DType::F8E4M3Fn, DType::F8E5M2, DType::I8]).is_some() => Some("scale"),
        "scales" if weight(&[DType::U32]).is_some() => Some("scale"),
        _ => None,
    }
}

/// Error for an auxiliary tensor without a group. States type and shape of the module's weight, if any.
fn orphan(index: &Index<'_>, name: &str, what: &'static str) -> Error {
    let (module, _) = name.rsplit_once('.').unwrap_or(("", name));
    let prefix = if module.is_empty() { String::new() } else { format!("{module}.") };
    let weight = format!("{prefix}weight");
    let why = match index.find(&weight).map(|number| index.tensor(number)) {
        Some(found) => format!(
            "no configuration and no naming rule assigns it to a group; {} is {} {:?}",
            truecast_io::Escaped(&found.name),
            found.dtype,
            found.shape
        ),
        None => format!("{} is missing", truecast_io::Escaped(&weight)),
    };
    Error::Orphan { tensor: name.to_owned(), what, why }
}

/// True for types that quantized checkpoints use only with scales.
fn is_narrow_float(dtype: DType) -> bool {
    matches!(dtype.kind(), Kind::Float(_)) && dtype.storage_bits().is_some_and(|bits| bits <= 8)
}
