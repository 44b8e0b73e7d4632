//! Progress of long work, on a terminal only.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// A bar over bytes on standard error; silent unless that is a terminal.
pub fn bytes(total: u64, quiet: bool) -> ProgressBar {
    let bar = bar(total, quiet, "{bar:30} {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left");
    // Short work should not flicker.
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

/// A bar over steps that have names. It moves between steps only: nothing runs beside what is measured.
pub fn steps(total: u64, quiet: bool) -> ProgressBar {
    bar(total, quiet, "{bar:30} {pos}/{len}  {eta} left  {msg}")
}

fn bar(total: u64, quiet: bool, template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(10));
    if quiet {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    bar.set_style(ProgressStyle::with_template(template).expect("the template is a constant"));
    bar
}
