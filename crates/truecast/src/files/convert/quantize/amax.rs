//! Largest magnitudes of whole tensors. A pass before the conversion finds them for scales that the first piece already
//! uses.

use crate::files::convert::operations::Operations;
use crate::files::convert::plan::{Plan, ShardPlan};
use crate::files::convert::quantize::quantizer::TensorQuantizer;
use crate::files::convert::quantize::scaled::Scaled;
use crate::files::convert::stored::Stored;
use crate::files::error::{Cause, Error};
use crate::files::stream::{Chunk, Item, Limits, stream_chunks};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

#[derive(Debug, Default)]
pub(crate) struct Amax(HashMap<Stored, Vec<f32>>);

impl Amax {
    /// Finds the magnitudes for a shard, including other tensors with the same global scale.
    ///
    /// # Errors
    /// An unreadable file; a value that is not finite, where that is an error; [`Error::Interrupted`].
    pub fn find(
        &mut self,
        plan: &Plan,
        shard: &ShardPlan,
        operations: &Operations,
        limits: &Limits<'_>,
        told: &mut (dyn FnMut(&str) + Send),
    ) -> Result<(), Error> {
        let mut wanted: Vec<&Scaled> = Vec::new();
        for work in &shard.works {
            let Some(scaled) = work.job.scaled() else { continue };
            if scaled.needs_amax {
                wanted.push(scaled);
                let with = plan.shared(scaled);
                wanted.extend(with.iter().filter_map(|at| plan.scaled(*at)));
            }
        }
        let mut seen = HashSet::new();
        wanted.retain(|scaled| !self.0.contains_key(&scaled.from) && seen.insert(scaled.from));
        let name = |scaled: &Scaled| (scaled.from.source(&plan.folder).path(), &*scaled.from.header(&plan.folder).name);
        let in_tensor = |scaled: &Scaled, cause: Cause| {
            let (path, tensor) = name(scaled);
            Error::tensor(path, tensor, cause)
        };
        let quantizers =
            wanted.iter().map(|scaled| operations.quantize(scaled).map_err(|cause| in_tensor(scaled, cause)));
        let quantizers: Vec<Arc<TensorQuantizer>> = quantizers.collect::<Result<_, _>>()?;
        // Pieces are equal to the pieces of the conversion, because transposed rows are read whole.
        let item = |(at, scaled): (usize, &&Scaled)| Item { dst_bits: 0, ..scaled.item(at) };
        let items: Vec<Item> = wanted.iter().enumerate().map(item).collect();
        let mut found: Vec<Vec<f32>> = wanted.iter().map(|scaled| vec![0.0; scaled.layout.matrices as usize]).collect();
        let work = |Chunk { item, first, len, .. }: Chunk, src: &[u8], values: &mut Vec<u8>| {
            let quantizer = &quantizers[item];
            let seen = quantizer.elements(first, len, src, values).and_then(|src| Ok(quantizer.amax(first, src)?));
            Ok::<_, Error>((seen.map_err(|cause| in_tensor(wanted[item], cause))?, 0))
        };
        let done = |chunk: Chunk, seen: Vec<(usize, f32)>, _: u64| {
            for (matrix, amax) in seen {
                found[chunk.item][matrix] = found[chunk.item][matrix].max(amax);
            }
            told(name(wanted[chunk.item]).1);
        };
        let read = |Chunk { item, first, len, .. }: Chunk, buffer: &mut Vec<u8>| {
            quantizers[item].read(&plan.folder, wanted[item], first, len, buffer)
        };
        stream_chunks(read, |_, _| Ok(()), &items, limits, work, done)?;
        self.0.extend(wanted.iter().map(|scaled| scaled.from).zip(found));
        Ok(())
    }

    /// Magnitudes for a tensor: the largest among the tensors with the same global scale.
    pub fn magnitudes(&self, plan: &Plan, scaled: &Scaled) -> Vec<f32> {
        let mut amax = self.0.get(&scaled.from).cloned().unwrap_or_default();
        for other in plan.shared(scaled) {
            let others = self.0.get(other).into_iter().flatten();
            amax.iter_mut().zip(others).for_each(|(amax, other)| *amax = amax.max(*other));
        }
        amax
    }
}
