//! Checks of results from another implementation of TOSA. Pairs the elements of files;
//! [`truecast_core::spec::tosa::check`] judges.

use crate::files::rescale::{RescaleFailure, RescaleRequest};
use std::path::Path;
use truecast_core::permitted::NanComparison;
use truecast_core::spec::tosa::block::{BLOCK, BlockCast, Direction, SCALE};
use truecast_core::spec::tosa::check::tensor::{BlockCheck, CastCheck, Failure as Violation, Findings, RescaleCheck};
use truecast_core::spec::tosa::check::{Profile, Verdict, cast, rescale};
use truecast_core::spec::tosa::rescale::GraphResult;
use truecast_core::spec::tosa::{RescaleSpec, Target, signless};
use truecast_core::{CastSpec, DType};
use truecast_io::npy::hex::Column;
use truecast_io::npy::tosa::Reader;
use truecast_models::convention::{Convention, ConventionCheck, ConventionGroup, Grouping, RescaleConvention};
use truecast_models::tosa::value::scale_shape;

/// The files to compare.
#[derive(Clone, Copy, Debug)]
pub struct Compared<'a> {
    /// File with the operation's inputs.
    pub input: &'a Path,
    /// File with the results.
    pub actual: &'a Path,
    /// Largest number of failures that are kept.
    pub keep: usize,
    /// Profile whose rules apply.
    pub profile: Profile,
}

/// Result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checked<F> {
    /// Findings for the elements.
    Elements(F),
    /// The graph as a whole is unpredictable or an error. [`GraphResult::Error`] makes every output wrong.
    Graph(GraphResult),
}

/// Findings for single elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedElements<C> {
    /// Verdicts on the elements.
    pub findings: Findings,
    /// Failures, grouped by the convention that they follow.
    pub groups: Vec<ConventionGroup<C, Violation>>,
    /// Number of failures that were compared with the conventions.
    pub compared: u64,
}

impl<C: Copy> CheckedElements<C> {
    /// `whole`: conventions that give the result of every element.
    fn new(
        findings: Findings,
        grouping: &Grouping<C, Violation>,
        whole: &[C],
        may_be_partial: impl Fn(C) -> bool,
    ) -> Self {
        let mut groups = grouping.groups(whole, may_be_partial);
        if let ([group], true) = (groups.as_mut_slice(), !whole.is_empty()) {
            group.count = findings.failed; // holds beyond the compared elements
        }
        CheckedElements { findings, groups, compared: grouping.compared() }
    }
}

/// Checks the elements of `actual` as results of CAST on `input`.
///
/// Cost: some microseconds per element; bounded memory.
///
/// # Errors
/// [`RescaleFailure`] unless the files are arrays of these types and of equal shape. Violations are not errors.
pub fn check_cast(
    spec: &CastSpec,
    target: &Target,
    files: Compared<'_>,
    nan: NanComparison,
) -> Result<Checked<CheckedElements<Convention>>, RescaleFailure> {
    let (xs, ys) = pair(files, signless(spec.src), spec.dst)?;
    if let Err(requirement) = target.check_rank(xs.shape().len()) {
        return Ok(Checked::Graph(GraphResult::Unpredictable { requirement, index: None }));
    }
    let mut check = CastCheck::new(*spec, files.profile, files.keep).comparing(nan);
    let mut grouping = Grouping::new(Convention::all(spec), files.keep);
    let judged = |x, y| cast::check(spec, x, y, nan);
    let same = |a, b| nan.are_equal(spec.dst, a, b);
    Sides::new(xs, ys, spec.src, spec.dst).each(|x, y| {
        let (index, failed) = (check.findings.elements, check.findings.failed);
        check.push(x, y);
        if check.findings.failed > failed {
            let compare = |convention: Convention| match convention.result(spec, x, None) {
                Some(given) if same(given, y) => ConventionCheck::Same,
                Some(given) if !files.profile.passes(judged(x, given)) => ConventionCheck::OtherwiseWrong,
                _ => ConventionCheck::NoError,
            };
            grouping.push(|| Violation { index, input: x, actual: y, verdict: judged(x, y) }, compare);
        }
        true
    })?;
    let mut whole = grouping.common_conventions();
    if !whole.is_empty() {
        let (xs, ys) = pair(files, signless(spec.src), spec.dst)?;
        Sides::new(xs, ys, spec.src, spec.dst).each(|x, y| {
            let gives = |convention: &Convention| convention.result(spec, x, None).is_some_and(|given| same(given, y));
            whole.retain(|convention| gives(convention) || judged(x, y) == Verdict::Unpredictable);
            !whole.is_empty()
        })?;
    }
    Ok(Checked::Elements(CheckedElements::new(check.findings, &grouping, &whole, Convention::may_be_partial)))
}

/// Checks the elements of `actual` as results of RESCALE on `input`. Reads the files once for the result of the graph
/// and once for the verdicts. Reads them again if a convention may explain every failure.
///
/// # Errors
/// Errors of [`check_cast`].
pub fn check_rescale(
    request: &RescaleRequest,
    files: Compared<'_>,
) -> Result<Checked<(CheckedElements<RescaleConvention>, RescaleSpec)>, RescaleFailure> {
    let (input_type, output_type) = (request.op.input, request.op.output);
    let (xs, _) = pair(files, input_type, output_type)?;
    let shape = xs.shape().to_vec();
    let mut inputs = Elements::new(xs, input_type);
    let result = request
        .with_operands(|operands| request.op.graph_result(&shape, operands, &request.target, inputs.by_ref()))?;
    inputs.ended()?;
    if result != GraphResult::Valid {
        return Ok(Checked::Graph(result));
    }
    let spec = request.resolve(&shape)?;
    let mut check = RescaleCheck::new(spec.clone(), files.profile, files.keep);
    let mut grouping = Grouping::new(RescaleConvention::all(&spec), files.keep);
    let changed: Vec<_> = grouping.conventions().iter().map(|c| (*c, c.changed(&spec))).collect();
    let result = |convention: RescaleConvention, channel: usize, x: u64| {
        let (_, changed) = changed.iter().find(|(known, _)| *known == convention)?;
        convention.result(changed, spec.output, channel, x)
    };
    let judged = |channel, x, y| rescale::check(&spec, files.profile, channel, x, y);
    let open = || {
        let (xs, ys) = pair(files, input_type, output_type)?;
        Ok::<_, RescaleFailure>(Sides::new(xs, ys, input_type, output_type))
    };
    open()?.each(|x, y| {
        let (index, failed) = (check.findings.elements, check.findings.failed);
        check.push(x, y);
        if check.findings.failed > failed {
            let channel = spec.channel_of(index);
            let compare = |convention| match result(convention, channel, x) {
                Some(given) if given == y => ConventionCheck::Same,
                Some(given) if !files.profile.passes(judged(channel, x, given)) => ConventionCheck::OtherwiseWrong,
                _ => ConventionCheck::NoError,
            };
            grouping.push(|| Violation { index, input: x, actual: y, verdict: judged(channel, x, y) }, compare);
        }
        true
    })?;
    let mut whole = grouping.common_conventions();
    if !whole.is_empty() {
        let mut index = 0;
        open()?.each(|x, y| {
            let channel = spec.channel_of(index);
            index += 1;
            whole.retain(|convention| result(*convention, channel, x) == Some(y));
            !whole.is_empty()
        })?;
    }
    Ok(Checked::Elements((CheckedElements::new(check.findings, &grouping, &whole, |_| true), spec)))
}

struct Sides {
    input: Elements,
    output: Elements,
}

impl Sides {
    fn new(xs: Reader, ys: Reader, src: DType, dst: DType) -> Sides {
        Sides { input: Elements::new(xs, src), output: Elements::new(ys, dst) }
    }

    fn each(mut self, mut visit: impl FnMut(u64, u64) -> bool) -> Result<(), RescaleFailure> {
        let stopped = self.input.by_ref().zip(self.output.by_ref()).any(|(x, y)| !visit(x, y));
        if !stopped {
            self.input.ended()?;
            self.output.ended()?;
        }
        Ok(())
    }
}

/// Checks a block-scaled CAST. `scales` is the scale file of the block-scaled side.
///
/// # Errors
/// As [`check_cast`], and the conditions of the CAST on types and shape.
pub fn check_blocks(
    cast: &BlockCast,
    target: &Target,
    files: Compared<'_>,
    scales: &Path,
) -> Result<Checked<BlockCheck>, RescaleFailure> {
    let (src, dst) = match cast.direction {
        Direction::ToBlocks => (cast.plain, cast.element),
        Direction::FromBlocks => (cast.element, cast.plain),
    };
    let (xs, ys) = pair(files, src, dst)?;
    if let Err(requirement) = target.check_rank(xs.shape().len()) {
        return Ok(Checked::Graph(GraphResult::Unpredictable { requirement, index: None }));
    }
    cast.check(xs.shape(), target)?;
    let factors = Reader::open(scales, SCALE)?;
    same_shape(scales, &scale_shape(xs.shape()), factors.shape())?;
    let mut check = BlockCheck::new(*cast, files.profile, files.keep);
    let mut factors = Elements::new(factors, SCALE);
    let (mut xs, mut ys) = (Elements::new(xs, src), Elements::new(ys, dst));
    while let (Some(x), Some(y), Some(scale)) = (xs.block(), ys.block(), factors.next()) {
        match cast.direction {
            Direction::ToBlocks => check.push_blocked(&x, scale as u8, &y),
            Direction::FromBlocks => check.push_plain(scale as u8, &x, &y),
        }
    }
    [xs, ys, factors].into_iter().try_for_each(Elements::ended)?;
    Ok(Checked::Elements(check))
}

fn pair(files: Compared<'_>, src: DType, dst: DType) -> Result<(Reader, Reader), RescaleFailure> {
    let (xs, ys) = (
        Reader::open_column(files.input, src, Column::Input)?,
        Reader::open_column(files.actual, dst, Column::Result)?,
    );
    same_shape(files.actual, xs.shape(), ys.shape())?;
    Ok((xs, ys))
}

fn same_shape(path: &Path, expected: &[u64], found: &[u64]) -> Result<(), RescaleFailure> {
    if expected == found {
        Ok(())
    } else {
        let path = path.display().to_string();
        Err(RescaleFailure::Shape { path, found: found.into(), expected: expected.into() })
    }
}

/// Iterator over the codes of an array, which it reads in parts. A read error ends the iteration; see
/// [`Elements::ended`].
struct Elements {
    reader: Reader,
    dtype: DType,
    part: Vec<u8>,
    len: u64,
    at: u64,
    failed: Option<truecast_io::Error>,
}

const PART: u64 = 1 << 16;

impl Elements {
    /// `dtype` must have the width of the reader's type.
    fn new(reader: Reader, dtype: DType) -> Elements {
        Elements { reader, dtype, part: Vec::new(), len: 0, at: 0, failed: None }
    }

    /// The next block; `None` if too few codes remain.
    fn block(&mut self) -> Option<[u64; BLOCK]> {
        let mut block = [0; BLOCK];
        block.iter_mut().try_for_each(|code| self.next().map(|next| *code = next))?;
        Some(block)
    }

    fn ended(self) -> Result<(), RescaleFailure> {
        self.failed.map_or(Ok(()), |error| Err(error.into()))
    }
}

impl Iterator for Elements {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if self.at == self.len {
            self.part.clear();
            self.at = 0;
            self.len = self.reader.read(PART, &mut self.part).unwrap_or_else(|error| {
                self.failed = Some(error);
                0
            });
            if self.len == 0 {
                return None;
            }
        }
        let part = truecast_kernel::Elements::new(self.dtype, self.len as usize, &self.part[..])
            .expect("the reader fills whole parts");
        let code = part.get(self.at as usize);
        self.at += 1;
        Some(code)
    }
}
