//! Checks a custom kernel against a specification. This kernel rounds twice: first to f16.
//!
//!     cargo run --release --example check_kernel

use truecast::permitted::{NanComparison, Verdict, check_code};
use truecast::{DType, cast_vec, spec::onnx::Cast, vectors};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let spec = Cast::to(DType::F8E4M3Fn).resolve(DType::F32)?;
    // Values with characteristic results: limits, ties, neighbors.
    let codes = vectors::inputs(spec.src, spec.dst, vectors::Extent::Boundary)?;
    let inputs: Vec<u32> = codes.iter().map(|code| *code as u32).collect();

    let f16: Vec<u16> = cast_vec(&Cast::to(DType::F16).resolve(DType::F32)?, &inputs)?;
    let kernel: Vec<u8> = cast_vec(&Cast::to(DType::F8E4M3Fn).resolve(DType::F16)?, &f16)?;

    let mut wrong = 0;
    for (input, actual) in inputs.iter().zip(&kernel) {
        let verdict = check_code(&spec, u64::from(*input), u64::from(*actual), NanComparison::Class);
        if let Verdict::Wrong { permitted, .. } = verdict {
            if wrong < 3 {
                println!("{}: {actual:#04x}, permitted {permitted:?}", f32::from_bits(*input));
            }
            wrong += 1;
        }
    }
    println!("{wrong} of {} results are not allowed", inputs.len());
    Ok(())
}
