//! The operations that convert tensors. Tensors that are treated alike share one. Of unlike ones only some are kept, so that
//! memory does not grow with their number.

use super::dense::Maker;
use super::encode::Plans;
use super::gatherer::{self, Gatherer};
use super::plain::PlainCast;
use super::scaled::Scaled;
use super::shard::{Origin, Work};
use crate::convert::action::Action;
use crate::error::Cause;
use crate::request::Request;
use foldhash::{HashMap, HashMapExt};
use std::sync::{Arc, Mutex, PoisonError};
use truecast_core::scaled::{Code, Layout, Repacking};
use truecast_core::{CastSpec, DType};
use truecast_kernel::scaled::Repacker;
use truecast_kernel::{CastOptions, Caster};

/// How a work is done.
#[derive(Clone)]
pub(super) enum Operation {
    Cast(Arc<Action>),
    Dequantise(Arc<Maker>),
    Quantise(Arc<Plans>),
    Repack(Arc<Repacker>),
    Gather(Arc<Gatherer>),
}

/// What tensors have in common that are treated alike.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    Cast(DType, Option<CastSpec>),
    Dequantise(Layout, Option<CastSpec>),
    /// The type and the layout that is written, and that of a quantised source.
    Quantise(DType, Layout, Option<Layout>),
    Repack(Repacking),
    Gather(gatherer::Alike),
}

/// Plans take some kilobytes each.
const KEPT: usize = 256;

/// Casts by their types; `None` where there is none.
type Casts = HashMap<(DType, DType), Option<Arc<PlainCast>>>;

/// The operations of a conversion, planned when they are first asked for.
pub(super) struct Operations<'a> {
    request: &'a Request,
    exec: CastOptions,
    known: Mutex<HashMap<Key, Operation>>,
    /// Plain casts, of which there are few.
    casts: Mutex<Casts>,
}

impl<'a> Operations<'a> {
    pub fn new(request: &'a Request, exec: CastOptions) -> Operations<'a> {
        Operations { request, exec, known: Mutex::new(HashMap::new()), casts: Mutex::new(HashMap::new()) }
    }

    /// How a work is done.
    ///
    /// # Errors
    /// A layout or a conversion that is not understood.
    pub fn of(&self, work: &Work) -> Result<Operation, Cause> {
        let planned = &work.planned;
        match &work.origin {
            Origin::Stored(_) | Origin::Bytes(_) => self.get(Key::Cast(planned.from, planned.cast), || {
                Ok(Operation::Cast(Arc::new(Action::new(planned, &self.exec)?)))
            }),
            Origin::Quantised(quantised) => self.get(Key::Dequantise(quantised.layout, planned.cast), || {
                Ok(Operation::Dequantise(Arc::new(Maker::new(quantised, planned, &self.exec)?)))
            }),
            Origin::Dense(scaled) => self.of_scaled(scaled).map(Operation::Quantise),
            Origin::Repacked(repacked) => self.get(Key::Repack(repacked.how), || {
                Ok(Operation::Repack(Arc::new(Repacker::new(&repacked.how, &self.exec)?)))
            }),
            Origin::Gathered(gathered) => self.get(Key::Gather(gathered.alike), || {
                Ok(Operation::Gather(Arc::new(Gatherer::new(&gathered.alike, &self.exec)?)))
            }),
        }
    }

    /// What quantises a tensor.
    ///
    /// # Errors
    /// A layout that is only read.
    pub fn of_scaled(&self, scaled: &Scaled) -> Result<Arc<Plans>, Cause> {
        let source = scaled.source.as_ref().map(|quantised| quantised.layout);
        let made = self.get(Key::Quantise(scaled.dtype, scaled.layout, source), || {
            let to = scaled.layout.planes().map(|planes| planes.codes.code);
            let cast = if let Some(Code::Float(to)) = to { self.cast(scaled.dtype, to) } else { None };
            Ok(Operation::Quantise(Arc::new(Plans::new(scaled, cast, &self.exec)?)))
        })?;
        let Operation::Quantise(plans) = made else { unreachable!("it was asked for what quantises") };
        Ok(plans)
    }

    /// A plain cast, if there is one.
    fn cast(&self, from: DType, to: DType) -> Option<Arc<PlainCast>> {
        let mut casts = self.casts.lock().unwrap_or_else(PoisonError::into_inner);
        let plan = || {
            let caster = Caster::new(&self.request.resolve(from, to).ok()?, &self.exec).ok()?;
            Some(Arc::new(PlainCast::new(caster, self.exec)))
        };
        casts.entry((from, to)).or_insert_with(plan).clone()
    }

    fn get(&self, key: Key, plan: impl FnOnce() -> Result<Operation, Cause>) -> Result<Operation, Cause> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(operation) = known().get(&key) {
            return Ok(operation.clone());
        }
        let operation = plan()?;
        let mut known = known();
        if known.len() >= KEPT {
            known.clear();
        }
        known.insert(key, operation.clone());
        Ok(operation)
    }
}
