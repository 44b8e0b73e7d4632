//! One file that becomes another, whatever its tensors are: by value ([`convert`]), or, where they are
//! quantized, dense ([`checkpoint`]).

use crate::checkpoint::{self, OfFile};
use crate::convert;
use crate::error::Error;
use crate::progress::Progress;
use crate::report::{Provenance, Report};
use crate::verify::{self, Coverage, VerifyReport};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use truecast_core::DType;
use truecast_io::gguf::GgufFile;
use truecast_io::{Source, look};

pub use crate::checkpoint::Options;

/// A checkpoint in a folder becomes a folder, unless the destination is a `.gguf` file.
///
/// # Errors
/// The system does not tell what `src` is.
pub fn is_of_folders(src: &Path, dst: &Path) -> Result<bool, Error> {
    Ok(look::is_folder(src)? && !GgufFile::is_named(dst))
}

/// A conversion of a file whose every question is settled: nothing was written yet.
///
/// # Examples
/// ```
/// use std::sync::atomic::AtomicBool;
/// use truecast::{DType, convert, file::{Options, Plan}, select::Selection};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let (src, dst) = (folder.path().join("a.safetensors"), folder.path().join("b.safetensors"));
/// // An f8e4m3fn of 2, and its scale.
/// let header = r#"{"a.weight":{"dtype":"F8_E4M3","shape":[1,1],"data_offsets":[0,1]},
///     "a.scale_weight":{"dtype":"F32","shape":[],"data_offsets":[1,5]}}"#;
/// std::fs::write(&src, [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[0x40], &0.5f32.to_le_bytes()].concat())?;
/// let selection = Selection { to: Some(DType::Bf16), ..Selection::default() };
/// let options = Options { tensors: convert::TensorOptions { selection, ..Default::default() }, ..Default::default() };
/// let report = Plan::new(&src, &dst, &options)?.run(&dst, &AtomicBool::new(false), |_| ())?;
/// assert_eq!(report.tensors.len(), 1);
/// assert_eq!(std::fs::read(&dst)?.last_chunk(), Some(&[0x80, 0x3f])); // 1
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Plan {
    way: Way,
    options: Options,
}

#[derive(Debug)]
enum Way {
    ByValue(Box<convert::Plan>),
    Dense(Box<checkpoint::Plan>),
}

impl Plan {
    /// Opens the source and settles what becomes of each tensor. Nothing is written. The scheme `plain` takes codes by value.
    /// Where the destination is a `.gguf` file the source may be the folder of a checkpoint.
    ///
    /// # Errors
    /// Everything that is wrong with the source's header or the options; scales that belong to nothing that is understood.
    pub fn new(src: &Path, dst: &Path, options: &Options) -> Result<Plan, Error> {
        let way = match checkpoint::Plan::of_file(src, dst, options)? {
            OfFile::Quantized(plan) => Way::Dense(plan),
            OfFile::ByValue(source) => Way::ByValue(Box::new(by_value(src, source, dst, &options.tensors)?)),
        };
        Ok(Plan { way, options: options.clone() })
    }

    /// Whether [`run`](Plan::run) could start: the memory, the container's rules, the destination. Nothing is written.
    ///
    /// # Errors
    /// Those of [`run`](Plan::run) that need no data.
    pub fn check(&self, dst: &Path) -> Result<(), Error> {
        match &self.way {
            Way::ByValue(plan) => plan.check(dst, &self.options.tensors),
            Way::Dense(plan) => plan.check_file(dst),
        }
    }

    /// What the report will say, without counts and errors: nothing was read but the header.
    #[must_use]
    pub fn report(&self) -> Report {
        match &self.way {
            Way::ByValue(plan) => plan.report(),
            Way::Dense(plan) => plan.report(),
        }
    }

    /// What a user should know before relying on the result.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        match &self.way {
            Way::ByValue(plan) => plan.warnings(),
            Way::Dense(plan) => plan.warnings(),
        }
    }

    /// What decides the result.
    #[must_use]
    pub fn provenance(&self) -> &Provenance {
        match &self.way {
            Way::ByValue(plan) => plan.provenance(),
            Way::Dense(plan) => plan.provenance(),
        }
    }

    /// Bytes of tensor data that will be read and written.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        match &self.way {
            Way::ByValue(plan) => plan.bytes(),
            Way::Dense(plan) => plan.bytes(),
        }
    }

    /// The file at `path` is the source, or belongs to it.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn is_source(&self, path: &Path) -> Result<bool, Error> {
        match &self.way {
            Way::ByValue(plan) => Ok(plan.source().same_file(path)?),
            Way::Dense(plan) => plan.is_source(path),
        }
    }

    /// The file of external data that comes into being beside a model at `dst`, if one does.
    ///
    /// # Errors
    /// As [`run`](Plan::run), before anything is written.
    pub fn external_data(&self, dst: &Path) -> Result<Option<PathBuf>, Error> {
        match &self.way {
            Way::ByValue(plan) => plan.external_data(dst),
            Way::Dense(_) => Ok(None),
        }
    }

    /// Converts. `progress` is told the source bytes that are done, and the tensor.
    ///
    /// Result: the destination is complete or untouched. Cost: memory within `max_memory` of the options and that of the
    /// header.
    ///
    /// # Errors
    /// Reading, writing, a value that an `error` policy refuses; [`Error::Interrupted`] once `stop` is set.
    pub fn run(
        self,
        dst: &Path,
        stop: &AtomicBool,
        progress: impl FnMut(Progress<'_>) + Send,
    ) -> Result<Report, Error> {
        match self.way {
            Way::ByValue(plan) => plan.run(dst, &self.options.tensors, stop, progress),
            Way::Dense(plan) => plan.run_file(dst, stop, progress),
        }
    }
}

/// The plan of a file whose tensors are taken by value; `source` if it is open already.
fn by_value(
    src: &Path,
    source: Option<Box<Source>>,
    dst: &Path,
    options: &convert::TensorOptions,
) -> Result<convert::Plan, Error> {
    match source {
        Some(source) => convert::Plan::of(*source, dst, options),
        None => convert::Plan::new(src, dst, options),
    }
}

/// A conversion of a file that is to be checked: everything about it is settled, and no element was read.
#[derive(Debug)]
pub struct Verification {
    proof: Proof,
    options: Options,
}

#[derive(Debug)]
enum Proof {
    ByValue(Box<verify::Verification>),
    Dense(Box<checkpoint::Verification>),
}

impl Verification {
    /// Settles what the conversion of `src` under `options` should have written at `dst`, and which elements are recomputed. A
    /// sample is drawn from `seed`.
    ///
    /// # Errors
    /// A source that cannot be read, options that make no sense for it.
    pub fn new(
        src: &Path,
        dst: &Path,
        options: &Options,
        coverage: Coverage,
        seed: u64,
    ) -> Result<Verification, Error> {
        let proof = match checkpoint::Plan::of_file(src, dst, options)? {
            OfFile::Quantized(plan) => Proof::Dense(Box::new(checkpoint::Verification::of(*plan, coverage, seed))),
            OfFile::ByValue(source) => {
                let plan = by_value(src, source, dst, &options.tensors)?;
                Proof::ByValue(Box::new(verify::Verification::of(plan, coverage, seed)))
            }
        };
        Ok(Verification { proof, options: options.clone() })
    }

    /// The element type of a tensor of the source, by the name that it has in the destination.
    #[must_use]
    pub fn source_type(&self, tensor: &str) -> Option<DType> {
        match &self.proof {
            Proof::ByValue(proof) => proof.source_type(tensor),
            Proof::Dense(proof) => proof.source_type(tensor),
        }
    }

    /// The names that the destination's tensors should have.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        match &self.proof {
            Proof::ByValue(proof) => proof.names().collect(),
            Proof::Dense(proof) => proof.names().collect(),
        }
    }

    /// Bytes of the source that will be read.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match &self.proof {
            Proof::ByValue(proof) => proof.bytes(),
            Proof::Dense(proof) => proof.bytes(),
        }
    }

    /// Compares what was written with what should have been, bit for bit, on all threads of the current pool of rayon.
    /// `progress` is told the source bytes that are done, and the tensor.
    ///
    /// # Errors
    /// Files that cannot be read; [`Error::Interrupted`] once `stop` is set. Differences are not errors.
    pub fn run(
        &self,
        dst: &Path,
        stop: &AtomicBool,
        progress: impl FnMut(Progress<'_>) + Send,
    ) -> Result<VerifyReport, Error> {
        match &self.proof {
            Proof::ByValue(proof) => proof.run(dst, &self.options.tensors, stop, progress),
            Proof::Dense(proof) => proof.run(dst, stop, progress),
        }
    }
}
