//! One pair of types under one request: what becomes of a code, by the definition, and the kernel that does the same.

use crate::request::{Request, Standard, Tile};
use truecast_core::spec::{SpecError, tile};
use truecast_core::{CastSpec, DType, Layout, Outcome, cast_one};
use truecast_kernel::{CastOptions, Caster, Elements, ElementsMut};

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

/// What a kernel makes of codes, an element in its bytes each.
///
/// # Panics
/// If the conversion refuses one.
pub(crate) fn converted(caster: &Caster, codes: impl Iterator<Item = u64>) -> Vec<u8> {
    let CastSpec { src: from, dst: to, .. } = *caster.spec();
    let mut src = Vec::new();
    codes.for_each(|code| src.extend(&from.storage_of_code(code).to_le_bytes()[..bytes(from)]));
    let len = src.len() / bytes(from);
    let mut dst = vec![0; len * bytes(to)];
    let source = Elements::with_layout(from, Layout::Bytes, len, &src[..]).expect("the buffer has this length");
    let result = ElementsMut::with_layout(to, Layout::Bytes, len, &mut dst[..]).expect("the buffer has this length");
    caster.cast(source, result).expect("no value is refused");
    dst
}

/// Bytes of an element that is not packed.
pub(crate) fn bytes(dtype: DType) -> usize {
    dtype.bits_in(Layout::Bytes).expect("numbers have a width") as usize / 8
}

/// Maps numbers, on every core where there is a pool of threads.
pub(crate) fn each<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    #[cfg(feature = "parallel")]
    return truecast_kernel::parallel::map(count, work);
    #[cfg(not(feature = "parallel"))]
    (0..count).map(work).collect()
}
