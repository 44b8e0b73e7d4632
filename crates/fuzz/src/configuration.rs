//! Configuration of a quantized checkpoint: arbitrary JSON, with tensors of many schemes. The parts of a detected
//! layout have the sizes of their tensors, and a dequantized result declares no scheme (`docs/spec/checkpoints.md
//! §2.6`, §5).
use truecast_core::DType;
use truecast_io::folder::{Edit, edit, parse};
use truecast_schemes::{Change, Checkpoint, Documents, Options, Outcome, changes, detect};

use crate::{accepted, parts_fit, stored};

/// Tensors for the checkpoint; the first two bytes of the input select some.
const TENSORS: [(&str, DType, &[u64]); 14] = [
    ("a.weight", DType::F8E4M3Fn, &[64, 64]),
    ("a.weight_scale_inv", DType::F32, &[1, 1]),
    ("b.weight", DType::F8E4M3Fn, &[64, 64]),
    ("b.weight_scale", DType::F32, &[1]),
    ("c.weight_packed", DType::U8, &[64, 32]),
    ("c.weight_scale", DType::F8E4M3Fn, &[64, 4]),
    ("c.weight_global_scale", DType::F32, &[1]),
    ("d.qweight", DType::I32, &[8, 64]),
    ("d.qzeros", DType::I32, &[1, 8]),
    ("d.scales", DType::F16, &[1, 64]),
    ("e.weight", DType::U32, &[64, 8]),
    ("e.scales", DType::Bf16, &[64, 1]),
    ("e.biases", DType::Bf16, &[64, 1]),
    ("norm.weight", DType::Bf16, &[64]),
];

/// The first two bytes select the tensors; the rest is the JSON text.
pub fn configuration(input: &[u8]) {
    let Some((chosen, text)) = input.split_first_chunk::<2>() else { return };
    let chosen = u16::from_le_bytes(*chosen);
    let Ok(text) = std::str::from_utf8(text) else { return };
    let Some(value) = accepted(parse(text)) else { return };
    let there = TENSORS.iter().enumerate().filter(|(i, _)| chosen >> i & 1 == 1);
    let tensors: Vec<_> = there.map(|(_, &(name, dtype, shape))| stored(name, dtype, shape)).collect();
    let documents = Documents { config: Some(value), ..Documents::default() };
    let checkpoint = Checkpoint { tensors: &tensors, metadata: &[], documents: &documents };
    let mut read = |number: usize| Ok(vec![0x3f; tensors[number].tensor.bytes() as usize]);
    parts_fit(detect(checkpoint, &mut read, &Options::default()), &tensors);
    let dense = Outcome::default();
    let edits: Vec<Edit> = changes(&documents, &dense)
        .expect("a dense result declares nothing")
        .into_iter()
        .filter_map(|change| if let Change::Edit { file: "config.json", edit } = change { Some(edit) } else { None })
        .collect();
    let edited = edit(text, &edits).expect("places that were found can be edited");
    let config = Some(parse(&edited).expect("an edit of JSON is JSON"));
    let after =
        changes(&Documents { config, ..Documents::default() }, &dense).expect("a dense result declares nothing");
    assert!(after.is_empty(), "{after:?}");
}
