//! Files with plain values: arrays, models, and safetensors files without quantization.

use crate::files::convert::action::Action;
use crate::files::convert::container::Container;
use crate::files::convert::job::TensorJob;
use crate::files::convert::options::Options;
use crate::files::convert::plan::{Plan, ShardPlan};
use crate::files::convert::planned::Planned;
use crate::files::convert::stored::Stored;
use crate::files::error::{Cause, Error};
use crate::files::model::{changes, eligibilities, raise_warning};
use crate::files::parts::Parts;
use crate::files::paths;
use crate::files::report::Provenance;
use crate::files::select::Eligibility;
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use truecast_core::{DType, Layout};
use truecast_io::folder::Folder;
use truecast_io::{Escaped, FileFormat, Source};
use truecast_kernel::text::{CellCaster, TextError};

impl Plan {
    pub(crate) fn by_value(source: Source, dst: &Path, options: &Options) -> Result<Plan, Error> {
        let (format, src) = (paths::file_format(dst)?, source.path().to_path_buf());
        let eligibilities: Vec<Eligibility> = match source.model() {
            Some(file) => eligibilities(file, options.min_elements),
            None => source.tensors().iter().map(|tensor| Eligibility::in_container(source.format(), tensor)).collect(),
        };
        let choices = options.selection.for_tensors(source.tensors()).choose(
            source.format(),
            source.tensors(),
            &eligibilities,
            &src,
        )?;
        let mut works = Vec::with_capacity(choices.len());
        for (at, (tensor, choice)) in source.tensors().iter().zip(choices).enumerate() {
            let at = Stored { shard: 0, tensor: at };
            works.push(TensorJob::of_plain(at, tensor, choice, format, &src, &options.request)?);
        }
        let planned: Vec<&Planned> = works.iter().map(|work| &work.planned).collect();
        let (mut container, mut warnings) = (Container::File(format), Vec::new());
        if source.format() == FileFormat::Safetensors {
            warnings.extend(codes_by_value(&src, &planned));
        }
        if let (FileFormat::Onnx, Some(file)) = (format, source.model()) {
            let changes = changes(&src, file, &planned)?;
            warnings.extend(changes.opset.and_then(|to| raise_warning(&src, file.model(), to)));
            container = Container::Model(file.clone(), changes);
        }
        let (name, metadata) = (String::new(), source.metadata().clone());
        let mut plan = Plan {
            dst: dst.into(),
            folder: Folder::of_source(source),
            container,
            provenance: Provenance::of(options),
            shards: vec![ShardPlan { name, works, metadata }],
            warnings,
            stored_as: HashMap::new(),
            options: options.clone(),
            configuration: Default::default(),
            components: Default::default(),
            shares: Default::default(),
            sharing: Default::default(),
            relaid: Default::default(),
            dropped: Default::default(),
        };
        if let Some(new) = plan.new_model(dst)? {
            let renamed = plan.shards[0].works.iter_mut().zip(new.tensors());
            renamed.for_each(|(work, new)| work.planned.target.name = new.name.clone());
        }
        Ok(plan)
    }

    /// Sets the width of text cells to the longest text. The header with the width precedes the data, so all texts are
    /// printed twice.
    pub(crate) fn widen_texts(&mut self, stop: &AtomicBool) -> Result<(), Error> {
        let (most, exec, folder) = (self.options.max_memory / 16, self.options.exec, &self.folder);
        for work in self.shards.iter_mut().flat_map(|shard| &mut shard.works) {
            let planned = &mut work.planned;
            let (DType::String, true, Some(at)) = (planned.target.dtype, planned.cast.is_some(), work.job.stored())
            else {
                continue;
            };
            let failed = |cause: Cause| Error::tensor(folder.path(), &planned.name, cause);
            let action = Action::new(planned, None, &exec).map_err(|cause| failed(cause.into()))?;
            if let Action::Text(caster) = &action {
                let parts = Parts::new(at.source(folder), at.tensor, planned.from)?.at_most(most);
                let width = longest(parts, caster, stop)?.map_err(|cause| failed(cause.into()))?;
                planned.target.layout = Layout::Utf32 { width };
            }
        }
        Ok(())
    }
}

fn codes_by_value(path: &Path, planned: &[&Planned]) -> Option<String> {
    let found = planned.iter().find(|tensor| truecast_schemes::is_auxiliary(&tensor.name))?;
    let (path, name) = (path.display(), Escaped(&found.name));
    Some(format!(
        "{path}: tensor {name} belongs to quantized weights: codes are converted by value, without their scales"
    ))
}

/// Length of the longest text in characters; at least 1.
fn longest(mut parts: Parts, caster: &CellCaster, stop: &AtomicBool) -> Result<Result<u32, TextError>, Error> {
    let (mut first, mut width) = (0, 1);
    while let Some(codes) = parts.next()? {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        match caster.longest(codes) {
            Ok(longest) => width = width.max(longest as u32),
            Err(error) => return Ok(Err(error.after(first))),
        }
        first += codes.len() as u64;
    }
    Ok(Ok(width))
}
