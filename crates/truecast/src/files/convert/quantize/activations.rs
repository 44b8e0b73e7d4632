//! Activation scales of the result. They come from the source, or from a file that states the largest input magnitude
//! of each layer (`docs/spec/checkpoints.md §7.8`).

use crate::files::convert::error::CheckpointError;
use crate::files::convert::quantize::code::{little_endian, to_f32};
use crate::files::convert::stored::Stored;
use crate::files::error::Error;
use crate::files::select::QuantizeOptions;
use crate::flag::Flag;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use truecast_core::DType;
use truecast_io::Tensor;
use truecast_io::folder::Folder;
use truecast_schemes::{ActivationScale, Detection, Dropped, MAX_READ_BYTES, Need, Output, Role, Scheme};

#[derive(Default)]
pub(crate) struct Activations {
    wanted: Option<(ActivationScale, Need)>,
    /// Largest input magnitude by name of module or weight.
    ranges: HashMap<String, f64>,
    /// Scales of the source, by module.
    of_source: HashMap<String, SourceScales>,
    /// Source tensors that remain in the result, unchanged or converted.
    carried: HashSet<String>,
    missing: Vec<String>,
}

struct SourceScales {
    tensor: String,
    kind: ActivationScale,
    values: Vec<f32>,
}

impl Activations {
    /// Reads the source and the file, if the target has activation scales.
    ///
    /// # Errors
    /// An unreadable or invalid file; a file for a target without activation scales.
    pub fn new(
        folder: &Folder,
        stored: &[Stored],
        found: &Detection,
        writing: Option<&QuantizeOptions>,
    ) -> Result<Activations, Error> {
        let Some(writing) = writing else { return Ok(Activations::default()) };
        let wanted = ActivationScale::of_target(writing.scheme.family);
        let ranges = match (&writing.activation_ranges, wanted) {
            (Some(_), None) => {
                let why = format!("{} does not store activation scales", writing.scheme);
                let option = Flag::ActivationRanges;
                return Err(Error::checkpoint(folder.path(), CheckpointError::NoEffect { option, why }));
            }
            (Some(path), Some(_)) => activation_ranges(path)?,
            (None, _) => HashMap::new(),
        };
        let mut all = Activations { wanted, ranges, ..Activations::default() };
        if wanted.is_none() {
            return Ok(all);
        }
        let codes: HashMap<&str, DType> =
            found.groups.iter().map(|group| (group.module.as_str(), group.layout.code_type())).collect();
        let dropped =
            found.roles.iter().enumerate().filter(|(_, role)| **role == Role::Dropped(Dropped::ActivationScale));
        for (number, _) in dropped {
            let Stored { shard, tensor } = stored[number];
            let source = &folder.shards()[shard].source;
            let Tensor { name, dtype, .. } = &source.tensors()[tensor];
            let bytes = source.tensors()[tensor].bytes();
            let Some((module, scale)) = ActivationScale::of_source(name, |module| codes.get(module).copied()) else {
                continue;
            };
            let size = dtype.storage_bits().unwrap_or(8) as usize / 8;
            if !dtype.is_float() || size == 0 || bytes > MAX_READ_BYTES {
                continue;
            }
            let mut buffer = vec![0; bytes as usize];
            source.read_at(tensor, 0, &mut buffer)?;
            let values: Vec<f32> = buffer.chunks_exact(size).map(|code| to_f32(*dtype, little_endian(code))).collect();
            // An uncalibrated scale is 0 or not finite.
            if !values.is_empty() && values.iter().all(|value| value.is_finite() && *value > 0.0) {
                let scales = SourceScales { tensor: name.to_string(), kind: scale, values };
                all.of_source.insert(module.to_string(), scales);
            }
        }
        // If some magnitudes are unknown, only weights are quantized.
        let is_partial =
            all.ranges.is_empty() && found.groups.iter().any(|group| !all.of_source.contains_key(&group.module));
        if matches!(wanted, Some((_, Need::AllOrNone)))
            && (is_partial || found.groups.is_empty() && all.ranges.is_empty())
        {
            all.wanted = None;
        }
        Ok(all)
    }

    pub fn output(&mut self, weight: &Tensor) -> Option<Output> {
        let (scale, need) = self.wanted?;
        let module = weight.name.strip_suffix(".weight").unwrap_or(&weight.name);
        let range = self.ranges.get(module).or_else(|| self.ranges.get(&*weight.name));
        let values = match (range, self.of_source.get(module)) {
            (Some(amax), _) => {
                vec![scale.of_amax(*amax); weight.shape.iter().rev().skip(2).product::<u64>().max(1) as usize]
            }
            (None, Some(SourceScales { tensor, kind, values })) => {
                self.carried.insert(tensor.clone());
                values.iter().map(|value| scale.of_scale(*value, *kind)).collect()
            }
            (None, None) => {
                if need != Need::Optional {
                    self.missing.push(weight.name.to_string());
                }
                return None;
            }
        };
        Some(scale.output(weight, &values))
    }

    pub fn are_declared(&self) -> bool {
        self.wanted.is_some()
    }

    pub fn carries(&self, tensor: &str) -> bool {
        self.carried.contains(tensor)
    }

    /// Checks that no needed scale is missing.
    ///
    /// # Errors
    /// Layers without a scale that their loader needs.
    pub fn check(&self, folder: &Path, scheme: Scheme) -> Result<(), Error> {
        match self.missing.split_first() {
            None => Ok(()),
            Some((first, others)) => {
                let weights_only = scheme.weights_only().map(|other| other.to_string());
                let (scheme, tensor, others) = (scheme.to_string(), first.clone(), others.len() as u64);
                let cause = CheckpointError::NoActivations { scheme, tensor, others, weights_only };
                Err(Error::checkpoint(folder, cause))
            }
        }
    }
}

/// Reads a JSON object that maps each layer to the largest magnitude of its inputs.
///
/// # Errors
/// An unreadable or malformed file.
pub fn activation_ranges(path: &Path) -> Result<HashMap<String, f64>, Error> {
    let failed = |why: String| Error::checkpoint(path, CheckpointError::Ranges { why });
    let text = std::fs::read_to_string(path).map_err(|source| truecast_io::Error::Io {
        path: path.into(),
        action: "reading",
        source,
    })?;
    let all: HashMap<String, f64> = serde_json::from_str(&text).map_err(|cause| failed(cause.to_string()))?;
    match all.iter().find(|(_, value)| !(value.is_finite() && **value > 0.0)) {
        Some((name, value)) => Err(failed(format!("{name:?} is {value}, but a largest magnitude must be above 0"))),
        None => Ok(all),
    }
}
