//! Progress of long work, on a terminal only.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// A bar over bytes on standard error; silent unless that is a terminal.
pub fn bytes(total: u64, quiet: bool) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(10));
    if quiet {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    let style = ProgressStyle::with_template("{bar:30} {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left");
    bar.set_style(style.expect("the template is a constant"));
    // Short work should not flicker.
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}
