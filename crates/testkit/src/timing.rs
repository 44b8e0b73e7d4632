//! Check that time grows linearly with the input.

use std::time::{Duration, Instant};

/// Asserts that a run over some hundred thousand parts, about a second of work, ends within a minute on a busy machine.
/// Quadratic time would take many minutes.
pub fn assert_linear(run: impl FnOnce()) {
    const LIMIT: Duration = Duration::from_secs(60);
    let begin = Instant::now();
    run();
    assert!(begin.elapsed() < LIMIT, "{:?}", begin.elapsed());
}
