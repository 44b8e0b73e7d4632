//! Errors in texts, with positions.

use truecast_core::DType;
use truecast_core::decimal::ParseDecimalError;
use truecast_core::policy::Condition;

/// Failure of a conversion of texts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages name them.
pub enum TextError {
    /// Neither source nor destination is text, or both are text.
    #[error("{src} to {dst} is not a conversion between text and numbers")]
    Unsupported {
        src: DType,
        /// Destination type.
        dst: DType,
    },
    /// A text is not a number, or not a number that the destination takes (`docs/spec/onnx.md §6.4`).
    #[error("element {index} is {text}: {why}")]
    Malformed {
        /// Index of the first such element.
        index: usize,
        /// The text, quoted, escaped and shortened.
        text: String,
        /// Fault, with the byte position.
        why: ParseDecimalError,
    },
    /// An `error` policy refuses the number in a text.
    #[error("element {index} is {text}: {}", condition.refusal())]
    Refused {
        /// Index of the first such element.
        index: usize,
        /// The text, quoted, escaped and shortened.
        text: String,
        /// Refused property of the value.
        condition: Condition,
    },
    /// An `error` policy refuses to print an element.
    #[error("element {index}: {}", condition.refusal())]
    Unprintable {
        /// Index of the first such element.
        index: usize,
        /// Refused property of the value.
        condition: Condition,
    },
    /// A text does not fit in a cell.
    #[error("element {index} is longer than the {width} characters of its cell")]
    TooLong {
        /// Index of the first such element.
        index: usize,
        /// Number of characters in a cell.
        width: u32,
    },
    /// The numbers of texts and elements differ.
    #[error("the buffer has room for {elements} whole elements, but the number of strings differs")]
    Length {
        /// Number of elements in the buffer.
        elements: usize,
    },
}

impl TextError {
    pub(crate) fn malformed(index: usize, text: &[u8], why: ParseDecimalError) -> TextError {
        TextError::Malformed { index, text: shown(text), why }
    }

    pub(crate) fn refused(index: usize, text: &[u8], condition: Condition) -> TextError {
        TextError::Refused { index, text: shown(text), condition }
    }

    /// Adds `first`, the number of elements before this part, to the error's index.
    #[must_use]
    pub fn after(mut self, first: u64) -> TextError {
        match &mut self {
            TextError::Malformed { index, .. }
            | TextError::Refused { index, .. }
            | TextError::Unprintable { index, .. }
            | TextError::TooLong { index, .. } => *index += first as usize,
            TextError::Length { .. } | TextError::Unsupported { .. } => {}
        }
        self
    }
}

const SHOWN: usize = 40;

/// Text in quotes, escaped and cut after [`SHOWN`] bytes.
fn shown(text: &[u8]) -> String {
    let is_cut = text.len() > SHOWN;
    let head = String::from_utf8_lossy(&text[..text.len().min(SHOWN)]);
    // A cut may divide a character. U+FFFD in its place would look like an error in the text.
    let head = if is_cut { head.trim_end_matches(char::REPLACEMENT_CHARACTER) } else { &head };
    if is_cut {
        format!("{:?} and {} more bytes", format!("{head}…"), text.len() - SHOWN)
    } else {
        format!("{head:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_shown_on_one_short_line() {
        let why = ParseDecimalError { what: "unexpected character", at: 1 };
        let shown = |text: &[u8]| TextError::malformed(7, text, why).to_string();
        assert_eq!(shown(b"1\n2"), "element 7 is \"1\\n2\": unexpected character at byte 1");
        assert_eq!(shown(b"\xff\x1b"), "element 7 is \"\u{fffd}\\u{1b}\": unexpected character at byte 1");
        let long = shown("é".repeat(1000).as_bytes());
        assert_eq!(
            long,
            format!("element 7 is \"{}…\" and 1960 more bytes: unexpected character at byte 1", "é".repeat(20))
        );
        assert_eq!(TextError::malformed(1, b"x", why).after(5), TextError::malformed(6, b"x", why));
    }
}
