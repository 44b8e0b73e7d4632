//! The list of tensors in a report, and the totals. On a terminal, tensors with the same name pattern share a row.

use super::error_columns::ErrorColumns;
use super::patterns::{Pattern, patterns, tree};
use super::thresholds;
use crate::args::ListArgs;
use crate::failure::Failure;
use crate::number;
pub use crate::sort_keys::{Item, Known};
use crate::sort_keys::{KEYS, Key};
use crate::table::{Cell, Column, Mark, Table};
use crate::terminal::Terminal;
use crate::value_parsers;
use std::cmp::{Ordering, Reverse};
use std::hash::Hash;
use std::io::{self, Write};
use truecast::report::{Group, Rows, Sum, Total, hides_loss};
use truecast::{Counts, DType};

/// Largest number of rows in one table. Longer lists become several tables, because a table is built in memory.
const ROWS: usize = 1000;
/// Width to which the column of patterns shrinks before other columns are dropped.
const PATTERN: usize = 44;
/// Largest number of rows on a terminal.
const ON_A_SCREEN: usize = 20;

/// Type of a tensor. For a tensor in GGUF blocks, it is the name of the block type and not the type of the codes.
pub fn type_name(dtype: DType, scheme: Option<&str>) -> String {
    scheme.and_then(|scheme| scheme.strip_prefix("gguf:")).map_or_else(|| dtype.to_string(), str::to_owned)
}

#[derive(Debug)]
pub enum Listed {
    All,
    None,
    Ordered(Vec<usize>),
    Patterns(Vec<Pattern>),
}

/// A tensor, or several tensors with a common name pattern.
pub struct Row<'a> {
    pub name: &'a str,
    pub members: &'a [usize],
}

/// Parses `--sort`; called early, so that an error is reported before the work.
pub fn sorting(args: &ListArgs, known: Known) -> Result<Option<Key>, Failure> {
    let Some(column) = &args.sort else { return Ok(None) };
    // The column may be typed as a heading or as a JSON key; `sqnr` is short for `sqnr_db`.
    let name = column.to_ascii_lowercase().replace([' ', '-'], "_");
    let name = if name == "sqnr" { "sqnr_db" } else { &name };
    let key = KEYS.into_iter().find(|(known, ..)| *known == name).map(|(_, needs_values, key)| (needs_values, key));
    let count = || thresholds::count(name).map(|count| (true, Key::Count(count)));
    let Some((needs_values, key)) = key.or_else(count) else {
        let all = value_parsers::columns(known);
        let error = failure!(InvalidValue, "--sort {column:?} is not one of {}", all.join(", "));
        return Err(error.of_word(column, all));
    };
    let is_unknown = matches!(key, Key::Count(count) if count.of_conversions && known == Known::Differences);
    if needs_values && known == Known::Sizes {
        return Err(failure!(InapplicableOption, "--sort {name} needs the values, which --dry-run does not read"));
    }
    if is_unknown {
        return Err(failure!(InapplicableOption, "--sort {name} belongs to convert: two files do not show this count"));
    }
    Ok(Some(key))
}

impl Listed {
    /// List of tensors. `--sort` determines the order, and `--summary` the length.
    pub fn new<'a, L: Eq + Hash>(
        args: &ListArgs,
        sorting: Option<Key>,
        len: usize,
        item: impl Fn(usize) -> Item<'a>,
        alike: impl Fn(usize) -> L,
        terminal: &Terminal,
    ) -> Listed {
        match sorting {
            _ if args.summary => Listed::None,
            Some(key) => Listed::first(ordered(key, len, item), terminal),
            None => match Listed::fitted(len, |i| item(i).name, |i| item(i).bytes, alike, terminal) {
                // If the largest patterns cover at most half of the tensors, the list has the worst tensors instead.
                Listed::Patterns(patterns) if patterns.len() == ON_A_SCREEN && (0..len).any(|i| is_known(&item(i))) => {
                    let grouped: usize = patterns.iter().map(|pattern| pattern.members.len()).sum();
                    let noise = KEYS.into_iter().find(|(name, ..)| *name == "sqnr_db");
                    if grouped > len / 2 {
                        Listed::Patterns(patterns)
                    } else {
                        Listed::first(ordered(noise.expect("a key").2, len, item), terminal)
                    }
                }
                listed => listed,
            },
        }
    }

    /// List that on a terminal has only the first tensors, and otherwise has all tensors.
    pub fn first(mut order: Vec<usize>, terminal: &Terminal) -> Listed {
        order.truncate(if terminal.width.is_some() { ON_A_SCREEN } else { order.len() });
        Listed::Ordered(order)
    }

    /// List by name pattern if a terminal would show many tensors, otherwise of all tensors.
    pub fn fitted<'a, L: Eq + Hash>(
        len: usize,
        name: impl Fn(usize) -> &'a str,
        bytes: impl Fn(usize) -> u64,
        alike: impl Fn(usize) -> L,
        terminal: &Terminal,
    ) -> Listed {
        if terminal.width.is_none() || len <= ON_A_SCREEN {
            return Listed::All;
        }
        let patterns = patterns(0..len, name, alike);
        Listed::Patterns(largest(patterns, |pattern| total(pattern, &bytes), ON_A_SCREEN))
    }

    /// The same list on a terminal, with at most this number of rows.
    pub fn shortened(self, most: usize, bytes: impl Fn(usize) -> u64, terminal: &Terminal) -> Listed {
        match self {
            listed if terminal.width.is_none() => listed,
            Listed::Ordered(order) => Listed::Ordered(order.into_iter().take(most).collect()),
            Listed::Patterns(patterns) => Listed::Patterns(largest(patterns, |pattern| total(pattern, &bytes), most)),
            listed => listed,
        }
    }

    /// The same list with a row for each module that several patterns share.
    pub fn into_tree(self) -> Listed {
        match self {
            Listed::Patterns(patterns) => Listed::Patterns(tree(patterns)),
            listed => listed,
        }
    }

    /// Rows as JSON, which never has patterns.
    pub fn rows(&self) -> Rows<'_> {
        match self {
            Listed::Patterns(_) | Listed::All => Rows::All,
            Listed::None => Rows::None,
            Listed::Ordered(order) => Rows::Ordered(order),
        }
    }

    /// Writes tables of at most [`ROWS`] rows each. The rows `last` follow, and the number of omitted tensors.
    pub fn write<C: Into<Cell>>(
        &self,
        out: &mut dyn Write,
        terminal: &Terminal,
        names: &[&str],
        columns: impl Fn() -> Vec<Column>,
        row: impl Fn(Row<'_>) -> Vec<C>,
        last: Vec<Vec<Cell>>,
    ) -> io::Result<()> {
        let len = names.len();
        let rows = match self {
            Listed::None => 0,
            Listed::All => len,
            Listed::Ordered(order) => order.len(),
            Listed::Patterns(patterns) => patterns.len(),
        };
        let cells = |at: usize| -> Vec<Cell> {
            let single = |i: usize| row(Row { name: names[i], members: &[i] }).into_iter().map(Into::into).collect();
            match self {
                Listed::Ordered(order) => single(order[at]),
                Listed::Patterns(patterns) => {
                    let Pattern { name, members, .. } = &patterns[at];
                    let cells = row(Row { name, members }).into_iter().map(Into::into).collect();
                    with_second(cells, number::grouped(members.len() as u64).into())
                }
                Listed::All | Listed::None => single(at),
            }
        };
        let is_grouped = matches!(self, Listed::Patterns(_));
        let columns = || {
            let mut columns = columns();
            if is_grouped {
                // Two patterns often differ only at the ends, so patterns need more room than names.
                columns[0] = columns[0].clone().shrinks_to(PATTERN);
                columns.insert(1, Column::right("tensors"));
            }
            columns
        };
        let last = last.into_iter().map(|row| if is_grouped { with_second(row, Cell::default()) } else { row });
        let mut last = Some(last);
        let mut begin = 0;
        loop {
            let end = rows.min(begin + ROWS);
            let mut table = Table::new(columns()).or_say("no tensors");
            (begin..end).for_each(|at| table.row(cells(at)));
            if end == rows {
                last.take().into_iter().flatten().for_each(|cells| table.row(cells));
                table.write(terminal, out)?;
                break;
            }
            table.write(terminal, out)?;
            writeln!(out)?;
            begin = end;
        }
        match self.left_out(len) {
            0 => Ok(()),
            left_out => {
                let more = number::count(left_out as u64, "more tensor");
                let note = terminal.wrap(&format!("{more}; {}", terminal.reader.advice()));
                writeln!(out, "{}", terminal.paint(Mark::Dim, &note))
            }
        }
    }

    fn left_out(&self, len: usize) -> usize {
        match self {
            Listed::All | Listed::None => 0,
            Listed::Ordered(order) => len - order.len(),
            Listed::Patterns(patterns) => {
                let leaves = patterns.iter().filter(|pattern| !pattern.is_module);
                len - leaves.map(|pattern| pattern.members.len()).sum::<usize>()
            }
        }
    }
}

/// True if the values were read.
fn is_known(item: &Item<'_>) -> bool {
    item.counts.elements > 0
}

fn with_second<T>(mut row: Vec<T>, second: T) -> Vec<T> {
    row.insert(1.min(row.len()), second);
    row
}

fn total(pattern: &Pattern, bytes: impl Fn(usize) -> u64) -> u64 {
    pattern.members.iter().map(|&i| bytes(i)).sum()
}

/// The `most` patterns with the most bytes, in the order of `patterns`.
fn largest(patterns: Vec<Pattern>, bytes: impl Fn(&Pattern) -> u64, most: usize) -> Vec<Pattern> {
    let mut ranked: Vec<(usize, Pattern)> = patterns.into_iter().enumerate().collect();
    ranked.sort_by_cached_key(|(_, pattern)| Reverse(bytes(pattern)));
    ranked.truncate(most);
    ranked.sort_by_key(|(place, _)| *place);
    ranked.into_iter().map(|(_, pattern)| pattern).collect()
}

fn ordered<'a>(key: Key, len: usize, item: impl Fn(usize) -> Item<'a>) -> Vec<usize> {
    let compare = |a: &usize, b: &usize| -> Ordering {
        let (a, b) = (item(*a), item(*b));
        match key {
            Key::Name => a.name.cmp(b.name),
            Key::Largest(of) => of(&b).cmp(&of(&a)),
            Key::Count(count) => (count.of)(b.counts).cmp(&(count.of)(a.counts)),
            Key::Smallest(of) => lost_first(&a, &b).then(of(a.counts).total_cmp(&of(b.counts))),
            Key::Greatest(of) => lost_first(&a, &b).then(of(b.counts).total_cmp(&of(a.counts))),
        }
    };
    let mut order: Vec<usize> = (0..len).collect();
    order.sort_by(compare);
    order
}

/// Puts tensors with new infinities or NaNs first: the error measures exclude these values.
fn lost_first(a: &Item<'_>, b: &Item<'_>) -> Ordering {
    hides_loss(b.counts).cmp(&hides_loss(a.counts))
}

/// Sums counts. Counts of a sample are extrapolated to the whole tensor.
pub fn sum<'a>(counts: impl Iterator<Item = &'a Counts>) -> Counts {
    let mut all = Counts::default();
    counts.for_each(|counts| all.add(&counts.extrapolated()));
    all
}

/// Totals of each non-empty group, and of all tensors.
pub fn totals(total: &Total, figures: &ErrorColumns, name: impl Fn(Group) -> &'static str) -> Vec<Vec<Cell>> {
    let groups: Vec<Group> = Group::ALL.into_iter().filter(|group| total.of(*group).tensors > 0).collect();
    let cells = |name: &str, sum: &Sum, measured: Option<&Counts>| {
        let mut cells = vec![Cell::from(name).mark(Mark::Strong), Cell::from(number::count(sum.tensors, "tensor"))];
        cells.extend(figures.cells(&sum.counts, measured, &[]));
        cells
    };
    let mut rows: Vec<_> =
        groups.iter().map(|group| cells(name(*group), total.of(*group), Some(&total.of(*group).inexact))).collect();
    if groups.len() > 1 {
        rows.push(cells("all", &total.all, None));
    }
    rows
}
