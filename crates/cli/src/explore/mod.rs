//! Answers for the explorer, a page in a browser: a request and its answer are JSON (`docs/interfaces.md §6.5`).

mod binades;
mod block;
mod cast;
mod header;
mod promotion;
mod staircase;
mod why;

use crate::command::{differ, formats};
use crate::failure::Failure;
use crate::number_format::NumberFormat;
use serde::Deserialize;
use serde_json::{Value, json};
use truecast::differ::Difference;
use truecast::exact::encode;
use truecast::literal::{Literal, read};
use truecast::policy::CastPolicy;
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
        sigma: Option<String>,
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
        Request::Binades { types, sigma } => binades::answer(&types, sigma.as_deref()),
        Request::Names { from, to } => Ok(names(dtype(&from)?, dtype(&to)?)),
        Request::Differ { a, b, from, to } => differ::boundary([&a, &b], dtype(&from)?, dtype(&to)?),
        Request::Systems => Ok(promotion::systems()),
        Request::Promotion { system } => promotion::answer(&system),
        Request::Rescale(asked) => staircase::answer(&asked),
        Request::Block(asked) => block::answer(&asked),
        Request::Header(asked) => header::answer(&asked),
        Request::File => Err(invalid("this page was opened without the file; choose it again")),
    }
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

/// The f64 nearest to a number such as `0.3` or `1/3`.
fn number(text: &str) -> Result<f64, Failure> {
    match read(text.trim()) {
        Ok(Literal::Number(value)) => {
            let code = encode(DType::F64, &CastPolicy::IEEE, value).code;
            Ok(code.map_or(f64::NAN, f64::from_bits))
        }
        _ => Err(invalid(format_args!("{text:?} is not a number, such as 0.3 or 1/3"))),
    }
}

/// Error of a value in a request.
fn invalid(message: impl std::fmt::Display) -> Failure {
    Failure::new(ErrorCode::InvalidValue, message)
}
