//! `verify all`: runs every command, with all inputs or a small sample (`docs/kernels.md §11`).

use super::{asm, boundary, counts, ftz, properties, rescale, scaled, small, split, sweep, theorem};
use crate::adapter::numeric;
use crate::report::Findings;
use crate::session::Session;

/// Options.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Sampled, for every change: a few minutes on two cores. Without it, hours
    #[arg(long)]
    pub quick: bool,
    /// Seed of everything random
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

fn options<T: clap::Args>(arguments: &[String]) -> T {
    let command = T::augment_args(clap::Command::new("verify").no_binary_name(true));
    let matches = command.get_matches_from(arguments);
    T::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// Runs every command and shows each report.
pub fn run(session: &Session, all: &Options, mut show: impl FnMut(&dyn Findings)) {
    let seed = format!("--seed={}", all.seed);
    let with = |quick: &[&str], full: &[&str]| -> Vec<String> {
        let more = if all.quick { quick } else { full };
        more.iter().map(|s| s.to_string()).chain([seed.clone()]).collect()
    };
    show(&asm::run(session, &options(&["--brief".into()])));
    show(&theorem::run(session, &options(&[])));
    show(&properties::run(session, &options(&with(&["--limit=4096"], &[]))));
    show(&split::run(session, &options(&with(&["--lengths=70", "--elements=70000"], &[]))));
    show(&counts::run(session, &options(&with(&["--limit=12000", "--limit-16=12000"], &[]))));
    show(&rescale::run(session, &options(&with(&["--cases=20"], &["--cases=2000"]))));
    show(&scaled::run(session, &options(&with(&["--cases=2"], &["--cases=200"]))));
    show(&ftz::run(session, &options(&with(&["--limit=4096"], &[]))));
    let quick = ["--limit=40000", "--limit-others=2000", "--random=8000", "--random-policies=2"];
    show(&boundary::run(session, &options(&with(&quick, &[]))));
    let quick = ["--oracle-every=64", "--policy-every=8", "--random-policies=2"];
    show(&small::run(session, &options(&with(&quick, &[]))));
    let mut sweep = |more: &[&str], n: &str| {
        let sample = format!("--sample={n}");
        let quick: Vec<&str> = more.iter().copied().chain([sample.as_str()]).collect();
        show(&sweep::run(session, &options(&with(&quick, more))));
    };
    sweep(&[], "1024");
    sweep(&["--src=i32"], "1024");
    sweep(&["--src=u32"], "1024");
    sweep(&["--dst=bool,i4,i8,u8,i32,u32,i64,f32,f64"], "1024");
    sweep(&["--dst=f8e8m0", "--rounding=away,toward-zero,nearest-up"], "1024");
    let dsts: Vec<&str> = numeric().iter().map(|dst| dst.name()).collect();
    let policies = "--policy=nan-canonical,nan-max-signed,nan-max-positive,nan-to-int-saturate";
    sweep(&["--nan", &format!("--dst={}", dsts.join(",")), policies], "16");
}
