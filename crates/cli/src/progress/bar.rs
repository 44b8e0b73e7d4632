//! Progress bar in one line on standard error. Only on terminals; removed when the work is done.

use crate::message::one_line;
use crate::number;
use crate::output;
use crate::table::shorten::shortened;
use crate::terminal::{self, Terminal};
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle, WeakProgressBar};
use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use truecast::Progress;
use unicode_width::UnicodeWidthStr;

/// Smallest width of the bar in columns. Words that leave less room are omitted.
const LEAST_BAR: usize = 10;
/// Smallest and largest width of the tensor's name in columns.
const NAME: (usize, usize) = (16, 40);

/// Delay before the first drawing; a bar for shorter work would flicker.
const PATIENCE: Duration = Duration::from_millis(300);

/// Progress bar for bytes. Hidden if `quiet`, for answers in Python, or if standard error is not a terminal.
pub fn bytes(total: u64, quiet: bool) -> Bar {
    Bar::new(total, quiet, |state| {
        let (done, all) = (number::bytes(state.pos()), number::bytes(state.len().unwrap_or(0)));
        let rate = number::rate(state.pos(), state.elapsed().as_secs_f64()).unwrap_or_default();
        Words { done: format!("{done:>8} of {all}"), rate: format!("{rate:>10}"), ..Words::new(state) }
    })
}

/// Runs `hash` while a bar shows its progress. `hash` reports the length of each piece of a file that it read.
pub fn hashing<T>(total: u64, quiet: bool, hash: impl FnOnce(&(dyn Fn(&Path, u64) + Sync)) -> T) -> T {
    let bar = bytes(total, quiet);
    let hashed = hash(&|path, bytes| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        bar.more(bytes, &format!("hashing {name}"));
    });
    bar.finish();
    hashed
}

/// Progress bar for steps. Drawn only between steps, so that no drawing thread disturbs a measurement.
pub fn steps(total: u64, quiet: bool) -> Bar {
    Bar::new(total, quiet, |state| {
        let all = number::grouped(state.len().unwrap_or(0));
        Words { done: format!("{:>1$} of {all}", number::grouped(state.pos()), all.len()), ..Words::new(state) }
    })
}

static SHOWN: Mutex<Option<WeakProgressBar>> = Mutex::new(None);

pub fn take_away() {
    let shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(line) = shown.and_then(|line| line.upgrade()) {
        line.finish_and_clear();
    }
}

pub struct Bar {
    line: ProgressBar,
    begin: Instant,
    /// True if the bar is already drawn, or will never be drawn (`quiet`, in Python, dumb terminal).
    settled: AtomicBool,
    name: Arc<Mutex<String>>,
}

impl Bar {
    /// Makes a bar. The bar fills the columns left by the words.
    fn new(total: u64, quiet: bool, words: impl Fn(&ProgressState) -> Words + Clone + Send + Sync + 'static) -> Self {
        let line = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        let settled = AtomicBool::new(quiet || output::is_captured() || terminal::is_dumb());
        let name = Arc::new(Mutex::new(String::new()));
        let shown = name.clone();
        let style = ProgressStyle::with_template("{wide_bar}{words}").expect("the template is a constant");
        line.set_style(style.with_key("words", move |state: &ProgressState, out: &mut dyn Write| {
            let width = Terminal::stderr().width.unwrap_or(usize::MAX);
            let name = shown.lock().unwrap_or_else(PoisonError::into_inner);
            // A failure to draw is ignored.
            out.write_str(&words(state).beside_bar(&name, width)).ok();
        }));
        Self { line, begin: Instant::now(), settled, name }
    }

    pub fn at(&self, progress: Progress<'_>) {
        if self.moved(progress.tensor) {
            self.line.set_position(progress.bytes);
        }
    }

    /// Adds `done` steps; `name` is the last step.
    pub fn more(&self, done: u64, name: &str) {
        self.moved(name);
        self.line.inc(done);
    }

    pub fn finish(&self) {
        self.line.finish_and_clear();
    }

    /// Sets the name. Draws the bar for the first time after [`PATIENCE`]. Returns true if the bar is visible.
    fn moved(&self, name: &str) -> bool {
        if !self.settled.load(Ordering::Relaxed) && self.begin.elapsed() >= PATIENCE {
            self.settled.store(true, Ordering::Relaxed);
            self.line.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
            *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.line.downgrade());
            self.line.tick();
        }
        if self.line.is_hidden() {
            return false;
        }
        let mut shown = self.name.lock().unwrap_or_else(PoisonError::into_inner);
        if *shown != name {
            *shown = name.into();
        }
        true
    }
}

struct Words {
    percent: String,
    done: String,
    rate: String,
    left: String,
}

impl Words {
    fn new(state: &ProgressState) -> Self {
        // The first percent of the work does not predict the remaining time.
        let left =
            if state.fraction() >= 0.01 { format!("{:#} left", HumanDuration(state.eta())) } else { String::new() };
        let percent = (100.0 * state.fraction()).floor();
        Words {
            percent: format!("{percent:3} %"),
            done: String::new(),
            rate: String::new(),
            left: format!("{left:>8}"),
        }
    }

    /// The most important words that fit, and the name if there is room.
    fn beside_bar(&self, name: &str, width: usize) -> String {
        let mut room = width.saturating_sub(LEAST_BAR);
        let mut fits = |word: &str| {
            let taken = if word.is_empty() { 0 } else { 2 + word.width() };
            let fits = taken <= room;
            room -= if fits { taken } else { 0 };
            fits
        };
        // In order of importance.
        let [percent, left, done, rate] =
            [&self.percent, &self.left, &self.done, &self.rate].map(|word| if fits(word) { word.as_str() } else { "" });
        let mut line = String::new();
        for word in [percent, done, rate, left].into_iter().filter(|word| !word.is_empty()) {
            line += "  ";
            line += word;
        }
        // Padding keeps the width of the line constant.
        let columns = room.saturating_sub(2).min(NAME.1);
        if columns >= NAME.0 && !name.is_empty() {
            let name = shortened(&one_line(name), columns);
            let spaces = columns - name.width();
            line += &format!("  {name}{:spaces$}", "");
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> Words {
        let [percent, done, rate, left] =
            [" 12 %", "86.7 MiB of 1.00 GiB", "  512 MiB/s", " 3s left"].map(String::from);
        Words { percent, done, rate, left }
    }

    #[test]
    fn a_line_fits_any_terminal() {
        for width in 20..200 {
            let beside = words().beside_bar("encoder.layer.5.attention.output.LayerNorm.weight", width);
            assert!(beside.width() + LEAST_BAR <= width, "{width}: {beside:?}");
        }
    }

    #[test]
    fn what_matters_most_stays_longest() {
        let at = |width| words().beside_bar("layer.weight", width);
        assert_eq!(at(20), "   12 %");
        assert_eq!(at(30), "   12 %   3s left");
        assert_eq!(at(60), "   12 %  86.7 MiB of 1.00 GiB   3s left");
        assert!(at(100).starts_with("   12 %  86.7 MiB of 1.00 GiB    512 MiB/s   3s left  layer.weight "));
    }

    #[test]
    fn a_name_cannot_move_the_cursor() {
        assert!(words().beside_bar("a\u{1b}[2J", 100).contains("a\\u{1b}[2J"));
    }
}
