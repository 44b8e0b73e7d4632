//! A declaration: settings, and the modules to which they apply.

use foldhash::{HashMap, HashMapExt, HashSet};
use serde_json::Value;

use crate::error::Error;
use crate::found::Setting;
use crate::modules::{Pattern, patterns};
use crate::scheme::{Family, Parameters, Scheme};

/// Statement of one file about the schemes of modules.
#[derive(Debug)]
pub(crate) struct Declaration {
    /// Place of the declaration, for example `config.json: quantization_config`.
    pub(crate) place: String,
    pub(crate) settings: Vec<(Targets, Setting)>,
    pub(crate) modules: HashMap<String, Setting>,
    ignored: Modules,
}

#[derive(Debug)]
pub(crate) enum Targets {
    All,
    Listed(Vec<Pattern>),
}

/// List of modules. Names are looked up by hash, because the list may be long.
#[derive(Debug, Default)]
struct Modules {
    names: HashSet<String>,
    patterns: Vec<Pattern>,
}

impl Modules {
    fn add(&mut self, all: Vec<Pattern>) {
        for pattern in all {
            match pattern.name() {
                Some(name) => _ = self.names.insert(name.to_owned()),
                None => self.patterns.push(pattern),
            }
        }
    }

    /// True if an entry names the module, an enclosing module, or components in succession.
    fn covers(&self, module: &str) -> bool {
        let dots = || module.match_indices('.').map(|(at, _)| at);
        let begins = [0].into_iter().chain(dots().map(|at| at + 1));
        let mut parts = begins.flat_map(|begin| {
            let ends = dots().filter(move |end| *end > begin).chain([module.len()]);
            ends.map(move |end| &module[begin..end])
        });
        parts.any(|part| self.names.contains(part)) || self.patterns.iter().any(|pattern| pattern.covers(module))
    }
}

/// Place of a requested scheme, which replaces declarations of files.
pub const REQUEST: &str = "the request";

impl Declaration {
    pub(super) fn new(place: &str) -> Declaration {
        let (settings, modules) = (Vec::new(), HashMap::new());
        Declaration { place: place.to_owned(), settings, modules, ignored: Modules::default() }
    }

    pub(super) fn for_all(place: &str, settings: impl IntoIterator<Item = Setting>) -> Declaration {
        let settings = settings.into_iter().map(|setting| (Targets::All, setting)).collect();
        Declaration { settings, ..Declaration::new(place) }
    }

    /// Declaration of a requested scheme, which replaces declarations of files.
    pub(crate) fn asked(scheme: Scheme, declared: &[Declaration]) -> Declaration {
        // Details of a file's setting for the same family stay valid.
        let known = declared.iter().flat_map(Declaration::every).find(|s| s.scheme.family == scheme.family);
        let mut setting = known.cloned().unwrap_or(Setting::of(scheme));
        // A request does not state that zero points are midpoints.
        setting.symmetric = None;
        let fixed = Parameters { block: default_block(scheme.family), ..Parameters::NONE };
        setting.scheme.parameters = scheme.parameters.or(setting.scheme.parameters).or(fixed);
        Declaration::for_all(REQUEST, [setting])
    }

    pub(super) fn without(mut self, value: Option<&Value>, key: &str) -> Result<Declaration, Error> {
        self.ignored.add(patterns(value, &self.place, key)?);
        Ok(self)
    }

    fn every(&self) -> impl Iterator<Item = &Setting> {
        self.settings.iter().map(|(_, setting)| setting).chain(self.modules.values())
    }

    /// Scheme for the error that no tensor is stored in any of the schemes; `None` without a setting.
    pub(crate) fn scheme(&self) -> Option<Scheme> {
        self.every().next().map(|setting| setting.scheme)
    }

    /// Family that can replace the declaration as `--from-scheme`. `None` if the family would not cover all settings.
    pub(super) fn stand_in(&self) -> Option<Family> {
        let is_for_all = self.modules.is_empty() && self.settings.iter().all(|(t, _)| t.are_all());
        let families = self.families();
        self.scheme().map(|scheme| scheme.family).filter(|_| is_for_all || families.len() == 1)
    }

    pub(crate) fn only(&self) -> Option<Scheme> {
        let first = self.scheme()?;
        self.every().all(|setting| setting.scheme == first).then_some(first)
    }

    pub(crate) fn exceptions(&self) -> impl Iterator<Item = &str> {
        self.ignored.names.iter().map(String::as_str)
    }

    pub(crate) fn families(&self) -> HashSet<Family> {
        self.every().map(|setting| setting.scheme.family).collect()
    }

    pub(crate) fn ignores(&self, module: &str) -> bool {
        self.ignored.covers(module)
    }

    /// Settings that name the module, or else settings for all modules. Excluded modules have settings too.
    pub(crate) fn settings_of(&self, module: &str) -> Vec<&Setting> {
        let parents = module.match_indices('.').map(|(at, _)| &module[..at]);
        if let Some(own) = [module].into_iter().chain(parents).find_map(|module| self.modules.get(module)) {
            return vec![own];
        }
        let of = |targets: fn(&Targets, &str) -> bool| -> Vec<&Setting> {
            self.settings.iter().filter(|(t, _)| targets(t, module)).map(|(_, setting)| setting).collect()
        };
        let named = of(Targets::name);
        if named.is_empty() { of(|targets, _| targets.may_be_all()) } else { named }
    }
}

impl Targets {
    pub(crate) fn are_all(&self) -> bool {
        matches!(self, Targets::All)
    }

    fn name(&self, module: &str) -> bool {
        match self {
            Targets::All => false,
            Targets::Listed(patterns) => patterns.iter().any(|pattern| pattern.covers(module)),
        }
    }

    /// True for all modules, and for a class of modules, because files do not state a class's members.
    fn may_be_all(&self) -> bool {
        match self {
            Targets::All => true,
            Targets::Listed(patterns) => patterns.iter().any(Pattern::may_be_class),
        }
    }
}

/// Block of a scheme whose name does not state one.
fn default_block(family: Family) -> Option<[u64; 2]> {
    match family {
        Family::Fp8Block | Family::DeepSeekV4 | Family::ModelOptFp8Blocks => Some([128, 128]),
        _ => None,
    }
}
