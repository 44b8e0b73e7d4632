//! Cells of fixed-width text as NumPy's `<U` has them: little-endian code points, the unused ones at the end zero.

/// Bytes of a code point.
const UNIT: usize = 4;

/// Appends the text of a cell as UTF-8. Trailing zeros are not part of it, zeros before other characters are. What is
/// not a character becomes U+FFFD, which no number has.
///
/// # Examples
/// ```
/// let mut text = Vec::new();
/// truecast_text::utf32::read(b"1\0\0\0.\0\0\05\0\0\0\0\0\0\0", &mut text);
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

/// Fills a cell with an ASCII text, which fits it.
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
    fn cells_are_filled() {
        let mut out = [0xff; 16];
        write(b"-1", &mut out);
        assert_eq!(out[..], cell(&[0x2d, 0x31, 0, 0]));
    }
}
