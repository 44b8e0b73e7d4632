//! Differences in a tensor, collected from workers in any order.

/// Number of wrong elements, the first wrong element, and the first refused element, which takes precedence.
pub(crate) struct Found<T> {
    pub count: u64,
    pub first: Option<(u64, T)>,
    pub refused: Option<u64>,
}

impl<T> Found<T> {
    pub(crate) fn new() -> Self {
        Found { count: 0, first: None, refused: None }
    }

    pub(crate) fn wrong(&mut self, index: u64, what: impl FnOnce() -> T) {
        self.count += 1;
        if self.first.as_ref().is_none_or(|(first, _)| index < *first) {
            self.first = Some((index, what()));
        }
    }

    pub(crate) fn refuse(&mut self, index: u64) {
        self.refused = Some(self.refused.map_or(index, |first| first.min(index)));
    }

    pub(crate) fn merge(self, other: Found<T>) -> Found<T> {
        let first = match (self.first, other.first) {
            (Some(a), Some(b)) => Some(if a.0 <= b.0 { a } else { b }),
            (a, b) => a.or(b),
        };
        let refused = match (self.refused, other.refused) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Found { count: self.count + other.count, first, refused }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_the_earliest() {
        let found = |indices: &[u64], refused: &[u64]| {
            let mut found = Found::new();
            indices.iter().for_each(|&i| found.wrong(i, || i));
            refused.iter().for_each(|&i| found.refuse(i));
            found
        };
        let both = found(&[12, 9], &[]).merge(found(&[3, 70], &[8, 5])).merge(found(&[], &[6]));
        assert_eq!((both.count, both.first, both.refused), (4, Some((3, 3)), Some(5)));
    }
}
