//! Rescales accumulators of a quantized convolution to i8 with one scale per channel, as in TOSA RESCALE.
//!
//!     cargo run --release --example rescale_per_channel

use truecast::spec::tosa::rescale::{Channel, RescaleSpec, RoundingMode};
use truecast::{CastOptions, DType, Elements, ElementsMut, Rescaler, format::IntFormat};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let int = |bits| IntFormat { bits, signed: true };
    let spec = RescaleSpec {
        input: int(32),
        output: int(8),
        scale32: true,
        rounding: RoundingMode::Single,
        // value * multiplier / 2^shift: 0.001 and 0.0005
        channels: vec![
            Channel { multiplier: 1_099_511_628, shift: 40 },
            Channel { multiplier: 1_099_511_628, shift: 41 },
        ],
        input_zp: 0,
        output_zp: -3,
    };
    let accumulators = [1000i32, 1000, -2500, -2500, 200_000, 200_000]; // shape [3, 2], channels last
    let src: &[u8] = &accumulators.map(i32::to_le_bytes).concat();
    let mut dst = [0; 6];
    let counts = Rescaler::new(&spec, &CastOptions::default())
        .rescale(Elements::new(DType::I32, 6, src)?, ElementsMut::new(DType::I8, 6, &mut dst[..])?)?;
    println!("{:?}, {} saturated", dst.map(|byte| byte as i8), counts.saturated);
    Ok(())
}
