//! Test vectors of every specification, version and attribute, for all pairs of numeric types. `truecast vectors suite`
//! writes files.

use crate::request::{Request, RequestError, SPECS, Standard, versions};
use crate::rule::{Rule, bytes, converted, parallel_map};
use crate::vectors::{VectorError, thinned};
use sha2::{Digest as _, Sha256};
use std::io;
use std::ops::Range;
use truecast_core::format::Specials;
use truecast_core::spec::onnx::Operator;
use truecast_core::{DType, Kind, Outcome};
use truecast_kernel::Caster;

const BLOCK: u64 = 1 << 16;
/// Number of blocks that are converted before their results are hashed.
const AT_ONCE: u64 = 64;

/// One pair of types under one specification with one set of attributes.
///
/// # Examples
/// ```
/// use truecast::{DType, Outcome, suite::cases};
/// let all = cases("rust", &[DType::F16], &[DType::I8])?;
/// assert_eq!(all[0].file(), "rust/default/f16-i8.txt");
/// let largest = all[0].vectors(200)?.into_iter().find(|(input, _)| *input == 0x7bff).unwrap();
/// assert_eq!(largest.1, Outcome::Defined(127)); // 65504 saturates
/// let digest = all[0].digest(|_| Ok(()))?;
/// assert_eq!((digest.inputs, digest.sha256.len()), (65_536, 64));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Case {
    /// Specification and version: `rust`, `torch@2.15`.
    pub rule: String,
    /// Attributes; empty for the defaults.
    pub attributes: String,
    /// True if the attributes are the defaults.
    pub is_default: bool,
    /// Source type.
    pub src: DType,
    /// Destination type.
    pub dst: DType,
    /// Clause of the specification.
    pub clause: &'static str,
    conversion: Rule,
}

/// Digest of the results for all codes of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Digest {
    /// Number of source codes.
    pub inputs: u64,
    /// Size of a result in bytes.
    pub result_bytes: usize,
    /// Number of open results; `None` for sources above 16 bits that a kernel converted.
    pub open: Option<u64>,
    /// Number of refused values; `None` if `open` is `None`.
    pub refused: Option<u64>,
    /// SHA-256 of the results, in lower-case hexadecimal.
    pub sha256: String,
}

/// NaN codes of a type: `first <= code & mask <= last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NanCodes {
    /// Mask of the compared bits.
    pub mask: u64,
    /// Smallest masked NaN code.
    pub first: u64,
    /// Largest masked NaN code.
    pub last: u64,
    /// Code that replaces every NaN in digests.
    pub canonical: u64,
}

impl NanCodes {
    /// `None` for a type without NaN.
    #[must_use]
    pub fn of(dtype: DType) -> Option<NanCodes> {
        let Kind::Float(f) = dtype.kind() else { return None };
        let (canonical, all) = (f.nan_code()?, f.magnitude_mask());
        let (mask, first, last) = match f.specials {
            Specials::Ieee => (all, f.max_code() + 2, all),
            Specials::Fnuz | Specials::Extended => (all | f.sign_bit(), canonical, canonical),
            Specials::Fn | Specials::Finite => (all, all, all),
        };
        Some(NanCodes { mask, first, last, canonical })
    }

    /// True if the code is a NaN.
    #[must_use]
    pub fn holds(&self, code: u64) -> bool {
        (self.first..=self.last).contains(&(code & self.mask))
    }
}

/// All `NAME` or `NAME@VERSION` of the complete suite. `ieee` is omitted, because its policies are free.
#[must_use]
pub fn names() -> Vec<String> {
    SPECS.iter().filter(|name| **name != "ieee").flat_map(|name| names_of(name)).collect()
}

/// Names of one specification, one per version. ONNX has only the opsets that changed Cast.
#[must_use]
pub fn names_of(spec: &str) -> Vec<String> {
    let is_own = |version: &String| match version.parse() {
        Ok(opset) if spec == "onnx" => Operator::Cast.version_at(opset) == Ok(opset),
        _ => true,
    };
    match versions(spec) {
        none if none.is_empty() => vec![spec.into()],
        all => all.into_iter().filter(is_own).map(|version| format!("{spec}@{version}")).collect(),
    }
}

/// Cases of a `NAME[@VERSION]` (default: the newest) for all pairs of different numeric types in `from` and `to`.
///
/// # Errors
/// [`RequestError`] for an unknown name or version.
pub fn cases(name: &str, from: &[DType], to: &[DType]) -> Result<Vec<Case>, RequestError> {
    let request = Request::of_words(name)?;
    let version = request.version();
    let rule = version.map_or(request.spec().into(), |version| format!("{}@{version}", request.spec()));
    let pairs = from.iter().flat_map(|src| to.iter().map(move |dst| (*src, *dst)));
    let is_pair = |(src, dst): &(DType, DType)| src != dst && src.is_numeric() && dst.is_numeric();
    Ok(pairs.filter(is_pair).flat_map(|(src, dst)| of_pair(&request, &rule, src, dst)).collect())
}

fn of_pair(request: &Request, rule: &str, src: DType, dst: DType) -> Vec<Case> {
    let case = |attributes, is_default, clause, conversion| Case {
        rule: rule.into(),
        attributes,
        is_default,
        src,
        dst,
        clause,
        conversion,
    };
    if matches!(request.standard, Standard::Tile(_)) {
        return match Rule::new(request, src, dst) {
            Ok(Rule::Cast(cast)) => vec![case(String::new(), true, cast.clause, Rule::Cast(cast))],
            Ok(conversion) => vec![case(String::new(), true, "docs/spec/tile-ir.md", conversion)],
            Err(_) => Vec::new(),
        };
    }
    let all = request.interpretations(src, dst).unwrap_or_default().into_iter().enumerate();
    all.map(|(at, one)| case(one.attributes.replace(", ", ","), at == 0, one.cast.clause, Rule::Cast(one.cast)))
        .collect()
}

impl Case {
    /// Path of the vectors in a suite: `onnx@28/saturate=0/f32-f8e4m3fn.txt`.
    #[must_use]
    pub fn file(&self) -> String {
        let attributes = if self.attributes.is_empty() { "default" } else { &self.attributes };
        format!("{}/{attributes}/{}-{}.txt", self.rule, self.src, self.dst)
    }

    /// Inputs with results; a wide source has only `most` inputs ([`thinned`]).
    ///
    /// # Errors
    /// [`VectorError`].
    pub fn vectors(&self, most: usize) -> Result<Vec<(u64, Outcome)>, VectorError> {
        Ok(thinned(self.src, self.dst, most)?.into_iter().map(|code| (code, self.conversion.outcome(code))).collect())
    }

    /// Converts all codes of a source that has up to 32 bits, and hashes the results. `see` gets the results in pieces.
    ///
    /// A result is its storage element, in whole little-endian bytes. A NaN becomes the canonical NaN, an open result
    /// the documented one, and a refused value all ones.
    ///
    /// # Errors
    /// The errors of `see`.
    ///
    /// # Panics
    /// If the source has more than 32 bits.
    pub fn digest(&self, mut see: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<Digest> {
        let bits = self.src.code_bits();
        assert!(bits <= 32, "2^{bits} codes are too many");
        let (inputs, mut sha256) = (1u64 << bits, Sha256::new());
        let caster = if inputs > BLOCK { self.conversion.caster() } else { None };
        let (mut open, mut refused) = (0, 0);
        let blocks = inputs.div_ceil(BLOCK);
        for first in (0..blocks).step_by(AT_ONCE as usize) {
            let block = |at: usize| {
                let first = (first + at as u64) * BLOCK;
                let codes = first..inputs.min(first + BLOCK);
                match &caster {
                    Some(caster) => Block { bytes: self.by_kernel(caster, codes), open: 0, refused: 0 },
                    None => self.by_definition(codes),
                }
            };
            for block in parallel_map(AT_ONCE.min(blocks - first) as usize, block) {
                sha256.update(&block.bytes);
                see(&block.bytes)?;
                open += block.open;
                refused += block.refused;
            }
        }
        let counted = |count| caster.is_none().then_some(count);
        Ok(Digest {
            inputs,
            result_bytes: bytes(self.dst),
            open: counted(open),
            refused: counted(refused),
            sha256: sha256.finalize().iter().map(|byte| format!("{byte:02x}")).collect(),
        })
    }

    fn by_definition(&self, codes: Range<u64>) -> Block {
        let (nan, size) = (NanCodes::of(self.dst), bytes(self.dst));
        let mut block = Block { bytes: Vec::new(), open: 0, refused: 0 };
        for code in codes {
            let outcome = self.conversion.outcome(code);
            block.open += u64::from(matches!(outcome, Outcome::Undefined { .. }));
            block.refused += u64::from(matches!(outcome, Outcome::Refused { .. }));
            let storage = match outcome.code() {
                None => u64::MAX,
                Some(code) => {
                    let canonical = nan.filter(|nan| nan.holds(code)).map_or(code, |nan| nan.canonical);
                    self.dst.storage_of_code(canonical)
                }
            };
            block.bytes.extend(&storage.to_le_bytes()[..size]);
        }
        block
    }

    fn by_kernel(&self, caster: &Caster, codes: Range<u64>) -> Vec<u8> {
        let to = bytes(self.dst);
        let mut src = Vec::new();
        codes.for_each(|code| src.extend(&self.src.storage_of_code(code).to_le_bytes()[..bytes(self.src)]));
        let mut dst = converted(caster, &src);
        if let Some(nan) = NanCodes::of(self.dst) {
            let canonical = self.dst.storage_of_code(nan.canonical).to_le_bytes();
            for element in dst.chunks_exact_mut(to) {
                let mut storage = [0; 8];
                storage[..to].copy_from_slice(element);
                if nan.holds(self.dst.code_of_storage(u64::from_le_bytes(storage))) {
                    element.copy_from_slice(&canonical[..to]);
                }
            }
        }
        dst
    }
}

struct Block {
    bytes: Vec<u8>,
    open: u64,
    refused: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use truecast_core::Exact;
    use truecast_core::exact::decode;

    #[test]
    fn nan_codes_are_those_of_the_definition() {
        for dtype in DType::ALL.into_iter().filter(|dtype| dtype.is_numeric() && dtype.code_bits() <= 16) {
            let nan = NanCodes::of(dtype);
            for code in 0..1u64 << dtype.code_bits() {
                let is_nan = matches!(decode(dtype, code), Exact::Nan { .. });
                assert_eq!(nan.is_some_and(|nan| nan.holds(code)), is_nan, "{dtype} {code:x}");
            }
        }
    }

    #[test]
    fn both_ways_give_the_same_bytes() {
        for (src, dst) in [(DType::F16, DType::F8E4M3Fn), (DType::Bf16, DType::F16), (DType::F16, DType::I4)] {
            for case in cases("onnx", &[src], &[dst]).unwrap() {
                let Some(caster) = case.conversion.caster() else { continue };
                assert_eq!(case.by_kernel(&caster, 0..BLOCK), case.by_definition(0..BLOCK).bytes, "{}", case.file());
            }
        }
    }

    #[test]
    fn every_name_is_there_once() {
        let names = names();
        assert!(["rust", "torch@2.15", "onnx@28", "onnx@13"].iter().all(|name| names.contains(&name.to_string())));
        assert!(!names.contains(&"onnx@20".into()), "opset 20 has Cast-19");
        assert!(names.iter().all(|name| cases(name, &[], &[]).is_ok()));
    }
}
