//! Whether time grows as the input does: tests of what has sizes that could multiply include this file by its path.

use std::time::{Duration, Instant};

/// The shortest of several runs: what else the machine does only makes runs longer.
fn shortest(mut run: impl FnMut()) -> Duration {
    let mut once = || {
        let begin = Instant::now();
        run();
        begin.elapsed()
    };
    (0..5).map(|_| once()).min().expect("there are runs")
}

/// Asserts that what is made for a size eight times as large takes less than 24 times as long. The square takes 64.
pub fn assert_linear<T>(small: usize, make: impl Fn(usize) -> T, run: impl Fn(&T)) {
    let time = |n: usize| {
        let made = make(n);
        shortest(|| run(&made))
    };
    let (less, more) = (time(small), time(8 * small));
    assert!(more < 24 * less, "{small}: {less:?}, 8 times as many: {more:?}");
}
