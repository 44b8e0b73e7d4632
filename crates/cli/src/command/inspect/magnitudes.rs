//! Histogram of magnitudes as a line of bars; one bar for each range of powers of two.

use truecast::measure::Powers;

/// Largest number of bars per tensor; half as many in a narrow terminal.
pub fn bars(columns: Option<usize>) -> usize {
    if columns.is_some_and(|columns| columns < 120) { 8 } else { 16 }
}

const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Bars such as `2^-14 ▁▂▅█▇▃ 2^1`, in ascending order. Empty if all values are zero.
pub fn sparkline(powers: &Powers, bars: usize) -> String {
    let Powers { first, counts, .. } = powers;
    if counts.is_empty() {
        return String::new();
    }
    let bars: Vec<u64> = counts.chunks(counts.len().div_ceil(bars)).map(|group| group.iter().sum()).collect();
    let highest = bars.iter().copied().max().unwrap_or(1).max(1);
    let bar = |&count: &u64| match (u128::from(count) * HEIGHTS.len() as u128).div_ceil(highest.into()) {
        0 => ' ',
        height => HEIGHTS[height as usize - 1],
    };
    let bars: String = bars.iter().map(bar).collect();
    match counts.len() {
        1 => format!("2^{first} {bars}"),
        n => format!("2^{first} {bars} 2^{}", first + n as i32 - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_for_each_power_or_group_of_them() {
        let of = |first, counts: &[u64]| sparkline(&Powers { first, counts: counts.into(), ..Powers::default() }, 16);
        assert_eq!(of(-3, &[1, 0, 4, 8]), "2^-3 ▁ ▄█ 2^0");
        assert_eq!((of(7, &[5]), of(0, &[])), ("2^7 █".into(), String::new()));
        // 20 powers, two per bar. A single value among a thousand remains visible.
        assert_eq!(of(-10, &[vec![1], vec![0; 18], vec![1000]].concat()), "2^-10 ▁        █ 2^9");
        assert_eq!(of(0, &[u64::MAX / 2, 1]), "2^0 █▁ 2^1");
    }
}
