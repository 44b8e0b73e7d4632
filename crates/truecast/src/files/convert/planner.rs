//! Plans of checkpoints. `container::by_value` plans files of plain values.

use crate::files::convert::consistency::global_scales;
use crate::files::convert::container::config::{Configuration, type_of_model};
use crate::files::convert::container::gguf;
use crate::files::convert::container::{Container, OPTIONS_KEY};
use crate::files::convert::dequantize::reference::{Reference, contents};
use crate::files::convert::dequantize::values::original_shapes;
use crate::files::convert::error::CheckpointError;
use crate::files::convert::found::{Contents, quantized};
use crate::files::convert::job::TensorJob;
use crate::files::convert::llamacpp::{self, StoredAs, is_always_f32};
use crate::files::convert::options::Options;
use crate::files::convert::plan::{Plan, ShardPlan};
use crate::files::convert::planned::Planned;
use crate::files::convert::quantize::activations::Activations;
use crate::files::convert::quantize::choice::{Decision, Quantizing};
use crate::files::convert::quantize::importance::Importance;
use crate::files::convert::relayout::{self, Relaid, relaid};
use crate::files::convert::stored::Stored;
use crate::files::error::Error;
use crate::files::report::Provenance;
use crate::files::select::quantize_options::Relayout;
use crate::files::select::{Choice, Detected, Eligibility, QuantizeOptions, Selection};
use crate::flag::Flag;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use truecast_core::scaled::{Packing, Part};
use truecast_core::{DType, Layout};
use truecast_io::folder::{Folder, Shard};
use truecast_io::gguf::SPLIT;
use truecast_io::{FileFormat, Tensor};
use truecast_schemes::{Detection, Family, Group, Hyperparameters, Mixture, Model, Nibbles, Outcome, Role, Scheme};

impl Plan {
    pub(crate) fn of_checkpoint(folder: Folder, dst: &Path, options: &Options) -> Result<Plan, Error> {
        let reference = Reference::of(options)?;
        let found = contents(&folder, options, reference.as_ref())?;
        let (folder, found) = match gguf::container(dst) {
            FileFormat::Gguf if !holds_gguf(&folder) => llamacpp::renamed(folder, found, options)?,
            _ => (folder, found),
        };
        Plan::from_contents(folder, found, options, reference, dst)
    }

    /// Plans each tensor of an opened checkpoint.
    pub(crate) fn from_contents(
        folder: Folder,
        contents: Contents,
        options: &Options,
        reference: Option<Reference>,
        dst: &Path,
    ) -> Result<Plan, Error> {
        let into = gguf::container(dst);
        let Contents { stored, documents, found, llamacpp } = contents;
        let src = folder.path();
        // A GGUF file keeps the keys with original shapes.
        let original = if into == FileFormat::Gguf { HashMap::new() } else { original_shapes(&folder)? };
        let (listed, mut dropped) = listed(&folder, &stored, &found, &original);
        let (tensors, groups): (Vec<Tensor>, Vec<_>) =
            listed.into_iter().map(|Listed { at, group, tensor }| (tensor, (at, group))).unzip();
        let mut selection = options.selection.for_tensors(&tensors);
        if let Some(header) = &llamacpp {
            selection = selection.for_sources(&tensors, &header.sources, src)?;
        }
        let selection = &selection;
        let writing = options.quantize.as_ref().filter(|writing| !writing.scheme.is_plain());
        writing.map_or(Ok(()), |writing| gguf::check_scheme(src, writing.scheme, into))?;
        if llamacpp.is_some() && writing.is_some_and(|writing| writing.relayout.is_some()) {
            let why = "with other names, the result has another order of elements, and new codes".to_string();
            return Err(Error::checkpoint(src, CheckpointError::NoEffect { option: Flag::Relayout, why }));
        }
        if writing.is_some() && is_adapter(&folder) {
            return Err(Error::checkpoint(src, CheckpointError::Adapter));
        }
        if writing.is_some() && selection.keeps_unquantized() {
            let why = "a scheme quantizes tensors that are not";
            return Err(Error::UnusedPreset { path: src.display().to_string(), why });
        }
        let unquantized =
            Selection { keep: writing.map_or(selection.keep.clone(), |_| Vec::new()), ..selection.clone() };
        let is_for_llamacpp = into == FileFormat::Gguf && Mixture::applies_to(&tensors);
        let is_fixed = |tensor: &Tensor| is_for_llamacpp && is_always_f32(&tensor.name, &tensor.shape);
        let stored_as = llamacpp.as_ref().map(|header| &header.stored_as);
        let eligible = |(tensor, (_, group)): (&Tensor, &(Stored, Option<&Group>))| {
            if group.is_none() && is_fixed(tensor) {
                Eligibility::ByRule
            } else if scheme_of(tensor, *group, stored_as).is_some() {
                Eligibility::Dequantized
            } else {
                Eligibility::in_container(FileFormat::Safetensors, tensor)
            }
        };
        let eligibilities: Vec<_> = tensors.iter().zip(&groups).map(eligible).collect();
        let mut choices = unquantized.choose(FileFormat::Safetensors, &tensors, &eligibilities, src)?;
        if let Some(header) = llamacpp.as_ref().filter(|_| unquantized.to.is_none()) {
            for (tensor, choice) in
                tensors.iter().zip(&mut choices).filter(|(of, _)| unquantized.rule(&of.name).is_none())
            {
                choice.to = choice.to.or(header.types.get(&tensor.name).copied());
            }
        }
        let model = Model::new(&tensors, documents.config.as_ref());
        let quantizing = writing.filter(|writing| writing.relayout.is_none());
        let keeps_names = options.source_scheme.keep_names;
        let mixture = quantizing
            .map(|writing| gguf::mixture(&folder, writing.scheme, &tensors, keeps_names))
            .transpose()?
            .flatten();
        let given = match &llamacpp {
            Some(header) => Some(header.keys.clone()),
            None if into == FileFormat::Gguf => gguf::stored_keys(&folder)?,
            None => None,
        };
        let matrix = writing.and_then(|writing| writing.imatrix.as_deref());
        if let (Some(_), Some(QuantizeOptions { scheme, relayout, .. })) = (matrix, writing)
            && (into != FileFormat::Gguf || relayout.is_some())
        {
            let (option, why) = (Flag::Imatrix, format!("{scheme} weighs no columns"));
            return Err(Error::checkpoint(src, CheckpointError::NoEffect { option, why }));
        }
        let importance = matrix.map(Importance::read).transpose()?;
        let about = Hyperparameters {
            is_weighted: importance.is_some(),
            ..given.as_ref().map_or_else(Hyperparameters::default, Hyperparameters::of)
        };
        let forms = mixture.map(|mixture| gguf::forms(src, mixture, &about, &tensors)).transpose()?;
        let mut planner = Planner {
            folder: &folder,
            stored: &stored,
            options,
            into,
            carried: writing.and_then(|writing| Some((writing.scheme, writing.relayout?))),
            unquantized: &unquantized,
            stored_as,
            activations: Activations::new(&folder, &stored, &found, writing)?,
            quantizing: quantizing
                .map(|writing| Quantizing::new(writing, selection, &model, forms, importance.as_ref())),
            names: HashSet::new(),
            shards: empty_shards(&folder, &found, into),
            relaid: Vec::new(),
            dense: Vec::new(),
            carried_modules: Vec::new(),
        };
        for ((tensor, (at, group)), choice) in tensors.iter().zip(groups).zip(choices) {
            planner.settle(tensor, at, group, choice)?;
        }
        let Planner { activations, quantizing, shards, relaid, dense, carried_modules, carried, .. } = planner;
        let settled = quantizing.map(|quantizing| quantizing.finish(src)).transpose()?;
        let Decision { kept, modules, shares, warnings: of_quantized } = settled.unwrap_or_default();
        let (kept, modules) = ([kept, dense].concat(), [modules, carried_modules].concat());
        let in_memory = if writing.is_some() { model.modules_in_memory(&modules) } else { Vec::new() };
        activations.check(src, writing.map_or(Scheme::PLAIN, |writing| writing.scheme))?;
        dropped.extend(llamacpp.iter().flat_map(|header| header.dropped.clone()));
        dropped.retain(|(name, _)| !activations.carries(name));
        if carried.is_some() && relaid.is_empty() {
            let (option, why) = (Flag::Relayout, "no tensor is quantized, or rules dequantize all of them".to_string());
            return Err(Error::checkpoint(src, CheckpointError::NoEffect { option, why }));
        }
        let scheme = carried.map_or(writing.map_or(Scheme::PLAIN, |writing| writing.scheme), |(scheme, _)| scheme);
        let is_declared =
            || documents.config.as_ref().is_some_and(|config| config.get("quantization_config").is_some());
        let is_made_dense = !found.groups.is_empty() || llamacpp.is_some() && is_declared();
        let outcome = (is_made_dense || !scheme.is_plain()).then_some(Outcome {
            scheme,
            kept: &kept,
            in_memory: &in_memory,
            quantized: &modules,
            activations: activations.are_declared(),
        });
        let is_gguf = into == FileFormat::Gguf;
        let configuration = if is_gguf {
            Configuration::default()
        } else {
            let converts = selection.to.is_some() || !selection.rules.is_empty();
            let works = shards.iter().flat_map(|shard| &shard.works);
            let to = if converts { type_of_model(works, selection.to) } else { None };
            Configuration::new(&folder, &documents, to, outcome)?
        };
        let container = if is_gguf {
            let mut keys = gguf::keys(&folder, &documents, options, mixture, given, &shards[0].works);
            matrix.zip(importance.as_ref()).into_iter().for_each(|(path, all)| all.record(path, &mut keys));
            Container::Gguf(keys)
        } else if folder.is_file() {
            Container::File(FileFormat::Safetensors)
        } else {
            Container::Folder
        };
        let provenance = Provenance { detected: detected(&found), ..Provenance::of(options) };
        // These choices do not concern tensors in GGUF files.
        let choices = if is_gguf && holds_gguf(&folder) { Vec::new() } else { found.choices };
        let mut warnings = [choices, found.warnings, of_quantized, configuration.warnings.clone()].concat();
        warnings.extend(relayout::warning(src, &relaid));
        let globals = relaid.iter().filter_map(|relaid| {
            let (_, at) = relaid.quantized.parts.iter().find(|(part, _)| *part == Part::Global)?;
            Some((scheme.family, relaid.quantized.name.clone(), *at))
        });
        let unequal = global_scales(&folder, globals)?;
        warnings.extend(unequal.iter().map(|finding| {
            format!("{}: {finding}; quantizing again, without relayout, gives them one", src.display())
        }));
        if let Some(reference) = reference {
            let all: Vec<_> = found.groups.iter().map(|group| quantized(&folder, &stored, group)).collect();
            warnings.extend(reference.check_nibbles(&folder, &all)?);
        }
        let plan = Plan {
            dst: dst.into(),
            folder,
            container,
            provenance,
            sharing: sharing(&shards),
            shards,
            configuration,
            components: Vec::new(),
            shares,
            relaid,
            dropped,
            warnings,
            stored_as: llamacpp.as_ref().map(|header| header.stored_as.clone()).unwrap_or_default(),
            options: options.clone(),
        };
        let is_renamed = llamacpp.is_some();
        let of_gguf = plan.gguf().map(|new| gguf::warnings(&plan.folder, &new.tensors, is_renamed, is_for_llamacpp));
        let of_gguf = of_gguf.unwrap_or_default();
        let of_gguf = [of_gguf, llamacpp.map(|header| header.warnings).unwrap_or_default()].concat();
        Ok(Plan { warnings: [plan.warnings, of_gguf].concat(), ..plan })
    }
}

/// A tensor as listed to the user. A quantized tensor is listed with the type and shape of its codes.
pub(crate) struct Listed<'a> {
    pub at: Stored,
    /// Set of tensors that are quantized together; `None` for a plain tensor.
    pub group: Option<&'a Group>,
    pub tensor: Tensor,
}

/// Source tensors, sorted by file and offset. A quantized tensor is sorted by the offset of its codes. Also returns the
/// names of dropped tensors and the reasons.
pub(crate) fn listed<'a>(
    folder: &Folder,
    stored: &[Stored],
    found: &'a Detection,
    original: &HashMap<Arc<str>, Arc<[u64]>>,
) -> (Vec<Listed<'a>>, Vec<(String, String)>) {
    let (mut listed, mut dropped) = (Vec::new(), Vec::new());
    let mut list = |at: Stored, group, mut tensor: Tensor| {
        tensor.shape = original.get(&tensor.name).cloned().unwrap_or(tensor.shape);
        listed.push(Listed { at, group, tensor });
    };
    for (at, role) in stored.iter().zip(&found.roles) {
        match role {
            Role::Plain => list(*at, None, at.header(folder).clone()),
            Role::Part { group, part: Part::Codes } => {
                let group = &found.groups[*group];
                let (name, dtype) = (group.name.clone(), group.layout.code_type());
                let codes = Tensor { name, dtype, layout: Layout::Packed, shape: group.shape.clone() };
                list(*at, Some(group), codes);
            }
            Role::Part { .. } => {}
            Role::Dropped(why) => dropped.push((at.header(folder).name.to_string(), why.to_string())),
        }
    }
    (listed, dropped)
}

fn holds_gguf(folder: &Folder) -> bool {
    folder.shards().iter().any(|shard| shard.source.format() == FileFormat::Gguf)
}

fn is_one(folder: &Folder, into: FileFormat) -> bool {
    into == FileFormat::Gguf || folder.is_file()
}

fn empty_shards(folder: &Folder, found: &Detection, into: FileFormat) -> Vec<ShardPlan> {
    let has_other_tensors = !found.groups.is_empty() || holds_gguf(folder);
    let of_shard = |shard: &Shard| {
        let metadata = shard.source.metadata();
        let mut metadata =
            if has_other_tensors { truecast_schemes::metadata(metadata, &found.groups) } else { metadata.clone() };
        // The result is not split, and has options of its own.
        metadata.retain(|key, _| key != OPTIONS_KEY && !(holds_gguf(folder) && key.starts_with(SPLIT)));
        ShardPlan { name: shard.name.clone(), works: Vec::new(), metadata }
    };
    let files = if is_one(folder, into) { 1 } else { usize::MAX };
    folder.shards().iter().take(files).map(of_shard).collect()
}

/// Plans the tensors of a checkpoint in order.
struct Planner<'a> {
    folder: &'a Folder,
    stored: &'a [Stored],
    options: &'a Options,
    into: FileFormat,
    /// Scheme of codes that are carried over. The first tensor determines the open parameters.
    carried: Option<(Scheme, Relayout)>,
    /// Selection for unquantized tensors. With a scheme, the selection has no presets.
    unquantized: &'a Selection,
    /// Form in the source of tensors that a view computes.
    stored_as: Option<&'a HashMap<Arc<str>, StoredAs>>,
    activations: Activations,
    quantizing: Option<Quantizing<'a>>,
    names: HashSet<Arc<str>>,
    shards: Vec<ShardPlan>,
    relaid: Vec<Relaid>,
    /// Unquantized modules of a model whose other modules are carried over.
    dense: Vec<String>,
    carried_modules: Vec<String>,
}

impl<'a> Planner<'a> {
    fn settle(
        &mut self,
        tensor: &'a Tensor,
        at: Stored,
        group: Option<&'a Group>,
        choice: Choice,
    ) -> Result<(), Error> {
        let (folder, stored, path) = (self.folder, self.stored, self.path(at));
        if group.is_none() && at.source(folder).blocks().get(at.tensor).is_some_and(|block| block.dtype().is_none()) {
            return self.add(at, gguf::copy(folder, at));
        }
        let value = match group {
            Some(_) => &Tensor { dtype: DType::F32, ..tensor.clone() },
            None => tensor,
        };
        if let (Some((scheme, how)), Some(group), None) = (self.carried, group, choice.to) {
            return self.carry_over(tensor, value, at, group, scheme, how);
        }
        if self.carried.is_some() {
            self.dense.extend(truecast_schemes::loaded_module(tensor));
        }
        let source = group.map(|group| move || Box::new(quantized(folder, stored, group)));
        let scaled = match &mut self.quantizing {
            Some(quantizing) => quantizing.work(at, value, source, path, &mut self.activations)?,
            None => None,
        };
        let of_mixture = self.quantizing.as_ref().and_then(|quantizing| quantizing.plain_type(value));
        let stays = scaled
            .as_ref()
            .map_or(choice.to.or(of_mixture).is_none(), |work| group.is_some_and(|g| gguf::is_alike(work, g)));
        let is_gguf = self.into == FileFormat::Gguf;
        let of_blocks = group.filter(|_| is_gguf && stays).and_then(|group| gguf::copied(folder, stored, group));
        if let Some(works) = of_blocks {
            self.names.extend(works.iter().map(|work| work.planned.target.name.clone()));
            self.shards[0].works.extend(works);
            return Ok(());
        }
        let choice = Choice { to: choice.to.or(of_mixture.filter(|to| *to != tensor.dtype)), ..choice };
        let work = match (scaled, group) {
            (Some(TensorJob { planned, job }), _) => {
                TensorJob { planned: Planned { from: tensor.dtype, ..planned }, job }
            }
            (None, None) => {
                self.check_type(tensor, None, choice.to)?;
                let kept_by = self.quantizing.as_ref().map_or(choice.kept_by, |quantizing| quantizing.kept_by(tensor));
                let choice = Choice { kept_by, ..choice };
                TensorJob::of_plain(at, tensor, choice, self.into, path, &self.options.request)?
            }
            (None, Some(group)) => self.dequantized(tensor, value, at, group, choice)?,
        };
        self.add(at, work)
    }

    fn path(&self, at: Stored) -> &'a Path {
        at.source(self.folder).path()
    }

    /// Adds a job. Fails if the name of an output tensor already exists.
    fn add(&mut self, at: Stored, work: TensorJob) -> Result<(), Error> {
        if let Some(twice) = work.targets().find(|target| !self.names.insert(target.name.clone())) {
            let cause = truecast_schemes::Error::DuplicateName { tensor: twice.name.to_string() };
            return Err(Error::scheme(self.folder.path(), cause));
        }
        let file = self.of_result(at);
        self.shards[file].works.push(work);
        Ok(())
    }

    fn of_result(&self, at: Stored) -> usize {
        if is_one(self.folder, self.into) { 0 } else { at.shard }
    }

    fn carry_over(
        &mut self,
        tensor: &Tensor,
        value: &Tensor,
        at: Stored,
        group: &Group,
        scheme: Scheme,
        how: Relayout,
    ) -> Result<(), Error> {
        let made = truecast_schemes::target_of_layout(value, scheme, &group.layout);
        let (mut target, scheme) = made.map_err(|cause| Error::scheme(self.path(at), cause))?;
        target.tensors.extend(self.activations.output(value));
        self.carried = Some((scheme, how));
        let source = quantized(self.folder, self.stored, group);
        let (works, relaid) = relaid(self.folder, source, group.scheme, target, scheme, how)?;
        works.into_iter().try_for_each(|work| self.add(at, work))?;
        self.carried_modules.extend(truecast_schemes::loaded_module(tensor));
        self.relaid.push(Relaid { shard: self.of_result(at), ..relaid });
        Ok(())
    }

    /// Refuses a type of a quantized tensor that would lose its scales.
    fn check_type(&self, tensor: &Tensor, group: Option<&Group>, to: Option<DType>) -> Result<(), Error> {
        let Some(scheme) = scheme_of(tensor, group, self.stored_as) else { return Ok(()) };
        let name = tensor.name.to_string();
        let cause = match to {
            None => CheckpointError::Kept { tensor: name, scheme },
            Some(to) if is_narrow(to) && self.unquantized.rule(&tensor.name).is_none() => {
                CheckpointError::Narrow { tensor: name, scheme, to }
            }
            Some(_) => return Ok(()),
        };
        Err(Error::checkpoint(self.folder.path(), cause))
    }

    fn dequantized(
        &self,
        tensor: &Tensor,
        value: &Tensor,
        at: Stored,
        group: &Group,
        choice: Choice,
    ) -> Result<TensorJob, Error> {
        self.check_type(tensor, Some(group), choice.to)?;
        let choice = Choice { from: DType::F32, to: choice.to, kept_by: None };
        let planned = Planned::new(value, choice, self.into, self.path(at), &self.options.request)?;
        let kept_by = self.quantizing.as_ref().and_then(|quantizing| quantizing.kept_by(value));
        let planned = Planned { from: tensor.dtype, kept_by, ..planned };
        Ok(TensorJob { job: Arc::new(quantized(self.folder, self.stored, group).flat()), planned })
    }
}

/// True for an adapter. Its name follows PEFT's convention, or it has only LoRA matrices. Loaders add the tensors of an
/// adapter to a model.
fn is_adapter(folder: &Folder) -> bool {
    let tensors = folder.shards().iter().flat_map(|shard| shard.source.tensors());
    let mut matrices = tensors.filter(|tensor| tensor.shape.len() > 1).peekable();
    let is_of_lora = |tensor: &Tensor| tensor.name.split('.').any(|part| part.starts_with("lora_"));
    let is_named = folder.shards().iter().any(|shard| shard.name.starts_with("adapter_model"));
    is_named || (matrices.peek().is_some() && matrices.all(is_of_lora))
}

/// Scheme of a tensor in the source; `None` for a plain tensor. `stored_as` describes tensors that a view computes.
fn scheme_of(
    tensor: &Tensor,
    group: Option<&Group>,
    stored_as: Option<&HashMap<Arc<str>, StoredAs>>,
) -> Option<String> {
    let of_view = || stored_as?.get(&tensor.name)?.scheme.as_ref().map(ToString::to_string);
    group.map(|group| group.scheme.to_string()).or_else(of_view)
}

/// True for types whose weights need scales.
fn is_narrow(to: DType) -> bool {
    to.storage_bits().is_some_and(|bits| bits <= 8)
}

/// Position in its shard of each job whose tensor shares a global scale.
fn sharing(shards: &[ShardPlan]) -> HashMap<Stored, usize> {
    let mut sharing = HashMap::new();
    for shard in shards {
        for (at, work) in shard.works.iter().enumerate() {
            if let Some(scaled) = work.job.scaled()
                && scaled.share.is_some()
            {
                sharing.insert(scaled.from, at);
            }
        }
    }
    sharing
}

fn detected(found: &Detection) -> Detected {
    let order = |group: &Group| match (group.scheme.family, group.layout.planes()?.codes.packing) {
        (Family::ComfyNvfp4, Packing::HighFirst) => Some(Nibbles::High),
        (Family::ComfyNvfp4, _) => Some(Nibbles::Low),
        _ => None,
    };
    let mut schemes: Vec<String> = found.groups.iter().map(|group| group.scheme.to_string()).collect();
    schemes.sort();
    schemes.dedup();
    Detected { schemes, nibbles: found.groups.iter().find_map(order) }
}
