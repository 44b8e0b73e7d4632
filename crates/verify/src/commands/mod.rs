//! The commands: each has inputs, comparisons and a report.

pub mod all;
pub mod asm;
pub mod bench;
pub mod boundary;
pub mod counts;
pub mod ftz;
pub mod properties;
pub mod rescale;
pub mod scaled;
pub mod small;
pub mod split;
pub mod sweep;
pub mod theorem;

use crate::adapter::numeric;
use crate::report::{Report, Sheet};
use crate::session::Session;
use rayon::prelude::*;
use std::time::Instant;
use truecast_core::{DType, Rounding};

/// Parses a rounding by its name on the command line.
///
/// # Errors
/// The valid names.
pub fn parse_rounding(text: &str) -> Result<Rounding, String> {
    let names = || Rounding::ALL.map(Rounding::name).join(", ");
    Rounding::of_name(text).ok_or_else(|| format!("known are {}", names()))
}

/// The pairs of types that a command checks.
#[derive(Clone, Debug, clap::Args)]
pub struct Chosen {
    /// Only these sources
    #[arg(long, value_delimiter = ',')]
    pub src: Vec<DType>,
    /// Only these destinations
    #[arg(long, value_delimiter = ',')]
    pub dst: Vec<DType>,
}

impl Chosen {
    /// Chosen source types of a kind, widest first.
    fn sources(&self, is_of_kind: impl Fn(DType) -> bool) -> Vec<DType> {
        let mut sources = numeric();
        sources.retain(|src| is_of_kind(*src) && is_among(&self.src, *src));
        sources.sort_by_key(|src| std::cmp::Reverse(src.storage_bits()));
        sources
    }

    fn pairs(&self, sources: &[DType]) -> Vec<(DType, DType)> {
        let dsts: Vec<DType> = numeric().into_iter().filter(|dst| is_among(&self.dst, *dst)).collect();
        sources.iter().flat_map(|&src| dsts.iter().map(move |&dst| (src, dst))).collect()
    }
}

/// True for a type in the list; an empty list has all types.
fn is_among(list: &[DType], dtype: DType) -> bool {
    list.is_empty() || list.contains(&dtype)
}

/// Runs units in parallel with a progress bar, and adds their findings in order.
fn over<T: Sync>(
    session: &Session,
    covers: String,
    what: &str,
    units: &[T],
    one: impl Fn(&T, &mut Sheet) + Sync,
) -> Report {
    let start = Instant::now();
    let covers = session.announce(covers);
    let bar = session.bar(what, units.len());
    let found: Vec<Sheet> = units
        .par_iter()
        .with_max_len(1)
        .map(|unit| {
            let mut sheet = Sheet::default();
            one(unit, &mut sheet);
            bar.inc(1);
            sheet
        })
        .collect();
    bar.finish_and_clear();
    Report { covers, sheet: Sheet::total(found), elapsed: start.elapsed() }
}
