//! Parameters of all checks: definition, levels, seed, display of progress.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use truecast_core::{CastSpec, Outcome, cast_one};
use truecast_kernel::Level;

/// Reference definition of conversions. Only tests of the driver replace `cast_one`.
pub type Definition = fn(&CastSpec, u64) -> Outcome;

#[derive(Clone, Debug)]
pub struct Session {
    /// Levels to run, weakest first.
    pub levels: Vec<Level>,
    /// Reference definition for kernels and oracle.
    pub definition: Definition,
    pub seed: u64,
    /// Display of progress.
    pub progress: Progress,
}

/// Display of progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Description on standard output; progress bar on standard error if it is a terminal.
    Shown,
    Hidden,
}

impl Session {
    /// Session with every level of this CPU, `cast_one` and seed 1.
    pub fn new(progress: Progress) -> Session {
        Session { levels: Level::available(), definition: cast_one, seed: 1, progress }
    }

    pub fn strongest(&self) -> Level {
        self.levels.last().copied().unwrap_or(Level::Baseline)
    }

    pub fn level_names(&self) -> String {
        self.levels.iter().map(|level| level.name()).collect::<Vec<_>>().join(" ")
    }

    /// Prints the description of the tested inputs, and returns it.
    pub fn announce(&self, covers: String) -> String {
        if self.progress == Progress::Shown {
            println!("{covers}");
        }
        covers
    }

    /// Progress bar with `n` steps.
    pub fn bar(&self, what: &str, n: usize) -> ProgressBar {
        let target = match self.progress {
            Progress::Shown => ProgressDrawTarget::stderr(),
            Progress::Hidden => ProgressDrawTarget::hidden(),
        };
        let style = ProgressStyle::with_template("{msg} [{bar:40}] {pos}/{len} {elapsed} (left {eta})");
        let bar = ProgressBar::with_draw_target(Some(n as u64), target);
        bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())).with_message(what.to_owned())
    }
}
