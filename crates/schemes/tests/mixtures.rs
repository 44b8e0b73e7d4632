//! Mixtures of block types (`docs/spec/checkpoints.md §9.10`). `tests/peers/llamacpp/test_mixtures.py` compares whole
//! models with llama.cpp; here are cases by hand.

use truecast_core::scaled::BlockType::{self, *};
use truecast_core::{DType, Layout};
use truecast_io::Tensor;
use truecast_schemes::{Form, Hyperparameters, Mixture};

fn tensor(name: &str, shape: &[u64]) -> Tensor {
    Tensor { name: name.into(), dtype: DType::F16, layout: Layout::Packed, shape: shape.into() }
}

fn about(architecture: &str, layers: u64, kv_heads: u64, experts: u64) -> Hyperparameters {
    let architecture = architecture.into();
    Hyperparameters { architecture, layers: Some(layers), heads: 8, kv_heads, experts, is_weighted: false }
}

/// Tensors of a model, not in the order of the layers.
fn model(layers: u64, ffn_down: &str, ffn_shape: &[u64]) -> Vec<Tensor> {
    let mut tensors = vec![tensor("output.weight", &[9, 256]), tensor("token_embd.weight", &[9, 256])];
    for layer in (0..layers).rev() {
        let names = ["attn_v", "attn_k", "attn_q", "attn_output"].map(|name| format!("blk.{layer}.{name}.weight"));
        tensors.extend(names.iter().map(|name| tensor(name, &[256, 256])));
        tensors.push(tensor(&format!("blk.{layer}.{ffn_down}.weight"), ffn_shape));
        tensors.push(tensor(&format!("blk.{layer}.attn_norm.weight"), &[256]));
    }
    tensors
}

/// Layers whose tensor `name` has the type.
fn layers(mixture: Mixture, about: &Hyperparameters, tensors: &[Tensor], name: &str, of: BlockType) -> Vec<u64> {
    let forms = mixture.forms(about, tensors).unwrap();
    let has = |layer: &u64| forms[&*format!("blk.{layer}.{name}.weight")] == Form::Blocks(of);
    (0..about.layers.unwrap()).filter(has).collect()
}

#[test]
fn layers_with_more_bits() {
    let (about, tensors) = (about("llama", 18, 8, 0), model(18, "ffn_down", &[256, 512]));
    let more = [0, 1, 4, 7, 10, 13, 15, 16, 17];
    for name in ["attn_v", "ffn_down"] {
        assert_eq!(layers(Mixture::MostlyQ4KM, &about, &tensors, name, Q6_K), more, "{name}");
        assert_eq!(layers(Mixture::MostlyQ5KM, &about, &tensors, name, Q6_K), more, "{name}");
    }
    assert_eq!(layers(Mixture::MostlyQ4KS, &about, &tensors, "attn_v", Q5_K), [0, 1, 2, 3]);
    assert_eq!(layers(Mixture::MostlyQ4KS, &about, &tensors, "ffn_down", Q5_K), [0, 1]);
    assert_eq!(layers(Mixture::MostlyQ3KM, &about, &tensors, "ffn_down", Q5_K), [0]);
    assert_eq!(layers(Mixture::MostlyQ3KM, &about, &tensors, "attn_v", Q5_K), [0, 1]);
    assert_eq!(layers(Mixture::MostlyQ3KL, &about, &tensors, "attn_output", Q5_K).len(), 18);
    assert_eq!(layers(Mixture::MostlyQ4KM, &about, &tensors, "attn_q", Q4_K).len(), 18);
    let forms = Mixture::MostlyQ4_0.forms(&about, &tensors).unwrap();
    assert_eq!(forms["output.weight"], Form::Blocks(Q6_K));
    assert_eq!(forms["token_embd.weight"], Form::Blocks(Q4_0));
    assert_eq!(forms["blk.3.attn_norm.weight"], Form::Kept);
}

#[test]
fn types_by_importance() {
    let tensors = model(18, "ffn_down", &[256, 512]);
    let weighted = Hyperparameters { is_weighted: true, ..about("llama", 18, 8, 0) };
    for (mixture, of) in [(Mixture::MostlyQ4_0, Q4_1), (Mixture::MostlyQ5_0, Q5_1), (Mixture::MostlyIq4Nl, IQ4_NL)] {
        let expected = if of == IQ4_NL { (0..18).collect() } else { vec![0, 1] };
        assert_eq!(layers(mixture, &weighted, &tensors, "ffn_down", of), expected, "{mixture:?}");
    }
    let plain = about("llama", 18, 8, 0);
    assert_eq!(layers(Mixture::MostlyQ4_0, &plain, &tensors, "ffn_down", Q4_0).len(), 18);
    assert_eq!(layers(Mixture::MostlyIq4Nl, &plain, &tensors, "ffn_down", Q5_K), [0, 1]);
}

#[test]
fn models_of_experts_and_of_70b() {
    let (of_experts, tensors) = (about("llama", 9, 2, 8), model(9, "ffn_down_exps", &[8, 256, 512]));
    for name in ["attn_v", "attn_k"] {
        assert_eq!(layers(Mixture::MostlyQ4KM, &of_experts, &tensors, name, Q8_0).len(), 9, "{name}");
    }
    assert_eq!(layers(Mixture::MostlyQ4KM, &of_experts, &tensors, "attn_output", Q5_K).len(), 9);
    assert_eq!(layers(Mixture::Mxfp4Experts, &of_experts, &tensors, "ffn_down_exps", MXFP4).len(), 9);
    assert_eq!(layers(Mixture::Mxfp4Experts, &of_experts, &tensors, "attn_output", Q8_0).len(), 9);
    let lost = [tensor("token_embd.weight", &[9, 256]), tensor("ffn_down_exps.weight", &[8, 256, 256])];
    assert!(Mixture::MostlyQ4KM.forms(&of_experts, &lost).unwrap_err().contains("ffn_down_exps.weight"));
    let tensors = model(80, "ffn_down", &[256, 512]);
    for (architecture, kv_heads, of) in [("llama", 2, Q5_K), ("llama", 8, Q3_K), ("qwen2", 8, Q5_K), ("qwen3", 2, Q3_K)]
    {
        let about = about(architecture, 80, kv_heads, 0);
        assert_eq!(layers(Mixture::MostlyQ3KS, &about, &tensors, "attn_v", of).len(), 80, "{architecture}");
    }
}

#[test]
fn rows_that_no_blocks_fit() {
    let about = about("llama", 1, 8, 0);
    let form = |mixture: Mixture, columns| {
        let tensors = [tensor("token_embd.weight", &[9, 256]), tensor("blk.0.attn_q.weight", &[4, columns])];
        mixture.forms(&about, &tensors).unwrap()["blk.0.attn_q.weight"]
    };
    let smaller = [
        (Mixture::MostlyQ2K, Q4_0),
        (Mixture::MostlyQ3KM, Q4_0),
        (Mixture::MostlyQ4KM, Q5_0),
        (Mixture::MostlyQ5KS, Q5_1),
        (Mixture::MostlyQ6K, Q8_0),
        (Mixture::MostlyIq4Xs, IQ4_NL),
    ];
    for (mixture, block) in smaller {
        assert_eq!(form(mixture, 96), Form::Blocks(block), "{mixture}");
        assert_eq!(form(mixture, 100), Form::Half, "{mixture}");
    }
    // Nothing is smaller, and the tensor has no such target.
    assert_eq!(form(Mixture::MostlyQ4_0, 100), Form::Blocks(Q4_0));
}

#[test]
fn what_stays() {
    let names = [
        "a_norm.weight", "blk.0.ffn_gate_inp.weight", "blk.0.ssm_conv1d.weight", "rope.factors", "position_embd.weight",
    ];
    let mut tensors: Vec<Tensor> = names.iter().map(|name| tensor(name, &[256, 256])).collect();
    tensors.push(tensor("one_row.weight", &[1, 256]));
    let forms = Mixture::MostlyQ8_0.forms(&Hyperparameters::default(), &tensors).unwrap();
    assert!(forms.values().all(|form| *form == Form::Kept), "{forms:?}");
}

#[test]
fn numbers_and_names() {
    assert!(Mixture::applies_to(&[tensor("token_embd.weight", &[2, 2])]) && !Mixture::applies_to(&[]));
    let of = |block| Mixture::of_block(block).unwrap();
    assert_eq!([Q3_K, Q4_K, Q5_K, Q6_K, MXFP4].map(of).map(Mixture::file_type), [12, 15, 17, 18, 38]);
    let of = |block| Mixture::of_only(block).unwrap();
    assert_eq!([Q2_K, Q3_K, Q4_K, Q5_K, Q8_0, IQ4_XS].map(of).map(Mixture::file_type), [10, 11, 14, 16, 7, 30]);
}
