//! Casts a slice to fp8 and back, and prints the loss.
//!
//!     cargo run --release --example cast_slice

use truecast::{CastOptions, Caster, Counting, DType, cast_slice_with, cast_vec, spec::onnx::Cast};

fn main() -> Result<(), truecast::Error> {
    let weights: Vec<f32> = (0..1_000_000).map(|i| (i as f32 * 0.001).sin() * 6.0).collect();

    // ONNX Cast saturates by default.
    let f8: Vec<u8> = cast_vec(&Cast::to(DType::F8E4M3Fn).resolve(DType::F32)?, &weights)?;
    let back: Vec<f32> = cast_vec(&Cast::to(DType::F32).resolve(DType::F8E4M3Fn)?, &f8)?;
    println!("{} became {:#04x}, which is {}", weights[7], f8[7], back[7]);

    // The caster is planned once and used often; it also counts.
    let exec = CastOptions { counting: Counting::Full, ..CastOptions::default() };
    let caster = Caster::new(&Cast::to(DType::I4).resolve(DType::F32)?, &exec)?;
    let mut packed = vec![0u8; weights.len() / 2]; // two elements a byte
    let counts = cast_slice_with(&caster, &weights, &mut packed)?;
    println!("to i4: {} of {} values became 0, {:.1} dB", counts.flushed_to_zero, counts.elements, counts.sqnr_db());
    Ok(())
}
