//! Selection of tensors to quantize, and their schemes (`docs/spec/checkpoints.md §7.1`, §7.4, §11.3).

use crate::files::convert::dequantize::dequantizer::Quantized;
use crate::files::convert::error::CheckpointError;
use crate::files::convert::job::TensorJob;
use crate::files::convert::planned::Planned;
use crate::files::convert::quantize::activations::Activations;
use crate::files::convert::quantize::importance::Importance;
use crate::files::convert::quantize::scaled::{Cut, Scaled};
use crate::files::convert::quantize::sharing::Sharing;
use crate::files::convert::stored::Stored;
use crate::files::error::{Cause, Error};
use crate::files::select::{KeptBy, QuantizeOptions, Selection};
use crate::flag::Flag;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use truecast_core::scaled::{self, Code, Coding, MxScale, Search, ggml};
use truecast_core::{DType, Layout};
use truecast_io::{Escaped, Tensor, counted};
use truecast_schemes::{Family, Form, Layer, Limit, Model, Scheme, Target, is_token_table, target, target_of_experts};

/// Decides tensor after tensor.
pub(crate) struct Quantizing<'a> {
    writing: &'a QuantizeOptions,
    selection: &'a Selection,
    model: &'a Model<'a>,
    /// Form of each tensor in a mixture; `None` without a mixture.
    forms: Option<HashMap<Arc<str>, Form>>,
    importance: Option<&'a Importance>,
    weighted: usize,
    /// Tensors that the importance matrix lacks: the first, and their number.
    unweighted: Option<(String, usize)>,
    sharing: Sharing,
    decision: Decision,
    /// Tensors that the scheme does not support, with the first error.
    refused: Option<(truecast_schemes::Error, Vec<String>)>,
    /// Kept weights that a user may expect to be quantized, by reason.
    left: BTreeMap<String, Left>,
    /// First tensor for each known limit of loaders (program, limit).
    limits: BTreeMap<(&'static str, &'static str), String>,
    /// Layouts of the quantized tensors.
    cuts: HashMap<(scaled::Layout, DType), Cut>,
}

/// Kept weights with one reason.
struct Left {
    first: String,
    count: u64,
}

#[derive(Default)]
pub(crate) struct Decision {
    /// Modules with an unquantized matrix.
    pub kept: Vec<String>,
    /// Modules with a quantized matrix.
    pub modules: Vec<String>,
    /// Sets of tensors that share a global scale.
    pub shares: Vec<Vec<Stored>>,
    pub warnings: Vec<String>,
}

impl<'a> Quantizing<'a> {
    pub fn new(
        writing: &'a QuantizeOptions,
        selection: &'a Selection,
        model: &'a Model<'a>,
        forms: Option<HashMap<Arc<str>, Form>>,
        importance: Option<&'a Importance>,
    ) -> Quantizing<'a> {
        Quantizing {
            writing,
            selection,
            model,
            forms,
            sharing: Sharing::new(writing),
            decision: Decision::default(),
            importance,
            weighted: 0,
            unweighted: None,
            refused: None,
            left: BTreeMap::new(),
            limits: BTreeMap::new(),
            cuts: HashMap::new(),
        }
    }

    /// Job that quantizes the tensor, or `None` to keep the tensor. `source` is set for a quantized source, whose
    /// `tensor` has type f32.
    ///
    /// # Errors
    /// A scheme that cannot be written. [`finish`](Quantizing::finish) reports the tensors that the scheme does not
    /// support.
    pub fn work(
        &mut self,
        at: Stored,
        tensor: &Tensor,
        source: Option<impl FnOnce() -> Box<Quantized>>,
        path: &Path,
        activations: &mut Activations,
    ) -> Result<Option<TensorJob>, Error> {
        let name = &tensor.name;
        if !self.quantizes(tensor, source.is_some()) {
            self.keep(tensor);
            return Ok(None);
        }
        let scheme = self.stored(tensor);
        let (mut target, layers) = match self.target(tensor) {
            Ok(target) => target,
            // Loaders that split experts do not accept fused ones.
            Err(truecast_schemes::Error::NoForm { why, .. })
                if self.selection.rule(name).is_none() && !self.splits(tensor) =>
            {
                self.decision.kept.extend(truecast_schemes::loaded_module(tensor));
                self.leave(tensor, format!("{scheme} cannot hold it: {why}"));
                return Ok(None);
            }
            Err(cause @ truecast_schemes::Error::NoForm { .. }) => {
                self.refused.get_or_insert((cause, Vec::new())).1.push(name.to_string());
                return Ok(None);
            }
            Err(cause) => return Err(Error::scheme(path, cause)),
        };
        let layout = target.layout;
        target.tensors.extend(activations.output(tensor));
        let (how, dtype, cuts) = (self.writing.how, tensor.dtype, &mut self.cuts);
        let cut = |layout: &scaled::Layout| match cuts.entry((*layout, dtype)) {
            Entry::Occupied(known) => Ok(*known.get()),
            Entry::Vacant(place) => Ok(*place.insert(Cut::new(layout, dtype, &how)?)),
        };
        let source = source.map(|source| source());
        let scaled = Scaled::new(at, dtype, source, target, scheme, how, cut);
        let mut scaled = scaled.map_err(|cause| Error::tensor(path, name, Cause::Scaled(cause)))?;
        scaled.importance = self.importance_of(tensor, &scaled.layout, path)?;
        if layout.planes().is_some_and(|planes| planes.global.is_some()) {
            scaled.share = self.sharing.add(at, name);
        }
        let layers = layers.as_deref().unwrap_or(std::slice::from_ref(tensor));
        self.decision.modules.extend(layers.iter().filter_map(truecast_schemes::loaded_module));
        for limit in Limit::applicable(scheme, tensor, self.model) {
            self.limits.entry((limit.program, limit.what)).or_insert_with(|| name.to_string());
        }
        let shape = tensor.shape.clone();
        let target = Tensor { name: name.clone(), dtype: layout.code_type(), layout: Layout::Packed, shape };
        let (name, from, src_layout) = (name.clone(), tensor.dtype, tensor.layout);
        let planned = Planned { name, target, from, src_layout, cast: None, kept_by: None };
        Ok(Some(TensorJob { planned, job: Arc::new(scaled) }))
    }

    /// Importance of a tensor's columns, for each matrix of a stack. Blocks without weights have none.
    ///
    /// # Errors
    /// An importance of other columns. A table of tokens then has none, as in llama.cpp.
    fn importance_of(
        &mut self,
        tensor: &Tensor,
        layout: &scaled::Layout,
        path: &Path,
    ) -> Result<Option<Arc<[f32]>>, Error> {
        let (Some(all), Coding::Blocks { block, .. }) = (self.importance, layout.coding) else { return Ok(None) };
        if !ggml::is_weighted(block) {
            return Ok(None);
        }
        let matrices: u64 = tensor.shape.iter().rev().skip(2).product();
        match all.values.get(&*tensor.name) {
            Some(values) if values.len() as u64 == matrices * layout.cols => {
                self.weighted += 1;
                Ok(Some(values.clone()))
            }
            _ if is_token_table(&tensor.name) => Ok(None),
            None => {
                self.unweighted.get_or_insert_with(|| (tensor.name.to_string(), 0)).1 += 1;
                Ok(None)
            }
            Some(values) => {
                let (wanted, found) = (matrices * layout.cols, values.len() as u64);
                let matrix = self.writing.imatrix.iter().map(|path| path.display().to_string()).collect();
                let tensor = tensor.name.to_string();
                let cause = CheckpointError::OtherImportance { tensor, wanted, found, path: matrix };
                Err(Error::checkpoint(path, cause))
            }
        }
    }

    /// True for fused experts that loaders split into layers.
    fn splits(&self, tensor: &Tensor) -> bool {
        self.model.splits_experts(self.writing.scheme.family) && self.model.layer(tensor) == Layer::Experts
    }

    /// Output tensors, and the layers into which loaders split fused experts.
    fn target(&self, tensor: &Tensor) -> Result<(Target, Option<Vec<Tensor>>), truecast_schemes::Error> {
        let (scheme, model) = (self.stored(tensor), self.model);
        if self.splits(tensor) {
            let (target, layers) = target_of_experts(tensor, scheme, model.has_input_rows(tensor))?;
            return Ok((target, Some(layers)));
        }
        Ok((target(tensor, scheme)?, None))
    }

    /// Scheme with the type of scales that loaders expect: the type of the weights, if the scheme allows that type.
    fn stored(&self, tensor: &Tensor) -> Scheme {
        match self.form(tensor) {
            Some(Form::Blocks(block)) => return Scheme::of(Family::Gguf(block)),
            // A rule quantizes what the mixture keeps.
            Some(_) => return Scheme::of(self.writing.scheme.family.base()),
            None => {}
        }
        self.writing.scheme.with_scales_of(self.selection.to.or(self.model.dtype()).unwrap_or(tensor.dtype))
    }

    fn form(&self, tensor: &Tensor) -> Option<Form> {
        self.forms.as_ref().map(|forms| forms.get(&tensor.name).copied().unwrap_or(Form::Kept))
    }

    /// Type that a mixture gives an unquantized tensor; `None` for its own.
    pub fn plain_type(&self, tensor: &Tensor) -> Option<DType> {
        let is_half = self.form(tensor) == Some(Form::Half) && self.selection.rule(&tensor.name).is_none();
        is_half.then_some(DType::F16)
    }

    /// A matching rule decides; otherwise the mixture, or the table of layers. A tensor that is quantized in the source
    /// counts as a layer.
    fn quantizes(&self, tensor: &Tensor, is_quantized: bool) -> bool {
        match self.selection.rule(&tensor.name) {
            Some(rule) => rule.quantizes(),
            None => {
                let layer = self.model.layer(tensor);
                let family = self.writing.scheme.family;
                if !QuantizeOptions::is_about(tensor) || self.selection.keep.contains(&layer) {
                    return false;
                }
                if let Some(form) = self.form(tensor) {
                    return matches!(form, Form::Blocks(_));
                }
                self.model.is_quantized(tensor, layer, family) || is_quantized && layer == Layer::Unknown
            }
        }
    }

    fn keep(&mut self, tensor: &Tensor) {
        self.decision.kept.extend(truecast_schemes::loaded_module(tensor));
        if self.splits(tensor) {
            return self.leave(tensor, "its loaders make a layer of each expert, and do not load it".to_string());
        }
        if !QuantizeOptions::is_about(tensor) || self.selection.rule(&tensor.name).is_some() {
            return;
        }
        match self.form(tensor) {
            Some(Form::Half) => return self.leave(tensor, "no blocks fit its rows, and it becomes f16".to_string()),
            Some(_) => return,
            None => {}
        }
        let why = match self.model.layer(tensor) {
            Layer::Unknown => "its name is not the name of a layer's weight",
            Layer::InputRows => "it has one row per input, but loaders expect one row per output",
            Layer::Experts => "no loader takes fused experts in this scheme",
            Layer::OutsideBlocks => "outside the repeated blocks of the main stack",
            _ => return,
        };
        self.leave(tensor, why.to_string());
    }

    /// Lists a tensor that users may expect to be quantized.
    fn leave(&mut self, tensor: &Tensor, why: String) {
        self.left.entry(why).or_insert_with(|| Left { first: tensor.name.to_string(), count: 0 }).count += 1;
    }

    pub fn kept_by(&self, tensor: &Tensor) -> Option<KeptBy> {
        match self.selection.rule(&tensor.name) {
            Some(rule) => rule.kept_by(),
            None if QuantizeOptions::is_about(tensor) => Some(KeptBy::Layer(self.model.layer(tensor))),
            None => (tensor.dtype.is_float() && tensor.shape.len() < 2).then_some(KeptBy::Dimensions),
        }
    }

    /// Completes the decisions.
    ///
    /// # Errors
    /// Tensors that the scheme does not support; options that the scheme lacks; patterns without a match.
    pub fn finish(self, path: &Path) -> Result<Decision, Error> {
        let failed = |cause| Err(Error::checkpoint(path, cause));
        let QuantizeOptions { scheme, how, .. } = self.writing;
        if let Some((first, names)) = self.refused {
            let others = names.into_iter().skip(1).collect();
            return failed(CheckpointError::NoForm { first: first.to_string(), others });
        }
        let no_effect = |option, why| failed(CheckpointError::NoEffect { option, why });
        let left: Vec<String> = self.left.into_iter().map(not_quantized).collect();
        if self.cuts.is_empty() {
            let left = if left.is_empty() { String::new() } else { format!("; {}", left.join("; ")) };
            return no_effect(Flag::Scheme, format!("{scheme} quantizes no tensor{left}"));
        }
        if scheme.family.is_gguf() && how.search != Search::Formula {
            return no_effect(Flag::ScaleSearch, format!("{scheme} has only one scale formula"));
        }
        if scheme.family.is_gguf() && how.mx != MxScale::default() {
            return no_effect(Flag::MxScale, format!("{scheme} has only one scale formula"));
        }
        if self.importance.is_some() && self.weighted == 0 {
            let why =
                format!("no matrix gets a type of {scheme} that weighs columns, or the file has none of this model");
            return no_effect(Flag::Imatrix, why);
        }
        let has_powers_of_two = |layout: &scaled::Layout| {
            layout.planes().is_some_and(|planes| planes.scales.plane.code == Code::Float(DType::F8E8M0))
        };
        if how.mx != MxScale::default() && !self.cuts.keys().any(|(layout, _)| has_powers_of_two(layout)) {
            return no_effect(Flag::MxScale, format!("{scheme} has no scales that are powers of two"));
        }
        if let Some(why) = self.sharing.without_effect(self.writing) {
            return no_effect(Flag::ShareGlobal, why);
        }
        let limits = self
            .limits
            .into_iter()
            .map(|((program, what), first)| format!("tensor {}: {program} {what} (docs/loads.md)", Escaped(&first)));
        let unweighted = self.unweighted.map(|(first, count)| {
            format!("tensor {}{} no importance", Escaped(&first), others(count as u64, "has", "have"))
        });
        let warnings =
            left.into_iter().chain(unweighted).chain(limits).map(|warning| format!("{}: {warning}", path.display()));
        Ok(Decision { shares: self.sharing.sets, warnings: warnings.collect(), ..self.decision })
    }
}

fn not_quantized((why, Left { first, count }): (String, Left)) -> String {
    format!("tensor {}{} not quantized: {why}", Escaped(&first), others(count, "is", "are"))
}

/// The verb for one tensor or several, of which the first is named.
fn others(count: u64, one: &str, several: &str) -> String {
    match count - 1 {
        0 => format!(" {one}"),
        others => format!(" and {} {several}", counted(others, "other")),
    }
}
