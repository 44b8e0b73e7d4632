//! Presets of tensors that are not quantised (`docs/spec/checkpoints.md §11.3`).

use std::str::FromStr;

/// A set of tensors that stay in high precision, by their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // Named as in the page.
pub enum Preset {
    Norms,
    Embeddings,
    Router,
    LmHead,
    Ssm,
}

/// A name that no preset has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no preset is called {0:?}; presets are norms, embeddings, router, lm_head, ssm")]
pub struct UnknownPreset(pub String);

impl Preset {
    /// Every preset with its name.
    pub const NAMES: [(&'static str, Preset); 5] = [
        ("norms", Preset::Norms),
        ("embeddings", Preset::Embeddings),
        ("router", Preset::Router),
        ("lm_head", Preset::LmHead),
        ("ssm", Preset::Ssm),
    ];

    /// As it is written.
    pub fn name(self) -> &'static str {
        Preset::NAMES.iter().find(|(_, preset)| *preset == self).map_or("", |(name, _)| name)
    }

    /// The tensor of this name is kept.
    ///
    /// # Examples
    /// ```
    /// use truecast_schemes::Preset;
    /// assert!(Preset::Norms.keeps("model.layers.0.input_layernorm.weight"));
    /// assert!(Preset::Norms.keeps("encoder.layer.0.output.LayerNorm.bias"));
    /// assert!(!Preset::Router.keeps("model.layers.0.mlp.gate_proj.weight"));
    /// ```
    pub fn keeps(self, name: &str) -> bool {
        let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
        match self {
            // `input_layernorm`, and `LayerNorm` of BERT.
            Preset::Norms => {
                let is_norm = |part: &str| part.to_ascii_lowercase().contains("norm") || part.contains("ln_");
                name.rsplit('.').take(2).any(is_norm)
            }
            Preset::Embeddings => has(&["embed", "wte", "wpe"]),
            Preset::Router => has(&["router", "mlp.gate.weight", "ffn.gate.weight", "gate_inp"]),
            Preset::LmHead => has(&["lm_head", "output.weight"]),
            Preset::Ssm => name.split('.').any(|part| ["conv1d", "A_log", "dt_bias", "D"].contains(&part)),
        }
    }
}

impl FromStr for Preset {
    type Err = UnknownPreset;

    fn from_str(name: &str) -> Result<Preset, UnknownPreset> {
        let known = Preset::NAMES.iter().find(|(known, _)| *known == name);
        known.map(|(_, preset)| *preset).ok_or_else(|| UnknownPreset(name.to_owned()))
    }
}
