//! Options of quantization: `--scheme` and related options. Reference: `docs/spec/checkpoints.md §7`, §11.3;
//! `docs/interfaces.md §4.2`.

use super::glob::{Glob, GlobError};
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use truecast_core::{DType, Kind};
use truecast_io::Tensor;

pub use truecast_core::scaled::{MxScale, NonFinite, Quantization, Search};
use truecast_schemes::Family;
pub use truecast_schemes::{Layer, Scheme, UnknownLayer};

/// Options of quantization.
#[derive(Clone, Debug, PartialEq)]
pub struct QuantizeOptions {
    /// Scheme of the quantized tensors.
    pub scheme: Scheme,
    /// Choice of scales.
    pub how: Quantization,
    /// Groups of tensors with a common global scale.
    pub share: Vec<SharedGlobalScale>,
    /// Carries codes and scales over instead of quantizing again.
    pub relayout: Option<Relayout>,
    /// File with the largest input magnitude of each layer (`docs/spec/checkpoints.md §7.8`).
    pub activation_ranges: Option<PathBuf>,
    /// File with the importance of columns (§9.11).
    pub imatrix: Option<PathBuf>,
}

/// Transfer of codes and scales to another scheme (`docs/spec/checkpoints.md §8`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relayout {
    /// Values stay equal.
    Exact,
    /// A global scale may be rounded to f32.
    Lossy,
}

/// Words of `--relayout`.
pub const RELAYOUTS: [(&str, Relayout); 2] = [("exact", Relayout::Exact), ("lossy", Relayout::Lossy)];

/// Patterns for tensors that share a global scale within a module (§7.4).
#[derive(Clone, Debug, PartialEq)]
pub struct SharedGlobalScale {
    globs: Vec<Glob>,
}

impl SharedGlobalScale {
    /// Parses comma-separated patterns; commas within `{}` do not separate.
    ///
    /// # Errors
    /// The first invalid pattern, and its error.
    pub fn new(text: &str) -> Result<SharedGlobalScale, (String, GlobError)> {
        let mut parts = vec![String::new()];
        let mut depth = 0i32;
        for c in text.chars() {
            depth += i32::from(c == '{') - i32::from(c == '}');
            match c {
                ',' if depth == 0 => parts.push(String::new()),
                c => parts.last_mut().expect("there is always one").push(c),
            }
        }
        let glob = |text: String| Glob::new(&text).map_err(|cause| (text, cause));
        Ok(SharedGlobalScale { globs: parts.into_iter().map(glob).collect::<Result<_, _>>()? })
    }

    /// Groups of weights that vLLM stores in one layer. vLLM applies the largest of their global scales, so the scales
    /// must be equal (§7.4). Empty for schemes without such layers.
    pub fn usual(family: Family) -> Vec<SharedGlobalScale> {
        const SETS: [&str; 5] = [
            "*.q_proj.weight,*.k_proj.weight,*.v_proj.weight", "*.query.weight,*.key.weight,*.value.weight",
            "*.gate_proj.weight,*.up_proj.weight", "*.w1.weight,*.w3.weight",
            "*.q_a_proj.weight,*.kv_a_proj_with_mqa.weight",
        ];
        match family {
            Family::CtNvfp4 | Family::ModelOptNvfp4 | Family::ModelOptNvfp4Weights => {
                SETS.iter().map(|set| SharedGlobalScale::new(set).expect("these are patterns")).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Patterns for names.
    pub fn globs(&self) -> &[Glob] {
        &self.globs
    }

    /// Group of a matching name: the part before the module's name.
    ///
    /// # Examples
    /// ```
    /// use truecast::select::SharedGlobalScale;
    /// let share = SharedGlobalScale::new("*q_proj*,*k_proj*").unwrap();
    /// assert_eq!(share.group("layers.3.attn.q_proj.weight"), Some("layers.3.attn"));
    /// assert_eq!(share.group("layers.3.attn.o_proj.weight"), None);
    /// ```
    #[must_use]
    pub fn group<'a>(&self, name: &'a str) -> Option<&'a str> {
        let is_named = self.globs.iter().any(|glob| glob.matches(name));
        is_named.then(|| name.rsplitn(3, '.').nth(2).unwrap_or_default())
    }
}

impl std::fmt::Display for SharedGlobalScale {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.globs.iter().map(Glob::as_str).collect::<Vec<_>>().join(","))
    }
}

const MSE: &str = "mse";
/// Words of `--scale-search`.
pub const SEARCHES: [(&str, Search); 1] = [(MSE, Search::Mse)];
/// Words of `--nonfinite`.
pub const NONFINITE: [(&str, NonFinite); 2] = [("error", NonFinite::Error), ("saturate", NonFinite::Saturate)];

impl QuantizeOptions {
    /// Default options for a scheme.
    #[must_use]
    pub fn of(scheme: Scheme) -> QuantizeOptions {
        QuantizeOptions {
            scheme,
            how: Quantization::default(),
            share: Vec::new(),
            relayout: None,
            activation_ranges: None,
            imatrix: None,
        }
    }

    /// True if a tensor can be quantized: a float of 16 bits or more, at least two dimensions, not empty.
    #[must_use]
    pub fn is_about(tensor: &Tensor) -> bool {
        let is_wide = matches!(tensor.dtype.kind(), Kind::Float(_)) && tensor.dtype.storage_bits() >= Some(16);
        is_wide && tensor.dtype != DType::Tf32 && tensor.shape.len() >= 2 && !tensor.shape.contains(&0)
    }

    /// Names and values of options other than the scheme; defaults are omitted.
    #[must_use]
    pub fn options(&self) -> Vec<(&'static str, String)> {
        let QuantizeOptions { scheme: _, how, share, relayout, activation_ranges, imatrix } = self;
        let mut all = Vec::new();
        if how.search == Search::Mse {
            all.push(("scale-search", MSE.to_string()));
        }
        if how.mx != MxScale::default() {
            all.push(("mx-scale", name_of(&MxScale::ALL, how.mx)));
        }
        if how.nonfinite != NonFinite::default() {
            all.push(("nonfinite", name_of(&NONFINITE, how.nonfinite)));
        }
        all.extend(relayout.map(|how| ("relayout", name_of(&RELAYOUTS, how))));
        all.extend(activation_ranges.iter().map(|path| ("activation-ranges", path.display().to_string())));
        all.extend(imatrix.iter().map(|path| ("imatrix", path.display().to_string())));
        all.extend(share.iter().map(|share| ("share-global", share.to_string())));
        all
    }

    pub(crate) fn put(&self, object: &mut Map<String, Value>) {
        let share: Vec<String> = self.share.iter().map(SharedGlobalScale::to_string).collect();
        let search = (self.how.search == Search::Mse).then_some(MSE);
        object.insert("scheme".into(), json!(self.scheme.to_string()));
        object.insert("scale_search".into(), json!(search));
        object.insert("mx_scale".into(), json!(name_of(&MxScale::ALL, self.how.mx)));
        object.insert("nonfinite".into(), json!(name_of(&NONFINITE, self.how.nonfinite)));
        object.insert("share_global".into(), json!(share));
        for (key, path) in [("activation_ranges", &self.activation_ranges), ("imatrix", &self.imatrix)] {
            object.extend(path.iter().map(|path| (key.to_string(), json!(path.display().to_string()))));
        }
        if let Some(how) = self.relayout {
            object.insert("relayout".into(), json!(name_of(&RELAYOUTS, how)));
        }
    }

    /// Reads the keys of [`put`](QuantizeOptions::put), if present.
    ///
    /// # Errors
    /// The invalid key, and the reason.
    pub(crate) fn from_json(object: &Value) -> Result<Option<QuantizeOptions>, (&'static str, String)> {
        let Some(scheme) = object.get("scheme") else { return Ok(None) };
        let text = |key: &'static str, value: &Value| {
            value.as_str().map(str::to_owned).ok_or_else(|| (key, "not a string".to_string()))
        };
        let list = |key: &'static str| {
            let values = object.get(key).and_then(Value::as_array).ok_or_else(|| (key, "not a list".to_string()))?;
            values.iter().map(|value| text(key, value)).collect::<Result<Vec<_>, _>>()
        };
        let of = |key: &'static str| object.get(key).ok_or_else(|| (key, "missing".to_string()));
        let scheme = text("scheme", scheme)?.parse().map_err(|why| ("scheme", format!("{why}")))?;
        let search = match of("scale_search")? {
            Value::Null => Search::Formula,
            value => search(&text("scale_search", value)?).map_err(|why| ("scale_search", why))?,
        };
        let mx = mx_scale(&text("mx_scale", of("mx_scale")?)?).map_err(|why| ("mx_scale", why))?;
        let nonfinite = nonfinite(&text("nonfinite", of("nonfinite")?)?).map_err(|why| ("nonfinite", why))?;
        let share = list("share_global")?.into_iter().map(|text| {
            SharedGlobalScale::new(&text).map_err(|(glob, why)| ("share_global", format!("{glob:?}: {why}")))
        });
        let how = Quantization { mx, nonfinite, search, ..Quantization::default() };
        let how_relaid =
            object.get("relayout").map(|value| relayout(&text("relayout", value)?).map_err(|why| ("relayout", why)));
        let relayout = how_relaid.transpose()?;
        let path = |key: &'static str| object.get(key).map(|value| text(key, value).map(PathBuf::from)).transpose();
        let (share, activation_ranges) = (share.collect::<Result<_, _>>()?, path("activation_ranges")?);
        Ok(Some(QuantizeOptions { scheme, how, share, relayout, activation_ranges, imatrix: path("imatrix")? }))
    }
}

fn name_of<T: PartialEq>(names: &[(&'static str, T)], value: T) -> String {
    names.iter().find(|(_, known)| *known == value).map_or("", |(name, _)| name).to_string()
}

fn named<T: Copy>(names: &[(&'static str, T)], text: &str) -> Result<T, String> {
    let found = names.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
    found.ok_or_else(|| format!("expected {}", names.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")))
}

/// Parses a word of `--mx-scale`.
///
/// # Errors
/// The accepted words.
pub fn mx_scale(text: &str) -> Result<MxScale, String> {
    named(&MxScale::ALL, text)
}

/// Parses a word of `--relayout`.
///
/// # Errors
/// The accepted words.
pub fn relayout(text: &str) -> Result<Relayout, String> {
    named(&RELAYOUTS, text)
}

/// Parses a word of `--nonfinite`.
///
/// # Errors
/// The accepted words.
pub fn nonfinite(text: &str) -> Result<NonFinite, String> {
    named(&NONFINITE, text)
}

/// Parses a word of `--scale-search`.
///
/// # Errors
/// The accepted words.
pub fn search(text: &str) -> Result<Search, String> {
    named(&SEARCHES, text)
}
