//! `truecast vectors suite`: a folder of test vectors for use without truecast (`docs/interfaces.md §4.1`).

use super::super::{Context, tell_leftovers};
use crate::args::VectorsArgs;
use crate::failure::Failure;
use crate::number::{bytes, count};
use crate::policy::named;
use crate::{message, progress, signals};
use rayon::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write;
use std::path::{Component, Path, PathBuf};
use truecast::io::atomic::leftover;
use truecast::io::{Existing, Links, OutputFolder, folder::JsonFile, look};
use truecast::suite::{Case, Digest, NanCodes, cases, names, names_of};
use truecast::{DType, ErrorCode, Outcome};

const FORMAT: u32 = 1;
/// Table of contents of a suite.
const LIST: &str = "suite.json";
/// Files with constant contents.
const FIXED: [(&str, &str); 3] = [
    ("README.md", include_str!("README.md")),
    ("readers/check.c", include_str!("check.c")),
    ("readers/check.py", include_str!("check.py")),
];
/// Widest source type, in bits, whose digests every suite has.
const DIGEST_BITS: u32 = 16;
/// Widest source type, in bits, whose digests `--exhaustive` adds.
const EXHAUSTIVE_BITS: u32 = 32;
/// Number of cases that are computed before their files are written.
const AT_ONCE: usize = 256;

pub fn run(args: &VectorsArgs, context: &Context) -> Result<u8, Failure> {
    let Some(dir) = &args.dir else { return Err(failure!(MissingArgument, "vectors suite needs DIR")) };
    let Asked { cases, without } = asked(args)?;
    let existing = if args.force { Existing::Replace } else { Existing::Refuse };
    let old = if args.force { files_of(dir)? } else { BTreeSet::new() };
    signals::stop_at_once(context.json);
    tell_leftovers(leftover::beside(dir), existing, context);
    let mut suite = Suite::begin(OutputFolder::create(dir, existing)?, args);
    let bar = progress::steps(cases.len() as u64, !context.prints_text());
    for cases in cases.chunks(AT_ONCE) {
        let made: Vec<_> = cases.par_iter().map(|case| made(case, args.lines)).collect();
        for (case, made) in cases.iter().zip(made) {
            let (text, entry) = made?;
            suite.write(&case.file(), text.as_bytes())?;
            suite.entries.push(entry);
        }
        // Each wide case uses all threads, so wide cases run one after the other.
        let is_wide = |case: &&Case| case.src.code_bits() > DIGEST_BITS;
        let (wide, narrow): (Vec<&Case>, Vec<&Case>) = cases.iter().partition(is_wide);
        if args.files {
            narrow.into_iter().try_for_each(|case| suite.digest(case))?;
        } else {
            let digests: Vec<_> = narrow.par_iter().map(|case| case.digest(|_| Ok(()))).collect();
            narrow.into_iter().zip(digests).try_for_each(|(case, digest)| suite.note(case, digest, None))?;
        }
        for case in wide.into_iter().filter(|case| args.exhaustive && case.src.code_bits() <= EXHAUSTIVE_BITS) {
            suite.digest(case)?;
            bar.more(0, &case.file());
        }
        bar.more(cases.len() as u64, cases.last().map_or("", |case| case.rule.as_str()));
    }
    bar.finish();
    let mut object = suite.commit(dir, &old, args)?;
    object["without_pairs"] = json!(without);
    let warnings: Vec<String> = without.iter().map(|name| format!("{name}: no pair of these types")).collect();
    context.warn(&warnings);
    let text = || {
        let number = |field: &str| object[field].as_u64().unwrap_or_default();
        let (files, size) = (count(number("files"), "file"), bytes(number("bytes")));
        let dir = message::one_line(&dir.display().to_string());
        let vectors = count(number("vectors"), "vector");
        context.terminal.wrap(&format!("{files} written to {dir}, {size}: {vectors}; read README.md there first\n"))
    };
    context.report("vectors", || object.clone(), text)?;
    Ok(0)
}

struct Asked {
    cases: Vec<Case>,
    /// Specifications in `--only` that convert none of the requested pairs.
    without: Vec<String>,
}

fn asked(args: &VectorsArgs) -> Result<Asked, Failure> {
    let types = |asked: Option<DType>| asked.map_or_else(|| DType::ALL.to_vec(), |dtype| vec![dtype]);
    let (from, to) = (types(args.from), types(args.to));
    let names = if args.only.is_empty() {
        names().into_iter().map(|name| (name.clone(), vec![name])).collect()
    } else {
        only(args)?
    };
    let mut asked = Asked { cases: Vec::new(), without: Vec::new() };
    let mut seen = BTreeSet::new();
    for (name, versions) in names {
        let mut has_pairs = false;
        for version in versions {
            let found = cases(&version, &from, &to).map_err(|error| Failure::new(ErrorCode::InvalidValue, error))?;
            has_pairs |= !found.is_empty();
            if seen.insert(version) {
                asked.cases.extend(found);
            }
        }
        if !has_pairs && !args.only.is_empty() && !asked.without.contains(&name) {
            asked.without.push(name);
        }
    }
    if asked.cases.is_empty() {
        let type_of = |dtype: Option<DType>| dtype.map_or("any type".into(), |dtype| dtype.to_string());
        let (from, to) = (type_of(args.from), type_of(args.to));
        let by = match &asked.without[..] {
            [] => "no rule converts".into(),
            [one] => format!("{one} does not convert"),
            all => format!("{} do not convert", all.join(", ")),
        };
        return Err(failure!(InvalidValue, "{by} {from} to {to}"));
    }
    Ok(asked)
}

fn only(args: &VectorsArgs) -> Result<Vec<(String, Vec<String>)>, Failure> {
    let versions = |only: &String| {
        let request = named(only)?;
        if only.contains(':') {
            return Err(failure!(
                InvalidValue,
                "--only {only:?}: a suite has each setting of values out of range and no others; \
                 `truecast vectors cast` takes them"
            ));
        }
        Ok(match request.version().filter(|_| only.contains('@')) {
            Some(version) => {
                let name = format!("{}@{version}", request.spec());
                (name.clone(), vec![name])
            }
            None => (request.spec().into(), names_of(request.spec())),
        })
    };
    args.only.iter().map(versions).collect()
}

/// Files of an older suite in the folder; the new suite replaces the old one.
fn files_of(dir: &Path) -> Result<BTreeSet<PathBuf>, Failure> {
    if !look::is_folder(dir)? || look::names(dir)?.is_empty() {
        return Ok(BTreeSet::new());
    }
    let Some(list) = JsonFile::read(dir, LIST, Links::Inside)? else {
        let dir = message::one_line(&dir.display().to_string());
        return Err(failure!(DestinationExists, "{dir}: the folder holds other files than a suite; name a new folder"));
    };
    if list.value["format"] != FORMAT || !list.value["truecast"].is_string() {
        let dir = message::one_line(&dir.display().to_string());
        return Err(failure!(DestinationExists, "{dir}: its {LIST} does not list a suite; name a new folder"));
    }
    let entries = list.value["files"].as_array().into_iter().flatten();
    let named = entries.flat_map(|entry| [&entry["file"], &entry["results"]]).filter_map(Value::as_str);
    let files: BTreeSet<PathBuf> = named.map(PathBuf::from).filter(|path| is_of_suite(path)).collect();
    files.iter().try_for_each(|file| look::inside(dir, file).map(drop))?;
    Ok(files)
}

/// True for `RULE/ATTRIBUTES/FROM-TO.txt` (or `.bin`). No other file of an older suite's list is removed.
fn is_of_suite(path: &Path) -> bool {
    let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    let ends = path.extension().is_some_and(|ending| ending == "txt" || ending == "bin");
    let pair = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.split_once('-'));
    let is_pair =
        pair.is_some_and(|(from, to)| [from, to].iter().all(|name| DType::ALL.iter().any(|t| t.name() == *name)));
    is_plain && path.components().count() == 3 && ends && is_pair
}

/// Contents of a file with vectors, and its entry in the table of contents.
fn made(case: &Case, most: usize) -> Result<(String, Value), Failure> {
    let Case { rule, attributes, src, dst, clause, .. } = case;
    let digits = |dtype: &DType| dtype.code_bits().div_ceil(4) as usize;
    let (input_digits, result_digits) = (digits(src), digits(dst));
    let mut text = format!("# truecast vectors suite, format {FORMAT}\n# rule {rule}");
    let vectors = case.vectors(most)?;
    let mut write = |line: std::fmt::Arguments| text.write_fmt(line).expect("a string takes everything");
    if !attributes.is_empty() {
        write(format_args!(" {attributes}"));
    }
    write(format_args!("\n# from {src}, {} bits\n# to {dst}, {} bits\n", src.code_bits(), dst.code_bits()));
    if let Some(nan) = NanCodes::of(*dst) {
        let [mask, first, last] = [nan.mask, nan.first, nan.last].map(|code| format!("{code:0result_digits$x}"));
        write(format_args!("# nan {mask} {first} {last}\n"));
    }
    let (mut open, mut refused) = (0, 0);
    for (input, outcome) in &vectors {
        write(format_args!("{input:0input_digits$x} "));
        match outcome {
            Outcome::Defined(code) => write(format_args!("{code:0result_digits$x}\n")),
            Outcome::Undefined { code, .. } => {
                open += 1;
                write(format_args!("{code:0result_digits$x} o\n"));
            }
            Outcome::Refused { .. } => {
                refused += 1;
                write(format_args!("-\n"));
            }
        }
    }
    let entry = json!({
        "rule": rule, "attributes": attributes, "default": case.is_default, "from": src.name(), "to": dst.name(),
        "file": case.file(), "vectors": vectors.len(), "open": open, "refused": refused, "clause": clause
    });
    Ok((text, entry))
}

struct Suite<'a> {
    folder: OutputFolder,
    args: &'a VectorsArgs,
    entries: Vec<Value>,
    digests: Vec<Value>,
    files: u64,
    bytes: u64,
}

impl<'a> Suite<'a> {
    fn begin(folder: OutputFolder, args: &'a VectorsArgs) -> Suite<'a> {
        Suite { folder, args, entries: Vec::new(), digests: Vec::new(), files: 0, bytes: 0 }
    }

    fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        self.folder.write(name, bytes)?;
        self.files += 1;
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    fn digest(&mut self, case: &Case) -> Result<(), Failure> {
        if !self.args.files {
            return self.note(case, case.digest(|_| Ok(())), None);
        }
        let name = Path::new(&case.file()).with_extension("bin").display().to_string().replace('\\', "/");
        let mut file = self.folder.file(&name)?;
        let mut written = 0;
        let digest = case.digest(|piece| {
            written += piece.len() as u64;
            file.write_all(piece)
        });
        self.files += 1;
        self.bytes += written;
        self.note(case, digest, Some(name))
    }

    fn note(&mut self, case: &Case, digest: std::io::Result<Digest>, results: Option<String>) -> Result<(), Failure> {
        let failed = |e| failure!(IoError, "{}: writing the results: {e}", case.file());
        let digest = digest.map_err(failed)?;
        let digits = case.dst.code_bits().div_ceil(4) as usize;
        let nan = NanCodes::of(case.dst).map(|nan| format!("{:0digits$x}", nan.canonical));
        let mut entry = json!({
            "file": case.file(), "inputs": digest.inputs, "result_bytes": digest.result_bytes, "nan": nan,
            "open": digest.open, "refused": digest.refused, "sha256": digest.sha256
        });
        if let Some(results) = results {
            entry["results"] = json!(results);
            let own = self.entries.iter_mut().find(|entry| entry["file"] == case.file());
            own.into_iter().for_each(|entry| entry["results"] = json!(results));
        }
        self.digests.push(entry);
        Ok(())
    }

    /// Moves the finished suite to its place, and returns the object of `--json`.
    fn commit(mut self, dir: &Path, old: &BTreeSet<PathBuf>, args: &VectorsArgs) -> Result<Value, Failure> {
        for (name, text) in FIXED {
            self.write(name, text.as_bytes())?;
        }
        let digests = listed(json!({ "format": FORMAT }), "digests", &self.digests);
        self.write("digests.json", digests.as_bytes())?;
        let head = json!({ "format": FORMAT, "truecast": env!("CARGO_PKG_VERSION"), "lines": args.lines });
        let list = listed(head, "files", &self.entries);
        self.write(LIST, list.as_bytes())?;
        let of_entry = |entry: &Value| {
            let named = [&entry["file"], &entry["results"]];
            named.into_iter().filter_map(Value::as_str).map(PathBuf::from).collect::<Vec<_>>()
        };
        let new: BTreeSet<PathBuf> = self.entries.iter().flat_map(of_entry).collect();
        let mut outdated = Vec::new();
        for path in old.difference(&new) {
            if look::is_file(&look::inside(dir, path)?)? {
                outdated.push(path.clone());
            }
        }
        let rules: BTreeSet<&str> = self.entries.iter().filter_map(|entry| entry["rule"].as_str()).collect();
        let vectors: u64 = self.entries.iter().filter_map(|entry| entry["vectors"].as_u64()).sum();
        let object = json!({
            "folder": dir.display().to_string(), "format": FORMAT, "rules": rules, "conversions": self.entries.len(),
            "vectors": vectors, "digests": self.digests.len(), "files": self.files, "bytes": self.bytes
        });
        self.folder.commit(LIST, &outdated)?;
        Ok(object)
    }
}

fn listed(head: Value, name: &str, entries: &[Value]) -> String {
    let head = head.to_string();
    let entries: Vec<String> = entries.iter().map(Value::to_string).collect();
    format!("{},\"{name}\":[\n{}\n]}}\n", head.trim_end_matches('}'), entries.join(",\n"))
}
