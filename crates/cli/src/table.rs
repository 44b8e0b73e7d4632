//! Aligned tables for people.

use unicode_width::UnicodeWidthStr;

/// How a column is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// Rows of cells under headings.
#[derive(Debug)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: &[(&str, Align)]) -> Self {
        Self { columns: columns.iter().map(|(name, align)| ((*name).into(), *align)).collect(), rows: Vec::new() }
    }

    /// Adds a row; control characters are escaped, so that a name from a file cannot move the cursor.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let escape = |cell: String| match cell.chars().any(char::is_control) {
            true => cell.chars().flat_map(char::escape_debug).collect(),
            false => cell,
        };
        self.rows.push(cells.into_iter().map(escape).collect());
    }

    /// Lines, each ended by a newline; the headings first unless they are all empty.
    pub fn render(&self) -> String {
        let headings: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
        let lines = || std::iter::once(&headings).chain(&self.rows);
        let width = |i: usize| lines().map(|row| row.get(i).map_or(0, |c| c.width())).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let mut text = String::new();
        for row in lines().filter(|row| row.iter().any(|cell| !cell.is_empty())) {
            let mut line = String::new();
            for ((cell, (_, align)), width) in row.iter().zip(&self.columns).zip(&widths) {
                let pad = " ".repeat(width - cell.width());
                match align {
                    Align::Left => line += &format!("{cell}{pad}  "),
                    Align::Right => line += &format!("{pad}{cell}  "),
                }
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }
}

/// Digits in groups of three.
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push('_');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_names_are_harmless() {
        let mut table = Table::new(&[("name", Align::Left), ("n", Align::Right)]);
        table.row(["a\u{1b}[2J".into(), "7".into()]);
        table.row(["世界".into(), "1_000".into()]);
        assert_eq!(table.render(), "name            n\na\\u{1b}[2J      7\n世界        1_000\n");
    }

    #[test]
    fn groups() {
        assert_eq!([grouped(7), grouped(1234), grouped(1234567)], ["7", "1_234", "1_234_567"]);
    }
}
