//! Cells of NumPy's fixed-width text (`<U`): little-endian code points, padded at the end with zeros.
//!
//! A cell has `4 * width` bytes ([`truecast_core::Layout::Utf32`]). Cells are converted in batches through [`Texts`].

use super::{Parsed, TextCaster, TextError, Texts};

const UNIT: usize = 4;

/// Maximum size of a batch in bytes of cells; [`BATCH`] is the maximum in elements.
const BATCH_BYTES: usize = 1 << 16;
const BATCH: usize = 256;

fn batch(cell: usize) -> usize {
    (BATCH_BYTES / cell.max(1)).clamp(1, BATCH)
}

impl TextCaster {
    /// Converts cells of `width` code points to elements; otherwise as [`parse_seen`](TextCaster::parse_seen).
    ///
    /// # Errors
    /// The errors of [`parse`](TextCaster::parse).
    ///
    /// # Panics
    /// If the destination of this caster is text.
    pub fn parse_cells(
        &self,
        cells: &[u8],
        width: u32,
        dst: &mut [u8],
        mut see: impl FnMut(Parsed),
    ) -> Result<(), TextError> {
        let cell = UNIT * width as usize;
        let elements = dst.len() / self.width;
        if cells.len() != elements * cell || dst.len() != elements * self.width {
            return Err(TextError::Length { elements });
        }
        let (batch, mut texts) = (batch(cell), Texts::default());
        for (number, dst) in dst.chunks_mut(batch * self.width).enumerate() {
            let first = number * batch;
            texts.clear();
            for index in first..first + dst.len() / self.width {
                texts.push_with(|text| -> Result<(), TextError> {
                    read(&cells[index * cell..(index + 1) * cell], text);
                    Ok(())
                })?;
            }
            self.parse_seen(texts.iter(), dst, &mut see).map_err(|error| error.after(first as u64))?;
        }
        Ok(())
    }

    /// Prints elements to cells of `width` code points; otherwise as [`print`](TextCaster::print).
    ///
    /// # Errors
    /// The errors of [`print`](TextCaster::print); [`TextError::TooLong`].
    ///
    /// # Panics
    /// If the source of this caster is text.
    pub fn print_cells(&self, src: &[u8], cells: &mut [u8], width: u32) -> Result<(), TextError> {
        let cell = UNIT * width as usize;
        let elements = src.len() / self.width;
        if cells.len() != elements * cell {
            return Err(TextError::Length { elements });
        }
        self.print_batches(src, |first, texts| {
            for (index, text) in (first..).zip(texts.iter()) {
                let cell = &mut cells[index * cell..(index + 1) * cell];
                if text.len() > width as usize {
                    return Err(TextError::TooLong { index, width });
                }
                write(text, cell);
            }
            Ok(())
        })
    }

    /// Returns the number of characters in the longest text from [`print`](TextCaster::print).
    ///
    /// # Errors
    /// The errors of [`print`](TextCaster::print).
    ///
    /// # Panics
    /// If the source of this caster is text.
    pub fn longest(&self, src: &[u8]) -> Result<usize, TextError> {
        let mut longest = 0;
        self.print_batches(src, |_, texts| {
            longest = longest.max(texts.longest());
            Ok(())
        })?;
        Ok(longest)
    }

    /// Prints batch by batch; calls `each` with the index of the first element and the texts of a batch.
    fn print_batches(
        &self,
        src: &[u8],
        mut each: impl FnMut(usize, &Texts) -> Result<(), TextError>,
    ) -> Result<(), TextError> {
        let mut texts = Texts::default();
        for (number, src) in src.chunks(BATCH * self.width).enumerate() {
            texts.clear();
            self.print(src, &mut texts).map_err(|error| error.after((number * BATCH) as u64))?;
            each(number * BATCH, &texts)?;
        }
        Ok(())
    }
}

/// Appends the text of a cell as UTF-8. Trailing zeros are padding; other zeros belong to the text. An invalid
/// character becomes U+FFFD, which no number contains.
///
/// # Examples
/// ```
/// let mut text = Vec::new();
/// truecast_kernel::text::utf32::read(b"1\0\0\0.\0\0\05\0\0\0\0\0\0\0", &mut text);
/// assert_eq!(text, b"1.5");
/// ```
#[inline]
pub fn read(cell: &[u8], text: &mut Vec<u8>) {
    let (units, _) = cell.as_chunks::<UNIT>();
    let used = units.iter().rposition(|unit| *unit != [0; UNIT]).map_or(0, |last| last + 1);
    for unit in &units[..used] {
        let point = u32::from_le_bytes(*unit);
        match point {
            0..0x80 => text.push(point as u8),
            _ => {
                let c = char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER);
                text.extend_from_slice(c.encode_utf8(&mut [0; UNIT]).as_bytes());
            }
        }
    }
}

/// Writes an ASCII text to a cell.
///
/// # Panics
/// If the text has more characters than the cell.
#[inline]
pub fn write(text: &[u8], cell: &mut [u8]) {
    debug_assert!(text.is_ascii());
    let (units, _) = cell.as_chunks_mut::<UNIT>();
    let (used, unused) = units.split_at_mut(text.len());
    for (unit, byte) in used.iter_mut().zip(text) {
        *unit = [*byte, 0, 0, 0];
    }
    unused.fill([0; UNIT]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(points: &[u32]) -> Vec<u8> {
        points.iter().flat_map(|p| p.to_le_bytes()).collect()
    }

    #[test]
    fn only_trailing_zeros_are_stripped() {
        let rows: [(&[u32], &[u8]); 6] = [
            (&[0, 0], b""),
            (&[0x31, 0, 0x32, 0, 0], b"1\x002"),
            (&[0, 0x31], b"\x001"),
            (&[0xe9, 0x1f600], "é😀".as_bytes()),
            (&[0xd800, 0x110000, 0x31], "\u{fffd}\u{fffd}1".as_bytes()),
            (&[], b""),
        ];
        for (points, expected) in rows {
            let mut text = Vec::new();
            read(&cell(points), &mut text);
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn cells_are_converted_in_order() {
        use truecast_core::DType::{F64, String};
        let caster =
            |src, dst| TextCaster::new(&truecast_core::spec::onnx::Cast::to(dst).resolve(src).unwrap()).unwrap();
        let (parser, printer) = (caster(String, F64), caster(F64, String));
        for (len, width) in [(0, 1), (1, 24), (1000, 24), (1000, 300), (3, 70_000)] {
            let values: Vec<u8> = (0..len).flat_map(|i| (i as f64 / 3.0).to_le_bytes()).collect();
            let mut cells = vec![0xff; len * 4 * width as usize];
            printer.print_cells(&values, &mut cells, width).unwrap();
            let (mut back, mut seen) = (vec![0; values.len()], 0);
            parser.parse_cells(&cells, width, &mut back, |_| seen += 1).unwrap();
            assert_eq!((back, seen), (values, len));
            if len > 700 {
                cells[700 * 4 * width as usize] = b'x';
                let error = parser.parse_cells(&cells, width, &mut vec![0; 8 * len], |_| ()).unwrap_err();
                assert!(matches!(error, TextError::Malformed { index: 700, .. }), "{error}");
            }
        }
        let third = (1.0f64 / 3.0).to_le_bytes();
        assert_eq!(printer.longest(&third), Ok(18));
        assert_eq!(printer.print_cells(&third, &mut [0; 68], 17), Err(TextError::TooLong { index: 0, width: 17 }));
        assert!(matches!(printer.print_cells(&third, &mut [0; 71], 18), Err(TextError::Length { .. })));
        assert!(matches!(parser.parse_cells(&[0; 7], 1, &mut [0; 8], |_| ()), Err(TextError::Length { .. })));
    }

    #[test]
    fn cells_are_filled() {
        let mut out = [0xff; 16];
        write(b"-1", &mut out);
        assert_eq!(out[..], cell(&[0x2d, 0x31, 0, 0]));
    }
}
