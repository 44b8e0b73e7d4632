//! Summary line of `dequantize`, and a note of `convert` about unquantized tensors.

use crate::args::SelectArgs;
use crate::number::count;
use truecast::report::{Report, TensorReport};
use truecast::select::quantize_options::Layer;

/// Returns a line about the quantized tensors of the source; empty if none was dequantized. `dequantize`, which sets the
/// preset `unquantized`, gives `72 tensors dequantized, 19 kept`. `convert` gives the number of unquantized tensors with
/// a new type, if there are any.
pub fn summary(report: &Report, select: &SelectArgs) -> String {
    let count_if = |matches: fn(&TensorReport) -> bool| report.tensors.iter().filter(|row| matches(row)).count() as u64;
    let dequantized = count_if(|row| row.converted && row.scheme.is_some() && row.to_scheme.is_none());
    if dequantized == 0 {
        return String::new();
    }
    let is_dequantize_command = select.keep_preset.contains(&Layer::Unquantized);
    if is_dequantize_command {
        let kept = count_if(|row| !row.converted);
        return format!("{} dequantized, {kept} kept\n", count(dequantized, "tensor"));
    }
    let others = count_if(|row| row.converted && row.scheme.is_none() && row.to_scheme.is_none() && row.from != row.to);
    if others == 0 {
        return String::new();
    }
    let others = count(others, "unquantized tensor");
    format!("{others} changed type too; `truecast dequantize` leaves such tensors as they are\n")
}
