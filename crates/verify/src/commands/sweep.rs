//! `verify sweep`: all 2^32 elements of f32, i32 or u32, or every N-th block, compared with the reference definition.

use super::parse_rounding;
use crate::adapter::numeric;
use crate::buffers::Source;
use crate::check::{Wanted, against_levels, spec};
use crate::policies::{rounded, variants};
use crate::report::{Report, Sheet};
use crate::session::Session;
use rayon::prelude::*;
use std::time::Instant;
use truecast_core::{CastPolicy, DType, Kind, Rounding};

const BLOCK: u64 = 1 << 16;

#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Source: f32, i32 or u32
    #[arg(long, default_value = "f32", value_parser = parse_source)]
    pub src: DType,
    /// Destinations [default: every sign-magnitude float of at most 19 bits; with --nan every type]
    #[arg(long, value_delimiter = ',')]
    pub dst: Vec<DType>,
    /// Roundings
    #[arg(long, value_delimiter = ',', default_value = "nearest-even", value_parser = parse_rounding)]
    pub rounding: Vec<Rounding>,
    /// Choices of the other policy fields, by name
    #[arg(long, value_delimiter = ',', default_value = "nonfinite,saturate", value_parser = parse_policy)]
    pub policy: Vec<CastPolicy>,
    /// Every N-th block of 2^16 elements; other ones for each seed, destination and policy
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=65536))]
    pub sample: u64,
    /// Only the blocks of NaN and Inf, for f32
    #[arg(long)]
    pub nan: bool,
}

fn parse_source(text: &str) -> Result<DType, String> {
    match text.parse() {
        Ok(src @ (DType::F32 | DType::I32 | DType::U32)) => Ok(src),
        _ => Err("sweeps are over f32, i32 or u32".into()),
    }
}

fn parse_policy(text: &str) -> Result<CastPolicy, String> {
    let names = || variants().map(|v| v.name).collect::<Vec<_>>().join(", ");
    let found = variants().find(|v| v.name == text);
    found.map(|v| v.policy).ok_or_else(|| format!("known are {}", names()))
}

fn is_nan_block(block: u64) -> bool {
    block & 0x7f80 == 0x7f80
}

/// Sign-magnitude floats of at most 19 bits. For other destinations, kernels would be compared with slow code that is
/// equal by construction.
fn narrow_floats() -> Vec<DType> {
    let is_narrow_float = |dst: &DType| matches!(dst.kind(), Kind::Float(f) if f.bits() <= 19);
    numeric().into_iter().filter(is_narrow_float).collect()
}

pub fn run(session: &Session, options: &Options) -> Report {
    let start = Instant::now();
    let Options { src, sample, .. } = *options;
    let seed = session.seed;
    let nan = options.nan && src == DType::F32;
    let dsts = match &options.dst[..] {
        [] if nan => numeric(),
        [] => narrow_floats(),
        dsts => dsts.to_vec(),
    };
    let mut runs = Vec::new();
    for &dst in &dsts {
        for &policy in &options.policy {
            runs.extend(options.rounding.iter().map(|&rounding| (dst, rounded(policy, rounding))));
        }
    }
    let names: Vec<&str> = options.rounding.iter().map(|r| r.name()).collect();
    let covers = session.announce(format!(
        "sweep: {}{} of {src} to {} destinations, roundings {}, {} policies, seed {seed}, levels {}",
        if sample == 1 { "all 2^32 elements".into() } else { format!("every {sample}-th block of 2^16 elements") },
        if nan { " of NaN and Inf" } else { "" },
        dsts.len(),
        names.join(" "),
        options.policy.len(),
        session.level_names()
    ));
    let n_blocks = if nan { 1 << 8 } else { 1 << 16 };
    let bar = session.bar("sweep", runs.len() * n_blocks / sample as usize);
    let mut sheet = Sheet::default();
    for (i, &(dst, policy)) in runs.iter().enumerate() {
        let spec = spec(src, dst, policy);
        let first = (seed.wrapping_add(i as u64)) % sample;
        let blocks = (first..1 << 16).step_by(sample as usize);
        let blocks: Vec<u64> = blocks.filter(|block| !nan || is_nan_block(*block)).collect();
        let found: Vec<Sheet> = blocks
            .par_iter()
            .map(|block| {
                let mut sheet = Sheet::default();
                let src = Source::new(src, (block * BLOCK..(block + 1) * BLOCK).collect());
                let wanted = Wanted::new(session, &spec, &src.elements);
                let tally = against_levels(session, &spec, &src, &wanted, &mut sheet.routes);
                sheet.add(&format!("{} -> {dst}", spec.src), tally);
                bar.inc(1);
                sheet
            })
            .collect();
        sheet.merge(Sheet::total(found));
    }
    bar.finish_and_clear();
    Report { covers, sheet, elapsed: start.elapsed() }
}
