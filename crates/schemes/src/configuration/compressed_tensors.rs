//! The configuration that version 0.20 of compressed-tensors writes (§4.4).

use serde_json::{Value, json};

use super::Outcome;
use crate::modules::endings;
use crate::scheme::{Family, Parameters, Strategy};

/// Package version stated in files. Since 0.18.0, packed integers are one bit stream.
const VERSION: &str = "0.20.0";

pub(super) fn quantization_config(outcome: &Outcome<'_>) -> Option<Value> {
    let Outcome { scheme, kept, in_memory, quantized, activations } = *outcome;
    let parameters = scheme.parameters;
    let block = parameters.block.unwrap_or([128, 128]);
    let (format, weights, activations) = match scheme.family {
        Family::Fp8Channel => {
            ("float-quantized", weights_json(8, "float", Strategy::Channel, &parameters), dynamic(8, "float"))
        }
        Family::CtFloatQuantized => {
            let strategy = strategy(&parameters);
            let mut weights = weights_json(8, "float", strategy, &parameters);
            if strategy == Strategy::Block {
                weights["block_structure"] = json!(block);
            }
            ("float-quantized", weights, dynamic(8, "float"))
        }
        Family::CtIntQuantized => {
            ("int-quantized", weights_json(8, "int", strategy(&parameters), &parameters), dynamic(8, "int"))
        }
        Family::CtPackQuantized => {
            let bits = parameters.bits.unwrap_or(4);
            ("pack-quantized", weights_json(bits, "int", packed_strategy(&parameters), &parameters), Value::Null)
        }
        Family::CtNvfp4 => {
            let mut weights = groups(4, 16, "torch.float8_e4m3fn");
            weights["strategy"] = json!("tensor_group");
            // Only the global scale of the inputs is stored. Scales of groups are computed at run time.
            let of_inputs = activations.then(|| {
                let mut inputs = weights.clone();
                inputs["dynamic"] = json!("local");
                inputs
            });
            ("nvfp4-pack-quantized", weights, of_inputs.unwrap_or(Value::Null))
        }
        Family::CtMxfp4 => ("mxfp4-pack-quantized", groups(4, 32, "torch.uint8"), Value::Null),
        Family::CtMxfp6 => ("mxfp6-pack-quantized", groups(6, 32, "torch.uint8"), Value::Null),
        Family::CtMxfp8 => ("mxfp8-quantized", groups(8, 32, "torch.uint8"), Value::Null),
        _ => return None,
    };
    Some(json!({
        "quant_method": "compressed-tensors",
        "version": VERSION,
        "format": format,
        "quantization_status": "compressed",
        "global_compression_ratio": null,
        "ignore": endings(kept, in_memory, quantized),
        "kv_cache_scheme": null,
        "config_groups": {"group_0": {
            "targets": ["Linear"],
            "format": format,
            "weights": weights,
            "input_activations": activations,
            "output_activations": null,
        }},
    }))
}

pub(crate) fn strategy(parameters: &Parameters) -> Strategy {
    parameters.strategy.unwrap_or(match (parameters.block, parameters.group) {
        (Some(_), _) => Strategy::Block,
        (_, Some(_)) => Strategy::Group,
        _ => Strategy::Channel,
    })
}

pub(crate) fn packed_strategy(parameters: &Parameters) -> Strategy {
    parameters.strategy.unwrap_or(Strategy::Group)
}

fn weights_json(bits: u32, kind: &str, strategy: Strategy, parameters: &Parameters) -> Value {
    let group = (strategy == Strategy::Group).then(|| parameters.group.unwrap_or(128));
    json!({
        "num_bits": bits,
        "type": kind,
        "symmetric": parameters.symmetric.unwrap_or(true),
        "group_size": group,
        "strategy": strategy.name(),
        "block_structure": null,
        "dynamic": false,
    })
}

fn groups(bits: u32, group: u64, scale: &str) -> Value {
    json!({
        "num_bits": bits,
        "type": "float",
        "symmetric": true,
        "group_size": group,
        "strategy": "group",
        "dynamic": false,
        "scale_dtype": scale,
    })
}

/// Declaration of activations that are quantized per token at run time.
fn dynamic(bits: u32, kind: &str) -> Value {
    json!({"num_bits": bits, "type": kind, "symmetric": true, "group_size": null, "strategy": "token", "dynamic": true})
}
