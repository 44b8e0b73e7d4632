//! Header of a planned GGUF file, and its comparison with the header of another file.

use crate::files::convert::container::gguf::{self, recorded_options};
use crate::files::convert::container::{Container, OPTIONS_KEY};
use crate::files::convert::job::{TensorJob, elements_in};
use crate::files::convert::llamacpp::StoredAs;
use crate::files::convert::plan::Plan;
use crate::files::error::Error;
use crate::files::report::TensorReport;
use crate::files::verify::difference::FileDifference;
use std::collections::HashMap;
use std::sync::Arc;
use truecast_core::scaled::{Coding, Layout};
use truecast_io::gguf::{Block, Keys, NewFile, NewTensor, differing_keys};
use truecast_io::{Escaped, Source, Tensor};
use truecast_kernel::Counts;

impl Plan {
    pub(crate) fn gguf(&self) -> Option<NewFile> {
        let Container::Gguf(keys) = &self.container else { return None };
        let keys = keys.clone();
        let tensors = self.works().flat_map(|work| work.targets().map(|target| self.block_tensor(work, target)));
        Some(NewFile { keys, tensors: tensors.collect() })
    }

    pub(crate) fn row(&self, work: &TensorJob, counts: Counts) -> TensorReport {
        let mut row = work.report(counts);
        if let Some(StoredAs { dtype, scheme, bytes }) = self.stored_as.get(&row.name) {
            row.converted |= scheme.is_some() || *dtype != row.from;
            (row.from, row.scheme, row.bytes_in) = (*dtype, scheme.clone(), *bytes);
        }
        let Some(block) = work.kept_block(&self.folder) else { return row };
        let scaled = block.scaled().map(|block| Coding::Blocks { block, factor: false });
        let code = scaled.map_or(row.from, |coding| Layout::new(1, [1, block.elements()], coding).code_type());
        let scheme = Some(format!("gguf:{block}").into());
        let elements = elements_in(Some(block), row.elements);
        // Blocks are not decoded; equal bytes count as equal values.
        let equal = Counts { finite_pairs: elements, ..Counts::copied(elements) };
        let counts = if counts.elements == 0 { counts } else { equal }.into();
        let shape = self.block_tensor(work, &work.planned.target).shape;
        TensorReport { shape, from: code, to: code, scheme: scheme.clone(), to_scheme: scheme, elements, counts, ..row }
    }

    fn block_tensor(&self, work: &TensorJob, target: &Tensor) -> NewTensor {
        let block = work.job.block(&self.folder, &work.planned);
        let block = block.or(Block::of_dtype(target.dtype)).expect("every type was asked for its form");
        let mut shape = target.shape.clone();
        if let Some(columns) = Arc::make_mut(&mut shape).last_mut() {
            *columns = *columns / if block.dtype().is_some() { 1 } else { block.bytes() } * block.elements();
        }
        NewTensor { name: target.name.clone(), block, shape }
    }

    /// Differences in keys and block types between a file and the plan.
    ///
    /// # Errors
    /// An unreadable file.
    pub(crate) fn gguf_differences(&self, found: &Source) -> Result<Vec<FileDifference>, Error> {
        let Some(mut new) = self.gguf() else { return Ok(Vec::new()) };
        let mut keys = Keys::of(found)?;
        gguf::forget_places(&mut new.keys, &keys);
        // Options are a record and not a result, and another writer records none or keeps those of its source.
        if recorded_options(&keys) == Ok(None) {
            new.keys.remove(OPTIONS_KEY);
            keys.remove(OPTIONS_KEY);
        }
        let metadata = |key| FileDifference::Metadata { key };
        let mut all: Vec<_> = differing_keys(&new.keys, &keys).into_iter().map(metadata).collect();
        let expected: HashMap<&str, Block> = new.tensors.iter().map(|tensor| (&*tensor.name, tensor.block)).collect();
        for (tensor, actual) in found.tensors().iter().zip(found.blocks()) {
            if let Some(block) = expected.get(&*tensor.name).filter(|block| *block != actual) {
                let why = format!("has tensor {} in blocks of {actual}, not {block}", Escaped(&tensor.name));
                all.push(FileDifference::file(found.path(), why));
            }
        }
        Ok(all)
    }
}
