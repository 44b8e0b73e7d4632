//! Step 6: infers schemes from names and types, without a configuration.

use std::collections::BTreeMap;

use truecast_io::counted;

use super::claims::Claims;
use crate::catalogue;
use crate::error::Error;
use crate::found::Setting;
use crate::scheme::{Family, Scheme};
use crate::table::Name::{self, Append, Sibling};

/// Name of a tensor next to the codes, and the family that the tensor implies; in the order of §5.2.
const ROWS: [(Name, Family); 12] = [
    (Append("_scales"), Family::GptOss),
    (Append(".scales"), Family::GptOss),
    (Append("_global_scale"), Family::CtNvfp4),
    (Append("_shape"), Family::CtPackQuantized),
    (Append("_scale_2"), Family::ModelOptNvfp4),
    (Append("_scale_inv"), Family::Fp8Tensor),
    (Sibling("scales"), Family::Gptq),
    (Sibling("biases"), Family::MlxAffine),
    (Sibling("scale_weight"), Family::ComfyScaledFp8),
    (Sibling("scale"), Family::DeepSeekV4),
    (Sibling("qscale_weight"), Family::MistralFp8),
    (Sibling("SCB"), Family::BnbInt8),
];

pub(super) fn claim(claims: &mut Claims<'_>) -> Result<(), Error> {
    let mut taken: BTreeMap<String, u64> = BTreeMap::new();
    // Rows that fit no tensor's name are left out first. In most checkpoints, no row remains.
    let occurs = |beside: Name| {
        let mut names = (0..claims.index.len()).map(|number| &*claims.index.tensor(number).name);
        names.any(|name| beside.may_be(name))
    };
    let rows: Vec<_> = ROWS
        .into_iter()
        .filter(|(beside, _)| occurs(*beside))
        .map(|(beside, family)| {
            (beside, family, catalogue::entry(family).expect("schemes that names tell have entries"))
        })
        .collect();
    if rows.is_empty() {
        return Ok(());
    }
    for number in 0..claims.index.len() {
        let tensor = claims.index.tensor(number);
        for &(beside, family, entry) in &rows {
            if claims.is_claimed(number) {
                break;
            }
            let Some(name) = claims.logical(entry, tensor) else { continue };
            let Some(other) = beside.stored(&name).and_then(|beside| claims.index.find(&beside)) else { continue };
            // GPTQ packs along the inputs. AWQ packs along the outputs, so a word of its codes holds eight columns
            // (§5.2).
            let columns = |number: usize| claims.index.tensor(number).shape.last().copied().unwrap_or(0);
            let family = match family {
                Family::Gptq if columns(number).checked_mul(8) == Some(columns(other)) => Family::Awq,
                _ => family,
            };
            let setting = Setting::of(Scheme::of(family));
            let claimed = claims.claim(&setting, &name, number);
            if let (Err(Error::Grid { tensor, codes, found, logical, .. }), Family::Fp8Tensor) = (&claimed, family) {
                let (tensor, codes, found, logical) = (tensor.clone(), codes.clone(), found.clone(), logical.clone());
                return Err(Error::Undeclared { tensor, codes, found, logical });
            }
            claimed?;
            *taken.entry(setting.scheme.to_string()).or_default() += 1;
        }
    }
    for (scheme, count) in taken {
        let tensors = counted(count, "tensor");
        claims.warnings.push(format!("no configuration states the scheme: names say {scheme} ({tensors})"));
    }
    Ok(())
}
