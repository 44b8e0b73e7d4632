//! `truecast show`: values of a tensor, or of a slice in Python's notation.

use super::Context;
use crate::args::ShowArgs;
use crate::exact_decimal;
use crate::failure::Failure;
use crate::message::one_line;
use crate::number;
use crate::terminal::Terminal;
use serde_json::{Value, json};
use std::path::Path;
use truecast::decimal::to_decimal;
use truecast::exact::decode;
use truecast::files::Error;
use truecast::io::{Escaped, FileFormat, OpenOptions};
use truecast::measure::Extreme;
use truecast::opened::Opened;
use truecast::report::json_number;
use truecast::{DType, DenseTensor, Elements, Kind};

/// Name of the tensor in a `.npy` file.
const ARRAY: &str = "data";
/// Largest number of elements that are all shown.
const FEW: u64 = 100;

pub fn run(args: &ShowArgs, context: &Context) -> Result<u8, Failure> {
    let (name, slice) = split(args.tensor.as_deref().unwrap_or_default());
    let slices = slice.map_or(Ok(Vec::new()), slices)?;
    let is_array = matches!(FileFormat::of_path(&args.src), Some(FileFormat::Npy | FileFormat::TensorProto));
    let name = match name {
        "" if is_array => ARRAY,
        "" => {
            return Err(failure!(MissingArgument, "show needs the name of a tensor; `truecast inspect` lists them"));
        }
        name => name,
    };
    let options = OpenOptions { from: args.from, onnx: args.onnx.options() };
    let tensor = DenseTensor::read(&args.src, name, options).map_err(|error| match error {
        Error::NoTensor { ref nearest, .. } if nearest.is_empty() => {
            let hint = names(&args.src, options);
            Failure::from(error).with_hint(&hint)
        }
        error => error.into(),
    })?;
    if matches!(tensor.dtype().kind(), Kind::Complex(_)) {
        return Err(failure!(InvalidValue, "{} has no numeric values to show", tensor.dtype()));
    }
    let part = Part::new(&tensor, &slices)?;
    let object = || {
        json!({
            "path": args.src.display().to_string(), "tensor": name, "dtype": tensor.dtype().name(),
            "shape": tensor.shape(), "shown": part.shape(), "values": part.to_json(0, part.offset)
        })
    };
    context.answer("show", object, || text(name, &part, &context.terminal))?;
    Ok(0)
}

/// Hint with the names of tensors, if there are few.
fn names(path: &Path, options: OpenOptions) -> String {
    const FEW_NAMES: usize = 4;
    let opened = Opened::open(path, options).ok().filter(|opened| opened.tensors().len() <= FEW_NAMES);
    let names = opened.map(|opened| opened.value_names().iter().map(|name| Escaped(name).to_string()).collect());
    let names: Vec<String> = names.unwrap_or_default();
    match &names[..] {
        [] => "`truecast inspect` lists its tensors".into(),
        [names @ .., last] if !names.is_empty() => format!("it has {} and {last}", names.join(", ")),
        [only, ..] => format!("it has {only}"),
    }
}

/// Splits `NAME[SLICE]`; either may be missing. Brackets that contain no slice belong to the name.
fn split(text: &str) -> (&str, Option<&str>) {
    let is_slice = |text: &str| text.chars().all(|c| c.is_ascii_digit() || matches!(c, ':' | ',' | '-' | ' '));
    match text.strip_suffix(']').and_then(|text| text.rsplit_once('[')) {
        Some((name, slice)) if is_slice(slice) => (name.trim_end(), Some(slice)),
        _ => (text, None),
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Slice {
    Index(i64),
    Range { first: Option<i64>, end: Option<i64>, step: i64 },
}

fn slices(text: &str) -> Result<Vec<Slice>, Failure> {
    let wrong = |part: &str| {
        failure!(InvalidValue, "[{text}]: {:?} is not a slice; write an index, or FIRST:END:STEP", part.trim())
    };
    let one = |part: &str| {
        let number = |text: &str| match text.trim() {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| wrong(part)),
        };
        match *part.split(':').collect::<Vec<_>>() {
            [index] => number(index)?.map(Slice::Index).ok_or_else(|| wrong(part)),
            [first, end] => Ok(Slice::Range { first: number(first)?, end: number(end)?, step: 1 }),
            [first, end, step] => match number(step)?.unwrap_or(1) {
                0 => Err(failure!(InvalidValue, "[{text}]: a step of 0 goes nowhere")),
                step => Ok(Slice::Range { first: number(first)?, end: number(end)?, step }),
            },
            _ => Err(wrong(part)),
        }
    };
    text.split(',').map(one).collect()
}

struct Part<'a> {
    dtype: DType,
    elements: Elements<'a>,
    offset: i128,
    /// Length and step of each remaining dimension. The step is counted in elements of the tensor.
    axes: Vec<(u64, i128)>,
}

impl<'a> Part<'a> {
    fn new(tensor: &'a DenseTensor, slices: &[Slice]) -> Result<Part<'a>, Failure> {
        let shape = tensor.shape();
        if slices.len() > shape.len() {
            let (given, has) = (slices.len(), shape.len());
            return Err(failure!(InvalidValue, "{given} slices for a tensor of {has} dimensions, {shape:?}"));
        }
        let (mut offset, mut axes, mut stride) = (0, Vec::new(), 1i128);
        for (axis, &n) in shape.iter().enumerate().rev() {
            let n = i128::from(n);
            let at = |i: i64| if i < 0 { n + i128::from(i) } else { i128::from(i) };
            match slices.get(axis) {
                None => axes.push((n as u64, stride)),
                Some(&Slice::Index(index)) if (0..n).contains(&at(index)) => offset += at(index) * stride,
                Some(Slice::Index(index)) => {
                    return Err(failure!(InvalidValue, "index {index} is outside of dimension {axis} of {shape:?}"));
                }
                Some(&Slice::Range { first, end, step }) => {
                    let step = i128::from(step);
                    let (least, most, ends) = if step > 0 { (0, n, (0, n)) } else { (-1, n - 1, (n - 1, -1)) };
                    let bound = |i: Option<i64>, left_out| i.map_or(left_out, |i| at(i).clamp(least, most));
                    let (first, end) = (bound(first, ends.0), bound(end, ends.1));
                    let len = ((end - first + step - step.signum()) / step).max(0);
                    offset += if len > 0 { first * stride } else { 0 };
                    axes.push((len as u64, step * stride));
                }
            }
            stride *= n;
        }
        axes.reverse();
        Ok(Part { dtype: tensor.dtype(), elements: tensor.elements(), offset, axes })
    }

    fn shape(&self) -> Vec<u64> {
        self.axes.iter().map(|(len, _)| *len).collect()
    }

    fn number(&self, at: i128) -> (String, f64) {
        let decimal = to_decimal(decode(self.dtype, self.elements.get(at as usize)));
        let number = decimal.parse().unwrap_or(f64::NAN);
        (decimal, number)
    }

    /// Elements as nested lists, from dimension `axis` on.
    fn to_json(&self, axis: usize, at: i128) -> Value {
        match self.axes.get(axis) {
            Some(&(len, step)) => (0..len).map(|i| self.to_json(axis + 1, at + i128::from(i) * step)).collect(),
            None => match (self.dtype.kind(), self.number(at)) {
                (Kind::Bool, (_, x)) => json!(x != 0.0),
                (Kind::Int(_), (decimal, x)) => decimal
                    .parse::<i64>()
                    .map(Value::from)
                    .unwrap_or_else(|_| decimal.parse::<u64>().map_or(json_number(x), Value::from)),
                (_, (_, x)) => json_number(x),
            },
        }
    }

    /// Text of an element. Every digit if there are few; otherwise five digits on a terminal, or enough digits to
    /// identify the value.
    fn shown(&self, at: i128, terminal: &Terminal) -> String {
        const FEW: usize = 12;
        let (decimal, x) = self.number(at);
        match (self.dtype.kind(), terminal.width) {
            (Kind::Bool, _) => (x != 0.0).to_string(),
            (Kind::Int(_), _) => decimal,
            (_, Some(_)) if decimal.len() > FEW => number::significant(x, 5),
            (_, None) if decimal.len() > FEW => match exact_decimal::shortest(self.dtype, x) {
                Some(nearest) => Extreme { nearest, residual: 0.0 }.to_string(),
                None => decimal,
            },
            _ => decimal,
        }
    }

    /// Indices to show along an axis of length `len`. A long axis has only its first and last indices, with `None` in
    /// between.
    fn indices(&self, len: u64) -> Vec<Option<u64>> {
        let all: u64 = self.axes.iter().map(|(len, _)| *len).fold(1, u64::saturating_mul);
        // With more dimensions, fewer indices per dimension fit on a screen.
        let edge = [3, 3, 3, 2].get(self.axes.len()).copied().unwrap_or(1);
        if all <= FEW || len <= 2 * edge {
            return (0..len).map(Some).collect();
        }
        (0..edge).map(Some).chain([None]).chain((len - edge..len).map(Some)).collect()
    }
}

struct Layout<'a> {
    width: usize,
    columns: usize,
    terminal: &'a Terminal,
}

const ELLIPSIS: &str = "...";

fn text(name: &str, part: &Part<'_>, terminal: &Terminal) -> String {
    let mut widest = 0;
    each(part, 0, part.offset, &mut |at| widest = widest.max(part.shown(at, terminal).len()));
    let mut text = format!("{} {} {:?}\n", one_line(name), part.dtype, part.shape());
    let room = terminal.width.unwrap_or(usize::MAX).saturating_sub(2 * part.axes.len() + 1);
    let columns = (room / (widest + 1)).max(1);
    let layout = Layout { width: widest, columns, terminal };
    write(part, 0, part.offset, &layout, &mut text);
    text + "\n"
}

/// Calls `tell` with the position of each shown element.
fn each(part: &Part<'_>, axis: usize, at: i128, tell: &mut dyn FnMut(i128)) {
    let Some(&(len, step)) = part.axes.get(axis) else { return tell(at) };
    part.indices(len).into_iter().flatten().for_each(|i| each(part, axis + 1, at + i128::from(i) * step, tell));
}

/// Writes nested brackets, as NumPy prints arrays.
fn write(part: &Part<'_>, axis: usize, at: i128, layout: &Layout<'_>, text: &mut String) {
    let Layout { width, columns, terminal } = *layout;
    let Some(&(len, step)) = part.axes.get(axis) else {
        *text += &format!("{:>width$}", part.shown(at, terminal));
        return;
    };
    let is_last = axis + 1 == part.axes.len();
    let indent = " ".repeat(axis + 1);
    text.push('[');
    for (i, index) in part.indices(len).into_iter().enumerate() {
        match (i, is_last) {
            (0, _) => {}
            (i, true) if i % columns != 0 => text.push(' '),
            _ => *text += &format!("\n{indent}"),
        }
        match index {
            Some(index) => write(part, axis + 1, at + i128::from(index) * step, layout, text),
            None if is_last => *text += &format!("{ELLIPSIS:>width$}"),
            None => *text += ELLIPSIS,
        }
    }
    text.push(']');
}
