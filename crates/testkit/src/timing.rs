//! Check for linear running time.

use std::time::{Duration, Instant};

/// Asserts that a run ends within a minute. Linear code takes about a second; quadratic code would take many minutes.
pub fn assert_linear(run: impl FnOnce()) {
    const LIMIT: Duration = Duration::from_secs(60);
    let begin = Instant::now();
    run();
    assert!(begin.elapsed() < LIMIT, "{:?}", begin.elapsed());
}
