//! Builder of a conversion.

use crate::files::convert::options::{Measuring, Options};
use crate::files::convert::plan::Plan;
use crate::files::convert::verification::Verification;
use crate::files::error::Error;
use crate::files::report::Report;
use crate::files::select::{QuantizeOptions, Rule};
use crate::files::verify::{Coverage, VerifyReport};
use crate::request::Request;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use truecast_core::DType;
use truecast_io::Existing;
use truecast_schemes::Scheme;

/// A conversion of a file or a folder. Default options: [`Options::default`].
///
/// # Examples
/// ```
/// use truecast::{DType, convert::Convert};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let (src, dst) = (folder.path().join("a.npy"), folder.path().join("b.npy"));
/// # let mut npy = b"\x93NUMPY\x01\x00\x37\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}".to_vec();
/// # npy.extend(465f32.to_le_bytes());
/// # std::fs::write(&src, npy)?;
/// let conversion = Convert::new(&src, &dst).to(DType::F8E4M3Fn);
/// let report = conversion.run()?;
/// assert_eq!(report.total.all.counts.saturated, 1); // 465 became 448
/// assert!(conversion.verify()?.differences.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is converted before run"]
pub struct Convert {
    src: PathBuf,
    dst: PathBuf,
    options: Options,
}

impl Convert {
    /// Conversion of `src` into `dst`. The name of `dst` determines the kind of file.
    pub fn new(src: impl AsRef<Path>, dst: impl AsRef<Path>) -> Convert {
        Convert { src: src.as_ref().into(), dst: dst.as_ref().into(), options: Options::default() }
    }

    /// Replaces all options.
    pub fn with(self, options: Options) -> Convert {
        Convert { options, ..self }
    }

    /// Converts numeric tensors to this type.
    pub fn to(mut self, dtype: DType) -> Convert {
        self.options.selection.to = Some(dtype);
        self
    }

    /// Selects the elements whose errors are measured. Default: a sample of large tensors.
    pub fn measure(mut self, measure: Measuring) -> Convert {
        self.options.measure = measure;
        self
    }

    /// Keeps the types of tensors with matching names. For each name, the first matching rule applies.
    ///
    /// # Errors
    /// A malformed glob.
    pub fn keep(self, glob: &str) -> Result<Convert, Error> {
        Ok(self.rule(Rule::new(glob, None)?))
    }

    /// Adds a rule. For each name, the first matching rule applies.
    pub fn rule(mut self, rule: Rule) -> Convert {
        self.options.selection.rules.push(rule);
        self
    }

    /// Sets the specification.
    pub fn by(mut self, request: Request) -> Convert {
        self.options.request = request;
        self
    }

    /// Rounds casts stochastically. The seed and an element's index determine the random bits.
    pub fn stochastic(mut self, seed: u64) -> Convert {
        self.options.seed = Some(seed);
        self
    }

    /// Quantizes weights with this scheme.
    pub fn quantize(mut self, scheme: Scheme) -> Convert {
        self.options.quantize = Some(QuantizeOptions::of(scheme));
        self
    }

    /// Allows replacement of an existing destination.
    pub fn replace(mut self) -> Convert {
        self.options.existing = Existing::Replace;
        self
    }

    /// Plans the conversion; writes nothing.
    ///
    /// # Errors
    /// As [`Plan::new`].
    pub fn plan(&self) -> Result<Plan, Error> {
        Plan::new(&self.src, &self.dst, &self.options)
    }

    /// Runs the conversion.
    ///
    /// # Errors
    /// As [`Plan::new`] and [`Plan::run`].
    pub fn run(&self) -> Result<Report, Error> {
        self.plan()?.run(&AtomicBool::new(false), |_| ())
    }

    /// Recomputes the result and compares it with the destination, bit for bit.
    ///
    /// Cost: about a nanosecond per element and core for common conversions. Other conversions take up to 100 ns, and
    /// printed text up to 0.2 ms. A few MiB of memory per core.
    ///
    /// # Errors
    /// Errors of [`Verification::new`] and [`Verification::run`].
    pub fn verify(&self) -> Result<VerifyReport, Error> {
        let verification = Verification::new(&self.src, &self.dst, &self.options, Coverage::Full, 0)?;
        verification.run(&AtomicBool::new(false), |_| ())
    }
}
