//! Words that other tools use. Each has truecast's word, or advice.

/// Names of specifications that people use elsewhere, with the names in truecast. A chip has the rules of its
/// instructions.
const SPECS: [(&str, &str); 12] = [
    ("cuda", "ptx"),
    ("nvidia", "ptx"),
    ("hopper", "ptx"),
    ("h100", "ptx"),
    ("h200", "ptx"),
    ("blackwell", "ptx"),
    ("b200", "ptx"),
    ("cdna3", "amd@cdna3"),
    ("mi300", "amd@cdna3"),
    ("cdna4", "amd@cdna4"),
    ("rdna4", "amd@rdna4"),
    ("pytorch", "torch"),
];

/// Each row has the names of one rounding mode, from specifications and other tools.
const ROUNDINGS: [&[&str]; 4] = [
    &["nearest-even", "nearest_even", "rne", "rn", "rtne", "nearest", "even", "half-even"],
    &["toward-zero", "zero", "rz", "rtz", "truncate", "trunc"],
    &["up", "positive_inf", "ru", "rup"],
    &["down", "negative_inf", "rd", "rdn"],
];

/// Option of another tool, and advice.
const OPTIONS: [(&str, &str); 24] = [
    ("group-size", "the scheme has the size of groups: int4-group,group=N"),
    ("groupsize", "the scheme has the size of groups: int4-group,group=N"),
    ("block-size", "the scheme has the size of blocks: fp8-block:128x128; int4-group,group=N"),
    ("calibration", "no calibration is needed; --activation-ranges FILE is for activations, --imatrix FILE for .gguf"),
    ("dataset", "no calibration is needed; --activation-ranges FILE is for activations, --imatrix FILE for .gguf"),
    ("quantization", "the scheme is the last word: truecast quantize SRC DST fp8"),
    ("load-in-4bit", "the scheme is the last word: truecast quantize SRC DST nvfp4"),
    ("dequantize", "this is a command: truecast dequantize SRC DST"),
    ("opset", "the specification has the opset: --spec onnx@21"),
    ("max-shard-size", "the result has the shards of the source"),
    ("allow-requantize", "it is not needed: a quantized source is dequantized first"),
    ("pure", "each tensor has the type of llama-quantize's mixture; of all, only q8_0 gives every matrix one type"),
    ("tensor-type", "the mixture chooses block types; --rule GLOB=bf16 gives a type without scales"),
    ("output-tensor-type", "the mixture chooses block types; --rule output.weight=bf16 gives a type without scales"),
    (
        "token-embedding-type",
        "the mixture chooses block types; --rule token_embd.weight=bf16 gives a type without scales",
    ),
    ("leave-output-tensor", "--keep output.weight leaves it as it is"),
    ("tolerance", "--fail-on 'max_abs_error>0.01' sets a limit, also of max_rel_error"),
    ("atol", "--fail-on 'max_abs_error>0.01' sets a limit"),
    ("rtol", "--fail-on 'max_rel_error>0.01' sets a limit"),
    ("verbose", "--wide prints every row and column, --json every figure"),
    ("v", "`truecast --version` prints the version; --wide prints every row and column"),
    ("gpu", "conversions run on the CPU; --threads N limits it"),
    ("device", "conversions run on the CPU; --threads N limits it"),
    ("cuda", "conversions run on the CPU; --spec ptx has the rules of NVIDIA's GPUs"),
];

/// Replaces a synonym of a specification; a version after `@` remains.
pub fn spec(typed: &str) -> String {
    let (name, rest) = typed.split_at(typed.find('@').unwrap_or(typed.len()));
    let meant = SPECS.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
    meant.map_or(typed.into(), |(_, known)| format!("{known}{rest}"))
}

/// Names of specifications that people use elsewhere.
pub fn specs() -> impl Iterator<Item = &'static str> {
    SPECS.iter().map(|(name, _)| *name)
}

/// The rounding in `known` with the name or synonym `typed`.
pub fn rounding<'a>(typed: &str, known: &[&'a str]) -> Option<&'a str> {
    let row = ROUNDINGS.iter().find(|row| row.iter().any(|name| name.eq_ignore_ascii_case(typed)))?;
    known.iter().copied().find(|name| row.contains(name))
}

pub fn option(typed: &str) -> Option<&'static str> {
    OPTIONS.iter().find(|(name, _)| *name == typed).map(|(_, advice)| *advice)
}
