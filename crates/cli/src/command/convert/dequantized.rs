//! Number of dequantized tensors, and number of other tensors whose type changed.

use crate::args::SelectArgs;
use crate::number::count;
use truecast::report::{Report, TensorReport};
use truecast::select::quantize_options::Layer;

/// Text such as `72 tensors dequantized, 19 kept`. For `convert`, the text also counts unquantized tensors with a new
/// type.
pub fn summary(report: &Report, select: &SelectArgs) -> String {
    let number = |is_one: fn(&TensorReport) -> bool| report.tensors.iter().filter(|row| is_one(row)).count() as u64;
    let dequantized = number(|row| row.converted && row.scheme.is_some() && row.to_scheme.is_none());
    let others = number(|row| row.converted && row.scheme.is_none() && row.to_scheme.is_none() && row.from != row.to);
    let kept = number(|row| !row.converted);
    if dequantized == 0 {
        String::new()
    } else if select.keep_preset.contains(&Layer::Unquantized) {
        format!("{} dequantized, {kept} kept\n", count(dequantized, "tensor"))
    } else if others > 0 {
        let others = count(others, "unquantized tensor");
        format!("{others} changed type too; `truecast dequantize` leaves such tensors as they are\n")
    } else {
        String::new()
    }
}
