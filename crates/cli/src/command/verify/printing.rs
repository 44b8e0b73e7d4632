//! A verdict in words and as JSON (`docs/interfaces.md §6`).

use super::groups::Group;
use crate::number::{count, grouped};
use crate::terminal::{MOST_LINES, Terminal};
use crate::{number, output};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use truecast::DType;
use truecast::convert::OPTIONS_KEY;
use truecast::io::Escaped;
use truecast::verify::{FileDifference, Sample, VerifyReport};

fn hex(storage: u64, dtype: DType) -> String {
    output::bits(storage, dtype.storage_bits().unwrap_or(64))
}

#[must_use]
/// The JSON object of `verify`.
pub fn to_json(verdict: &VerifyReport) -> Value {
    let difference = |d: &FileDifference| match d {
        FileDifference::Missing { tensor } => json!({ "kind": "missing", "tensor": tensor }),
        FileDifference::Extra { tensor } => json!({ "kind": "extra", "tensor": tensor }),
        FileDifference::Header { tensor, expected, actual } => json!({
            "kind": "header", "tensor": tensor,
            "expected": { "dtype": expected.0.name(), "shape": expected.1 },
            "actual": { "dtype": actual.0.name(), "shape": actual.1 }
        }),
        FileDifference::Elements { tensor, count, first, types } => json!({
            "kind": "elements", "tensor": tensor, "count": count,
            "first": {
                "index": first.index, "source": hex(first.source, types.0), "expected": hex(first.expected, types.1),
                "actual": hex(first.actual, types.1)
            }
        }),
        FileDifference::Part { tensor, count, index, expected, actual } => json!({
            "kind": "part", "tensor": tensor, "count": count,
            "first": { "index": index, "expected": format!("{expected:#x}"), "actual": format!("{actual:#x}") }
        }),
        FileDifference::Texts { tensor, count, first } => json!({
            "kind": "elements", "tensor": tensor, "count": count,
            "first": {
                "index": first.index, "source": first.source, "expected": first.expected, "actual": first.actual
            }
        }),
        FileDifference::Refused { tensor, index } => json!({ "kind": "refused", "tensor": tensor, "index": index }),
        FileDifference::Metadata { key } => json!({ "kind": "metadata", "key": key }),
        FileDifference::Structure { offset } => json!({ "kind": "structure", "offset": offset }),
        FileDifference::ExternalData { location, offset } => {
            json!({ "kind": "external_data", "location": location, "offset": offset })
        }
        FileDifference::Source { path, why } => json!({ "kind": "source", "path": path, "why": why }),
        FileDifference::File { path, why } => json!({ "kind": "file", "path": path, "why": why }),
        FileDifference::Digest { path, digest, expected, actual } => {
            let file = |file: &(u64, String)| json!({ "bytes": file.0, *digest: file.1 });
            json!({
                "kind": "digest", "path": path, "expected": file(expected),
                "actual": actual.as_ref().map_or(Value::Null, file)
            })
        }
        other => json!({ "kind": format!("{other:?}") }),
    };
    let methods = verdict.methods.named().map(|(name, elements)| (name.to_string(), json!(elements)));
    json!({
        "equal": verdict.differences.is_empty(), "tensors": verdict.tensors, "elements": verdict.elements,
        "sampled": verdict.sampled.is_some(), "coverage": verdict.coverage(),
        "sample_seed": verdict.sampled.map(|sampled| sampled.seed), "methods": Map::from_iter(methods),
        "differences": verdict.differences.iter().map(difference).collect::<Value>()
    })
}

/// Text of a verdict. A group has one line instead of a line per member. `records` is the line about the options that
/// the result records, or empty.
pub fn render(verdict: &VerifyReport, groups: &[Group<'_>], records: &str, terminal: &Terminal) -> String {
    let mut text = records.to_owned();
    // A difference in the source comes first, because it may cause the others.
    for difference in &verdict.differences {
        if let FileDifference::Source { path, why } = difference {
            text += &format!("{}: {why}\n", Escaped(path));
        }
    }
    let unrelated = unrelated(verdict);
    text += unrelated.as_deref().unwrap_or_default();
    for group in groups {
        text += &format!("{group}\n");
    }
    let is_listed = |d: &&FileDifference| unrelated.is_none() && !groups.iter().any(|group| group.holds(d));
    for difference in verdict.differences.iter().filter(is_listed) {
        text += &match difference {
            FileDifference::Missing { tensor } => format!("tensor {} is missing\n", Escaped(tensor)),
            FileDifference::Extra { tensor } => format!("tensor {} is not in the source\n", Escaped(tensor)),
            FileDifference::Header { tensor, expected, actual } => format!(
                "tensor {}: {} {:?}, expected {} {:?}\n",
                Escaped(tensor),
                actual.0,
                actual.1,
                expected.0,
                expected.1
            ),
            FileDifference::Elements { tensor, count, first, types } => {
                let [source, actual, expected] =
                    [(first.source, types.0), (first.actual, types.1), (first.expected, types.1)]
                        .map(|(storage, dtype)| hex(storage, dtype));
                wrong_elements(tensor, *count, first.index, &source, &actual, &expected)
            }
            FileDifference::Part { tensor, count, index, expected, actual } => format!(
                "tensor {}: {}; the first is {index}: {actual:#x}, expected {expected:#x}\n",
                Escaped(tensor),
                number::count(*count, "wrong entry")
            ),
            FileDifference::Texts { tensor, count, first } => {
                wrong_elements(tensor, *count, first.index, &first.source, &first.actual, &first.expected)
            }
            FileDifference::Refused { tensor, index } => {
                format!("tensor {}: element {index} is refused, so no result is correct\n", Escaped(tensor))
            }
            FileDifference::Metadata { key } if key == OPTIONS_KEY && !records.is_empty() => String::new(),
            FileDifference::Metadata { key } if key == OPTIONS_KEY => {
                "it records other options than those given\n".into()
            }
            FileDifference::Metadata { key } => format!("metadata {} differs\n", Escaped(key)),
            FileDifference::Structure { offset } => {
                format!("the model differs at offset {offset}, outside its tensors\n")
            }
            FileDifference::ExternalData { location, offset } => {
                format!("{} differs at offset {offset}, outside its tensors\n", Escaped(location))
            }
            FileDifference::Source { .. } => String::new(),
            FileDifference::File { path, why } => format!("{}: {why}\n", Escaped(path)),
            FileDifference::Digest { path, digest, actual: None, .. } => {
                format!("{}: missing; the {} names it\n", Escaped(path), recorded_in(digest))
            }
            FileDifference::Digest { path, digest, expected, actual: Some(actual) } => format!(
                "{}: {} bytes with {digest} {}; the {} has {} bytes with {}\n",
                Escaped(path),
                grouped(actual.0),
                actual.1,
                recorded_in(digest),
                grouped(expected.0),
                expected.1
            ),
            other => format!("{other:?}\n"),
        };
    }
    let is_equal = verdict.differences.is_empty();
    let tensors = count(verdict.tensors, "tensor");
    let covered = match verdict.sampled {
        // Every tensor has the wrong type. `--full` would compare no elements either.
        _ if verdict.elements == 0 && !is_equal => "no element was compared".into(),
        None => format!("{} recomputed", count(verdict.elements, "element")),
        Some(Sample { of, seed }) => {
            let (percent, of) = (100.0 * verdict.coverage(), grouped(of));
            format!("sampled {percent:.1} % of {of} elements (seed {seed}); --full checks all")
        }
    };
    let wrong = verdict.differences.iter().filter_map(FileDifference::tensor).collect::<BTreeSet<_>>().len() as u64;
    // Unexpected tensors are not among the tensors that were looked for.
    let is_part = wrong < verdict.tensors;
    let wrong_tensors = if is_part { format!("{} of {tensors}", grouped(wrong)) } else { count(wrong, "tensor") };
    let tensors = match (files(verdict), wrong) {
        (0, 0) => tensors,
        (files, 0) => format!("{}; no difference in {tensors}", count(files, "file")),
        (0, _) => wrong_tensors,
        (files, _) => format!("{}, {wrong_tensors}", count(files, "file")),
    };
    let verdict = terminal.verdict(is_equal, "verified", "DIFFERENT");
    let text = terminal.first_lines(terminal.wrap(&text), MOST_LINES - 1);
    text + &verdict + &format!(": {tensors}, {covered}\n")
}

/// Line about a result with other tensors only. `None` for other results.
fn unrelated(verdict: &VerifyReport) -> Option<String> {
    let missing = verdict.differences.iter().filter(|d| matches!(d, FileDifference::Missing { .. })).count() as u64;
    let extra = || verdict.differences.iter().filter(|d| matches!(d, FileDifference::Extra { .. }));
    let first = extra().find_map(FileDifference::tensor).filter(|_| missing > 0 && verdict.tensors == 0)?;
    let (expected, others) = (count(missing, "expected tensor"), count(extra().count() as u64, "other tensor"));
    let first = Escaped(first);
    Some(format!("none of {expected} is in the result, which has {others}, such as {first}: is its source another?\n"))
}

/// Number of files that are missing, damaged, different or unexpected.
fn files(verdict: &VerifyReport) -> u64 {
    let paths = verdict.differences.iter().filter_map(|difference| match difference {
        FileDifference::File { path, .. } | FileDifference::Digest { path, .. } => Some(path),
        _ => None,
    });
    paths.collect::<BTreeSet<&String>>().len() as u64
}

fn wrong_elements(tensor: &str, count: u64, index: u64, source: &str, actual: &str, expected: &str) -> String {
    let (tensor, wrong) = (Escaped(tensor), number::count(count, "wrong element"));
    format!("tensor {tensor}: {wrong}; the first is {index}: {source} became {actual}, expected {expected}\n")
}

/// Name of the file with a digest: reports have SHA-256, manifests have XXH3.
fn recorded_in(digest: &str) -> &'static str {
    if digest == "sha256" { "report" } else { "manifest" }
}
