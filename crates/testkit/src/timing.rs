//! Whether time grows as the input does, for tests of what has sizes that could multiply.

use std::time::{Duration, Instant};

/// Asserts that a run over some hundred thousand parts, which are a second of work, is done in a minute, whatever else the
/// machine does. The square of so many takes many minutes.
pub fn assert_linear(run: impl FnOnce()) {
    const LIMIT: Duration = Duration::from_secs(60);
    let begin = Instant::now();
    run();
    assert!(begin.elapsed() < LIMIT, "{:?}", begin.elapsed());
}
