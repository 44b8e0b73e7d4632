//! `truecast vectors`: inputs for each rule of a conversion, with results. `docs/interfaces.md §4.1` describes the
//! formats.

mod suite;

use super::{Context, rescale, select};
use crate::args::{SUITE, VectorFormat, VectorsArgs};
use crate::failure::Failure;
use crate::number::count;
use crate::output::{self, bits};
use crate::policy::operator;
use crate::value_parsers;
use crate::{message, signals};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use truecast::io::atomic::leftover;
use truecast::io::{Existing, FileFormat, Finished, OutputFile, Tensor, Writer, layout_for};
use truecast::spec::onnx;
use truecast::vectors::{Open, Vector, cast_vectors, rescale_inputs};
use truecast::{DType, ErrorCode, Layout};

pub fn run(args: &VectorsArgs, context: &Context) -> Result<u8, Failure> {
    let listed = match (args.op.as_str(), operator(&args.op)) {
        (SUITE, _) => return suite::run(args, context),
        ("rescale", _) => rescales(args, types(args)?)?,
        (_, Some(operator)) => casts(args, types(args)?, operator)?,
        (op, None) => {
            let known = value_parsers::vectors();
            let unknown = failure!(InvalidValue, "unknown operation {op:?}; known operations are {}", known.join(", "));
            return Err(unknown.of_word(op, known));
        }
    };
    let existing = if args.force { Existing::Replace } else { Existing::Refuse };
    if let Some(path) = &args.output {
        signals::stop_at_once(context.json);
        super::tell_leftovers(leftover::beside(path), existing, context);
    }
    let text = match (args.format(context.json), &args.output) {
        (VectorFormat::Npy, None) => {
            return Err(failure!(MissingArgument, "--format npy writes several files; name them with -o"));
        }
        (VectorFormat::Npy, Some(path)) => {
            npy(path, &listed, existing)?;
            tell(&listed, &parts(&listed).iter().map(|part| beside(path, part)).collect::<Vec<_>>(), context)?;
            return Ok(0);
        }
        (VectorFormat::Hex, _) => hex(&listed),
        (VectorFormat::Json, _) => output::pretty("vectors", to_json(&listed)),
    };
    match &args.output {
        None => output::text(&text)?,
        Some(path) => {
            let written = |e: std::io::Error| failure!(IoError, "{}: writing: {e}", path.display());
            let mut file = OutputFile::create(path, existing)?;
            file.write_all(text.as_bytes()).map_err(written)?;
            file.commit()?;
            tell(&listed, std::slice::from_ref(path), context)?;
        }
    }
    Ok(0)
}

fn types(args: &VectorsArgs) -> Result<[DType; 2], Failure> {
    let op = &args.op;
    if args.dir.is_some() {
        return Err(failure!(UnexpectedArgument, "vectors {op} takes no DIR; it belongs to vectors {SUITE}"));
    }
    match (args.from, args.to) {
        (Some(from), Some(to)) => Ok([from, to]),
        (from, to) => {
            let missing = [("--from TYPE", from), ("--to TYPE", to)].into_iter().filter(|(_, dtype)| dtype.is_none());
            let missing: Vec<&str> = missing.map(|(option, _)| option).collect();
            let example = format!("truecast vectors {op} --from f32 --to f16");
            Err(failure!(MissingArgument, "vectors {op} needs {}; for example: {example}", missing.join(", ")))
        }
    }
}

fn tell(listed: &Listed, files: &[PathBuf], context: &Context) -> Result<(), Failure> {
    if !context.prints_text() {
        return Ok(());
    }
    let files: Vec<String> = files.iter().map(|file| message::one_line(&file.display().to_string())).collect();
    let vectors = count(listed.vectors.len() as u64, "vector");
    output::text(&context.terminal.wrap(&format!("{vectors} written: {}\n", files.join(", "))))
}

struct Listed {
    op: String,
    spec: String,
    from: DType,
    to: DType,
    clause: &'static str,
    vectors: Vec<Vector>,
}

fn casts(args: &VectorsArgs, [from, to]: [DType; 2], operator: onnx::Operator) -> Result<Listed, Failure> {
    let policy = if args.seed.is_some() { args.policy.without("rounding") } else { args.policy.clone() };
    select::request(&args.policy, args.seed, false)?;
    let request = policy.request_of(operator)?;
    let spec = request.resolve(from, to)?;
    let vectors = cast_vectors(&spec, args.level, args.seed)?;
    let seed = args.seed.map_or(String::new(), |seed| format!(" seed={seed}"));
    let name = request.to_string() + &seed;
    Ok(Listed { op: args.op.clone(), spec: name, from, to, clause: spec.clause, vectors })
}

/// Vectors of RESCALE with one scale.
fn rescales(args: &VectorsArgs, [from, to]: [DType; 2]) -> Result<Listed, Failure> {
    if args.rescale.per_channel {
        return Err(failure!(InapplicableOption, "vectors use one scale; omit --per-channel"));
    }
    let target = rescale::target(args.policy().spec())?;
    let rounding = args.policy.get("rounding").unwrap_or("single");
    let request = rescale::request(&args.rescale, rounding, target, from, to)?;
    let vectors = rescale_inputs(&request.op, &request.resolve(&[1])?, args.level)?;
    let [from, to] = request.op.types();
    let spec = format!("tosa@{} {}", target.version.name(), rescale::attributes(&request));
    Ok(Listed { op: args.op.clone(), spec, from, to, clause: "docs/spec/tosa.md §4.5", vectors })
}

/// One line per vector: input, result, and `undefined` if the specification leaves the result open.
fn hex(listed: &Listed) -> String {
    use std::fmt::Write as _;
    let digits = |dtype: DType| dtype.code_bits().div_ceil(4) as usize;
    let (input_digits, output_digits) = (digits(listed.from), digits(listed.to));
    let Listed { op, from, to, spec, .. } = listed;
    let mut text = format!("# truecast vectors: {op} {from} {to}, {spec}\n");
    for Vector { input, output, open, random } in &listed.vectors {
        let result = output.map_or("-".into(), |code| format!("{code:0output_digits$x}"));
        let open = if open.is_some() { " undefined" } else { "" };
        let random = random.map_or(String::new(), |random| format!(" {:08x}", random.bits()));
        writeln!(text, "{input:0input_digits$x} {result}{random}{open}").expect("a string takes everything");
    }
    text
}

fn to_json(listed: &Listed) -> Value {
    let output_bits = |code: &u64| json!(bits(*code, listed.to.code_bits()));
    let vector = |Vector { input, output, open, random }: &Vector| {
        let input = bits(*input, listed.from.code_bits());
        let mut vector = json!({ "input": input, "output": output.as_ref().map(output_bits) });
        if let Some(random) = random {
            vector["random"] = json!(bits(random.bits(), random.count()));
        }
        if let Some(Open { reason, accepted }) = open {
            let accepted = accepted.as_ref().map(|codes| codes.iter().map(output_bits).collect());
            vector["undefined"] = json!(reason);
            vector["accepted"] = accepted.unwrap_or(json!("any"));
        }
        vector
    };
    let Listed { op, spec, from, to, clause, vectors } = listed;
    json!({
        "op": op, "spec": spec, "from": from.name(), "to": to.name(), "clause": clause,
        "vectors": vectors.iter().map(vector).collect::<Value>()
    })
}

/// Names of the arrays of `--format npy`.
fn parts(listed: &Listed) -> &'static [&'static str] {
    let is_stochastic = listed.vectors.iter().any(|vector| vector.random.is_some());
    &["input", "output", "undefined", "random"][..if is_stochastic { 4 } else { 3 }]
}

/// Writes `FILE.input.npy`, `FILE.output.npy`, `FILE.undefined.npy`, and `FILE.random.npy` for stochastic rounding.
fn npy(path: &Path, listed: &Listed, existing: Existing) -> Result<(), Failure> {
    let mut inputs: Vec<u64> = listed.vectors.iter().map(|v| v.input).collect();
    let mut from = listed.from;
    if from == DType::I48 {
        // Arrays hold i48 in 64 bits (docs/spec/tosa.md §7.1).
        inputs.iter_mut().for_each(|code| *code = ((*code << 16) as i64 >> 16) as u64);
        from = DType::I64;
    }
    let mut results = Vec::with_capacity(inputs.len());
    for Vector { input, output, .. } in &listed.vectors {
        results.push(output.ok_or_else(|| {
            let input = bits(*input, listed.from.code_bits());
            failure!(InvalidValue, "a policy refuses {input}, and an array cannot hold a refusal; use --format hex")
        })?);
    }
    let open: Vec<u64> = listed.vectors.iter().map(|v| v.open.is_some() as u64).collect();
    let random: Vec<u64> = listed.vectors.iter().filter_map(|v| Some(v.random?.bits())).collect();
    let arrays = [(from, &inputs), (listed.to, &results), (DType::Bool, &open), (DType::U32, &random)];
    let write =
        |(part, (dtype, codes)): (&&str, (DType, &Vec<u64>))| array(&beside(path, part), dtype, codes, existing);
    let files = parts(listed).iter().zip(arrays).map(write).collect::<Result<Vec<Writer>, Failure>>()?;
    // All files are complete before the first file gets its final name.
    let files = files.into_iter().map(Writer::complete).collect::<Result<Vec<_>, _>>()?;
    if let Some(files) = files.into_iter().reduce(Finished::and) {
        files.commit()?;
    }
    Ok(())
}

/// Path of an array: `v.input.npy` for `v.npy` or `v`.
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
    let layout = layout_for(FileFormat::Npy, dtype).map_err(|error| Failure::new(ErrorCode::InvalidValue, error))?;
    let tensor = Tensor { name: "data".into(), dtype, layout, shape: [codes.len() as u64].into() };
    let width = dtype.bits_in(Layout::Bytes).expect("numbers only") as usize / 8;
    let bytes: Vec<u8> =
        codes.iter().flat_map(|&code| dtype.storage_of_code(code).to_le_bytes().into_iter().take(width)).collect();
    let mut writer = Writer::create(path, FileFormat::Npy, vec![tensor], &BTreeMap::new(), existing)?;
    writer.write(&bytes)?;
    Ok(writer)
}
