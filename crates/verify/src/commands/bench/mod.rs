//! `verify bench`: figures for changes of the engine, at each level. Pairs, values, buffers, time and the limit are those
//! of `truecast bench` (`docs/kernels.md §13`). Each result is a line of fields, with tabs between them.

mod scaled;

use crate::session::Session;
use clap::builder::PossibleValuesParser;
use std::error::Error;
use std::num::NonZeroUsize;
use truecast::request::Request;
use truecast_cli::bench::{Arrays, Size, clock, data, pairs, planned, pools};
use truecast_kernel::{Caches, CastOptions, Counting, Elements, Level};

/// The figures.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Bench {
    /// The route of each pair: from, to, level, route
    Routes {
        /// Pairs of types, or `all` [default: those of `truecast bench`]
        #[arg(long, value_name = "SRC:DST,..", value_delimiter = ',')]
        pairs: Vec<String>,
    },
    /// Conversions that compute all counts, on one thread: from, to, level, GB/s, ratio to GB/s without counts
    Counts {
        /// Pairs of types, or `all` [default: those of `truecast bench`]
        #[arg(long, value_name = "SRC:DST,..", value_delimiter = ',')]
        pairs: Vec<String>,
        /// Bytes of source and destination, as in `truecast bench`
        #[arg(long, default_value = "llc")]
        size: Size,
        /// Number of samples; the fastest sample counts
        #[arg(long, value_name = "N", default_value = "7")]
        best_of: NonZeroUsize,
    },
    /// Quantized formats, on one thread, out of cache: layout, direction, level, GB/s, ratio to the limit
    Scaled {
        /// Layouts [default: all]
        #[arg(value_parser = PossibleValuesParser::new(scaled::names()))]
        layouts: Vec<String>,
        /// Number of samples; the fastest sample counts
        #[arg(long, value_name = "N", default_value = "7")]
        best_of: NonZeroUsize,
    },
}

/// Prints the figures at each level of the session.
///
/// # Errors
/// Pairs that no default rule converts, and buffers that do not fit into memory.
pub fn run(session: &Session, what: &Bench) -> Result<(), Box<dyn Error>> {
    session.levels.iter().try_for_each(|&level| match what {
        Bench::Routes { pairs } => routes(level, pairs),
        Bench::Counts { pairs, size, best_of } => counts(level, pairs, *size, *best_of),
        Bench::Scaled { layouts, best_of } => Ok(scaled::run(layouts, level, *best_of)?),
    })
}

fn routes(level: Level, pairs: &[String]) -> Result<(), Box<dyn Error>> {
    let request = Request::default();
    for (src, dst) in pairs::chosen(pairs, &request)? {
        let caster = planned((src, dst), &request, &CastOptions { level, ..CastOptions::default() })?;
        println!("{src}\t{dst}\t{level}\t{}", caster.route());
    }
    Ok(())
}

fn counts(level: Level, pairs: &[String], size: Size, best_of: NonZeroUsize) -> Result<(), Box<dyn Error>> {
    let (request, caches) = (Request::default(), Caches::of_this_machine());
    let exec = CastOptions { level, threads: NonZeroUsize::MIN, ..CastOptions::default() };
    for (src, dst) in pairs::chosen(pairs, &request)? {
        let plain = planned((src, dst), &request, &exec)?;
        let counting = planned((src, dst), &request, &CastOptions { counting: Counting::Full, ..exec })?;
        let Arrays { len, src_bytes, dst_bytes } = Arrays::new(src, dst, size, &caches).expect("text is never planned");
        let [mut from, mut to] = pools([src_bytes, dst_bytes])?;
        data::fill(src, from.bytes_mut());
        let codes = Elements::new(src, len, from.bytes())?;
        let passes = [clock::conversion(&plain, codes), clock::conversion(&counting, codes)];
        let seconds = clock::best_of(best_of, &passes, to.bytes_mut())?;
        let gbps = (src_bytes + dst_bytes) as f64 / seconds[1] / 1e9;
        println!("{src}\t{dst}\t{level}\t{gbps:.1}\t{:.2}", seconds[0] / seconds[1]);
    }
    Ok(())
}
