//! Answers for the explorer, a page in a browser: a request and its answer are JSON (`docs/interfaces.md §6.5`).

mod binades;
mod block;
mod cast;
mod header;
mod promotion;
mod staircase;

use crate::command::{differ, formats, schemes};
use crate::failure::Failure;
use crate::number_format::NumberFormat;
use serde::Deserialize;
use serde_json::{Value, json};
use truecast::request::{Request as Specification, SPECS};
use truecast::{DType, ErrorCode};

#[cfg(not(target_family = "wasm"))]
pub(crate) use header::to_json as header_to_json;

#[derive(Deserialize)]
#[serde(tag = "ask", rename_all = "lowercase")]
enum Request {
    Cast {
        value: String,
        from: String,
        to: String,
    },
    Formats,
    Format {
        #[serde(rename = "type")]
        name: String,
    },
    Binades {
        types: Vec<String>,
    },
    Names {
        from: String,
        to: String,
    },
    Differ {
        a: String,
        b: String,
        from: String,
        to: String,
    },
    Systems,
    Promotion {
        system: String,
    },
    Rescale(staircase::Asked),
    Block(block::Asked),
    Schemes,
    Header(header::Asked),
    /// The file that `truecast explore FILE` names; the command answers.
    File,
}

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
    let request =
        serde_json::from_str(request).map_err(|error| failure!(InvalidValue, "the request is not understood: {error}"));
    let answer = request.and_then(answer_to).unwrap_or_else(
        |failure: Failure| json!({ "error": { "code": failure.code().name(), "message": failure.message() } }),
    );
    answer.to_string()
}

fn answer_to(request: Request) -> Result<Value, Failure> {
    match request {
        Request::Cast { value, from, to } => cast::answer(value, dtype(&from)?, dtype(&to)?),
        Request::Formats => Ok(formats::all()),
        Request::Format { name } => Ok(formats::one(NumberFormat::read(&name)?)),
        Request::Binades { types } => binades::answer(&types),
        Request::Names { from, to } => Ok(names(dtype(&from)?, dtype(&to)?)),
        Request::Differ { a, b, from, to } => differ::boundary([&a, &b], dtype(&from)?, dtype(&to)?),
        Request::Systems => Ok(promotion::systems()),
        Request::Promotion { system } => promotion::answer(&system),
        Request::Rescale(asked) => staircase::answer(&asked),
        Request::Block(asked) => block::answer(&asked),
        Request::Schemes => Ok(schemes::all()),
        Request::Header(asked) => header::answer(&asked),
        Request::File => Err(invalid("this page was opened without the file; choose it again")),
    }
}

fn dtype(name: &str) -> Result<DType, Failure> {
    Ok(DType::parse(name)?)
}

/// Names that convert the pair, for `differ`.
fn names(from: DType, to: DType) -> Value {
    let converts = |name: &&&str| {
        let request = Specification::of_words(name);
        request.is_ok_and(|request| request.resolve(from, to).is_ok())
    };
    json!({ "names": SPECS.iter().filter(converts).collect::<Vec<_>>() })
}

/// Error of a value in a request.
fn invalid(message: impl std::fmt::Display) -> Failure {
    Failure::new(ErrorCode::InvalidValue, message)
}
