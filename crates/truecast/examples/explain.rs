//! Prints the result for a value under every specification, with the reason.
//!
//!     cargo run --release --example explain

use truecast::{DType, cast_one, decimal, exact::decode, spec::onnx, spec::tosa};

fn main() -> Result<(), truecast::Error> {
    let code = u64::from(465.0f32.to_bits());
    let show = |dtype: DType, code: u64| decimal::to_decimal(decode(dtype, code));
    let onnx = onnx::Cast::to(DType::F8E4M3Fn).resolve(DType::F32)?;
    let kept = onnx::Cast { saturate: Some(false), ..onnx::Cast::to(DType::F8E4M3Fn) }.resolve(DType::F32)?;
    let tosa = tosa::Cast::to(DType::F8E4M3Fn).resolve(DType::F32)?;
    for (name, spec) in [("ONNX", onnx), ("ONNX, saturate=0", kept), ("TOSA", tosa)] {
        let result = cast_one(&spec, code).code().expect("no policy refuses anything");
        println!("{name}: 465 -> {result:#04x} = {} ({})", show(spec.dst, result), spec.clause);
    }
    Ok(())
}
