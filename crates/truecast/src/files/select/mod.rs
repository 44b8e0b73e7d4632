//! Selection of tensors and their types, by rules. Reference: `docs/interfaces.md §3`.

pub(crate) mod glob;
pub(crate) mod near;
pub mod quantize_options;
pub mod source_scheme;

pub use glob::{Glob, GlobError};
pub use quantize_options::{Layer, QuantizeOptions, SharedGlobalScale};
pub use source_scheme::{Detected, SourceScheme};

use crate::files::error::Error;
use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use truecast_core::DType;
use truecast_io::{FileFormat, Tensor};

/// A rule: `--rule GLOB=TYPE`, `--keep GLOB` or `--quantize GLOB`.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    glob: Glob,
    becomes: Becomes,
    /// Tensors that the rule matches by their names in the source.
    renamed: HashSet<Arc<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Becomes {
    Kept,
    Type(DType),
    Quantized,
}

impl Rule {
    /// Rule for tensors whose name matches `glob`; `None` keeps the type.
    ///
    /// # Errors
    /// [`Error::Glob`].
    pub fn new(glob: &str, to: Option<DType>) -> Result<Rule, Error> {
        Rule::parse(glob, to.map_or(Becomes::Kept, Becomes::Type))
    }

    /// Rule that quantizes tensors whose name matches `glob` ([`QuantizeOptions`]).
    ///
    /// # Errors
    /// [`Error::Glob`].
    pub fn quantize(glob: &str) -> Result<Rule, Error> {
        Rule::parse(glob, Becomes::Quantized)
    }

    fn parse(glob: &str, becomes: Becomes) -> Result<Rule, Error> {
        match Glob::new(glob) {
            Ok(glob) => Ok(Rule { glob, becomes, renamed: HashSet::new() }),
            Err(cause) => Err(Error::Glob { glob: glob.into(), option: becomes.option(), cause }),
        }
    }

    /// Name of the option for the rule, without dashes.
    #[must_use]
    pub fn option(&self) -> &'static str {
        self.becomes.option()
    }

    /// True for a rule that quantizes.
    #[must_use]
    pub fn quantizes(&self) -> bool {
        self.becomes == Becomes::Quantized
    }

    /// Pattern of the rule.
    #[must_use]
    pub fn glob(&self) -> &str {
        self.glob.as_str()
    }

    /// New type of the tensors; `None` if they are kept or quantized.
    #[must_use]
    pub fn to(&self) -> Option<DType> {
        match self.becomes {
            Becomes::Type(to) => Some(to),
            Becomes::Kept | Becomes::Quantized => None,
        }
    }

    pub(crate) fn kept_by(&self) -> Option<KeptBy> {
        (self.becomes == Becomes::Kept).then_some(KeptBy::Rule)
    }

    fn matches(&self, name: &str) -> bool {
        self.glob.matches(name) || self.renamed.contains(name)
    }
}

impl Becomes {
    fn option(self) -> &'static str {
        match self {
            Becomes::Kept => "keep",
            Becomes::Type(_) => "rule",
            Becomes::Quantized => "quantize",
        }
    }
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.to() {
            Some(to) => write!(f, "{}={to}", self.glob()),
            None => write!(f, "{}", self.glob()),
        }
    }
}

/// Tensors to convert, and their types.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// Type for tensors without a rule; `None` converts only by rules.
    pub to: Option<DType>,
    /// Type as which selected tensors are read; `None` for the stored types.
    pub from: Option<DType>,
    /// Rules in order. The first rule that matches a tensor applies to it.
    pub rules: Vec<Rule>,
    /// Layers to keep unless a rule names their tensors. The name of a tensor determines its layer. By default, tensors
    /// of these layers are never quantized ([`QuantizeOptions`]).
    pub keep: Vec<Layer>,
}

/// Name of a tensor of the source, and of the tensor of the result that it becomes, or becomes a part of.
#[derive(Clone, Debug)]
pub(crate) struct SourceName {
    pub name: Arc<str>,
    /// `None` if the result leaves the tensor out.
    pub tensor: Option<Arc<str>>,
}

/// Permitted changes of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eligibility {
    /// Converted unless a rule says otherwise.
    Converted,
    /// As `Converted`; the tensor is quantized in the source.
    Dequantized,
    /// Converted only by a rule.
    ByRule,
    /// Never converted, not even by a rule.
    Kept,
}

impl Eligibility {
    /// Eligibility of a tensor. In a checkpoint, floating-point tensors are converted; in an array file, all tensors.
    #[must_use]
    pub fn in_container(kind: FileFormat, tensor: &Tensor) -> Eligibility {
        if kind.is_array() || tensor.dtype.is_float() { Eligibility::Converted } else { Eligibility::ByRule }
    }
}

/// Decision about a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Type as which the source is read.
    pub from: DType,
    /// Type to convert to; `None` copies the bytes.
    pub to: Option<DType>,
    /// Reason for keeping a tensor that would otherwise be converted.
    pub kept_by: Option<KeptBy>,
}

/// Reason why a rule or a preset keeps a tensor, or a scheme does not quantize it (`docs/spec/checkpoints.md §11.3`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeptBy {
    /// A rule that keeps tensors.
    Rule,
    /// Layer of the tensor.
    Layer(Layer),
    /// Fewer than two dimensions. Every preset except `Unquantized` keeps such a tensor.
    Dimensions,
}

impl KeptBy {
    /// Name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            KeptBy::Rule => "keep",
            KeptBy::Layer(layer) => layer.name(),
            KeptBy::Dimensions => "dimensions",
        }
    }
}

impl fmt::Display for KeptBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

pub(crate) const UNUSED_PRESET: &str = "no tensor has such a name";

impl Selection {
    /// True if `--to` or a rule names a type.
    #[must_use]
    pub fn casts(&self) -> bool {
        self.to.is_some() || self.rules.iter().any(|rule| rule.to().is_some())
    }

    fn preset(&self, tensor: &Tensor) -> Option<Layer> {
        Layer::by_name(&tensor.name, tensor.shape.len()).filter(|layer| self.keep.contains(layer))
    }

    fn kept_by(&self, tensor: &Tensor, eligibility: Eligibility) -> Option<KeptBy> {
        let is_unquantized = self.keeps_unquantized() && eligibility != Eligibility::Dequantized;
        let unquantized = is_unquantized.then_some(Layer::Unquantized);
        let is_vector = self.keeps_names() && tensor.shape.len() < 2;
        let layer = self.preset(tensor).or(unquantized).map(KeptBy::Layer);
        layer.or(is_vector.then_some(KeptBy::Dimensions))
    }

    /// True if only quantized tensors are converted, apart from rules.
    #[must_use]
    pub fn keeps_unquantized(&self) -> bool {
        self.keep.contains(&Layer::Unquantized)
    }

    fn keeps_names(&self) -> bool {
        self.keep.iter().any(|layer| *layer != Layer::Unquantized)
    }

    /// The first rule that matches the tensor.
    #[must_use]
    pub fn rule(&self, tensor: &str) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.matches(tensor))
    }

    /// Adapts the rules to these tensors: a rule without wildcards may name a module ([`Glob::for_names`]).
    #[must_use]
    pub fn for_tensors(&self, tensors: &[Tensor]) -> Selection {
        let names = || tensors.iter().map(|tensor| &*tensor.name);
        let rules = self.rules.iter().map(|rule| Rule { glob: rule.glob.for_names(names()), ..rule.clone() });
        Selection { rules: rules.collect(), ..self.clone() }
    }

    /// Lets rules that match none of these tensors go by names of the source, as the tensors were called before they were
    /// renamed. A tensor that is made of several is matched if all of them are.
    ///
    /// # Errors
    /// [`Error::LostRule`].
    pub(crate) fn for_sources(
        mut self,
        tensors: &[Tensor],
        sources: &[SourceName],
        path: &Path,
    ) -> Result<Selection, Error> {
        for rule in &mut self.rules {
            if tensors.iter().any(|tensor| rule.matches(&tensor.name)) {
                continue;
            }
            let glob = rule.glob.for_names(sources.iter().map(|source| &*source.name));
            let (matched, others): (Vec<_>, Vec<_>) = sources.iter().partition(|source| glob.matches(&source.name));
            let partly: HashSet<_> = others.iter().filter_map(|source| source.tensor.as_ref()).collect();
            let wholly =
                matched.iter().filter_map(|source| source.tensor.as_ref()).filter(|name| !partly.contains(name));
            rule.renamed = wholly.cloned().collect();
            if let Some(first) = matched.first().filter(|_| rule.renamed.is_empty()) {
                let whole = matched.iter().find_map(|source| source.tensor.as_ref()).map(ToString::to_string);
                let (rule, option, path) = (rule.to_string(), rule.option(), path.display().to_string());
                return Err(Error::LostRule { rule, option, tensor: first.name.to_string(), whole, path });
            }
        }
        Ok(self)
    }

    /// Removes the unmatched rule or presets in an error of [`choose`](Selection::choose).
    pub(crate) fn without(mut self, unused: &Error) -> Option<Selection> {
        match unused {
            Error::UnusedRule { rule, option, .. } => {
                let at = self.rules.iter().position(|of| of.to_string() == *rule && of.option() == *option)?;
                drop(self.rules.remove(at));
            }
            Error::UnusedPreset { .. } => self.keep.clear(),
            // No tensor is converted, except by rules.
            Error::NoneQuantized { .. } => {
                self.keep.clear();
                self.to = None;
            }
            Error::UnusedFrom { .. } => self.from = None,
            _ => return None,
        }
        Some(self)
    }

    /// Decides for every tensor of a container whether it is converted, and to which type.
    ///
    /// `eligibilities` are in the order of the tensors. In a checkpoint, `from` reinterprets tensors that a rule
    /// converts and that have the width of `from`. An array was reinterpreted when it was opened.
    ///
    /// # Errors
    /// [`Error::UnusedRule`], [`Error::UnusedFrom`], [`Error::UnusedPreset`] and [`Error::NoneQuantized`].
    pub fn choose(
        &self,
        kind: FileFormat,
        tensors: &[Tensor],
        eligibilities: &[Eligibility],
        path: &Path,
    ) -> Result<Vec<Choice>, Error> {
        let is_checkpoint = !kind.is_array();
        let mut used = vec![false; self.rules.len()];
        let mut from_used = !is_checkpoint;
        let mut choose = |(tensor, &eligibility): (&Tensor, &Eligibility)| {
            let from = tensor.dtype;
            if eligibility == Eligibility::Kept {
                return Choice { from, to: None, kept_by: None };
            }
            let Some(found) = self.rules.iter().position(|r| r.matches(&tensor.name)) else {
                let to = self.to.filter(|_| eligibility != Eligibility::ByRule);
                let kept_by = to.and_then(|_| self.kept_by(tensor, eligibility));
                return Choice { from, to: to.filter(|_| kept_by.is_none()), kept_by };
            };
            // A rule that matches a tensor counts as used, even if earlier rules decide.
            for (used, rule) in used.iter_mut().zip(&self.rules) {
                *used |= rule.matches(&tensor.name);
            }
            let (to, kept_by) = (self.rules[found].to(), self.rules[found].kept_by());
            let reinterpreted = self.from.filter(|f| to.is_some() && f.storage_bits() == from.storage_bits());
            from_used |= reinterpreted.is_some();
            Choice { from: if is_checkpoint { reinterpreted.unwrap_or(from) } else { from }, to, kept_by }
        };
        let choices = tensors.iter().zip(eligibilities).map(&mut choose).collect();
        if let Some(unused) = used.iter().position(|used| !used) {
            let rule = &self.rules[unused];
            let visible =
                tensors.iter().zip(eligibilities).filter(|(_, eligibility)| **eligibility != Eligibility::Kept);
            return Err(Error::UnusedRule {
                rule: rule.to_string(),
                option: rule.option(),
                nearest: near::patterns(rule.glob(), visible.map(|(tensor, _)| &*tensor.name)),
                path: path.display().to_string(),
            });
        }
        if !self.keep.is_empty() {
            let why = match self.to {
                None => "without a type for the others, only tensors that a rule names are converted",
                Some(_) => UNUSED_PRESET,
            };
            let is_used = || !self.keeps_names() || tensors.iter().any(|tensor| self.preset(tensor).is_some());
            if self.to.is_none() || !is_used() {
                return Err(Error::UnusedPreset { path: path.display().to_string(), why });
            }
            if self.keeps_unquantized() && !eligibilities.contains(&Eligibility::Dequantized) {
                return Err(Error::NoneQuantized { path: path.display().to_string() });
            }
        }
        match self.from {
            Some(from) if !from_used => {
                let bits = from.storage_bits().unwrap_or(0);
                Err(Error::UnusedFrom { path: path.display().to_string(), from, bits })
            }
            _ => Ok(choices),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use truecast_core::Layout;

    fn tensors() -> Vec<Tensor> {
        let tensor = |name: &str, dtype| Tensor { name: name.into(), dtype, layout: Layout::Packed, shape: [2].into() };
        vec![tensor("a.norm.weight", DType::F32), tensor("a/b.weight", DType::F32), tensor("ids", DType::U8)]
    }

    fn choices_of(selection: &Selection) -> Result<Vec<Choice>, Error> {
        let tensors = tensors();
        let kind = FileFormat::Safetensors;
        let eligibilities: Vec<_> = tensors.iter().map(|tensor| Eligibility::in_container(kind, tensor)).collect();
        selection.choose(kind, &tensors, &eligibilities, Path::new("x"))
    }

    fn choose(selection: &Selection) -> Result<Vec<Option<DType>>, Error> {
        Ok(choices_of(selection)?.into_iter().map(|c| c.to).collect())
    }

    #[test]
    fn first_match_wins_and_stars_cross_separators() {
        let rules = vec![
            Rule::new("*norm*", None).unwrap(),
            Rule::new("a*weight", Some(DType::F16)).unwrap(),
            Rule::new("ids", Some(DType::I8)).unwrap(),
        ];
        let selection = Selection { to: Some(DType::Bf16), rules, ..Selection::default() };
        assert_eq!(choose(&selection).unwrap(), [None, Some(DType::F16), Some(DType::I8)]);
    }

    #[test]
    fn integers_are_copied_unless_a_rule_names_them() {
        let selection = Selection { to: Some(DType::Bf16), ..Selection::default() };
        assert_eq!(choose(&selection).unwrap(), [Some(DType::Bf16), Some(DType::Bf16), None]);
    }

    #[test]
    fn a_rule_that_matches_nothing_is_an_error() {
        let rules = vec![Rule::new("NORM*", None).unwrap()];
        let error = choose(&Selection { to: Some(DType::Bf16), rules, ..Selection::default() }).unwrap_err();
        assert!(matches!(error, Error::UnusedRule { .. }), "{error}");
    }

    #[test]
    fn from_reinterprets_chosen_tensors_of_its_width() {
        let rules = vec![Rule::new("ids", Some(DType::F32)).unwrap()];
        let selection = Selection { from: Some(DType::F8E4M3Fn), rules, ..Selection::default() };
        let choices = choices_of(&selection).unwrap();
        assert_eq!(choices[2], Choice { from: DType::F8E4M3Fn, to: Some(DType::F32), kept_by: None });
        let wrong = Selection { from: Some(DType::F16), ..selection };
        assert!(matches!(choices_of(&wrong), Err(Error::UnusedFrom { .. })));
    }

    /// `docs/spec/checkpoints.md §11.3`: presets keep by name or dimensions. Rules take precedence; integers are
    /// exempt.
    #[test]
    fn presets_keep_what_no_rule_names() {
        let tensor = |name: &str, dtype, shape: &[u64]| Tensor {
            name: name.into(),
            dtype,
            layout: Layout::Packed,
            shape: shape.into(),
        };
        let tensors = [
            tensor("embed_tokens.weight", DType::F32, &[4, 2]),
            tensor("l.0.input_layernorm.weight", DType::F32, &[2]),
            tensor("l.0.q_proj.weight", DType::F32, &[2, 2]),
            tensor("l.0.q_proj.bias", DType::F32, &[2]),
            tensor("norm.weight", DType::F32, &[2]),
            tensor("embed.ids", DType::I64, &[2]),
        ];
        let kind = FileFormat::Safetensors;
        let eligibilities = tensors.each_ref().map(|tensor| Eligibility::in_container(kind, tensor));
        let choose = |selection: &Selection| selection.choose(kind, &tensors, &eligibilities, Path::new("x"));
        let selection = Selection {
            to: Some(DType::Bf16),
            rules: vec![Rule::new("norm.weight", Some(DType::F16)).unwrap()],
            keep: vec![Layer::Norm, Layer::Embedding],
            ..Selection::default()
        };
        let found: Vec<_> = choose(&selection).unwrap().iter().map(|choice| (choice.to, choice.kept_by)).collect();
        let expected = [
            (None, Some(KeptBy::Layer(Layer::Embedding))),
            (None, Some(KeptBy::Layer(Layer::Norm))),
            (Some(DType::Bf16), None),
            (None, Some(KeptBy::Dimensions)),
            (Some(DType::F16), None),
            (None, None),
        ];
        assert_eq!(found, expected);
        for selection in
            [Selection { keep: vec![Layer::Router], ..selection.clone() }, Selection { to: None, ..selection }]
        {
            assert!(matches!(choose(&selection), Err(Error::UnusedPreset { .. })));
        }
    }

    #[test]
    fn unquantized_tensors_are_kept() {
        let tensors = tensors();
        let selection = Selection { to: Some(DType::Bf16), keep: vec![Layer::Unquantized], ..Selection::default() };
        let choose = |eligibilities: [Eligibility; 3]| {
            let choices = selection.choose(FileFormat::Safetensors, &tensors, &eligibilities, Path::new("x"))?;
            Ok(choices.into_iter().map(|choice| choice.to).collect::<Vec<_>>())
        };
        let found = choose([Eligibility::Converted, Eligibility::Dequantized, Eligibility::ByRule]);
        assert_eq!(found.map_err(|error: Error| error.to_string()), Ok(vec![None, Some(DType::Bf16), None]));
        let none = choose([Eligibility::Converted, Eligibility::Converted, Eligibility::ByRule]);
        let Err(error @ Error::NoneQuantized { .. }) = none else { panic!("{none:?}") };
        // In a folder with several models, a model without quantized tensors stays unchanged.
        assert_eq!(selection.clone().without(&error).map(|rest| rest.casts()), Some(false));
    }

    #[test]
    fn rules_without_wildcards_name_modules() {
        let rule = Rule::new("a.norm", None).unwrap();
        let selection = Selection { rules: vec![rule], to: Some(DType::Bf16), ..Selection::default() };
        assert!(matches!(choose(&selection), Err(Error::UnusedRule { .. })));
        let resolved = selection.for_tensors(&tensors());
        assert_eq!(choose(&resolved).unwrap(), [None, Some(DType::Bf16), None]);
        // The record has the text that the user typed.
        assert_eq!(resolved, selection);
    }

    #[test]
    fn rules_do_not_see_what_is_kept() {
        let tensors = tensors();
        let eligibilities = [Eligibility::ByRule, Eligibility::Kept, Eligibility::Converted];
        let choose =
            |selection: &Selection| selection.choose(FileFormat::Onnx, &tensors, &eligibilities, Path::new("x"));
        let all = Selection { to: Some(DType::Bf16), ..Selection::default() };
        let to = |choices: Vec<Choice>| choices.into_iter().map(|c| c.to).collect::<Vec<_>>();
        assert_eq!(to(choose(&all).unwrap()), [None, None, Some(DType::Bf16)]);
        let rule = |glob| Selection { rules: vec![Rule::new(glob, Some(DType::F16)).unwrap()], ..all.clone() };
        assert_eq!(to(choose(&rule("a*")).unwrap()), [Some(DType::F16), None, Some(DType::Bf16)]);
        assert!(matches!(choose(&rule("a/b*")), Err(Error::UnusedRule { .. })));
    }
}
