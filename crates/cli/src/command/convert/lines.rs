//! Lines around the table of `convert`.

use crate::args::ConvertArgs;
use crate::command::{assessment, list, provenance};
use crate::number::count;
use crate::table::Mark;
use crate::terminal::Terminal;
use crate::{message, number};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use truecast::convert::Plan;
use truecast::io::npy::descr_of;
use truecast::io::onnx::default_opset;
use truecast::io::{Escaped, FileFormat, gguf};
use truecast::report::{Assessment, Group, Provenance, Report, TensorReport};
use truecast::select::{Detected, KeptBy};
use truecast::{DType, Ecosystem};

pub fn destination(args: &ConvertArgs) -> String {
    args.dst.display().to_string()
}

pub fn dry_run_note(args: &ConvertArgs) -> String {
    format!("dry run: nothing was written\nbuffers would take at most {}\n", number::bytes(args.max_memory))
}

/// Returns a note about source tensors that the result lacks, if there are any.
pub fn left_out(report: &Report) -> String {
    let Some((first, why)) = report.dropped.first() else { return String::new() };
    let dropped = count(report.dropped.len() as u64, "tensor");
    format!("{dropped} left out, such as {}: {why}\n", Escaped(first))
}

/// Returns a line with the opset of a model, which the specification of the conversion does not state.
pub fn model(plan: &Plan) -> String {
    let file = plan.folder().shards().first().and_then(|shard| shard.source.model());
    let opset = file.and_then(|file| default_opset(&file.model().opset_imports));
    opset.map_or(String::new(), |opset| format!("model: opset {opset}\n"))
}

/// Returns the heading above the table: options, and quantization of the source.
pub fn header(report: &Report, terminal: &Terminal) -> String {
    let Provenance { detected: Detected { schemes, nibbles }, .. } = &report.provenance;
    let mut text = format!("options: {}\n", provenance::typed(&report.provenance));
    if !schemes.is_empty() {
        let order = nibbles.map_or(String::new(), |order| format!(", {} nibble first", order.name()));
        text += &format!("quantized by: {}{order}\n", schemes.join(", "));
    }
    terminal.wrap(&text)
}

/// Returns the number of kept tensors for each reason.
pub fn kept(report: &Report) -> String {
    let mut by: Vec<(KeptBy, u64)> = Vec::new();
    for reason in report.tensors.iter().filter_map(|row| row.kept_by) {
        match by.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, tensors)) => *tensors += 1,
            None => by.push((reason, 1)),
        }
    }
    let one = |(of, tensors): &(KeptBy, u64)| format!("{} {}", reason(*of), count(*tensors, "tensor"));
    let said: Vec<String> = by.iter().map(one).collect();
    let is_other = |row: &&TensorReport| !row.converted && row.kept_by.is_none() && row.group() == Group::Kept;
    let others = report.tensors.iter().filter(is_other).count() as u64;
    match (&said[..], others) {
        ([], _) => String::new(),
        (said, 0) => format!("kept: {}\n", said.join(", ")),
        (said, others) => format!("kept: {}, others {}\n", said.join(", "), count(others, "tensor")),
    }
}

fn reason(kept_by: KeptBy) -> &'static str {
    match kept_by {
        KeptBy::Rule => "--keep",
        KeptBy::Dimensions => "1-D",
        kept_by => kept_by.name(),
    }
}

pub fn types(row: &TensorReport) -> String {
    let by = row.kept_by.map_or(String::new(), |of| format!(" ({})", reason(of)));
    let from = list::type_name(row.from, row.scheme.as_deref());
    let to = list::type_name(row.to, row.to_scheme.as_deref());
    let is_kept = !row.converted || (from == to && row.counts.exact == row.elements);
    match () {
        () if is_kept => format!("{from} kept{by}"),
        // Without reading the values it is unknown whether a cast to the same type changes them.
        () if from == to && row.counts.elements == 0 => format!("{from}{by}"),
        () => format!("{from} -> {to}{by}"),
    }
}

pub fn summary(report: &Report, args: &ConvertArgs) -> String {
    let all = &report.total.all;
    let bits = report.bits_per_weight().map_or(String::new(), |bits| format!("; quantized: {bits:.2} bits per weight"));
    format!(
        "{}, {}, {} -> {}: {}{bits}\n",
        count(all.tensors, "tensor"),
        count(all.elements, "element"),
        number::bytes(all.bytes_in),
        number::bytes(all.bytes_out),
        message::one_line(&destination(args))
    )
}

/// Returns one sentence about the loss; `None` if its error is not measured, or has no usual size.
pub fn verdict(report: &Report, assessment: &Assessment) -> Option<(Mark, String)> {
    let all = &report.total.all.counts;
    if report.tensors.is_empty() || all.measured == 0 {
        return None;
    }
    if assessment.changed == 0 {
        let writing = report.provenance.quantize.as_ref();
        if writing.is_some_and(|writing| writing.relayout.is_some()) {
            return Some((Mark::Good, "exact: every value stays the same".into()));
        }
        let types: BTreeSet<DType> = report.tensors.iter().map(|row| row.from).collect();
        let why = match types.first() {
            Some(dtype) if types.len() == 1 => format!("every tensor is {dtype} already"),
            _ => "no type changes".into(),
        };
        return Some((Mark::Warn, format!("nothing changed: {why}")));
    }
    let noise = &report.total.of(Group::Converted).inexact;
    if assessment.suspicious == 0 && report.total.all.inexact.elements > noise.elements {
        // Some integers changed; whether their noise is usual depends on their values.
        return None;
    }
    if assessment.suspicious == 0 && noise.elements == 0 {
        let tensors = count(assessment.changed, "tensor");
        let where_measured = if all.is_sampled() { "no error in the sample of" } else { "exact: no value changed in" };
        return Some((Mark::Good, format!("{where_measured} {tensors}")));
    }
    let name = |i: usize| match report.tensors[i].to_scheme.as_deref() {
        Some(scheme) => scheme.into(),
        None => report.tensors[i].to.to_string(),
    };
    assessment::verdict(assessment, report.tensors.len(), |i| report.tensors[i].assessed(), name)
}

/// Returns the command that verifies the result, if a terminal shows the output and the result is complete.
pub fn next(report: &Report, args: &ConvertArgs, terminal: &Terminal) -> Option<String> {
    let (is_read, complete) = (terminal.width.is_some(), report.folder.as_ref().is_none_or(|folder| folder.complete));
    if !is_read || !complete {
        return None;
    }
    let [src, dst] = [&args.src, &args.dst].map(|path| message::quoted(&path.display().to_string()));
    // `verify` takes the options from a folder's manifest or a file's metadata.
    let is_recorded = report.folder.is_some()
        || FileFormat::of_path(&args.dst) == Some(FileFormat::Safetensors)
        || gguf::is_named(&args.dst);
    let options = if is_recorded { String::new() } else { format!(" {}", provenance::typed(&report.provenance)) };
    Some(format!("next: truecast verify {src} {dst}{options}"))
}

/// Returns advice for Python if NumPy sees the elements of the result only as opaque bytes.
pub fn python(report: &Report, dst: &Path) -> String {
    if !matches!(FileFormat::of_path(dst), Some(FileFormat::Npy | FileFormat::Npz)) {
        return String::new();
    }
    let is_opaque = |dtype: &DType| descr_of(*dtype).is_some_and(|descr| descr.contains('V'));
    let types: BTreeSet<DType> = report.tensors.iter().map(|tensor| tensor.to).filter(is_opaque).collect();
    let view = |dtype: &DType| {
        let name = dtype.names_in(Ecosystem::Numpy).next()?;
        let which = if types.len() > 1 { format!("  # {dtype}") } else { String::new() };
        Some(format!("in Python: a.view(ml_dtypes.{name}){which}\n"))
    };
    types.iter().filter_map(view).collect()
}

/// Returns the time of the run, and its rate if the run was long enough for a meaningful rate.
pub fn speed(bytes: u64, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    let rate = number::rate(bytes, seconds).map_or(String::new(), |rate| format!(", {rate} read"));
    format!("{seconds:.2} s{rate}\n")
}
