//! Answers for the explorer, a page in a browser: a request and its answer are JSON (`docs/interfaces.md §6.5`).

mod binades;
mod block;
mod cast;
mod header;
mod promotion;
mod staircase;
mod why;

use crate::command::explain::not_a_number;
use crate::command::{differ, formats};
use crate::failure::Failure;
use crate::number_format::NumberFormat;
use serde_json::{Value, json};
use truecast::differ::Difference;
use truecast::exact::encode;
use truecast::literal::{Literal, read};
use truecast::policy::CastPolicy;
use truecast::request::{Request as Specification, SPECS};
use truecast::{DType, ErrorCode};

#[cfg(not(target_family = "wasm"))]
pub(crate) use header::to_json as header_to_json;

/// Answers a request of the explorer. Every error is an object with the key `error`, which has `code` and `message`.
///
/// # Examples
/// ```
/// let answer = truecast_cli::explore::answer(r#"{"ask":"cast","value":"465","from":"f32","to":"f8e4m3fn"}"#);
/// assert!(answer.contains(r#""value":"448""#));
/// assert!(truecast_cli::explore::answer("{}").contains("invalid-value"));
/// ```
#[must_use]
pub fn answer(request: &str) -> String {
    let answer = typed(serde_json::from_str(request)).and_then(answer_to).unwrap_or_else(
        |failure: Failure| json!({ "error": { "code": failure.code().name(), "message": failure.message() } }),
    );
    answer.to_string()
}

fn answer_to(request: Value) -> Result<Value, Failure> {
    let text = |key: &str| request[key].as_str().ok_or_else(|| invalid(format_args!("the request lacks {key:?}")));
    let dtype = |key: &str| dtype(text(key)?);
    match text("ask")? {
        "cast" => cast::answer(text("value")?.into(), dtype("from")?, dtype("to")?),
        "formats" => Ok(formats::all()),
        "format" => Ok(formats::one(NumberFormat::read(text("type")?)?)),
        "binades" => binades::answer(&typed(serde_json::from_value(request))?),
        "names" => Ok(names(dtype("from")?, dtype("to")?)),
        "differ" => differ::boundary([text("a")?, text("b")?], dtype("from")?, dtype("to")?),
        "systems" => Ok(promotion::systems()),
        "promotion" => promotion::answer(text("system")?),
        "rescale" => staircase::answer(&typed(serde_json::from_value(request))?),
        "block" => block::answer(&typed(serde_json::from_value(request))?),
        "header" => header::answer(&typed(serde_json::from_value(request))?),
        // The command answers for the file that `truecast explore FILE` names.
        "file" => Err(invalid("this page was opened without the file; choose it again")),
        other => Err(invalid(format_args!("{other:?} is not a request"))),
    }
}

fn typed<T>(read: serde_json::Result<T>) -> Result<T, Failure> {
    read.map_err(|error| invalid(format_args!("the request is not understood: {error}")))
}

fn dtype(name: &str) -> Result<DType, Failure> {
    Ok(DType::parse(name)?)
}

/// Names for `differ`, with their newest versions; `why` is the reason if the name does not convert the pair.
fn names(from: DType, to: DType) -> Value {
    let one = |name: &&str| {
        let request = Specification::of_words(name).ok()?;
        let why = Difference::refusal(&request, from, to).map(|error| error.to_string());
        Some(json!({ "name": name, "version": request.to_string(), "why": why }))
    };
    json!({ "names": SPECS.iter().filter_map(one).collect::<Value>() })
}

/// A code, or the code nearest to a number such as `0.3` or `1/3`.
fn code(text: &str, dtype: DType) -> Result<u64, Failure> {
    match read(text.trim()) {
        Ok(Literal::Code(code)) if code >> (dtype.code_bits() - 1) <= 1 => Ok(code),
        _ => nearest(text, dtype),
    }
}

fn nearest(text: &str, dtype: DType) -> Result<u64, Failure> {
    match read(text.trim()) {
        Ok(Literal::Number(value)) => Ok(encode(dtype, &CastPolicy::IEEE, value).code.unwrap_or_default()),
        Err(error) => Err(not_a_number(text, error)),
        Ok(Literal::Code(_)) => Err(invalid(format_args!("{text:?} is not a number, such as 0.3 or 1/3"))),
    }
}

fn number(text: &str) -> Result<f64, Failure> {
    nearest(text, DType::F64).map(f64::from_bits)
}

/// Error of a value in a request.
fn invalid(message: impl std::fmt::Display) -> Failure {
    Failure::new(ErrorCode::InvalidValue, message)
}
