//! Selection of tensors to quantize, and their schemes (`docs/spec/checkpoints.md §7.1`, §7.4, §11.3).

use crate::files::convert::dequantize::dequantizer::Quantized;
use crate::files::convert::error::CheckpointError;
use crate::files::convert::job::TensorJob;
use crate::files::convert::planned::Planned;
use crate::files::convert::quantize::activations::Activations;
use crate::files::convert::quantize::scaled::{Cut, Scaled};
use crate::files::convert::stored::Stored;
use crate::files::error::{Cause, Error};
use crate::files::select::{KeptBy, QuantizeOptions, Selection, SharedGlobalScale};
use crate::flag::Flag;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use truecast_core::scaled::{self, Code, MxScale, Search};
use truecast_core::{DType, Layout};
use truecast_io::{Escaped, Tensor, counted};
use truecast_schemes::{Family, Form, Layer, Limit, Model, Scheme, Target, target, target_of_experts};

pub(crate) struct Quantizing<'a> {
    writing: &'a QuantizeOptions,
    /// Groups with a common global scale, requested or expected by loaders.
    shares_of: Vec<SharedGlobalScale>,
    selection: &'a Selection,
    model: &'a Model<'a>,
    /// Form of each tensor in a mixture; `None` without a mixture.
    forms: Option<HashMap<Arc<str>, Form>>,
    /// Tensors that the scheme does not support, with the first error.
    refused: Option<(truecast_schemes::Error, Vec<String>)>,
    /// Modules with an unquantized matrix.
    kept: Vec<String>,
    modules: Vec<String>,
    /// Kept weights, by reason. A value is (name of the first weight, number of weights). Only weights count that a
    /// user may expect to be quantized.
    left: BTreeMap<String, (String, usize)>,
    /// Known limits of loaders: program, limit, first tensor.
    limits: BTreeMap<(&'static str, &'static str), String>,
    /// For each group of tensors that share a global scale, its index in `shares`. A key is (index of the pattern, name
    /// of the group).
    groups: HashMap<(usize, String), usize>,
    shares: Vec<Vec<Stored>>,
    /// Flags for the patterns of `shares_of`: true if the pattern matched.
    used: Vec<Vec<bool>>,
    quantized: usize,
    has_powers_of_two: bool,
    cuts: HashMap<(scaled::Layout, DType), Cut>,
}

#[derive(Default)]
pub(crate) struct Decision {
    pub kept: Vec<String>,
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
    ) -> Quantizing<'a> {
        Quantizing {
            shares_of: if writing.share.is_empty() {
                SharedGlobalScale::usual(writing.scheme.family)
            } else {
                writing.share.clone()
            },
            writing,
            selection,
            model,
            forms,
            refused: None,
            kept: Vec::new(),
            modules: Vec::new(),
            left: BTreeMap::new(),
            limits: BTreeMap::new(),
            groups: HashMap::new(),
            shares: Vec::new(),
            used: writing.share.iter().map(|share| vec![false; share.globs().len()]).collect(),
            quantized: 0,
            has_powers_of_two: false,
            cuts: HashMap::new(),
        }
    }

    /// Job that quantizes the tensor, or `None` to keep the tensor. For a quantized source, `tensor` has type f32.
    ///
    /// # Errors
    /// A scheme that cannot be written. [`finish`](Quantizing::finish) reports the tensors that the scheme does not
    /// support.
    pub fn work(
        &mut self,
        at: Stored,
        is_quantized: bool,
        tensor: &Tensor,
        source: impl FnOnce() -> Option<Box<Quantized>>,
        path: &Path,
        activations: &mut Activations,
    ) -> Result<Option<TensorJob>, Error> {
        let name = &tensor.name;
        if !self.quantizes(tensor, is_quantized) {
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
                self.kept.extend(truecast_schemes::loaded_module(tensor));
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
        let scaled = Scaled::new(at, dtype, source(), target, scheme, how, cut);
        let mut scaled = scaled.map_err(|cause| Error::tensor(path, name, Cause::Scaled(cause)))?;
        let planes = layout.planes();
        if planes.is_some_and(|planes| planes.global.is_some()) {
            scaled.share = self.share(at, name);
        }
        self.has_powers_of_two |= planes.is_some_and(|p| p.scales.plane.code == Code::Float(DType::F8E8M0));
        self.quantized += 1;
        let layers = layers.as_deref().unwrap_or(std::slice::from_ref(tensor));
        self.modules.extend(layers.iter().filter_map(truecast_schemes::loaded_module));
        for limit in Limit::applicable(scheme, tensor, self.model) {
            self.limits.entry((limit.program, limit.what)).or_insert_with(|| name.to_string());
        }
        let shape = tensor.shape.clone();
        let target = Tensor { name: name.clone(), dtype: layout.code_type(), layout: Layout::Packed, shape };
        let (name, from, src_layout) = (name.clone(), tensor.dtype, tensor.layout);
        let planned = Planned { name, target, from, src_layout, cast: None, kept_by: None };
        Ok(Some(TensorJob { planned, job: Arc::new(scaled) }))
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
        self.kept.extend(truecast_schemes::loaded_module(tensor));
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
        self.left.entry(why).or_insert_with(|| (tensor.name.to_string(), 0)).1 += 1;
    }

    pub fn kept_by(&self, tensor: &Tensor) -> Option<KeptBy> {
        match self.selection.rule(&tensor.name) {
            Some(rule) => rule.kept_by(),
            None if QuantizeOptions::is_about(tensor) => Some(KeptBy::Layer(self.model.layer(tensor))),
            None => (tensor.dtype.is_float() && tensor.shape.len() < 2).then_some(KeptBy::Dimensions),
        }
    }

    fn share(&mut self, at: Stored, name: &str) -> Option<usize> {
        let mut found = None;
        for (i, share) in self.shares_of.iter().enumerate() {
            for (used, glob) in self.used.get_mut(i).into_iter().flatten().zip(share.globs()) {
                *used |= glob.matches(name);
            }
            found = found.or_else(|| share.group(name).map(|group| (i, group.to_string())));
        }
        let (groups, shares) = (&mut self.groups, &mut self.shares);
        let place = *groups.entry(found?).or_insert_with(|| {
            shares.push(Vec::new());
            shares.len() - 1
        });
        shares[place].push(at);
        Some(place)
    }

    /// Completes the decisions.
    ///
    /// # Errors
    /// Tensors that the scheme does not support; options that the scheme lacks; patterns without a match.
    pub fn finish(self, path: &Path) -> Result<Decision, Error> {
        let failed = |cause| Err(Error::checkpoint(path, cause));
        let QuantizeOptions { scheme, how, share, .. } = self.writing;
        if let Some((first, names)) = self.refused {
            let others = names.into_iter().skip(1).collect();
            return failed(CheckpointError::NoForm { first: first.to_string(), others });
        }
        let no_effect = |option, why| failed(CheckpointError::NoEffect { option, why });
        let left: Vec<String> = self.left.into_iter().map(not_quantized).collect();
        if self.quantized == 0 {
            let left = if left.is_empty() { String::new() } else { format!("; {}", left.join("; ")) };
            return no_effect(Flag::Scheme, format!("{scheme} quantizes no tensor{left}"));
        }
        let of_scales =
            [(how.search != Search::Formula, Flag::ScaleSearch), (how.mx != MxScale::default(), Flag::MxScale)];
        if let (true, Some((_, option))) = (scheme.family.is_gguf(), of_scales.into_iter().find(|(given, _)| *given)) {
            return no_effect(option, format!("{scheme} has only one scale formula"));
        }
        if how.mx != MxScale::default() && !self.has_powers_of_two {
            return no_effect(Flag::MxScale, format!("{scheme} has no scales that are powers of two"));
        }
        if !share.is_empty() && self.shares.is_empty() && self.used.iter().flatten().all(|used| !used) {
            return no_effect(Flag::ShareGlobal, format!("{scheme} has no global scale, or no pattern matches"));
        }
        for (share, used) in share.iter().zip(&self.used) {
            if let Some((glob, _)) = share.globs().iter().zip(used).find(|(_, used)| !**used) {
                let why = format!("{} matches no tensor that is quantized", Escaped(glob.as_str()));
                return no_effect(Flag::ShareGlobal, why);
            }
        }
        let limit = |((program, what), first): ((&'static str, &'static str), String)| {
            format!("{}: tensor {}: {program} {what} (docs/loads.md)", path.display(), Escaped(&first))
        };
        let left = left.into_iter().map(|said| format!("{}: {said}", path.display()));
        let warnings = left.chain(self.limits.into_iter().map(limit)).collect();
        Ok(Decision { kept: self.kept, modules: self.modules, shares: self.shares, warnings })
    }
}

/// Warning about kept tensors. Argument: reason, first name, number of tensors.
fn not_quantized((why, (first, count)): (String, (String, usize))) -> String {
    let others = match count - 1 {
        0 => " is".to_string(),
        n => format!(" and {} are", counted(n as u64, "other")),
    };
    format!("tensor {}{others} not quantized: {why}", Escaped(&first))
}
