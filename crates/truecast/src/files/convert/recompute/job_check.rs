//! Inputs for the verification of a job.

use crate::files::convert::recompute::codes::Roundings;
use crate::files::convert::recompute::source::Amaxes;
use crate::files::verify::elements::Prepared;
use crate::files::verify::written::Written;
use std::ops::ControlFlow;

pub(crate) struct CheckCaches {
    pub prepared: Prepared,
    pub roundings: Roundings,
    pub amaxes: Amaxes,
}

pub(crate) struct JobCheck<'a> {
    pub written: Written<'a>,
    pub caches: &'a mut CheckCaches,
    pub progress: &'a mut (dyn FnMut(u64) -> ControlFlow<()> + Send),
}
