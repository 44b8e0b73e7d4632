//! One pair of types under one request: what becomes of a code, by the definition, and the kernel that does the same.

use crate::request::{Request, Standard, Tile};
use truecast_core::spec::{SpecError, tile};
use truecast_core::{CastSpec, DType, Outcome, cast_one};
use truecast_kernel::{CastOptions, Caster};

/// How one request converts one pair of types.
#[derive(Clone, Debug)]
pub(crate) enum Rule {
    Cast(CastSpec),
    /// Of Tile IR, where it is no single cast.
    Tile(Box<tile::Meaning>),
}

impl Rule {
    /// # Errors
    /// What the specification refuses.
    pub fn of(request: &Request, src: DType, dst: DType) -> Result<Rule, SpecError> {
        match (request.resolve(src, dst), request.standard) {
            (Err(SpecError::NoSingleCast { .. }), Standard::Tile(Tile { cast, .. })) => {
                Ok(Rule::Tile(Box::new(tile::Cast { to: dst, ..cast }.meaning(src)?)))
            }
            (cast, _) => cast.map(Rule::Cast),
        }
    }

    /// What one code becomes.
    pub fn outcome(&self, code: u64) -> Outcome {
        match self {
            Rule::Cast(cast) => cast_one(cast, code),
            Rule::Tile(meaning) => meaning.element(code).outcome,
        }
    }

    /// A kernel, unless some value is refused or the rule is no single cast.
    pub fn caster(&self) -> Option<Caster> {
        let Rule::Cast(cast) = self else { return None };
        if cast.policy.refuses() { None } else { Caster::new(cast, &CastOptions::default()).ok() }
    }
}

/// Maps numbers, on every core where there is a pool of threads.
pub(crate) fn each<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    #[cfg(feature = "parallel")]
    return truecast_kernel::parallel::map(count, work);
    #[cfg(not(feature = "parallel"))]
    (0..count).map(work).collect()
}
