//! Cached operations of a conversion. Similar tensors share an operation.

use crate::files::convert::action::Action;
use crate::files::convert::dequantize::dequantizer::{Quantized, TensorDequantizer};
use crate::files::convert::options::Measuring;
use crate::files::convert::planned::Planned;
use crate::files::convert::quantize::quantizer::TensorQuantizer;
use crate::files::convert::quantize::scaled::Scaled;
use crate::files::convert::stored::Stored;
use crate::files::error::Cause;
use foldhash::{HashMap, HashMapExt};
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use truecast_core::scaled::{Layout, Repacking};
use truecast_core::{CastSpec, DType};
use truecast_kernel::CastOptions;
use truecast_kernel::scaled::Repacker;

/// Largest number of plans per cache; a plan takes some kilobytes.
const KEPT: usize = 256;

/// Output type, output layout, layout of a quantized source; with an importance, the tensor.
type OfQuantizer = (DType, Layout, Option<Layout>, Option<Stored>);

struct Kept<K, P>(Mutex<HashMap<K, P>>);

impl<K: Eq + Hash, P: Clone> Kept<K, P> {
    fn new() -> Kept<K, P> {
        Kept(Mutex::new(HashMap::new()))
    }

    fn get(&self, key: K, plan: impl FnOnce() -> Result<P, Cause>) -> Result<P, Cause> {
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
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

pub(crate) struct Operations {
    seed: Option<u64>,
    pub measure: Measuring,
    pub magnitudes: bool,
    exec: CastOptions,
    casts: Kept<(DType, Option<CastSpec>), Arc<Action>>,
    dequantize: Kept<(Layout, Option<CastSpec>), Arc<TensorDequantizer>>,
    quantize: Kept<OfQuantizer, Arc<TensorQuantizer>>,
    repack: Kept<Repacking, Arc<Repacker>>,
}

impl Operations {
    pub fn new(seed: Option<u64>, measure: Measuring, magnitudes: bool, exec: CastOptions) -> Operations {
        Operations {
            seed,
            measure,
            magnitudes,
            exec,
            casts: Kept::new(),
            dequantize: Kept::new(),
            quantize: Kept::new(),
            repack: Kept::new(),
        }
    }

    pub fn cast(&self, planned: &Planned) -> Result<Arc<Action>, Cause> {
        self.casts.get((planned.from, planned.cast), || Ok(Arc::new(Action::new(planned, self.seed, &self.exec)?)))
    }

    pub fn dequantize(&self, quantized: &Quantized, planned: &Planned) -> Result<Arc<TensorDequantizer>, Cause> {
        let key = (quantized.layout, planned.cast);
        self.dequantize.get(key, || {
            let cast = planned.cast.as_ref().map(|cast| (cast, self.seed));
            Ok(Arc::new(TensorDequantizer::new(quantized, cast, &self.exec)?))
        })
    }

    pub fn quantize(&self, scaled: &Scaled) -> Result<Arc<TensorQuantizer>, Cause> {
        let source = scaled.source.as_ref().map(|quantized| quantized.layout);
        let key = (scaled.dtype, scaled.layout, source, scaled.importance.as_ref().map(|_| scaled.from));
        self.quantize.get(key, || Ok(Arc::new(TensorQuantizer::new(scaled, &self.exec)?)))
    }

    pub fn repack(&self, how: &Repacking) -> Result<Arc<Repacker>, Cause> {
        self.repack.get(*how, || Ok(Arc::new(Repacker::new(how, &self.exec)?)))
    }
}
