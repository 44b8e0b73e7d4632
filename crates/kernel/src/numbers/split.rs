//! Results of 16-bit codes, split into tables for the two bytes of a code (`docs/kernels.md §2.4`).
//!
//! Consider the codes that have one upper byte, in a conversion to few bits. Most of their results are a base plus a
//! small step that depends on the lower byte. These steps are the profile of the upper byte. Many upper bytes have
//! equal profiles.

/// Tables whose bytes add up to the result of a code, modulo 256: `base[upper] + step[profile[upper] + class[lower]]`.
#[derive(Debug)]
pub(crate) struct Split {
    /// Result of the code that has this upper byte and the lower byte 0.
    pub base: [u8; 256],
    /// Position in `step` at which the profile of the upper byte begins.
    pub profile: [u8; 256],
    /// Class of each lower byte. Lower bytes that no profile distinguishes have the same class.
    pub class: [u8; 256],
    pub step: [u8; 256],
    /// Whether only the first 128 steps are used.
    pub short: bool,
}

impl Split {
    /// Splits the results of all codes, by upper and lower byte; `None` if `step` is too small.
    pub fn of(results: &[[u8; 256]]) -> Option<Split> {
        let profiles: Vec<[u8; 256]> =
            results.iter().map(|row| row.map(|result| result.wrapping_sub(row[0]))).collect();
        let (profiles, profile_of) = distinct(&profiles);
        let columns: Vec<Vec<u8>> = (0..256).map(|lower| profiles.iter().map(|steps| steps[lower]).collect()).collect();
        let (columns, class_of) = distinct(&columns);
        let (classes, used) = (columns.len(), columns.len() * profiles.len());
        if used > 256 {
            return None;
        }
        let mut step = [0; 256];
        for (class, column) in columns.iter().enumerate() {
            for (profile, &s) in column.iter().enumerate() {
                step[profile * classes + class] = s;
            }
        }
        Some(Split {
            base: std::array::from_fn(|upper| results[upper][0]),
            profile: std::array::from_fn(|upper| (profile_of[upper] * classes) as u8),
            class: std::array::from_fn(|lower| class_of[lower] as u8),
            step,
            short: used <= 128,
        })
    }
}

fn distinct<T: PartialEq + Clone>(values: &[T]) -> (Vec<T>, Vec<usize>) {
    let mut found: Vec<T> = Vec::new();
    let index_of = |value: &T| {
        found.iter().position(|known| known == value).unwrap_or_else(|| {
            found.push(value.clone());
            found.len() - 1
        })
    };
    let which = values.iter().map(index_of).collect();
    (found, which)
}

#[cfg(test)]
mod tests {
    use super::Split;

    fn rounded() -> Vec<[u8; 256]> {
        let result = |code: usize| if code > 0xfff0 { 0xff } else { ((code + 0x80) >> 9) as u8 };
        (0..256).map(|upper| std::array::from_fn(|lower| result(upper << 8 | lower))).collect()
    }

    #[test]
    fn parts_add_up_to_the_results() {
        let results = rounded();
        let split = Split::of(&results).unwrap();
        for (upper, row) in results.iter().enumerate() {
            for (lower, &result) in row.iter().enumerate() {
                let step = split.step[split.profile[upper] as usize + split.class[lower] as usize];
                assert_eq!(split.base[upper].wrapping_add(step), result, "{upper:#x} {lower:#x}");
            }
        }
    }

    #[test]
    fn room_for_steps_is_asked_for() {
        // 17 profiles of 16 classes.
        let row = |upper: usize| std::array::from_fn(|lower| if lower < 16 { (lower * (upper % 17)) as u8 } else { 0 });
        let results: Vec<[u8; 256]> = (0..256).map(row).collect();
        assert!(Split::of(&results).is_none());
        assert!(Split::of(&rounded()).unwrap().short);
    }
}
