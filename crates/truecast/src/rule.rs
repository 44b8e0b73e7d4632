//! Conversion of one pair of types under one request. The reference definition converts, or a kernel with equal
//! results.

use crate::request::{Request, Standard, Tile};
use truecast_core::policy::CastPolicy;
use truecast_core::spec::{Interpretation, SpecError, interpretations, tile};
use truecast_core::{CastSpec, DType, Layout, Outcome, cast_one};
use truecast_kernel::{CastOptions, Caster, Elements, ElementsMut};

#[derive(Clone, Debug)]
pub(crate) enum Rule {
    Cast(CastSpec),
    /// A conversion of Tile IR that is not a single cast.
    Tile(Box<tile::Meaning>),
}

impl Rule {
    /// # Errors
    /// The specification's refusal.
    pub fn new(request: &Request, src: DType, dst: DType) -> Result<Rule, SpecError> {
        Rule::or_of_tile(request.resolve(src, dst), src, || match request.standard {
            Standard::Tile(Tile { cast, .. }) => Some(tile::Cast { to: dst, ..cast }),
            _ => None,
        })
    }

    /// Uses the Tile IR conversion if it is not a single cast.
    fn or_of_tile(
        cast: Result<CastSpec, SpecError>,
        src: DType,
        tile: impl FnOnce() -> Option<tile::Cast>,
    ) -> Result<Rule, SpecError> {
        match cast {
            Err(error @ SpecError::NoSingleCast { .. }) => Ok(Rule::Tile(Box::new(tile().ok_or(error)?.meaning(src)?))),
            cast => cast.map(Rule::Cast),
        }
    }

    pub fn scale_exponent(&self) -> i16 {
        match self {
            Rule::Cast(cast) => cast.policy.scale_exponent,
            Rule::Tile(_) => 0,
        }
    }

    /// True if both rules give equal results. The clauses may differ.
    pub fn is_alike(&self, other: &Rule) -> bool {
        match (self, other) {
            (Rule::Cast(a), Rule::Cast(b)) => (&a.policy, a.undefined) == (&b.policy, b.undefined),
            (Rule::Tile(a), Rule::Tile(b)) => a == b,
            _ => false,
        }
    }

    pub fn outcome(&self, code: u64) -> Outcome {
        match self {
            Rule::Cast(cast) => cast_one(cast, code),
            Rule::Tile(meaning) => meaning.element(code).outcome,
        }
    }

    /// Kernel for the rule. `None` if the rule can refuse a value, is not a single cast, or has no kernel.
    pub fn caster(&self) -> Option<Caster> {
        let Rule::Cast(cast) = self else { return None };
        if cast.policy.refuses() { None } else { Caster::new(cast, &CastOptions::default()).ok() }
    }
}

/// Converts unpacked elements with a kernel.
///
/// # Panics
/// If the conversion refuses a value.
pub(crate) fn converted(caster: &Caster, src: &[u8]) -> Vec<u8> {
    let CastSpec { src: from, dst: to, .. } = *caster.spec();
    let len = src.len() / bytes(from);
    let mut dst = vec![0; len * bytes(to)];
    let source = Elements::with_layout(from, Layout::Bytes, len, src).expect("the buffer has this length");
    let result = ElementsMut::with_layout(to, Layout::Bytes, len, &mut dst[..]).expect("the buffer has this length");
    caster.cast(source, result).expect("no value is refused");
    dst
}

pub(crate) fn bytes(dtype: DType) -> usize {
    dtype.bits_in(Layout::Bytes).expect("numbers have a width") as usize / 8
}

/// All interpretations of a pair. There is one for each name, for each version with a different rule, and for each
/// attribute that affects values out of range. Sorted by group, newest version first.
pub(crate) fn every(src: DType, dst: DType) -> Vec<(Interpretation, Rule)> {
    let of_names = interpretations(src, dst).into_iter().map(|one| {
        let rule = Rule::Cast(one.cast);
        (one, rule)
    });
    let mut all: Vec<_> = of_names.chain(of_tile(src, dst)).collect();
    all.sort_by_key(|(one, _)| one.group());
    all
}

fn of_tile(src: DType, dst: DType) -> Vec<(Interpretation, Rule)> {
    let mut all: Vec<(Interpretation, Rule)> = Vec::new();
    for release in tile::Release::ALL.into_iter().rev() {
        let every = tile::Cast { release, ..tile::Cast::to(dst) }.every_attribute(src);
        // Explicit roundings are tried only if the operation requires one.
        let has_own = every.iter().any(|cast| cast.rounding.is_none());
        let attributes = every.into_iter().filter(|cast| !has_own || cast.rounding.is_none());
        for cast in attributes.flat_map(|cast| tile::Profile::ALL.map(|profile| tile::Cast { profile, ..cast })) {
            let Ok(rule) = Rule::or_of_tile(cast.resolve(src), src, || Some(cast)) else { continue };
            let words = [format!("profile={}", cast.profile.name()), cast.attribute_text()];
            let attributes = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ");
            // Skips an older release with the rule of a newer one.
            let mut same = all.iter().filter(|(one, _)| one.attributes == attributes);
            if same.any(|(_, newer)| newer.is_alike(&rule)) {
                continue;
            }
            let cast = match &rule {
                Rule::Cast(cast) => *cast,
                Rule::Tile(meaning) => {
                    CastSpec { src, dst, policy: CastPolicy::IEEE, undefined: &[], clause: meaning.clause() }
                }
            };
            all.push((Interpretation { spec: "tile", version: release.name().into(), attributes, cast }, rule));
        }
    }
    all
}

/// Applies `work` to `0..count`; in parallel with the feature `parallel`.
pub(crate) fn parallel_map<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    #[cfg(feature = "parallel")]
    return truecast_kernel::parallel::map(count, work);
    #[cfg(not(feature = "parallel"))]
    (0..count).map(work).collect()
}
