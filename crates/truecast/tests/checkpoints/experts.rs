//! Fused experts that loaders split into layers: `docs/spec/checkpoints.md §11.3`.

use crate::work::Work;
use serde_json::json;
use truecast_testkit::formats::bf16;

const EXPERTS: usize = 3;
/// Number of columns of the first layers; number of rows of the last.
const HIDDEN: usize = 64;
const INNER: usize = 32;

fn halves(values: impl Iterator<Item = f32>) -> Vec<u8> {
    values.flat_map(|value| bf16(value).to_le_bytes()).collect()
}

/// Element of an expert's layer; a row per output.
fn element(layer: usize, expert: usize, row: usize, col: usize) -> f32 {
    let n = ((expert * 3 + layer) * 64 + row) * 64 + col;
    ((n * 7919 % 4001) as f32 - 2000.0) * 0.001 * (1 + expert + 2 * layer) as f32
}

fn around(block: usize) -> String {
    format!("model.layers.{block}.feed_forward")
}

/// Layers of an expert: name, shape, index.
const LAYERS: [(&str, [u64; 2], usize); 3] =
    [("gate_proj", [32, 64], 0), ("up_proj", [32, 64], 1), ("down_proj", [64, 32], 2)];

/// One model in two forms. `fused` has a row per input, and `layers` has a tensor per layer.
fn models() -> Work {
    let (work, mut fused, mut layers) = (Work::new(), Vec::new(), Vec::new());
    for around in (0..2).map(around) {
        let (mut gate_up, mut down) = (Vec::new(), Vec::new());
        for expert in 0..EXPERTS {
            let places = |rows: usize, cols: usize| (0..cols).flat_map(move |col| (0..rows).map(move |row| (row, col)));
            let of_pair = |(row, col)| element(row / INNER, expert, row % INNER, col);
            gate_up.extend(halves(places(2 * INNER, HIDDEN).map(of_pair)));
            down.extend(halves(places(HIDDEN, INNER).map(|(row, col)| element(2, expert, row, col))));
            for (name, shape, layer) in LAYERS {
                let values = (0..shape[0]).flat_map(|row| (0..shape[1]).map(move |col| (row, col)));
                let values = values.map(|(row, col)| element(layer, expert, row as usize, col as usize));
                layers.push((format!("{around}.experts.{expert}.{name}.weight"), shape.to_vec(), halves(values)));
            }
        }
        fused.push((format!("{around}.experts.gate_up_proj"), vec![3, 64, 64], gate_up));
        fused.push((format!("{around}.experts.down_proj"), vec![3, 32, 64], down));
    }
    let config = json!({ "model_type": "llama4_text", "hidden_size": HIDDEN, "dtype": "bfloat16" }).to_string();
    for (dir, tensors) in [("fused", fused), ("layers", layers)] {
        let tensors = tensors.iter().map(|(name, shape, bytes)| (name.as_str(), "BF16", &shape[..], bytes.clone()));
        work.model(dir, &tensors.collect::<Vec<_>>(), &config);
    }
    work
}

#[test]
fn fused_experts_become_layers() {
    let work = models();
    let schemes = [
        "fp8-channel", "ct:float-quantized", "ct:float-quantized,strategy=block,block=32x32", "ct:int-quantized",
        "ct:pack-quantized,bits=4,group=32", "ct:pack-quantized,bits=4,group=32,symmetric=false",
        "ct:pack-quantized,bits=3,group=32", "ct:mxfp4-pack-quantized", "ct:mxfp6-pack-quantized",
        "ct:mxfp8-quantized",
    ];
    for scheme in schemes {
        let words = format!("scheme={scheme} replace");
        let report = work.convert("fused", "a", &words);
        work.convert("layers", "b", &words);
        assert_eq!(work.tensors("a"), work.tensors("b"), "{scheme}");
        assert_eq!(work.json("a/config.json"), work.json("b/config.json"), "{scheme}");
        assert_eq!(report.tensors.len(), 4, "{scheme}");
        work.verify("fused", "a", "");
    }
}

#[test]
fn common_scales_are_repeated() {
    let work = models();
    for (scheme, ends) in [
        ("ct:nvfp4-pack-quantized", &["weight_global_scale"][..]),
        ("ct:float-quantized,strategy=tensor", &["weight_scale"]),
    ] {
        work.convert("fused", "a", &format!("scheme={scheme} replace"));
        work.verify("fused", "a", "");
        work.convert("layers", "b", &format!("scheme={scheme} replace"));
        let names =
            |dir: &str| work.tensors(dir).into_iter().map(|(name, _, shape, _)| (name, shape)).collect::<Vec<_>>();
        assert_eq!(names("a"), names("b"), "{scheme}");
        let found = work.parsed("a/model.safetensors");
        for (name, _) in names("a").iter().filter(|(name, _)| ends.iter().any(|end| name.ends_with(end))) {
            let of_first = name.replace(".1.", ".0.").replace(".2.", ".0.");
            if name.starts_with("model.layers.0.") {
                assert_eq!(found.bytes(name), found.bytes(&of_first.replace("up_proj", "gate_proj")), "{name}");
            }
            let at = found.place(name);
            work.flipped("a/model.safetensors", at, 1, name, || work.checked("fused", "a", ""));
        }
    }
}

#[test]
fn wrong_codes_are_found_in_their_layer() {
    let work = models();
    work.convert("fused", "a", "scheme=ct:pack-quantized,bits=4,group=32");
    let found = work.parsed("a/model.safetensors");
    for end in ["weight_packed", "weight_scale", "weight_shape"] {
        for layer in ["0.gate_proj", "1.up_proj", "2.down_proj"] {
            let name = format!("{}.experts.{layer}.{end}", around(1));
            let at = found.place(&name);
            work.flipped("a/model.safetensors", at, 2, &name, || work.checked("fused", "a", ""));
        }
    }
}

#[test]
fn experts_without_these_names_are_refused() {
    let work = Work::new();
    let tensor = ("model.layers.0.feed_forward.experts.w13", "BF16", &[2u64, 64, 64][..], vec![0; 2 * 2 * 64 * 64]);
    work.model("model", &[tensor], &json!({ "model_type": "llama4", "hidden_size": 64 }).to_string());
    let said = ["experts.w13", "a layer of each expert"];
    work.refused("model", "out", "scheme=ct:float-quantized", "unquantizable-tensor", &said);
}
