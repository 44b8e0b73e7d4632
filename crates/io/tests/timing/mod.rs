//! Whether time grows as the input does: tests of what has sizes that could multiply include this file by its path.

use std::time::{Duration, Instant};

/// Asserts that what is made for a size eight times as large takes less than 24 times as long. The square takes 64.
///
/// What else the machine does only makes runs longer: the shortest of each size count, of as many as it takes.
pub fn assert_linear<T>(small: usize, make: impl Fn(usize) -> T, run: impl Fn(&T)) {
    const LEAST: usize = 3;
    const MOST: usize = 40;
    let (few, many) = (make(small), make(8 * small));
    let time = |made: &T| {
        let begin = Instant::now();
        run(made);
        begin.elapsed()
    };
    let (mut less, mut more) = (Duration::MAX, Duration::MAX);
    for round in 1..=MOST {
        (less, more) = (less.min(time(&few)), more.min(time(&many)));
        if round >= LEAST && more < 24 * less {
            return;
        }
    }
    panic!("{small}: {less:?}, 8 times as many: {more:?}");
}
