//! TOSA's RESCALE on arrays.

use crate::array::{Given, Orders};
use crate::dtypes::{self, Form};
use crate::error::{self, Class, raise};
use crate::source::{Call, Source};
use crate::target::Target;
use crate::{pool, request};
use pyo3::prelude::*;
use truecast::request::{Request, Standard};
use truecast::rescale::{RescaleFailure, RescaleRequest};
use truecast::spec::tosa::rescale::{Channel, RoundingMode};
use truecast::spec::tosa::{Rescale, Target as Version, signless};
use truecast::{Counting, DType, Elements, ElementsMut, Layout, RescaleError, Rescaler};

#[derive(FromPyObject)]
pub enum Numbers {
    One(i64),
    Many(Vec<i64>),
}

impl Numbers {
    fn list(self) -> Vec<i64> {
        match self {
            Numbers::One(number) => vec![number],
            Numbers::Many(all) => all,
        }
    }
}

fn version(py: Python<'_>, spec: Option<&str>) -> PyResult<Version> {
    let asked = request::parse(py, Some(spec.unwrap_or("tosa")), None)?;
    match asked.standard {
        Standard::Tosa(cast) => Ok(cast.target),
        _ => Err(raise(py, Class::Usage, "RESCALE is an operator of TOSA")),
    }
}

fn failed(py: Python<'_>, failure: &RescaleFailure) -> PyErr {
    let class =
        if matches!(failure, RescaleFailure::Spec(_)) { Class::Spec } else { failure.error_code().kind().into() };
    raise(py, class, failure)
}

/// Rescales an array of integers: (x - input_zp) * multiplier * 2^-shift + output_zp.
#[pyfunction]
#[pyo3(signature = (
    x, to, *, multiplier, shift, input_zp=0, output_zp=0, scale32=false, rounding="single", per_channel=false,
    input_unsigned=false, output_unsigned=false, spec=None, out=None, from_=None
))]
#[allow(clippy::too_many_arguments)]
pub fn rescale<'py>(
    x: &Bound<'py, PyAny>,
    to: &Bound<'py, PyAny>,
    multiplier: Numbers,
    shift: Numbers,
    input_zp: i64,
    output_zp: i64,
    scale32: bool,
    rounding: &str,
    per_channel: bool,
    input_unsigned: bool,
    output_unsigned: bool,
    spec: Option<&str>,
    out: Option<&Bound<'py, PyAny>>,
    from_: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = x.py();
    let given = Given::of(x)?;
    let library = given.library;
    let from = from_.map(dtypes::of_object).transpose()?;
    let source = Source::new(given, from, None)?;
    let to = dtypes::of_object(to)?;
    let mode = RoundingMode::of_name(rounding).ok_or_else(|| {
        raise(py, Class::Usage, format_args!("rounding {rounding:?} is not one of single, double, inexact"))
    })?;
    // Arrays store i48 in 64 bits.
    let input = if source.dtype == DType::I64 { DType::I48 } else { signless(source.dtype) };
    let op = Rescale {
        input,
        output: signless(to),
        scale32,
        rounding: mode,
        per_channel,
        input_unsigned: input_unsigned || signless(source.dtype) != source.dtype,
        output_unsigned: output_unsigned || signless(to) != to,
    };
    let (multipliers, shifts) = (multiplier.list(), shift.list());
    if multipliers.len().max(shifts.len()) > 1 && !per_channel {
        let message =
            "per_channel takes one scale for each index of the last dimension, without it there is only one scale";
        return Err(raise(py, Class::Usage, message));
    }
    let asked = RescaleRequest { op, multipliers, shifts, input_zp, output_zp, target: version(py, spec)? };
    let shape: Vec<u64> = source.shape.extract()?;
    let rank = asked.target.check_rank(shape.len());
    rank.map_err(|requirement| raise(py, Class::Input, format_args!("unpredictable: {requirement}")))?;
    let resolved = asked.resolve(&shape).map_err(|failure| failed(py, &failure))?;
    let [_, result] = op.types();
    let call = Call {
        to: result,
        request: Request::default(),
        out,
        from,
        shape: None,
        form: Form::Values,
        counting: Counting::Off,
        seed: None,
    };
    let target = Target::new(&source, library, &call)?;
    let dense = source.read(Orders::OnlyC)?;
    let rescaler = Rescaler::new(&resolved, &pool::options());
    let stored = if source.dtype == DType::I64 { DType::I64 } else { input };
    let (filled, _) = target.fill(py, &dense, |codes, room, _| {
        let (len, bytes) = (source.len, codes.len());
        let work = || {
            let codes = Elements::with_layout(stored, Layout::Bytes, len, codes)?;
            rescaler.rescale(codes, ElementsMut::with_layout(op.output, Layout::Bytes, len, room)?)
        };
        pool::run(py, bytes, work).map_err(|failure| match failure {
            RescaleError::Buffer(error) => error::to_py_err(py, &error.into()),
            other => raise(py, Class::Input, other),
        })
    })?;
    if out.is_some() { Ok(filled.array) } else { crate::array::hand_back(filled, library) }
}

/// Multiplier and shift for a scale.
#[pyfunction]
#[pyo3(signature = (scale, scale32=true))]
pub fn rescale_factors(py: Python<'_>, scale: f64, scale32: bool) -> PyResult<(i32, i8)> {
    let channel = Channel::of_scale(scale, scale32).map_err(|error| raise(py, Class::Usage, error))?;
    Ok((channel.multiplier, channel.shift))
}
