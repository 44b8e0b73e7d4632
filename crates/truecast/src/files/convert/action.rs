//! Operations on the elements of a plain tensor.

use crate::files::convert::planned::Planned;
use crate::files::error::Cause;
use truecast_core::{CastSpec, DType};
use truecast_kernel::measure::{Measure, Sample};
use truecast_kernel::text::{CellCaster, is_text};
use truecast_kernel::{CastError, CastOptions, Caster, Counts, Elements, ElementsMut, PlanError, StochasticCaster};

#[derive(Debug)]
pub(crate) enum NumberCaster {
    Ordinary(Box<Caster>),
    Stochastic(Box<StochasticCaster>),
}

impl NumberCaster {
    pub fn new(cast: &CastSpec, seed: Option<u64>, exec: &CastOptions) -> Result<NumberCaster, PlanError> {
        Ok(match seed {
            None => NumberCaster::Ordinary(Box::new(Caster::new(cast, exec)?)),
            Some(seed) => NumberCaster::Stochastic(Box::new(StochasticCaster::new(cast, seed, exec)?)),
        })
    }

    /// Casts the elements from index `first` on. Returns partial counts in element order. An error has the element's
    /// index in the tensor.
    pub fn cast_parts(
        &self,
        first: u64,
        src: Elements<'_>,
        dst: ElementsMut<'_>,
        sample: Sample,
    ) -> Result<Vec<Counts>, CastError> {
        let counts = match self {
            NumberCaster::Ordinary(caster) => caster.cast_some_measured(src, dst, first, sample),
            NumberCaster::Stochastic(caster) => caster.cast_parts(src, dst, first),
        };
        counts.map_err(|error| error.after(first as usize))
    }
}

pub(crate) enum Action {
    Cast(NumberCaster),
    Text(Box<CellCaster>),
    /// Copies bytes. With a `Measure`, the copied numbers are counted.
    Copy(Option<Box<Measure>>),
}

impl Action {
    pub fn new(tensor: &Planned, seed: Option<u64>, exec: &CastOptions) -> Result<Self, PlanError> {
        Ok(match &tensor.cast {
            Some(cast) if is_text(cast) => Action::Text(Box::new(CellCaster::new(cast, exec)?)),
            Some(cast) if cast.dst != DType::String => Action::Cast(NumberCaster::new(cast, seed, exec)?),
            _ => {
                let between = || Box::new(Measure::between(tensor.from, tensor.from, exec));
                Action::Copy(tensor.from.is_numeric().then(between))
            }
        })
    }

    /// Casts or copies a piece. Returns partial counts in element order.
    pub fn run(
        &self,
        tensor: &Planned,
        first: u64,
        len: usize,
        src: &[u8],
        dst: &mut [u8],
        sample: Sample,
    ) -> Result<Vec<Counts>, Cause> {
        let Planned { target, from, src_layout, .. } = tensor;
        let codes = Elements::with_layout(*from, *src_layout, len, src)?;
        let room = |dst| ElementsMut::with_layout(target.dtype, target.layout, len, dst);
        match self {
            Action::Cast(caster) => Ok(caster.cast_parts(first, codes, room(dst)?, sample)?),
            Action::Text(caster) => {
                let block = tensor.item(0).unit as usize;
                Ok(caster.cast_parts(codes, room(dst)?, block).map_err(|error| error.after(first))?)
            }
            Action::Copy(measure) => {
                dst.copy_from_slice(src);
                // Unmeasured copies count as pairs of finite numbers. Otherwise the report would show an incomplete
                // measurement.
                let copied = || vec![Counts { finite_pairs: len as u64, ..Counts::copied(len as u64) }];
                Ok(measure.as_ref().map_or_else(copied, |measure| measure.compare_some(codes, codes, first, sample)))
            }
        }
    }
}
