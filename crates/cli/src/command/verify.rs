//! `truecast verify`.

use super::{Context, select};
use crate::args::{RuleOrder, VerifyArgs};
use crate::effect;
use crate::failure::Failure;
use crate::table::grouped;
use crate::{output, progress};
use serde_json::{Map, Value, json};
use std::process::ExitCode;
use truecast::DType;
use truecast::convert::{Options, Plan};
use truecast::io::Shown;
use truecast::verify::{Difference, Verdict, verify};

pub fn run(args: &VerifyArgs, rules: &RuleOrder, context: &Context) -> Result<ExitCode, Failure> {
    let options = Options {
        selection: select::selection(&args.select, rules)?,
        request: args.policy.request()?,
        exec: context.exec,
        min_elements: args.select.min_elements,
        onnx: args.select.onnx.options(),
        ..Options::default()
    };
    let plan = Plan::new(&args.src, &args.dst, &options)?;
    effect::check(&args.policy, &options.request, plan.conversions())?;
    let total = plan.bytes().0;
    let bar = progress::bytes(total, context.quiet || context.json);
    let verdict = verify(&args.src, &args.dst, &options, |done| bar.set_position(done))?;
    bar.finish_and_clear();
    match context.json {
        true => output::json("verify", to_json(&verdict))?,
        false if context.quiet => {}
        false => output::text(&render(&verdict))?,
    }
    Ok(if verdict.differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// A storage element with all its digits.
fn hex(storage: u64, dtype: DType) -> String {
    output::bits(storage, dtype.storage_bits().unwrap_or(64))
}

fn to_json(verdict: &Verdict) -> Map<String, Value> {
    let difference = |d: &Difference| match d {
        Difference::Missing { tensor } => json!({ "kind": "missing", "tensor": tensor }),
        Difference::Extra { tensor } => json!({ "kind": "extra", "tensor": tensor }),
        Difference::Header { tensor, expected, actual } => json!({
            "kind": "header", "tensor": tensor,
            "expected": { "dtype": expected.0.name(), "shape": expected.1 },
            "actual": { "dtype": actual.0.name(), "shape": actual.1 }
        }),
        Difference::Elements { tensor, count, first, types } => json!({
            "kind": "elements", "tensor": tensor, "count": count,
            "first": {
                "index": first.index, "source": hex(first.source, types.0), "expected": hex(first.expected, types.1),
                "actual": hex(first.actual, types.1)
            }
        }),
        Difference::Texts { tensor, count, first } => json!({
            "kind": "elements", "tensor": tensor, "count": count,
            "first": {
                "index": first.index, "source": first.source, "expected": first.expected, "actual": first.actual
            }
        }),
        Difference::Refused { tensor, index } => json!({ "kind": "refused", "tensor": tensor, "index": index }),
        Difference::Metadata { key } => json!({ "kind": "metadata", "key": key }),
        Difference::Structure { offset } => json!({ "kind": "structure", "offset": offset }),
        Difference::ExternalData { location, offset } => {
            json!({ "kind": "external_data", "location": location, "offset": offset })
        }
        other => json!({ "kind": format!("{other:?}") }),
    };
    let mut object = Map::new();
    object.insert("equal".into(), json!(verdict.differences.is_empty()));
    object.insert("tensors".into(), json!(verdict.tensors));
    object.insert("elements".into(), json!(verdict.elements));
    object.insert("differences".into(), verdict.differences.iter().map(difference).collect());
    object
}

fn render(verdict: &Verdict) -> String {
    let mut text = String::new();
    for difference in &verdict.differences {
        text += &match difference {
            Difference::Missing { tensor } => format!("tensor {} is missing\n", Shown(tensor)),
            Difference::Extra { tensor } => format!("tensor {} is not in the source\n", Shown(tensor)),
            Difference::Header { tensor, expected, actual } => format!(
                "tensor {}: {} {:?} where {} {:?} is right\n",
                Shown(tensor),
                actual.0,
                actual.1,
                expected.0,
                expected.1
            ),
            Difference::Elements { tensor, count, first, types } => format!(
                "tensor {}: {} wrong elements; the first is {}: {} became {}, right is {}\n",
                Shown(tensor),
                grouped(*count),
                first.index,
                hex(first.source, types.0),
                hex(first.actual, types.1),
                hex(first.expected, types.1)
            ),
            Difference::Texts { tensor, count, first } => format!(
                "tensor {}: {} wrong elements; the first is {}: {} became {}, right is {}\n",
                Shown(tensor),
                grouped(*count),
                first.index,
                first.source,
                first.actual,
                first.expected
            ),
            Difference::Refused { tensor, index } => {
                format!("tensor {}: element {index} is refused, so no result is right\n", Shown(tensor))
            }
            Difference::Metadata { key } => format!("metadata {} differs\n", Shown(key)),
            Difference::Structure { offset } => format!("the model differs at offset {offset}, outside its tensors\n"),
            Difference::ExternalData { location, offset } => {
                format!("{} differs at offset {offset}, outside its tensors\n", Shown(location))
            }
            other => format!("{other:?}\n"),
        };
    }
    let verdict_word = if verdict.differences.is_empty() { "verified" } else { "DIFFERENT" };
    text + &format!("{verdict_word}: {} tensors, {} elements recomputed\n", verdict.tensors, grouped(verdict.elements))
}
