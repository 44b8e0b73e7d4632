//! What one place declares: settings, and the modules that they are for.

use foldhash::{HashMap, HashMapExt, HashSet};
use serde_json::Value;

use crate::error::Error;
use crate::found::Setting;
use crate::modules::{Pattern, patterns};
use crate::scheme::{Family, Parameters, Scheme};

/// What one place declares.
#[derive(Debug)]
pub(crate) struct Declaration {
    /// Such as `config.json: quantization_config`.
    pub(crate) place: String,
    /// Settings and the modules that they are for.
    pub(crate) settings: Vec<(Targets, Setting)>,
    /// Modules with a setting of their own, by name.
    pub(crate) modules: HashMap<String, Setting>,
    /// Modules that stay as they are.
    ignored: Modules,
}

/// Which modules a setting is for.
#[derive(Debug)]
pub(crate) enum Targets {
    /// All of them.
    All,
    /// Those that are listed.
    Listed(Vec<Pattern>),
}

/// A list of modules that may be long.
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

    /// An entry names the module, one around it, or successive components of it.
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

impl Declaration {
    pub(super) fn new(place: &str) -> Declaration {
        let (settings, modules) = (Vec::new(), HashMap::new());
        Declaration { place: place.to_owned(), settings, modules, ignored: Modules::default() }
    }

    /// A declaration for every module.
    pub(super) fn for_all(place: &str, settings: impl IntoIterator<Item = Setting>) -> Declaration {
        let settings = settings.into_iter().map(|setting| (Targets::All, setting)).collect();
        Declaration { settings, ..Declaration::new(place) }
    }

    /// What was asked for instead of what the files declare.
    pub(crate) fn asked(scheme: Scheme, declared: &[Declaration]) -> Declaration {
        // What a file says about the same scheme is as good as ever.
        let known = declared.iter().flat_map(Declaration::every).find(|s| s.scheme.family == scheme.family);
        let mut setting = known.cloned().unwrap_or(Setting::of(scheme));
        // Zero points are what they are: that is what is asked for.
        setting.symmetric = None;
        let fixed = Parameters { block: default_block(scheme.family), ..Parameters::NONE };
        setting.scheme.parameters = scheme.parameters.or(setting.scheme.parameters).or(fixed);
        Declaration::for_all("--from-scheme", [setting])
    }

    /// The modules of the list stay as they are.
    pub(super) fn without(mut self, value: Option<&Value>, key: &str) -> Result<Declaration, Error> {
        self.ignored.add(patterns(value, &self.place, key)?);
        Ok(self)
    }

    fn every(&self) -> impl Iterator<Item = &Setting> {
        self.settings.iter().map(|(_, setting)| setting).chain(self.modules.values())
    }

    /// The scheme that is named when nothing is stored so; `None` if nothing is declared.
    pub(crate) fn scheme(&self) -> Option<Scheme> {
        self.every().next().map(|setting| setting.scheme)
    }

    /// The family as which `--from-scheme` reads all modules of the declaration, if there is one.
    pub(super) fn stand_in(&self) -> Option<Family> {
        let is_for_all = self.modules.is_empty() && self.settings.iter().all(|(t, _)| t.are_all());
        let families = self.families();
        self.scheme().map(|scheme| scheme.family).filter(|_| is_for_all || families.len() == 1)
    }

    /// The scheme of every module, if there is one for all.
    pub(crate) fn only(&self) -> Option<Scheme> {
        let first = self.scheme()?;
        self.every().all(|setting| setting.scheme == first).then_some(first)
    }

    /// Modules by name that stay as they are.
    pub(crate) fn exceptions(&self) -> impl Iterator<Item = &str> {
        self.ignored.names.iter().map(String::as_str)
    }

    /// The families of all settings, each once.
    pub(crate) fn families(&self) -> HashSet<Family> {
        self.every().map(|setting| setting.scheme.family).collect()
    }

    /// Lists the module as one that stays as it is.
    pub(crate) fn ignores(&self, module: &str) -> bool {
        self.ignored.covers(module)
    }

    /// What a module may be stored as, whether it is ignored or not: what names it, or else what is for all.
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
    /// Every module.
    pub(crate) fn are_all(&self) -> bool {
        matches!(self, Targets::All)
    }

    fn name(&self, module: &str) -> bool {
        match self {
            Targets::All => false,
            Targets::Listed(patterns) => patterns.iter().any(|pattern| pattern.covers(module)),
        }
    }

    /// Every module, or those of a class, which is not known of any.
    fn may_be_all(&self) -> bool {
        match self {
            Targets::All => true,
            Targets::Listed(patterns) => patterns.iter().any(Pattern::may_be_class),
        }
    }
}

/// The block that the name of a scheme stands for where none is given.
fn default_block(family: Family) -> Option<[u64; 2]> {
    match family {
        Family::Fp8Block | Family::DeepSeekV4 | Family::ModelOptFp8Blocks => Some([128, 128]),
        _ => None,
    }
}
