//! Converts a checkpoint to fp8, except its LayerNorms, and reports the tensor with the largest loss.
//!
//!     cargo run --release --example convert_checkpoint -- SRC.safetensors DST.safetensors

use truecast::report::Group;
use truecast::{Convert, DType};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    let [src, dst] = &paths[..] else { return Err("usage: convert_checkpoint SRC DST".into()) };
    let report = Convert::new(src, dst).to(DType::F8E4M3Fn).keep("*LayerNorm*")?.run()?;
    let converted = report.tensors.iter().filter(|t| t.converted);
    let worst = converted.min_by(|a, b| a.counts.sqnr_db().total_cmp(&b.counts.sqnr_db()));
    let converted = report.total.of(Group::Converted);
    println!(
        "{} of {} tensors converted, {:.1} dB",
        converted.tensors,
        report.tensors.len(),
        converted.inexact.sqnr_db()
    );
    if let Some(worst) = worst {
        println!("worst: {} at {:.1} dB", worst.name, worst.counts.sqnr_db());
    }
    Ok(())
}
