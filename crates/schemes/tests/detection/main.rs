//! Every scheme and every error, with small headers (`docs/spec/checkpoints.md §4`, §5).

mod ambiguous;
mod config;
mod errors;
mod published;
mod schemes;
mod unknown;

use std::collections::{BTreeMap, HashMap};

use truecast_core::{DType, Layout};
use truecast_io::Tensor;
use truecast_schemes::{Checkpoint, Detection, Documents, Error, Options, Role, Stored, detect};

#[derive(Clone, Default)]
struct Case {
    tensors: Vec<Stored>,
    contents: HashMap<String, Vec<u8>>,
    metadata: BTreeMap<String, String>,
    documents: Documents,
}

/// A checkpoint whose tensors are lines of text. A line is (name, type, dimensions joined by `x`, or `-` for a scalar).
fn tensors(lines: &str) -> Case {
    let stored = |line: &str| {
        let [name, dtype, shape] = line.split_whitespace().collect::<Vec<_>>()[..] else { panic!("{line}") };
        let shape = match shape {
            "-" => Vec::new(),
            _ => shape.split('x').map(|n| n.parse().unwrap()).collect(),
        };
        let dtype = DType::parse(dtype).unwrap();
        Stored {
            tensor: Tensor { name: name.to_owned().into(), dtype, layout: Layout::Packed, shape: shape.into() },
            shard: 0,
        }
    };
    let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
    Case { tensors: lines.map(stored).collect(), ..Case::default() }
}

impl Case {
    fn config(mut self, text: &str) -> Case {
        self.documents.config = Some(serde_json::from_str(text).unwrap());
        self
    }

    fn quantization(self, text: &str) -> Case {
        self.config(&format!(r#"{{"quantization_config": {text}}}"#))
    }

    fn hf_quant_config(mut self, text: &str) -> Case {
        self.documents.hf_quant_config = Some(serde_json::from_str(text).unwrap());
        self
    }

    fn params(mut self, text: &str) -> Case {
        self.documents.params = Some(serde_json::from_str(text).unwrap());
        self
    }

    fn metadata(mut self, key: &str, value: &str) -> Case {
        self.metadata.insert(key.to_owned(), value.to_owned());
        self
    }

    fn holds(mut self, name: &str, bytes: impl Into<Vec<u8>>) -> Case {
        self.contents.insert(name.to_owned(), bytes.into());
        self
    }

    fn detect_with(&self, options: &Options<'_>) -> Result<Detection, Error> {
        let metadata = [self.metadata.clone()];
        let checkpoint = Checkpoint { tensors: &self.tensors, metadata: &metadata, documents: &self.documents };
        let mut read = |number: usize| {
            let name = &self.tensors[number].tensor.name;
            Ok(self.contents.get(&**name).unwrap_or_else(|| panic!("{name} is read")).clone())
        };
        detect(checkpoint, &mut read, options)
    }

    fn detect(&self) -> Detection {
        self.detect_with(&Options::default()).unwrap()
    }

    fn asked_for(&self, name: &str) -> Result<Detection, Error> {
        self.detect_with(&Options { from_scheme: Some(name.parse().unwrap()), ..Options::default() })
    }

    /// Checks that detection finds these groups.
    #[track_caller]
    fn detect_groups(&self, expected: &[&str]) -> Detection {
        let found = self.detect();
        assert_eq!(self.groups(&found), expected);
        found
    }

    fn error(&self) -> String {
        self.detect_with(&Options::default()).expect_err("an error").to_string()
    }

    fn role(&self, found: &Detection, name: &str) -> Role {
        found.roles[self.tensors.iter().position(|stored| stored.tensor.name == name.into()).unwrap()]
    }

    /// Groups as `name scheme shape: part=tensor ..`.
    fn groups(&self, found: &Detection) -> Vec<String> {
        let shown = |group: &truecast_schemes::Group| {
            let shape: Vec<String> = group.shape.iter().map(u64::to_string).collect();
            let part = |(part, number): &(truecast_core::scaled::Part, usize)| {
                format!(" {}={}", part.name().replace(' ', "-"), self.tensors[*number].tensor.name)
            };
            let parts: String = group.parts.iter().map(part).collect();
            format!("{} {} {}:{parts}", group.name, group.scheme, shape.join("x"))
        };
        found.groups.iter().map(shown).collect()
    }
}

fn names(found: &Detection) -> Vec<String> {
    found.schemes.iter().map(ToString::to_string).collect()
}

fn i64s(numbers: &[i64]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

fn f32s(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}
