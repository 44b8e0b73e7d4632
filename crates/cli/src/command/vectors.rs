//! `truecast vectors`: inputs at which a conversion has to show what it does, with their results.
//! The formats are those of `docs/interfaces.md §4.1`.

use super::Context;
use crate::args::{VectorFormat, VectorsArgs};
use crate::failure::Failure;
use crate::output::{self, bits};
use crate::policy::operator;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use truecast::io::{Existing, Kind, OutputFile, Tensor, Writer, layout_for};
use truecast::permit::{Permitted, permitted};
use truecast::request::Request;
use truecast::vectors::inputs;
use truecast::{CastSpec, DType, Layout, Outcome, cast_one};

pub fn run(args: &VectorsArgs, context: &Context) -> Result<ExitCode, Failure> {
    let unknown = || Failure::usage(format_args!("unknown operation {:?}; known are cast and castlike", args.op));
    let request = args.policy.request_of(operator(&args.op).ok_or_else(unknown)?)?;
    let spec = request.resolve(args.from, args.to)?;
    let codes = inputs(args.from, args.to, args.level.into())?;
    let existing = if args.force { Existing::Replace } else { Existing::Refuse };
    let text = match (args.format(context.json), &args.output) {
        (VectorFormat::Npy, None) => {
            return Err(Failure::usage("--format npy writes several files; name them with -o"));
        }
        (VectorFormat::Npy, Some(path)) => {
            npy(path, &spec, &codes, existing)?;
            return Ok(ExitCode::SUCCESS);
        }
        (VectorFormat::Hex, _) => hex(&args.op, &spec, &request, &codes),
        (VectorFormat::Json, _) => output::pretty(&output::object("vectors", to_json(args, &spec, &request, &codes))),
    };
    match &args.output {
        None => output::text(&text)?,
        Some(path) => {
            let written = |e: std::io::Error| Failure::system(format_args!("{}: writing: {e}", path.display()));
            let mut file = OutputFile::create(path, existing)?;
            file.write_all(text.as_bytes()).map_err(written)?;
            file.commit()?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// One vector a line: input, result, and `undefined` where the specification leaves the result open.
fn hex(op: &str, spec: &CastSpec, request: &Request, codes: &[u64]) -> String {
    use std::fmt::Write as _;
    let digits = |dtype: DType| dtype.code_bits().div_ceil(4) as usize;
    let (input_digits, output_digits) = (digits(spec.src), digits(spec.dst));
    let mut text = format!("# truecast vectors: {op} {} {}, {request}\n", spec.src, spec.dst);
    for &code in codes {
        let (result, open) = match cast_one(spec, code) {
            Outcome::Defined(result) => (format!("{result:0output_digits$x}"), ""),
            Outcome::Undefined { code, .. } => (format!("{code:0output_digits$x}"), " undefined"),
            Outcome::Refused { .. } => ("-".into(), ""),
        };
        writeln!(text, "{code:0input_digits$x} {result}{open}").expect("a string takes everything");
    }
    text
}

fn to_json(args: &VectorsArgs, spec: &CastSpec, request: &Request, codes: &[u64]) -> Map<String, Value> {
    let vector = |&code: &u64| {
        let (set, reason) = permitted(spec, code);
        let accepted = match set {
            Permitted::Codes(codes) => codes.iter().map(|&c| json!(bits(c, spec.dst.code_bits()))).collect(),
            _ => json!("any"),
        };
        let output = cast_one(spec, code).code().map(|c| bits(c, spec.dst.code_bits()));
        let mut vector = Map::new();
        vector.insert("input".into(), json!(bits(code, spec.src.code_bits())));
        vector.insert("output".into(), json!(output));
        if let Some(reason) = reason {
            vector.insert("undefined".into(), json!(reason));
            vector.insert("accepted".into(), accepted);
        }
        Value::from(vector)
    };
    let mut object = Map::new();
    object.insert("op".into(), json!(args.op));
    object.insert("spec".into(), json!(request.to_string()));
    object.insert("from".into(), json!(spec.src.name()));
    object.insert("to".into(), json!(spec.dst.name()));
    object.insert("clause".into(), json!(spec.clause));
    object.insert("vectors".into(), codes.iter().map(vector).collect());
    object
}

/// Three arrays beside each other: `FILE.input.npy`, `FILE.output.npy`, `FILE.undefined.npy`.
fn npy(path: &Path, spec: &CastSpec, codes: &[u64], existing: Existing) -> Result<(), Failure> {
    let mut results = Vec::with_capacity(codes.len());
    let mut open = Vec::with_capacity(codes.len());
    for &code in codes {
        let outcome = cast_one(spec, code);
        let result = outcome.code().ok_or_else(|| {
            let input = bits(code, spec.src.code_bits());
            Failure::usage(format_args!("{input} is refused by a policy, which an array cannot say; use --format hex"))
        })?;
        results.push(result);
        open.push(matches!(outcome, Outcome::Undefined { .. }) as u64);
    }
    let parts = [("input", spec.src, codes), ("output", spec.dst, &results), ("undefined", DType::Bool, &open)];
    let [input, output, undefined] =
        parts.map(|(part, dtype, codes)| array(&beside(path, part), dtype, codes, existing));
    // All are written before the first is put in its place.
    for writer in [input?, output?, undefined?] {
        writer.finish()?;
    }
    Ok(())
}

/// `v.npy` or `v` with a part's name: `v.input.npy`.
fn beside(path: &Path, part: &str) -> PathBuf {
    let stem = match path.extension() {
        Some(extension) if extension.eq_ignore_ascii_case("npy") => path.with_extension(""),
        _ => path.into(),
    };
    let mut name = stem.into_os_string();
    name.push(format!(".{part}.npy"));
    name.into()
}

fn array(path: &Path, dtype: DType, codes: &[u64], existing: Existing) -> Result<Writer, Failure> {
    let layout = layout_for(Kind::Npy, dtype).map_err(Failure::usage)?;
    let tensor = Tensor { name: "data".into(), dtype, layout, shape: vec![codes.len() as u64] };
    let width = dtype.bits_in(Layout::Bytes).expect("numbers only") as usize / 8;
    let bytes: Vec<u8> =
        codes.iter().flat_map(|&code| dtype.storage_of_code(code).to_le_bytes().into_iter().take(width)).collect();
    let mut writer = Writer::create(path, Kind::Npy, vec![tensor], &BTreeMap::new(), existing)?;
    writer.write(&bytes)?;
    Ok(writer)
}
