//! Measured pairs, and the notation of pairs.

use truecast::request::Request;
use truecast_core::DType;
use truecast_core::dtype::ParseTypeError;

/// Pairs that represent the others: every route, every width, and the conversions of checkpoints.
const REPRESENTATIVE: [(DType, &[DType]); 14] = {
    use DType::*;
    [
        (
            F32,
            &[
                F16, Bf16, F8E4M3Fn, F8E4M3Fnuz, F8E5M2, F8E5M2Fnuz, F8E8M0, F6E2M3, F4E2M1, I8, U8, I4, I32, I64,
                Bool, F64,
            ],
        ),
        (F16, &[F32, Bf16, F8E4M3Fn, F8E5M2]),
        (Bf16, &[F32, F16, F8E4M3Fn, F8E5M2, F4E2M1]),
        (F8E4M3Fn, &[F32, F16, Bf16, F8E5M2, F8E4M3Fnuz]),
        (F8E4M3Fnuz, &[F32]),
        (F8E5M2, &[F32, Bf16]),
        (F8E8M0, &[F32]),
        (F4E2M1, &[F32, Bf16]),
        (I4, &[F32, I8, Bf16]),
        (I8, &[F32]),
        (I32, &[F32, I8, U8, F16, Bf16]),
        (I64, &[F32, F8E4M3Fn, Bf16, I32, I8]),
        (U64, &[F32]),
        (F64, &[F32, F16, Bf16, F8E4M3Fn]),
    ]
};

/// Returns every pair of numeric types, in the order of the types.
pub fn all() -> impl Iterator<Item = (DType, DType)> {
    let numeric = || DType::ALL.into_iter().filter(|dtype| dtype.is_numeric());
    numeric().flat_map(move |src| numeric().map(move |dst| (src, dst)))
}

/// Returns the typed pairs, or representative pairs if none was typed. `all` is every pair that the request allows.
///
/// # Errors
/// Those of [`parse`].
pub fn chosen(typed: &[String], request: &Request) -> Result<Vec<(DType, DType)>, ParsePairError> {
    if typed.is_empty() {
        let pairs = |(src, all): (DType, &'static [DType])| all.iter().map(move |dst| (src, *dst));
        return Ok(REPRESENTATIVE.into_iter().flat_map(pairs).collect());
    }
    let mut chosen = Vec::new();
    for text in typed {
        match text.as_str() {
            "all" => chosen.extend(all().filter(|(src, dst)| request.resolve(*src, *dst).is_ok())),
            pair => chosen.push(parse(pair)?),
        }
    }
    Ok(chosen)
}

/// Error of [`parse`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParsePairError {
    /// The text is not two names separated by a colon.
    #[error("pair {0:?}: expected SRC:DST, such as f32:f16")]
    Form(String),
    /// A type is unknown.
    #[error("pair {pair:?}: {cause}")]
    Type {
        /// The pair as written.
        pair: String,
        /// The fault of the type.
        cause: ParseTypeError,
    },
}

/// Reads `SRC:DST`. Either name may have the prefix of an ecosystem, which also ends in a colon.
///
/// # Errors
/// If the text cannot be split at a colon into two types.
pub fn parse(text: &str) -> Result<(DType, DType), ParsePairError> {
    let attempt = |(at, _)| -> Result<_, ParseTypeError> {
        let (src, dst) = (&text[..at], &text[at + 1..]);
        Ok((src.parse()?, dst.parse()?))
    };
    let mut attempts = text.match_indices(':').map(attempt).collect::<Vec<_>>();
    match attempts.iter().position(Result::is_ok).or(attempts.len().checked_sub(1)) {
        None => Err(ParsePairError::Form(text.into())),
        Some(i) => attempts.swap_remove(i).map_err(|cause| ParsePairError::Type { pair: text.into(), cause }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_names_may_have_a_prefix() {
        let pair = (DType::F8E4M3Fn, DType::F8E4M3Ieee);
        for text in ["f8e4m3fn:f8e4m3ieee", "ov:f8e4m3:mlir:f8E4M3", "f8e4m3fn:mlir:f8E4M3", "ov:f8e4m3:f8e4m3ieee"] {
            assert_eq!(parse(text), Ok(pair), "{text}");
        }
        assert_eq!(parse("f32"), Err(ParsePairError::Form("f32".into())));
        for text in ["f32:", ":f32", "f32:zork", "zork:f32", "f32:f16:bf16", "zork:f8e4m3:f32"] {
            assert!(matches!(parse(text), Err(ParsePairError::Type { .. })), "{text}");
        }
    }
}
