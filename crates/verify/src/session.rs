//! Common parameters of every check: the definition, the levels, and the display of progress.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use truecast_core::{CastSpec, Outcome, cast_one};
use truecast_kernel::Level;

/// The definition of conversions. Only tests of the driver use a definition other than `cast_one`.
pub type Definition = fn(&CastSpec, u64) -> Outcome;

/// Common parameters of every check.
#[derive(Clone, Debug)]
pub struct Session {
    /// Levels to run, weakest first.
    pub levels: Vec<Level>,
    /// Definition that kernels and oracle are compared with.
    pub definition: Definition,
    /// Whether progress is shown.
    pub progress: Progress,
}

/// Whether progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Coverage on standard output, and a bar on standard error if that is a terminal.
    Escaped,
    /// Hidden.
    Hidden,
}

impl Session {
    /// Makes a session that compares every level of this CPU with `cast_one`.
    pub fn new(progress: Progress) -> Session {
        Session { levels: Level::available(), definition: cast_one, progress }
    }

    /// The strongest level of the session.
    pub fn strongest(&self) -> Level {
        self.levels.last().copied().unwrap_or(Level::Baseline)
    }

    /// The levels by name.
    pub fn level_names(&self) -> String {
        self.levels.iter().map(|level| level.name()).collect::<Vec<_>>().join(" ")
    }

    /// Announces the coverage, and returns it.
    pub fn announce(&self, covers: String) -> String {
        if self.progress == Progress::Escaped {
            println!("{covers}");
        }
        covers
    }

    /// Makes a progress bar of `n` steps.
    pub fn bar(&self, what: &str, n: usize) -> ProgressBar {
        let target = match self.progress {
            Progress::Escaped => ProgressDrawTarget::stderr(),
            Progress::Hidden => ProgressDrawTarget::hidden(),
        };
        let style = ProgressStyle::with_template("{msg} [{bar:40}] {pos}/{len} {elapsed} (left {eta})");
        let bar = ProgressBar::with_draw_target(Some(n as u64), target);
        bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())).with_message(what.to_owned())
    }
}
