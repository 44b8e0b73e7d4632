//! `truecast formats`: the list of types, and details of one type.

use super::Context;
use crate::args::FormatsArgs;
use crate::failure::Failure;
use crate::number::count;
use crate::number_format::NumberFormat;
use crate::output::bits;
use crate::table::{Column, GAP, Table};
use crate::terminal::Terminal;
use serde_json::{Map, Value, json};
use truecast::decimal::to_decimal;
use truecast::differ::Given;
use truecast::exact::decode;
use truecast::spec::p3109;
use truecast::{DType, Ecosystem, Exact, FloatFormat, Kind, format::IntFormat};

pub fn run(args: &FormatsArgs, context: &Context) -> Result<u8, Failure> {
    match args.format {
        None => context.answer("formats", all, || list(&context.terminal))?,
        Some(format) => context.answer("formats", || one(format), || detail(format, &context.terminal))?,
    }
    Ok(0)
}

/// Every element type as JSON.
pub fn all() -> Value {
    json!({ "types": DType::ALL.into_iter().map(|dtype| describe(NumberFormat::Type(dtype))).collect::<Value>() })
}

/// A format as JSON, with every code of at most 8 bits.
pub fn one(format: NumberFormat) -> Value {
    let code = |(bits, value)| json!({ "bits": bits, "value": json_text(value) });
    let mut object = describe(format);
    object["codes"] = codes(format).map(code).collect();
    object
}

fn special(kind: Kind) -> Vec<(&'static str, u64)> {
    match kind {
        Kind::Float(f) => special_floats(&f),
        Kind::Int(f) => vec![("smallest", f.code(f.min())), ("largest", f.code(f.max()))],
        Kind::Fixed(f) => {
            vec![("smallest", f.int.code(f.int.min())), ("largest", f.int.code(f.int.max())), ("one unit", 1)]
        }
        Kind::Book(book) => vec![("smallest", 0), ("zero", book.zero_code), ("largest", 15)],
        Kind::Bool => vec![("false", 0), ("true", 1)],
        Kind::Complex(_) | Kind::String => Vec::new(),
    }
}

fn special_floats(f: &FloatFormat) -> Vec<(&'static str, u64)> {
    let (max, normal, negative) = (f.max_code(), f.min_normal_code(), |code| code | f.sign_bit());
    let has_subnormals = f.has_zero && f.man_bits > 0;
    let all = [
        ("zero", f.has_zero.then_some(0)),
        ("negative zero", f.has_negative_zero().then_some(f.sign_bit())),
        ("smallest subnormal", has_subnormals.then_some(1)),
        ("largest subnormal", has_subnormals.then(|| normal - 1)),
        ("smallest normal", f.has_zero.then_some(normal)),
        ("smallest", (!f.has_zero).then_some(0)),
        ("largest finite", Some(max)),
        ("most negative", f.signed.then(|| negative(max))),
        ("infinity", f.inf_code()),
        ("negative infinity", f.inf_code().filter(|_| f.signed).map(negative)),
        ("NaN", f.nan_code()),
    ];
    all.into_iter().filter_map(|(name, code)| Some((name, code?))).collect()
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Bool => "truth value",
        Kind::Int(IntFormat { signed: true, .. }) => "signed integer",
        Kind::Int(_) => "unsigned integer",
        Kind::Float(_) => "float",
        Kind::Fixed(_) => "fixed point",
        Kind::Book(_) => "code book",
        Kind::Complex(_) => "complex",
        Kind::String => "text",
    }
}

/// Widths of sign, exponent and fraction, for example `1/8/7`. The text is `-` for types that are not floats.
fn layout(dtype: DType) -> String {
    match dtype.kind() {
        Kind::Float(f) => format!("{}/{}/{}", f.signed as u8, f.exp_bits, f.man_bits),
        _ => "-".into(),
    }
}

/// All digits of a value if there are few. Otherwise enough digits for an f64.
pub fn value_text(value: Exact) -> String {
    let exact = to_decimal(value);
    match value {
        Exact::Finite { .. } if exact.len() > 24 => match exact.parse::<f64>() {
            Ok(nearest) => format!("{nearest:e}"),
            Err(_) => exact,
        },
        _ => exact,
    }
}

/// Replaces NaN and infinities by the words for JSON (`docs/interfaces.md §6`).
pub fn json_text(value: String) -> String {
    match value.as_str() {
        "nan" | "-nan" => "NaN".into(),
        "inf" => "Infinity".into(),
        "-inf" => "-Infinity".into(),
        _ => value,
    }
}

/// A code and its value as JSON.
pub fn code_json(dtype: DType, code: u64) -> Value {
    json!({ "bits": bits(code, dtype.code_bits()), "value": json_text(to_decimal(decode(dtype, code))) })
}

/// A result as JSON.
pub fn given_json(dtype: DType, given: &Given) -> Value {
    match *given {
        Given::Code(code) => code_json(dtype, code),
        Given::Refused => json!({ "bits": null, "value": "refused" }),
        Given::Open => json!({ "bits": null, "value": "open" }),
    }
}

fn list(terminal: &Terminal) -> String {
    let mut table = Table::new([
        Column::left("type"),
        Column::left("kind").drops(6),
        Column::right("bits"),
        Column::left("s/e/f"),
        Column::right("bias").drops(5),
        Column::left("lowest").drops(7),
        Column::left("largest"),
        Column::left("smallest normal").drops(2),
        Column::left("smallest above 0").drops(1),
        Column::left("Inf").drops(3),
        Column::left("NaN").drops(3),
        Column::left("-0").drops(4),
    ]);
    for dtype in DType::ALL {
        let storage = dtype.storage_bits().map_or("-".into(), |b| b.to_string());
        let mut cells = vec![dtype.to_string(), kind_name(dtype.kind()).into(), storage, layout(dtype)];
        let value = |code| value_text(decode(dtype, code));
        match dtype.kind() {
            Kind::Float(f) => {
                let yes = |holds: bool| if holds { "yes" } else { "no" }.to_string();
                let normal = if f.has_zero { format!("2^{}", f.emin()) } else { "-".into() };
                let (largest, smallest) = (value(f.max_code()), format!("2^{}", f.quantum()));
                let lowest = match (f.signed, f.has_zero) {
                    (true, _) => format!("-{largest}"),
                    (false, true) => "0".into(),
                    (false, false) => smallest.clone(),
                };
                cells.extend([f.bias.to_string(), lowest, largest, normal, smallest]);
                cells.extend([yes(f.inf_code().is_some()), yes(f.nan_code().is_some()), yes(f.has_negative_zero())]);
            }
            Kind::Int(f) => {
                cells.extend([String::new(), f.min().to_string(), f.max().to_string(), String::new(), "1".into()]);
            }
            Kind::Fixed(f) => {
                cells.extend([String::new(), value(f.int.code(f.int.min())), value(f.int.code(f.int.max()))]);
            }
            Kind::Book(_) => cells.extend([String::new(), value(0), value(15)]),
            _ => {}
        }
        table.row(cells);
    }
    let schemes = "`truecast schemes` lists formats of checkpoints with scales, such as mxfp4\n";
    format!("{}\n{}", table.render(terminal), terminal.wrap(schemes))
}

fn detail(format: NumberFormat, terminal: &Terminal) -> String {
    let (kind, width) = (format.kind(), format.code_bits());
    let mut text = format!("{format}: {}", kind_name(kind));
    match format {
        NumberFormat::Type(dtype) => {
            if let Some(storage) = dtype.storage_bits() {
                text += &format!(", {storage} bits stored");
                if storage != width {
                    text += &format!(" ({width} used)");
                }
            }
        }
        NumberFormat::P3109(_) => text += &format!(", {width} bits (IEEE P3109, interim report {})", p3109::VERSION),
    }
    text.push('\n');
    if let Kind::Float(f) = kind {
        let sign = if f.signed { "1 sign bit" } else { "no sign bit" };
        let (exponent, fraction) = (count(f.exp_bits.into(), "exponent bit"), count(f.man_bits.into(), "fraction bit"));
        text += &format!("{sign}, {exponent} (bias {}), {fraction}\n", f.bias);
    }
    let names: Vec<String> = names(format).map(|(prefix, names)| format!("{prefix}:{}", names[0])).collect();
    if !names.is_empty() {
        text += &terminal.wrap(&format!("also known as {}\n", names.join(" ")));
    }
    let mut table = Table::new([Column::left(""), Column::left("bits"), Column::left("value")]);
    for (name, code) in special(kind) {
        table.row([name.into(), bits(code, width), value_text(format.decode(code))]);
    }
    text += &table.render(terminal);
    let all: Vec<_> = codes(format).collect();
    if !all.is_empty() {
        text += "\nevery code\n";
        let per_row = if all.len() > 16 { beside(&all, terminal) } else { 1 };
        let columns: Vec<_> = (0..per_row).flat_map(|_| [Column::left(""), Column::right("")]).collect();
        let mut table = Table::new(columns);
        let rows = all.len().div_ceil(per_row);
        for i in 0..rows {
            let cells = (0..per_row).filter_map(|c| all.get(c * rows + i)).flat_map(|(b, v)| [b.clone(), v.clone()]);
            table.row(cells.collect::<Vec<_>>());
        }
        text += &table.render(terminal);
    }
    text
}

/// Number of codes per line, each with its value.
fn beside(codes: &[(String, String)], terminal: &Terminal) -> usize {
    const MOST: usize = 4;
    let widest = codes.iter().map(|(bits, value)| bits.len() + GAP + value.len() + GAP).max().unwrap_or(1);
    terminal.width.map_or(MOST, |width| ((width + GAP) / widest).clamp(1, MOST))
}

/// Codes and values. Empty for types above 8 bits and for types without numeric values.
fn codes(format: NumberFormat) -> impl Iterator<Item = (String, String)> {
    let width = format.code_bits();
    let is_numeric = !matches!(format.kind(), Kind::Complex(_) | Kind::String);
    let count = if is_numeric && width <= 8 { 1u64 << width } else { 0 };
    (0..count).map(move |code| (bits(code, width), value_text(format.decode(code))))
}

/// Names of the type in each ecosystem. Only one of NumPy's prefixes is listed; `np` is left out.
fn names(format: NumberFormat) -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    let all = Ecosystem::PREFIXES.into_iter().filter(|(prefix, _)| *prefix != "np");
    let names = move |of| match format {
        NumberFormat::Type(dtype) => dtype.names_in(of).collect(),
        NumberFormat::P3109(_) => Vec::new(),
    };
    all.map(move |(prefix, of)| (prefix, names(of))).filter(|(_, names)| !names.is_empty())
}

fn describe(format: NumberFormat) -> Value {
    let (kind, width) = (format.kind(), format.code_bits());
    let storage = match format {
        NumberFormat::Type(dtype) => dtype.storage_bits(),
        NumberFormat::P3109(_) => None,
    };
    let mut object = json!({
        "name": format.to_string(), "kind": kind_name(kind), "storage_bits": storage, "code_bits": width
    });
    if let Kind::Float(f) = kind {
        object["sign_bits"] = json!(f.signed as u8);
        object["exponent_bits"] = json!(f.exp_bits);
        object["fraction_bits"] = json!(f.man_bits);
        object["bias"] = json!(f.bias);
    }
    let special = special(kind).into_iter().map(|(name, code)| {
        let entry = json!({ "bits": bits(code, width), "value": json_text(value_text(format.decode(code))) });
        (name.replace(' ', "_"), entry)
    });
    object["special"] = Map::from_iter(special).into();
    let names = names(format).map(|(prefix, names)| (prefix.to_string(), json!(names)));
    object["names"] = Map::from_iter(names).into();
    object
}
