//! [`Route`]: the methods that compute a conversion.

use crate::level::Level;
use crate::numbers::op::Op;
use std::fmt;

truecast_core::words! {
    /// Method of computing elements.
    pub enum Method {
        /// Copy of the bytes.
        Copy = "copy",
        /// Table of 256 results, filled by the definition.
        Table8 = "table8",
        /// Table of 65,536 results, filled by the definition.
        Table16 = "table16",
        /// Hand-written kernel from the source through f32 to a narrow float, in one loop.
        Fused = "fused",
        /// Hand-written kernel with the CPU's conversion instructions.
        Instruction = "instruction",
        /// Hand-written kernel from integers to narrower integers.
        Narrow = "narrow",
        /// Compiled loop over a function of one element, or over two functions that are applied one after the other.
        Lane = "lane",
        /// The definition, one element at a time.
        Definition = "definition",
        /// Tables indexed by each byte of a 16-bit element, for long arrays. The other methods of the route fill the
        /// tables.
        Split = "split",
    }
}

impl Method {
    pub(crate) fn of_kernel(ops: &[Op]) -> Method {
        match ops.last() {
            Some(Op::Nearest { .. }) => Method::Fused,
            Some(Op::IntToInt { .. }) => Method::Narrow,
            _ => Method::Instruction,
        }
    }
}

/// Path of a conversion: the methods in order. As text, methods are joined by `+`; methods that fill split tables are
/// in parentheses.
///
/// # Examples
/// ```
/// use truecast_core::{CastSpec, DType};
/// use truecast_kernel::{CastOptions, Caster, Method};
/// let caster = Caster::new(&CastSpec::copy(DType::F32), &CastOptions::default()).unwrap();
/// assert_eq!(caster.route().methods(), [Method::Copy]);
/// assert_eq!(caster.route().to_string(), "copy");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Route(Vec<Method>);

impl Route {
    pub(crate) fn of(methods: impl IntoIterator<Item = Method>) -> Route {
        Route(methods.into_iter().collect())
    }

    /// Route through split tables, which the methods of this route fill.
    pub(crate) fn split(self) -> Route {
        Route::of([Method::Split].into_iter().chain(self.0))
    }

    /// Returns the methods; [`Method::Split`] comes before the methods that fill its tables.
    #[must_use]
    pub fn methods(&self) -> &[Method] {
        &self.0
    }

    /// Returns whether conversions of 131,072 elements or more use a table that shorter conversions do not use.
    #[must_use]
    pub fn fills_a_table(&self) -> bool {
        self.0.iter().any(|method| matches!(method, Method::Split | Method::Table16))
    }

    /// Returns the methods that conversions at a level may use.
    pub fn methods_at(level: Level) -> impl Iterator<Item = Method> {
        use Method::{Copy, Definition, Fused, Instruction, Lane, Narrow, Split, Table8, Table16};
        let by_hand: &[Method] = match level {
            Level::Baseline => &[],
            Level::Neon(_) => &[Fused, Instruction],
            Level::Avx2(_) => &[Fused, Instruction, Narrow],
            Level::Avx512(_) => &[Fused, Instruction, Narrow, Split],
        };
        [Copy, Table8, Table16, Lane, Definition].into_iter().chain(by_hand.iter().copied())
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |methods: &[Method]| methods.iter().map(|method| method.name()).collect::<Vec<_>>().join("+");
        f.pad(&match self.0.as_slice() {
            [Method::Split, filling @ ..] => format!("split({})", joined(filling)),
            methods => joined(methods),
        })
    }
}
