//! Order of a tensor's elements in a model's folder and in a file of llama.cpp (`docs/spec/checkpoints.md §9.12`).

use super::hyperparameters::Dimensions;
use super::strided::Strided;

/// Rearrangement of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// The elements stay in order.
    AsIs,
    /// Rows of each head: the halves that a rotation pairs become neighbors.
    Rotary,
    /// Rows of a head's keys, transposed: the first rows of each head of `kv_b_proj`.
    KeyRows,
    /// Rows of a head's values: the other rows.
    ValueRows,
    /// Even rows, or odd rows, of each expert.
    Interleaved(u64),
    /// Matrices with one row for each input become matrices with one row for each output.
    Transposed,
}

impl How {
    /// Shape in the folder of a tensor whose first result has `shape`.
    pub fn shape_in_folder(self, shape: &[u64], dimensions: Dimensions<'_>) -> Vec<u64> {
        match (self, shape) {
            (How::KeyRows, [heads, rank, _]) => {
                vec![heads.saturating_mul(dimensions.key_rows.saturating_add(dimensions.value_rows)), *rank]
            }
            (How::Interleaved(_), [experts, rows]) => vec![*experts, 2 * rows],
            (How::Interleaved(_), [experts, rows, inputs]) => vec![*experts, *inputs, 2 * rows],
            (How::Transposed, [experts, outputs, inputs]) => vec![*experts, *inputs, *outputs],
            _ => shape.to_vec(),
        }
    }
}

/// A tensor of a folder as axes. The result has them in another order, and a part of one of them.
#[derive(Clone, Debug)]
pub(super) struct Arrangement {
    /// Shape of the result.
    pub shape: Vec<u64>,
    /// Lengths of the axes in the folder, outermost first.
    axes: Vec<u64>,
    /// Axes in the order of the result.
    order: Vec<usize>,
    /// Axis of which the result has a part, and the first element of the part and its length.
    part: Option<(usize, u64, u64)>,
}

impl Arrangement {
    /// Arrangement of a tensor that has `shape` in the folder, for the result `name`. `None` if that does not fit.
    ///
    /// `has_input_rows`: matrices of fused experts have one row for each input.
    pub fn new(
        name: &str,
        how: How,
        shape: &[u64],
        dimensions: Dimensions<'_>,
        has_input_rows: bool,
    ) -> Option<Arrangement> {
        let as_it_is = shape.to_vec();
        let Dimensions { heads, key_rows, value_rows, .. } = dimensions;
        let (shape_of_result, axes, order, part) = match (how, shape) {
            (How::Transposed, [outer @ .., rows, cols]) if has_input_rows => {
                let axes = vec![outer.iter().product(), *rows, *cols];
                ([outer, &[*cols, *rows]].concat(), axes, vec![0, 2, 1], None)
            }
            (How::AsIs | How::Transposed, _) => (as_it_is, vec![shape.iter().product()], vec![0], None),
            (How::Rotary, [rows, cols @ ..]) => {
                let heads = if name.contains(".attn_k.") { dimensions.kv_heads } else { heads };
                let axes = vec![heads, 2, rows.checked_div(heads)? / 2, cols.iter().product()];
                (as_it_is, axes, vec![0, 2, 1, 3], None)
            }
            (How::KeyRows, [_, rank]) => {
                let axes = vec![heads, key_rows.saturating_add(value_rows), *rank];
                (vec![heads, *rank, key_rows], axes, vec![0, 2, 1], Some((1, 0, key_rows)))
            }
            (How::ValueRows, [_, rank]) => {
                let axes = vec![heads, key_rows.saturating_add(value_rows), *rank];
                (vec![heads, value_rows, *rank], axes, vec![0, 1, 2], Some((1, key_rows, value_rows)))
            }
            (How::Interleaved(which), [experts, rows]) => {
                (vec![*experts, rows / 2], vec![*experts, rows / 2, 2], vec![0, 1, 2], Some((2, which, 1)))
            }
            (How::Interleaved(which), [experts, inputs, outputs]) if has_input_rows => {
                let axes = vec![*experts, *inputs, outputs / 2, 2];
                (vec![*experts, outputs / 2, *inputs], axes, vec![0, 2, 1, 3], Some((3, which, 1)))
            }
            (How::Interleaved(which), [experts, rows, cols]) => {
                let axes = vec![*experts, rows / 2, 2, *cols];
                (vec![*experts, rows / 2, *cols], axes, vec![0, 1, 2, 3], Some((2, which, 1)))
            }
            _ => return None,
        };
        let len = |of: &[u64]| of.iter().try_fold(1u64, |len, axis| len.checked_mul(*axis));
        (len(&axes)? == len(shape)?).then_some(Arrangement { shape: shape_of_result, axes, order, part })
    }

    /// Length of an axis in the result.
    fn len(&self, axis: usize) -> u64 {
        self.part.filter(|(of, ..)| *of == axis).map_or(self.axes[axis], |(.., len)| len)
    }

    /// Order in which the result takes elements of the tensor in the folder.
    pub fn order(&self) -> Strided {
        let stride = |axis: usize| self.axes[axis + 1..].iter().product::<u64>();
        let first = self.part.map_or(0, |(axis, first, _)| first * stride(axis));
        let axes: Vec<_> = self.order.iter().map(|axis| (self.len(*axis), stride(*axis))).collect();
        Strided::new(first, &axes)
    }

    /// Whether elements of several results alternate in the folder.
    pub fn alternates(&self) -> bool {
        self.part.is_some_and(|(axis, ..)| axis + 1 == self.axes.len())
    }

    /// Orders in which the tensor in the folder takes elements of the result, which begins at `begin`: one order, or an
    /// order for each index of the first axis if elements of other results follow.
    pub fn inverse(&self, begin: u64) -> Vec<Strided> {
        let mut axes = vec![(0, 0); self.axes.len()];
        let mut stride = 1;
        for axis in self.order.iter().rev() {
            axes[*axis] = (self.len(*axis), stride);
            stride *= self.len(*axis);
        }
        match (&axes[..], self.part) {
            ([(count, stride), axes @ ..], Some(_)) if !self.alternates() => {
                (0..*count).map(|index| Strided::new(begin + index * stride, axes)).collect()
            }
            _ => vec![Strided::new(begin, &axes)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Elements in an order; each is its position.
    fn taken(order: &Strided, from: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; order.len() as usize];
        let mut get = |at: u64, bytes: &mut [u8]| {
            bytes.copy_from_slice(&from[at as usize..at as usize + bytes.len()]);
            Ok::<_, ()>(())
        };
        order.read(0, 1, &mut bytes, &mut get).unwrap();
        bytes
    }

    #[test]
    fn an_inverse_restores_the_order() {
        let dimensions = Dimensions { heads: 2, kv_heads: 1, key_rows: 3, value_rows: 2, ..Dimensions::default() };
        let cases: [(&str, &[How], &[u64]); 8] = [
            ("token_embd.weight", &[How::AsIs], &[3, 2]),
            ("blk.0.attn_q.weight", &[How::Rotary], &[8, 3]),
            ("blk.0.attn_k.weight", &[How::Rotary], &[8]),
            ("", &[How::KeyRows, How::ValueRows], &[10, 4]),
            ("", &[How::Interleaved(0), How::Interleaved(1)], &[3, 8]),
            ("", &[How::Interleaved(0), How::Interleaved(1)], &[3, 4, 6]),
            ("", &[How::Transposed], &[3, 4, 5]),
            ("", &[How::Transposed], &[1, 2, 1]),
        ];
        for (name, hows, shape) in cases {
            let new = |how: &How| Arrangement::new(name, *how, shape, dimensions, true).unwrap();
            let results: Vec<Arrangement> = hows.iter().map(new).collect();
            let source: Vec<u8> = (0..shape.iter().product::<u64>() as u8).collect();
            let parts: Vec<_> = results.iter().map(|result| taken(&result.order(), &source)).collect();
            let inverses: Vec<_> = results.iter().map(|result| result.inverse(0)).collect();
            let mut pieces: Vec<Vec<u8>> = Vec::new();
            for i in 0..inverses[0].len() {
                pieces.extend(inverses.iter().zip(&parts).map(|(inverse, part)| taken(&inverse[i], part)));
            }
            let restored = if results[0].alternates() {
                pieces[0].iter().zip(&pieces[1]).flat_map(|(a, b)| [*a, *b]).collect()
            } else {
                pieces.concat()
            };
            assert_eq!(restored, source, "{hows:?} {shape:?}");
            assert_eq!(hows[0].shape_in_folder(&results[0].shape, dimensions), shape);
        }
    }

    #[test]
    fn rows_of_a_head_become_neighbors() {
        let dimensions = Dimensions { heads: 2, kv_heads: 1, ..Dimensions::default() };
        let new = |rows| Arrangement::new("blk.0.attn_q.weight", How::Rotary, &[rows, 1], dimensions, false);
        let found = new(8).unwrap();
        assert_eq!(found.shape, [8, 1]);
        assert_eq!(taken(&found.order(), &[0, 1, 2, 3, 4, 5, 6, 7]), [0, 2, 1, 3, 4, 6, 5, 7]);
        assert!(new(7).is_none() && new(6).is_none());
    }
}
