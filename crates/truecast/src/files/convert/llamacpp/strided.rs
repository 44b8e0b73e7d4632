//! Order in which a tensor's elements are taken from another tensor.

use std::ops::Range;

/// Reads consecutive elements of the source from a position on.
type Read<'a, E> = &'a mut dyn FnMut(u64, &mut [u8]) -> Result<(), E>;

/// Elements of a source in the order of a result: a first element, and dimensions, outermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Strided {
    first: u64,
    /// Length, and distance in the source, of each dimension.
    dimensions: Vec<(u64, u64)>,
}

impl Strided {
    /// Joins dimensions whose elements follow each other.
    pub fn new(first: u64, dimensions: &[(u64, u64)]) -> Strided {
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for &(len, stride) in dimensions.iter().filter(|(len, _)| *len != 1) {
            match joined.last_mut() {
                Some(outer) if outer.1 == len * stride => *outer = (outer.0 * len, stride),
                _ => joined.push((len, stride)),
            }
        }
        if joined.is_empty() {
            joined.push((1, 1));
        }
        Strided { first, dimensions: joined }
    }

    pub fn whole(len: u64) -> Strided {
        Strided::new(0, &[(len, 1)])
    }

    pub fn is_whole(&self) -> bool {
        self.first == 0 && matches!(self.dimensions[..], [(_, 1)])
    }

    pub fn len(&self) -> u64 {
        self.dimensions.iter().map(|(len, _)| len).product()
    }

    /// Position in the source of the element at `index` of the outer dimensions.
    fn position(&self, dimensions: &[(u64, u64)], mut index: u64) -> u64 {
        let mut position = self.first;
        for (len, stride) in dimensions.iter().rev() {
            position += index % len * stride;
            index /= len;
        }
        position
    }

    /// Fills `bytes` with elements of `size` bytes from element `first` of the result on. `get` reads consecutive
    /// elements of the source.
    pub fn read<E>(&self, first: u64, size: usize, mut bytes: &mut [u8], get: Read<'_, E>) -> Result<(), E> {
        let mut at = first;
        while !bytes.is_empty() {
            let wanted = (bytes.len() / size) as u64;
            let taken = match self.dimensions[..] {
                [ref outer @ .., (run, 1)] => {
                    let taken = wanted.min(run - at % run);
                    get(self.position(outer, at / run) + at % run, &mut bytes[..taken as usize * size])?;
                    taken
                }
                ref dimensions => {
                    // A single dimension is a column.
                    let (outer, rows, columns) = match *dimensions {
                        [ref outer @ .., rows, columns] => (outer, rows, columns),
                        [rows] => (&[][..], rows, (1, 0)),
                        [] => unreachable!("there is at least one dimension"),
                    };
                    let matrix = rows.0 * columns.0;
                    let within = at % matrix;
                    let taken = wanted.min(matrix - within);
                    let start = self.position(outer, at / matrix);
                    transposed(start, [rows, columns], within..within + taken, size, bytes, get)?;
                    taken
                }
            };
            bytes = &mut bytes[taken as usize * size..];
            at += taken;
        }
        Ok(())
    }
}

/// Reads elements of a matrix whose columns are rows of the source: a column of the wanted rows at a time.
fn transposed<E>(
    start: u64,
    [(_, row_stride), (columns, column_stride)]: [(u64, u64); 2],
    within: Range<u64>,
    size: usize,
    bytes: &mut [u8],
    get: Read<'_, E>,
) -> Result<(), E> {
    let rows = within.start / columns..within.end.div_ceil(columns);
    let span = ((rows.end - rows.start - 1) * row_stride + 1) as usize;
    let mut line = vec![0; span * size];
    for column in 0..columns {
        get(start + rows.start * row_stride + column * column_stride, &mut line)?;
        for row in rows.clone() {
            let to = row * columns + column;
            if within.contains(&to) {
                let from = ((row - rows.start) * row_stride) as usize * size;
                bytes[(to - within.start) as usize * size..][..size].copy_from_slice(&line[from..from + size]);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every element by its position, and every part of the result as the whole.
    fn check(order: &Strided, expected: &[u8]) {
        let source: Vec<u8> = (0..=255).collect();
        let mut get = |at: u64, bytes: &mut [u8]| {
            let at = at as usize;
            bytes.copy_from_slice(source.get(at..at + bytes.len()).ok_or(())?);
            Ok::<_, ()>(())
        };
        assert_eq!(order.len() as usize, expected.len());
        for first in 0..expected.len() {
            for end in first..=expected.len() {
                let mut bytes = vec![0; end - first];
                order.read(first as u64, 1, &mut bytes, &mut get).unwrap();
                assert_eq!(bytes, expected[first..end], "{order:?}, {first}..{end}");
            }
        }
    }

    #[test]
    fn elements_come_in_the_order_of_the_dimensions() {
        check(&Strided::whole(6), &[0, 1, 2, 3, 4, 5]);
        // Transposed 2 x 3.
        check(&Strided::new(0, &[(3, 1), (2, 3)]), &[0, 3, 1, 4, 2, 5]);
        // Halves of 4 rows of 2 elements, interleaved.
        check(&Strided::new(0, &[(2, 2), (2, 4), (2, 1)]), &[0, 1, 4, 5, 2, 3, 6, 7]);
        // Odd columns of two matrices 2 x 4, transposed.
        check(&Strided::new(1, &[(2, 8), (2, 2), (2, 4)]), &[1, 5, 3, 7, 9, 13, 11, 15]);
        check(&Strided::new(1, &[(3, 2)]), &[1, 3, 5]);
        assert!(Strided::new(0, &[(2, 12), (3, 4), (4, 1)]).is_whole());
    }
}
