//! The schemes that serve usual goals.

use truecast::DType;
use truecast::spelling::alternatives;

/// A scheme that serves a goal.
pub struct Goal {
    pub goal: &'static str,
    /// Operand of `quantize`.
    pub scheme: &'static str,
    pub bits: f64,
    /// Type of the codes, which determines the usual SQNR.
    pub codes: DType,
    /// Programs that load the scheme (`docs/loads.md`).
    pub loads_in: &'static str,
}

/// Goals in the order of the table. `docs/loads.md` has the evidence for vLLM and transformers.
pub const GOALS: [Goal; 9] = [
    Goal::new("vLLM, 8 bits", "fp8-block", 8.002, DType::F8E4M3Fn, BOTH),
    Goal::new("transformers, CPU", "fp8-channel", 8.01, DType::F8E4M3Fn, BOTH),
    Goal::new("8-bit integers", "ct:int-quantized", 8.01, DType::I8, BOTH),
    Goal::new("vLLM on Blackwell", "ct:nvfp4-pack-quantized", 4.5, DType::F4E2M1, BOTH),
    Goal::new("4-bit integers", "int4-group,group=32", 4.5, DType::I4, BOTH),
    Goal::new("smallest", "mxfp4", 4.25, DType::F4E2M1, BOTH),
    Goal::new("ComfyUI, one file", "comfy:float8_e4m3fn", 8.0, DType::F8E4M3Fn, "ComfyUI"),
    Goal::new("llama.cpp (GGUF)", "q8_0", 8.5, DType::I8, "llama.cpp"),
    Goal::new("llama.cpp, 4 bits", "q4_k_m", 4.85, DType::U4, "llama.cpp"),
];

const BOTH: &str = "vLLM, transformers";

impl Goal {
    const fn new(goal: &'static str, scheme: &'static str, bits: f64, codes: DType, loads_in: &'static str) -> Goal {
        Goal { goal, scheme, bits, codes, loads_in }
    }
}

/// Lists the `known` schemes whose weights have as many bits as the number in a name: `4bit`, `GPTQ-Int4`.
pub fn with_bits_in(name: &str, known: &[&str]) -> Option<String> {
    let mut numbers = name.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
    let (Some(number), None) = (numbers.next(), numbers.next()) else { return None };
    let bits: u32 = number.parse().ok()?;
    let is_known = |scheme: &str| {
        let name = scheme.split(',').next().unwrap_or(scheme);
        known.iter().any(|known| known.strip_prefix("gguf:").unwrap_or(known).eq_ignore_ascii_case(name))
    };
    let fits = |goal: &&Goal| goal.bits.floor() as u32 == bits && is_known(goal.scheme);
    let schemes: Vec<_> = GOALS.iter().filter(fits).map(|goal| goal.scheme).collect();
    (!schemes.is_empty()).then(|| format!("schemes of {bits} bits: {}", alternatives(&schemes)))
}
