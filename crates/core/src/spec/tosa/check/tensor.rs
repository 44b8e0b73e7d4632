//! Check of a whole output. The result has the counts of verdicts, failing elements, mixed flushing, and lints. Source:
//! `docs/spec/tosa.md §6.3`, §6.10, §2.3.

use super::super::block::{BLOCK, BlockCast};
use super::super::freedoms::may_flush;
use super::super::rescale::RescaleSpec;
use super::codes::merged;
use super::{Profile, Verdict, block, cast, rescale};
use crate::binary64::{pow2, value};
use crate::dtype::{DType, Kind};
use crate::exact::{Exact, Outcome, cast_one, decode};
use crate::format::FloatFormat;
use crate::permitted::NanComparison;
use crate::policy::{CastPolicy, CastSpec};
use crate::words::words;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

words! {
    /// Remark in addition to a verdict. A lint never changes the verdict.
    #[non_exhaustive]
    pub enum Lint {
        /// Zero with the opposite sign of the exact zero.
        ZeroSign = "zero-sign",
        /// Inexact result that equals the result of rounding to fp32, bf16 or fp16 first.
        DoubleRounded = "double-rounded",
        /// Permitted result that is not exact.
        NotNearestEven = "not-rne",
        /// Block element at an end of the type's range, although the exact element is inside the range.
        BlockSaturation = "mx-saturation",
    }
}

/// Element that does not pass the profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Index in the tensor.
    pub index: u64,
    /// Code of the input.
    pub input: u64,
    /// Code of the output.
    pub actual: u64,
    /// The failing verdict.
    pub verdict: Verdict,
}

/// Findings on a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Findings {
    profile: Profile,
    keep: usize,
    /// Number of checked elements.
    pub elements: u64,
    /// Number of failing elements.
    pub failed: u64,
    /// First failing elements.
    pub failures: Vec<Failure>,
    verdicts: [u64; Verdict::ALL.len()],
    lints: [u64; Lint::ALL.len()],
    /// Index of the first element whose flushing of subnormals contradicts earlier elements.
    pub mixed_flush: Option<u64>,
}

impl Findings {
    /// Returns empty findings that keep at most `keep` failures.
    #[must_use]
    pub fn new(profile: Profile, keep: usize) -> Self {
        Self {
            profile,
            keep,
            elements: 0,
            failed: 0,
            failures: Vec::new(),
            verdicts: [0; Verdict::ALL.len()],
            lints: [0; Lint::ALL.len()],
            mixed_flush: None,
        }
    }

    /// Returns the number of elements with a verdict.
    #[must_use]
    pub fn count(&self, verdict: Verdict) -> u64 {
        self.verdicts[verdict as usize]
    }

    /// Returns the number of elements with a lint.
    #[must_use]
    pub fn lint(&self, lint: Lint) -> u64 {
        self.lints[lint as usize]
    }

    /// Returns whether the tensor passes. Every element must pass; under a text, flushing must be uniform.
    #[must_use]
    pub fn passes(&self) -> bool {
        self.reasons().is_empty()
    }

    /// Returns the reasons for failure, as words in reports: `elements`, `mixed_flush`. Empty if the tensor passes.
    #[must_use]
    pub fn reasons(&self) -> Vec<&'static str> {
        let all = [("elements", self.failed > 0), ("mixed_flush", self.mixed_flush_fails())];
        all.into_iter().filter(|(_, holds)| *holds).map(|(name, _)| name).collect()
    }

    /// Returns whether mixed flushing is a failure. Mixed flushing flushes only some of the subnormals; a text forbids
    /// mixed flushing.
    #[must_use]
    pub fn mixed_flush_fails(&self) -> bool {
        self.mixed_flush.is_some() && self.profile.is_text()
    }

    fn add(&mut self, input: u64, actual: u64, verdict: Verdict) {
        self.verdicts[verdict as usize] += 1;
        if !self.profile.passes(verdict) {
            self.failed += 1;
            if self.failures.len() < self.keep {
                self.failures.push(Failure { index: self.elements, input, actual, verdict });
            }
        }
        if matches!(verdict, Verdict::Allowed | Verdict::AllowedByTextOnly) {
            self.note(Lint::NotNearestEven);
        }
        self.elements += 1;
    }

    fn note(&mut self, lint: Lint) {
        self.lints[lint as usize] += 1;
    }
}

/// Check of the output of a plain CAST, element by element.
#[derive(Clone, Debug)]
pub struct CastCheck {
    spec: CastSpec,
    nan: NanComparison,
    flushing: Flushing,
    /// Findings so far.
    pub findings: Findings,
}

impl CastCheck {
    /// Returns a check before the first element.
    #[must_use]
    pub fn new(spec: CastSpec, profile: Profile, keep: usize) -> Self {
        let nan = NanComparison::default();
        Self { spec, nan, flushing: Flushing::default(), findings: Findings::new(profile, keep) }
    }

    /// Sets the comparison of NaN codes.
    #[must_use]
    pub fn comparing(self, nan: NanComparison) -> Self {
        Self { nan, ..self }
    }

    /// Checks the next element.
    pub fn push(&mut self, input: u64, actual: u64) {
        let verdict = cast::check(&self.spec, input, actual, self.nan);
        let permitted = matches!(verdict, Verdict::Exact | Verdict::Allowed | Verdict::AllowedByTextOnly);
        if let (Kind::Float(src), Kind::Float(dst), true) = (self.spec.src.kind(), self.spec.dst.kind(), permitted) {
            let (x, out) = (decode(self.spec.src, input), decode(self.spec.dst, actual));
            self.flushing.observe(&src, x, &dst, out);
            if self.flushing.is_mixed() {
                self.findings.mixed_flush.get_or_insert(self.findings.elements);
            }
        }
        if verdict != Verdict::Exact && self.spec.dst.is_float() {
            self.lint(input, actual);
        }
        self.findings.add(input, actual, verdict);
    }

    fn lint(&mut self, input: u64, actual: u64) {
        let Outcome::Defined(exact) = cast_one(&self.spec, input) else { return };
        let zero = |code| matches!(decode(self.spec.dst, code), Exact::Finite { sig: 0, .. });
        if zero(exact) && zero(actual) {
            self.findings.note(Lint::ZeroSign);
        }
        if [DType::F32, DType::Bf16, DType::F16]
            .into_iter()
            .any(|intermediate| self.through(intermediate, input) == actual)
        {
            self.findings.note(Lint::DoubleRounded);
        }
    }

    /// Result of rounding to `intermediate` first.
    fn through(&self, intermediate: DType, input: u64) -> u64 {
        let cast = |src, dst, code| {
            let spec = CastSpec { src, dst, policy: CastPolicy::IEEE, ..self.spec };
            cast_one(&spec, code).code().expect("no policy refuses a value")
        };
        cast(intermediate, self.spec.dst, cast(self.spec.src, intermediate, input))
    }
}

/// Treatments of subnormals that are consistent with all elements so far, as `[inputs are flushed][outputs are
/// flushed]`.
#[derive(Clone, Copy, Debug)]
struct Flushing([[bool; 2]; 2]);

impl Default for Flushing {
    fn default() -> Self {
        Self([[true; 2]; 2])
    }
}

impl Flushing {
    fn is_mixed(&self) -> bool {
        self.0 == [[false; 2]; 2]
    }

    /// Excludes the treatments that an element contradicts. All values of a type have the same treatment
    /// (`docs/spec/tosa.md §2.3`).
    fn observe(&mut self, src: &FloatFormat, x: Exact, dst: &FloatFormat, out: Exact) {
        let (Exact::Finite { sig, .. }, Exact::Finite { sig: out_sig, .. }) = (x, out) else { return };
        if sig == 0 {
            return;
        }
        let subnormal_input = may_flush(src) && sig < src.min_normal_code();
        let abs = value(x).abs();
        match out_sig {
            // Up to the smallest subnormal, rounding alone can give zero.
            0 if abs <= pow2(dst.quantum()) => {}
            0 => {
                let subnormal_output = may_flush(dst) && abs < pow2(dst.emin());
                self.retain(|input, output| (input && subnormal_input) || (output && subnormal_output));
            }
            _ => {
                let subnormal_output = may_flush(dst) && out_sig < dst.min_normal_code();
                self.retain(|input, output| !(input && subnormal_input || output && subnormal_output));
            }
        }
    }

    fn retain(&mut self, explains: impl Fn(bool, bool) -> bool) {
        for (input, row) in [false, true].into_iter().zip(&mut self.0) {
            for (output, possible) in [false, true].into_iter().zip(row) {
                *possible &= explains(input, output);
            }
        }
    }
}

/// Check of the output of a RESCALE, element by element.
#[derive(Clone, Debug)]
pub struct RescaleCheck {
    spec: RescaleSpec,
    /// Findings so far.
    pub findings: Findings,
}

impl RescaleCheck {
    /// Returns a check before the first element.
    #[must_use]
    pub fn new(spec: RescaleSpec, profile: Profile, keep: usize) -> Self {
        Self { spec, findings: Findings::new(profile, keep) }
    }

    /// Checks the next element.
    pub fn push(&mut self, input: u64, actual: u64) {
        let channel = self.spec.channel_of(self.findings.elements);
        let verdict = rescale::check(&self.spec, self.findings.profile, channel, input, actual);
        self.findings.add(input, actual, verdict);
    }
}

/// Scale that does not pass the profile.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScaleFailure {
    /// Index of the block.
    pub block: u64,
    /// Code of the scale.
    pub actual: u8,
    /// Permitted codes.
    pub permitted: Vec<RangeInclusive<u64>>,
}

/// Check of the output of a CAST to or from blocks, block by block.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockCheck {
    cast: BlockCast,
    /// Findings so far.
    pub findings: Findings,
    /// Permitted codes, for each kept failure.
    pub permitted: Vec<Vec<RangeInclusive<u64>>>,
    /// Number of blocks with a failing scale.
    pub failed_scales: u64,
    /// First failing scales.
    pub scale_failures: Vec<ScaleFailure>,
}

impl BlockCheck {
    /// Returns a check before the first block.
    #[must_use]
    pub fn new(cast: BlockCast, profile: Profile, keep: usize) -> Self {
        let findings = Findings::new(profile, keep);
        Self { cast, findings, permitted: Vec::new(), failed_scales: 0, scale_failures: Vec::new() }
    }

    /// Checks the next block of a CAST to blocks.
    pub fn push_blocked(&mut self, input: &[u64; BLOCK], scale: u8, actual: &[u64; BLOCK]) {
        let (of_scale, verdicts) = block::check_to_block(&self.cast, input, scale, actual);
        let (exact_scale, exact) = self.cast.to_block(input);
        let profile = self.findings.profile;
        if !profile.passes(of_scale) {
            self.failed_scales += 1;
            if self.scale_failures.len() < self.findings.keep {
                let passes = |code: &u64| profile.passes(block::check_scale(exact_scale, *code as u8));
                let permitted = merged((0..=0xff).filter(passes).map(|code| code..=code).collect());
                let block = self.findings.elements / BLOCK as u64;
                self.scale_failures.push(ScaleFailure { block, actual: scale, permitted });
            }
        }
        for (i, verdict) in verdicts.into_iter().enumerate() {
            if is_limit(self.cast.element, actual[i]) && !is_limit(self.cast.element, exact[i]) {
                self.findings.note(Lint::BlockSaturation);
            }
            self.findings.add(input[i], actual[i], verdict);
            if self.permitted.len() < self.findings.failures.len() {
                let permitted = block::permitted_in_block(&self.cast, input, scale, i, |v| profile.passes(v));
                self.permitted.push(permitted);
            }
        }
    }

    /// Checks the next block of a CAST from blocks.
    pub fn push_plain(&mut self, scale: u8, input: &[u64; BLOCK], actual: &[u64; BLOCK]) {
        let profile = self.findings.profile;
        for (&code, &actual) in input.iter().zip(actual) {
            let verdict = block::check_from_block(&self.cast, scale, code, actual);
            self.findings.add(code, actual, verdict);
            if self.permitted.len() < self.findings.failures.len() {
                self.permitted.push(block::permitted_from_block(&self.cast, scale, code, |v| profile.passes(v)));
            }
        }
    }
}

fn is_limit(dtype: DType, code: u64) -> bool {
    match dtype.kind() {
        Kind::Float(f) => code & f.magnitude_mask() == f.max_code(),
        Kind::Fixed(f) => [f.int.code(f.int.min()), f.int.code(f.int.max())].contains(&code),
        _ => false,
    }
}
