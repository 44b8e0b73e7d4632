//! Tables that fit the terminal. Columns are dropped in a stated order, long names lose their middle, and sentences
//! wrap. No row breaks at the edge of the screen.

pub mod shorten;

use crate::exact_decimal;
use crate::message::one_line;
pub use crate::number::grouped;
pub use crate::terminal::Mark;
use crate::terminal::{self, Terminal};
use shorten::{ends, shortened, told_apart};
use std::collections::{HashMap, HashSet};
use std::io;
use unicode_width::UnicodeWidthStr;

pub const GAP: usize = 2;
/// Longest cell in characters, also in a pipe: one long name would widen all rows.
const LONGEST: usize = 200;
/// Widths of a column of names: before other columns are dropped, and at least.
const NAME: (usize, usize) = (36, 12);
/// Widths of a column of sentences: before other columns are dropped, and at least.
const SENTENCE: (usize, usize) = (30, 16);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Long {
    Stays,
    Shrinks,
    /// Continues the text in the next lines.
    Wraps,
}

#[derive(Clone, Debug)]
pub struct Column {
    heading: String,
    is_right: bool,
    drops: u8,
    is_key: bool,
    long: Long,
    longest: usize,
    is_of_numbers: bool,
    /// Width to which names shrink before other columns are dropped.
    kept: usize,
}

impl Column {
    pub fn left(heading: impl Into<String>) -> Self {
        let (heading, long) = (heading.into(), Long::Stays);
        let (longest, kept) = (LONGEST, NAME.0);
        Self { heading, is_right: false, drops: 0, is_key: false, long, longest, is_of_numbers: false, kept }
    }

    pub fn right(heading: impl Into<String>) -> Self {
        Self { is_right: true, ..Self::left(heading) }
    }

    /// Order in which a narrow terminal drops columns. The column with the largest number is dropped first, and a
    /// column with 0 never.
    pub fn drops(self, order: u8) -> Self {
        Self { drops: order, ..self }
    }

    /// Marks a column that identifies the row. Every block of columns repeats such key columns. Default: the first
    /// column.
    pub fn key(self) -> Self {
        Self { is_key: true, ..self }
    }

    /// Omits the middle of names if there is little room.
    pub fn shrinks(self) -> Self {
        Self { long: Long::Shrinks, ..self }
    }

    /// Shrinks to the width `kept` before other columns are dropped.
    pub fn shrinks_to(self, kept: usize) -> Self {
        Self { kept, ..self.shrinks() }
    }

    /// Wraps sentences if there is little room.
    pub fn wraps(self) -> Self {
        Self { long: Long::Wraps, ..self }
    }

    /// Allows cells of any length. Only for truecast's own text, never for text from a file.
    pub fn of_any_length(self) -> Self {
        Self { longest: usize::MAX, ..self }
    }

    /// Marks cells as numbers. With little room, numbers lose digits but keep the exponent.
    pub fn of_numbers(self) -> Self {
        Self { is_of_numbers: true, ..self }
    }

    /// Columns of a table sorted by `by`; that column is never dropped.
    pub fn sorted(columns: impl IntoIterator<Item = Column>, by: Option<&str>) -> Vec<Column> {
        let name = |text: &str| text.to_lowercase().replace([' ', '-'], "_");
        let is_it = |column: &Column| by.is_some_and(|by| name(&column.heading) == name(by));
        columns.into_iter().map(|column| if is_it(&column) { column.drops(0) } else { column }).collect()
    }

    /// Width before other columns are dropped, and smallest width. `natural` is the width of the widest cell and
    /// `distinct` the smallest width at which names differ.
    fn room(&self, natural: usize, distinct: usize) -> (usize, usize) {
        let (wanted, least) = match self.long {
            Long::Stays => (natural, natural),
            Long::Shrinks => (self.kept.max(distinct), distinct),
            Long::Wraps => SENTENCE,
        };
        let at_most = |width: usize| width.max(in_two_lines(&self.heading)).min(natural);
        (at_most(wanted), at_most(least))
    }
}

/// Smallest width at which a heading takes at most two lines.
fn in_two_lines(heading: &str) -> usize {
    let of = |(at, _): (usize, &str)| heading[..at].width().max(heading[at + 1..].width());
    heading.match_indices(' ').map(of).fold(heading.width(), usize::min)
}

#[derive(Clone, Debug, Default)]
pub struct Cell {
    text: String,
    mark: Mark,
}

impl Cell {
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), mark: Mark::Plain }
    }

    pub fn mark(self, mark: Mark) -> Self {
        Self { mark, ..self }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell::new(text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Cell::new(text)
    }
}

/// Rows of cells. One string holds the text of all cells, to save memory.
#[derive(Debug)]
pub struct Table {
    columns: Vec<Column>,
    text: String,
    /// For each cell, the length of the text in bytes and the mark.
    cells: Vec<(u32, Mark)>,
    /// Widths of the widest cells, without headings.
    widths: Vec<usize>,
    instead: Option<&'static str>,
}

impl Table {
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        let columns: Vec<Column> = columns.into_iter().collect();
        let widths = vec![0; columns.len()];
        Self { columns, text: String::new(), cells: Vec::new(), widths, instead: None }
    }

    /// Text to print instead of an empty table.
    pub fn or_say(self, instead: &'static str) -> Self {
        Self { instead: Some(instead), ..self }
    }

    /// Adds a row. Missing cells are empty; control characters are escaped.
    pub fn row<C: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = C>) {
        let mut cells = cells.into_iter().map(Into::into);
        for (column, width) in self.columns.iter().zip(&mut self.widths) {
            let Cell { text, mark } = cells.next().unwrap_or_default();
            let begin = self.text.len();
            // Escaped text from a file cannot move the cursor.
            self.text += &one_line(&bounded(text, column.longest));
            *width = (*width).max(self.text[begin..].width());
            self.cells.push(((self.text.len() - begin) as u32, mark));
        }
        debug_assert!(cells.next().is_none(), "a row has more cells than the table has columns");
    }

    /// The table as lines, each with a newline. Empty headings take no line.
    pub fn render(&self, terminal: &Terminal) -> String {
        let mut text = String::new();
        let collect = |line: &str| {
            text += line;
            Ok(())
        };
        self.each_line(terminal, collect).expect("a string takes everything");
        text
    }

    /// Writes line by line, so that a long table is never in memory as text.
    pub fn write(&self, terminal: &Terminal, out: &mut dyn io::Write) -> io::Result<()> {
        self.each_line(terminal, |line| out.write_all(line.as_bytes()))
    }

    fn each_line(&self, terminal: &Terminal, mut each: impl FnMut(&str) -> io::Result<()>) -> io::Result<()> {
        if let (true, Some(instead)) = (self.cells.is_empty(), self.instead) {
            return each(&terminal.wrap(&format!("{instead}\n")));
        }
        let Layout { blocks, left_out } = self.layout(terminal.width);
        for (i, block) in blocks.iter().enumerate() {
            if i > 0 {
                each("\n")?;
            }
            let told = self.told_apart(block);
            self.headings(block, terminal, &mut each)?;
            let (mut cells, mut begin): (Vec<(&str, Mark)>, _) = (Vec::new(), 0);
            for row in self.cells.chunks(self.columns.len().max(1)) {
                cells.clear();
                for &(len, mark) in row {
                    let end = begin + len as usize;
                    cells.push((&self.text[begin..end], mark));
                    begin = end;
                }
                // A row of the second or a later block is omitted if it has only the key column.
                if i == 0 || block[1..].iter().any(|shown| !cells[shown.column].0.is_empty()) {
                    self.line(block, &cells, &told, terminal, &mut each)?;
                }
            }
        }
        if let (false, Some(width)) = (left_out.is_empty(), terminal.width) {
            let left_out = left_out.join(", ");
            let advice = terminal.reader.advice();
            let note = format!("hidden at {width} columns: {left_out}; {advice}");
            for line in terminal.wrap(&note).lines() {
                each(&(terminal.paint(Mark::Dim, line) + "\n"))?;
            }
        }
        Ok(())
    }

    /// Writes the headings, of which the last lines are next to the cells.
    fn headings(
        &self,
        block: &[Shown],
        terminal: &Terminal,
        each: &mut impl FnMut(&str) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut wrapped: Vec<Vec<String>> = vec![Vec::new(); self.columns.len()];
        for &Shown { column, width } in block {
            let lines = textwrap::wrap(&self.columns[column].heading, terminal::words(width));
            wrapped[column] = lines.into_iter().map(String::from).collect();
        }
        let most = wrapped.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..most {
            let part = |lines: &Vec<String>| (line + lines.len()).checked_sub(most).map(|at| lines[at].clone());
            let parts: Vec<String> = wrapped.iter().map(|lines| part(lines).unwrap_or_default()).collect();
            let cells: Vec<(&str, Mark)> = parts.iter().map(|part| (part.as_str(), Mark::Strong)).collect();
            self.line(block, &cells, &HashMap::new(), terminal, each)?;
        }
        Ok(())
    }

    /// Width of the widest cell or heading. In `Headings::Wrapped`, a heading takes up to two lines.
    fn natural(&self, column: usize, headings: Headings) -> usize {
        let heading = &self.columns[column].heading;
        self.widths[column].max(match headings {
            Headings::Whole => heading.width(),
            Headings::Wrapped => in_two_lines(heading),
        })
    }

    /// Smallest width at which the names of a column differ, if the column may be shortened.
    fn distinct_width(&self, column: usize) -> usize {
        if self.columns[column].long != Long::Shrinks || self.columns[column].is_of_numbers {
            return NAME.1;
        }
        let names: HashSet<&str> = self.texts(column).collect();
        let is_distinct = |width: &usize| {
            let told = told_apart(names.iter().copied(), *width);
            let shown = |name: &&str| told.get(*name).cloned().unwrap_or_else(|| shortened(name, *width));
            names.iter().map(shown).collect::<HashSet<_>>().len() == names.len()
        };
        (NAME.1..self.widths[column]).find(is_distinct).unwrap_or(self.widths[column].max(NAME.1))
    }

    /// Distinct short texts for names that would look equal when shortened. Key: column and name.
    fn told_apart(&self, block: &[Shown]) -> HashMap<(usize, &str), String> {
        let mut told = HashMap::new();
        for &Shown { column, width } in block.iter().filter(|shown| shown.width < self.widths[shown.column]) {
            if self.columns[column].long == Long::Shrinks && !self.columns[column].is_of_numbers {
                let names = told_apart(self.texts(column), width);
                told.extend(names.into_iter().map(|(name, text)| ((column, name), text)));
            }
        }
        told
    }

    fn texts(&self, column: usize) -> impl Iterator<Item = &str> {
        let mut begin = 0;
        let texts = self.cells.iter().map(move |&(len, _)| {
            let text = &self.text[begin..begin + len as usize];
            begin += len as usize;
            text
        });
        texts.skip(column).step_by(self.columns.len().max(1))
    }

    /// Writes the cells of a block, in as many lines as the longest sentence takes. Empty cells take no line.
    fn line(
        &self,
        block: &[Shown],
        cells: &[(&str, Mark)],
        told: &HashMap<(usize, &str), String>,
        terminal: &Terminal,
        each: &mut impl FnMut(&str) -> io::Result<()>,
    ) -> io::Result<()> {
        if block.iter().all(|shown| cells[shown.column].0.is_empty()) {
            return Ok(());
        }
        let part = |&Shown { column, width }: &Shown| -> Vec<String> {
            let text = cells[column].0;
            match self.columns[column].long {
                _ if text.width() <= width => vec![text.into()],
                Long::Wraps => textwrap::wrap(text, terminal::words(width)).into_iter().map(String::from).collect(),
                _ if self.columns[column].is_of_numbers => vec![exact_decimal::shortened(text, width)],
                _ => vec![told.get(&(column, text)).cloned().unwrap_or_else(|| shortened(text, width))],
            }
        };
        let parts: Vec<Vec<String>> = block.iter().map(part).collect();
        for i in 0..parts.iter().map(Vec::len).max().unwrap_or(0) {
            let mut line = String::new();
            // Spaces are written only before text, so that no line ends in spaces.
            let mut spaces = 0;
            for (shown, part) in block.iter().zip(&parts) {
                let text = part.get(i).map_or("", String::as_str);
                let pad = shown.width - text.width();
                let (before, after) = if self.columns[shown.column].is_right { (pad, 0) } else { (0, pad) };
                spaces += before;
                if !text.is_empty() {
                    line.extend(std::iter::repeat_n(' ', spaces));
                    line += &terminal.paint(cells[shown.column].1, text);
                    spaces = 0;
                }
                spaces += after + GAP;
            }
            line.push('\n');
            each(&line)?;
        }
        Ok(())
    }

    /// Visible columns with widths, and headings of dropped columns.
    fn layout(&self, width: Option<usize>) -> Layout<'_> {
        let sized = |column| Shown { column, width: self.natural(column, Headings::Whole) };
        // A column without text is invisible.
        let mut sizes: Vec<Shown> = (0..self.columns.len()).map(sized).filter(|shown| shown.width > 0).collect();
        let Some(width) = width.filter(|width| total(&sizes) > *width) else {
            return Layout { blocks: vec![sizes], left_out: Vec::new() };
        };
        let distinct: Vec<usize> = (0..self.columns.len()).map(|column| self.distinct_width(column)).collect();
        let room = |shown: &Shown, headings| {
            self.columns[shown.column].room(self.natural(shown.column, headings), distinct[shown.column])
        };
        let wanted = |sizes: &[Shown], headings| -> Vec<Shown> {
            sizes.iter().map(|shown| Shown { width: room(shown, headings).0, ..*shown }).collect()
        };
        let mut headings = Headings::Whole;
        if total(&wanted(&sizes, headings)) > width {
            headings = Headings::Wrapped;
        }
        sizes = wanted(&sizes, headings);
        let mut dropped = Vec::new();
        while total(&sizes) > width {
            // Ties go to the last column.
            let order = |at: &usize| self.columns[sizes[*at].column].drops;
            let Some(at) = (0..sizes.len()).max_by_key(order).filter(|at| order(at) > 0) else { break };
            dropped.push(sizes.remove(at).column);
        }
        dropped.sort_unstable();
        let left_out = dropped.iter().map(|&i| self.columns[i].heading.as_str()).collect();
        if total(&sizes) > width {
            sizes.iter_mut().for_each(|shown| shown.width = room(shown, headings).1);
        }
        if total(&sizes) > width {
            return Layout { blocks: self.blocks(&sizes, width), left_out };
        }
        self.grow(&mut sizes, width, headings);
        Layout { blocks: vec![sizes], left_out }
    }

    /// Distributes columns over blocks, printed one below the other. Each block begins with the key columns.
    fn blocks(&self, sizes: &[Shown], width: usize) -> Vec<Vec<Shown>> {
        let keys = sizes.iter().filter(|shown| self.columns[shown.column].is_key).count().max(1);
        let (keys, rest) = sizes.split_at(keys.min(sizes.len()));
        let at_most = |shown: &Shown, most: usize| Shown { width: shown.width.min(most), ..*shown };
        let keys: Vec<Shown> =
            keys.iter().map(|key| at_most(key, (width / 2 / keys.len()).saturating_sub(GAP).max(1))).collect();
        let mut blocks = vec![keys.clone()];
        for next in rest {
            let last = blocks.last_mut().expect("there is one");
            let next = at_most(next, width - total(&keys) - GAP);
            if total(last) + GAP + next.width <= width {
                last.push(next)
            } else {
                blocks.push([keys.as_slice(), &[next]].concat())
            }
        }
        blocks
    }

    /// Distributes the unused width over columns that need more.
    fn grow(&self, sizes: &mut [Shown], width: usize, headings: Headings) {
        loop {
            let spare = width - total(sizes);
            let natural = |shown: &Shown| self.natural(shown.column, headings);
            let hungry = sizes.iter().filter(|shown| shown.width < natural(shown)).count();
            if hungry == 0 || spare == 0 {
                return;
            }
            let mut left = spare;
            for shown in sizes.iter_mut() {
                let missing = natural(shown) - shown.width;
                let given = missing.min((spare / hungry).max(1)).min(left);
                shown.width += given;
                left -= given;
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Headings {
    Whole,
    Wrapped,
}

#[derive(Clone, Copy, Debug)]
struct Shown {
    column: usize,
    width: usize,
}

struct Layout<'a> {
    /// Blocks of columns, which are printed one below the other. Usually there is a single block.
    blocks: Vec<Vec<Shown>>,
    left_out: Vec<&'a str>,
}

fn total(sizes: &[Shown]) -> usize {
    sizes.iter().map(|shown| shown.width).sum::<usize>() + GAP * sizes.len().saturating_sub(1)
}

/// Text from a file in one line. Invisible characters are escaped; long text is cut.
pub fn in_one_line(text: &str, terminal: &Terminal) -> String {
    let safe = one_line(&bounded(text.into(), LONGEST));
    match terminal.width {
        Some(width) if safe.width() > width => shortened(&safe, width),
        _ => safe,
    }
}

/// Omits the middle of a text of more than `longest` characters, and states the length instead.
fn bounded(text: String, longest: usize) -> String {
    // Cheap check first: counting the characters of a long name takes time.
    if text.len() <= longest || text.chars().nth(longest).is_none() {
        return text;
    }
    let length = grouped(text.chars().count() as u64);
    ends(&text, longest / 3, longest / 3, &format!("… {length} characters …"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pipe() -> Terminal {
        Terminal::default()
    }

    fn at(width: usize) -> Terminal {
        Terminal { width: Some(width), ..pipe() }
    }

    fn sample() -> Table {
        let columns = [
            Column::left("tensor").shrinks(),
            Column::right("elements"),
            Column::right("rmse").drops(2),
            Column::right("cosine").drops(1),
            Column::left("note").wraps(),
        ];
        let mut table = Table::new(columns);
        let name = "encoder.layer.5.attention.output.LayerNorm.weight";
        table.row([name, "384", "1.2e-3", "0.999", "a sentence of some words that goes on for a while"]);
        table
    }

    #[test]
    fn the_column_of_the_order_stays() {
        let columns =
            || [Column::left("tensor"), Column::right("max rel error").drops(2), Column::right("rmse").drops(1)];
        let shown = |by| {
            let mut table = Table::new(Column::sorted(columns(), by));
            table.row(["weight", "0.00123456", "0.00123"]);
            table.render(&at(24))
        };
        assert!(!shown(None).contains("0.00123456"));
        for by in ["max_rel_error", "max rel error", "Max-Rel-Error"] {
            assert!(shown(Some(by)).contains("0.00123456"), "{by}");
        }
    }

    #[test]
    fn columns_line_up_and_names_are_harmless() {
        let mut table = Table::new([Column::left("name"), Column::right("n")]);
        table.row(["a\u{1b}[2J\u{202e}", "7"]);
        table.row(["世界", "1_000"]);
        let shown = "name                    n\na\\u{1b}[2J\\u{202e}      7\n世界                1_000\n";
        assert_eq!(table.render(&pipe()), shown);
    }

    #[test]
    fn columns_give_way_in_their_order_and_a_line_says_which() {
        assert_eq!(sample().render(&at(200)), sample().render(&pipe()));
        let narrower = sample().render(&at(90));
        assert!(narrower.contains("cosine") && !narrower.contains("1.2e-3"), "{narrower}");
        assert!(narrower.ends_with("hidden at 90 columns: rmse; --wide or a pipe shows all\n"), "{narrower}");
        let narrow = sample().render(&at(80));
        assert!(narrow.ends_with("hidden at 80 columns: rmse, cosine; --wide or a pipe shows all\n"), "{narrow}");
        assert!(narrow.contains("encoder.layer.5") && narrow.contains("…") && narrow.contains("goes on"), "{narrow}");
    }

    /// A wide column that is never dropped leaves names enough room to differ.
    #[test]
    fn names_differ_beside_wide_columns() {
        let columns = [
            Column::left("tensor").shrinks(),
            Column::right("tensors"),
            Column::left("type"),
            Column::right("flushed to zero"),
            Column::right("SQNR dB"),
        ];
        let mut table = Table::new(columns);
        let experts = |matrix| format!("model.layers.{{0..60}}.mlp.experts.{{0..255}}.{matrix}.weight");
        let blocks = |matrix| format!("model.layers.{{0..60}}.self_attn.{matrix}_proj.weight");
        let names =
            ["gate_proj", "up_proj", "down_proj"].map(experts).into_iter().chain(["q", "k", "v", "o"].map(blocks));
        let names: Vec<String> = names.chain(["vision.layers.{0..30}.self_attn.q_proj.weight".into()]).collect();
        for name in &names {
            table.row([name, "15_360", "bf16 -> f4e2m1 (outside_blocks)", "104_857_600", "20.4"]);
        }
        for width in 40..120 {
            let text = table.render(&at(width));
            let first = |line: &str| line.split("  ").next().unwrap().to_owned();
            let rows = text.lines().filter(|line| line.contains("15_360")).map(first);
            let shown: HashSet<String> = rows.collect();
            assert_eq!(shown.len(), names.len(), "{width}:\n{text}");
        }
    }

    #[test]
    fn headings_take_two_lines_if_there_is_little_room() {
        let table = || {
            let mut table = Table::new([Column::left("tensor"), Column::right("flushed to zero"), Column::right("dB")]);
            table.row(["a.weight", "1_234", "20.4"]);
            table
        };
        assert_eq!(table().render(&at(31)), "tensor    flushed to zero    dB\na.weight            1_234  20.4\n");
        let narrow = "          flushed\ntensor    to zero    dB\na.weight    1_234  20.4\n";
        assert_eq!(table().render(&at(30)), narrow);
    }

    #[test]
    fn what_does_not_fit_beside_goes_below() {
        let mut table = Table::new(["", "one", "two", "three"].map(Column::left));
        table.row(["row", "aaaaaaaa", "bbbbbbbb", "cccccccc"]);
        assert_eq!(table.render(&at(24)), "     one       two\nrow  aaaaaaaa  bbbbbbbb\n\n     three\nrow  cccccccc\n");
    }

    #[test]
    fn marks_color_text_and_not_space() {
        let mut table = Table::new([Column::left("a"), Column::right("b")]);
        table.row([Cell::from("x").mark(Mark::Bad), Cell::from("y")]);
        table.row(["long", "zz"]);
        let text = table.render(&Terminal { color: true, ..pipe() });
        assert!(text.contains("\u{1b}[1m\u{1b}[31mx\u{1b}[0m      y\nlong  zz\n"), "{text:?}");
    }
}
