//! Is what another implementation of TOSA gave permitted? Files are paired here; [`truecast_core::spec::tosa::check`] judges.

use crate::rescale::{Failure, Request};
use std::path::Path;
use truecast_core::spec::tosa::check::Profile;
use truecast_core::spec::tosa::check::tensor::{CastCheck, Findings, RescaleCheck};
use truecast_core::spec::tosa::rescale::GraphResult;
use truecast_core::spec::tosa::signless;
use truecast_core::{CastSpec, DType};
use truecast_io::tosa::array::{self, Array};

/// Judges the elements of `actual` as results of a CAST of those of `input`; keeps at most `keep` failures.
///
/// # Errors
/// [`Failure`] if the files are not arrays of these types and of one shape. What is not permitted is no error.
pub fn check_cast(
    spec: &CastSpec,
    profile: Profile,
    input: &Path,
    actual: &Path,
    keep: usize,
) -> Result<Findings, Failure> {
    let (xs, ys) = pair((input, signless(spec.src)), (actual, spec.dst))?;
    let mut check = CastCheck::new(*spec, profile, keep);
    codes(&xs, spec.src).zip(codes(&ys, spec.dst)).for_each(|(x, y)| check.push(x, y));
    Ok(check.findings)
}

/// What a RESCALE's output was judged to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Each element was judged.
    Elements(Findings),
    /// The result is unpredictable or must be an error; only [`GraphResult::Error`] makes any output wrong.
    Graph(GraphResult),
}

/// Judges the elements of `actual` as results of a RESCALE of those of `input`.
///
/// # Errors
/// As [`check_cast`].
pub fn check_rescale(
    request: &Request,
    profile: Profile,
    input: &Path,
    actual: &Path,
    keep: usize,
) -> Result<Judgement, Failure> {
    let (input_type, output_type) = (request.op.input, request.op.output);
    let (xs, ys) = pair((input, input_type), (actual, output_type))?;
    let result = request.with_operands(|operands| {
        request.op.graph_result(&xs.shape, operands, &request.target, codes(&xs, input_type))
    })?;
    if result != GraphResult::Valid {
        return Ok(Judgement::Graph(result));
    }
    let mut check = RescaleCheck::new(request.resolve(&xs.shape)?, profile, keep);
    codes(&xs, input_type).zip(codes(&ys, output_type)).for_each(|(x, y)| check.push(x, y));
    Ok(Judgement::Elements(check.findings))
}

fn pair((input, src): (&Path, DType), (actual, dst): (&Path, DType)) -> Result<(Array, Array), Failure> {
    let (xs, ys) = (array::read(input, src)?, array::read(actual, dst)?);
    match xs.shape == ys.shape {
        true => Ok((xs, ys)),
        false => Err(Failure::Shape { path: actual.display().to_string(), found: ys.shape, expected: xs.shape }),
    }
}

/// The codes of an array of whole bytes.
fn codes(array: &Array, dtype: DType) -> impl Iterator<Item = u64> {
    let bytes = dtype.storage_bits().expect("TOSA has no text") as usize / 8;
    array.codes.chunks_exact(bytes.max(1)).map(move |element| {
        let mut wide = [0; 8];
        wide[..element.len()].copy_from_slice(element);
        dtype.code_of_storage(u64::from_le_bytes(wide))
    })
}
