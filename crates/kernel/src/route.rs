//! [`Route`]: which loops the elements of a conversion go through.

use crate::level::Level;
use crate::numbers::op::Op;
use std::borrow::Cow;
use std::fmt;

/// The path of a conversion, to be read by people: what its elements go through, in order, joined by `+`.
///
/// | step | what it is |
/// |---|---|
/// | `copy` | bytes as they are |
/// | `table8` | 256 results, filled by the definition |
/// | `table16` | 65,536 results, filled by the definition |
/// | `fused` | a kernel written by hand: from the source through f32 to a narrow float in one loop |
/// | `instruction` | a kernel written by hand around the CPU's conversion instructions |
/// | `narrow` | a kernel written by hand: integers to narrower ones |
/// | `lane` | a compiled loop over a function of one element |
/// | `split(..)` | long arrays by tables of two bytes of an element, which were filled by the path in parentheses |
/// | `definition` | the definition, one element at a time |
///
/// # Examples
/// ```
/// use truecast_core::{CastSpec, DType};
/// use truecast_kernel::{CastOptions, Caster};
/// let caster = Caster::new(&CastSpec::copy(DType::F32), &CastOptions::default()).unwrap();
/// assert_eq!(caster.route().to_string(), "copy");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Route(Cow<'static, str>);

impl Route {
    pub(crate) const COPY: Route = Route(Cow::Borrowed("copy"));
    pub(crate) const TABLE8: Route = Route(Cow::Borrowed("table8"));
    pub(crate) const TABLE16: Route = Route(Cow::Borrowed("table16"));
    pub(crate) const LANE: Route = Route(Cow::Borrowed("lane"));
    pub(crate) const DEFINITION: Route = Route(Cow::Borrowed("definition"));

    /// Of a kernel written by hand for these operations.
    pub(crate) fn kernel_of(ops: &[Op]) -> Route {
        Route(Cow::Borrowed(match ops.last() {
            Some(Op::Nearest { .. }) => "fused",
            Some(Op::IntToInt { .. }) => "narrow",
            _ => "instruction",
        }))
    }

    /// One step after the other.
    pub(crate) fn chain(steps: &[Route]) -> Route {
        let names: Vec<&str> = steps.iter().map(|step| &*step.0).collect();
        Route(Cow::Owned(names.join("+")))
    }

    /// By split tables that this path fills.
    pub(crate) fn split(self) -> Route {
        Route(Cow::Owned(format!("split({})", self.0)))
    }

    /// Whether a conversion of 131,072 elements or more goes through a table that shorter ones do not have.
    #[must_use]
    pub fn fills_a_table(&self) -> bool {
        self.steps().any(|step| matches!(step, "split" | "table16"))
    }

    /// The names of the steps that conversions at a level are made of.
    pub fn steps_at(level: Level) -> impl Iterator<Item = &'static str> {
        let by_hand: &[&str] = match level {
            Level::Baseline => &[],
            Level::Neon(_) => &["fused", "instruction"],
            Level::Avx2(_) => &["fused", "instruction", "narrow"],
            Level::Avx512(_) => &["fused", "instruction", "narrow", "split"],
        };
        ["copy", "table8", "table16", "lane", "definition"].into_iter().chain(by_hand.iter().copied())
    }

    /// The names of its steps, those in parentheses after the one around them.
    pub fn steps(&self) -> impl Iterator<Item = &str> {
        self.0.split(['+', '(', ')']).filter(|step| !step.is_empty())
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
