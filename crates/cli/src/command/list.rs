//! The tensors of a report in the requested order, as one long table or none (`--sort`, `--summary`), and its totals.

use super::error_columns::ErrorColumns;
use super::thresholds;
use crate::args::ListArgs;
use crate::failure::Failure;
use crate::number;
pub use crate::sort_keys::{Item, Known};
use crate::sort_keys::{KEYS, Key};
use crate::table::{Cell, Column, Mark, Table};
use crate::terminal::Terminal;
use crate::value_parsers;
use std::cmp::Ordering;
use std::io::{self, Write};
use truecast::report::{Group, Rows, Sum, Total, hides_loss};
use truecast::{Counts, DType};

/// Rows of a table, which are in memory before it is printed; then another table begins.
const ROWS: usize = 1000;

/// The common name of a tensor's type: the block type for a tensor in blocks of a GGUF file, not the type of its codes.
pub fn type_name(dtype: DType, scheme: Option<&str>) -> String {
    scheme.and_then(|scheme| scheme.strip_prefix("gguf:")).map_or_else(|| dtype.to_string(), str::to_owned)
}

/// The tensors that are listed.
#[derive(Debug)]
pub enum Listed {
    All,
    None,
    Ordered(Vec<usize>),
}

/// Reads `--sort`, before the work.
pub fn sorting(args: &ListArgs, known: Known) -> Result<Option<Key>, Failure> {
    let Some(column) = &args.sort else { return Ok(None) };
    // A heading or a key of JSON; `sqnr` is short for the key with its unit.
    let name = column.to_ascii_lowercase().replace([' ', '-'], "_");
    let name = if name == "sqnr" { "sqnr_db" } else { &name };
    let key = KEYS.into_iter().find(|(known, ..)| *known == name).map(|(_, needs_values, key)| (needs_values, key));
    let count = || thresholds::count(name).map(|count| (true, Key::Count(count)));
    let Some((needs_values, key)) = key.or_else(count) else {
        let all = value_parsers::columns(known);
        let error = Failure::usage(format_args!("--sort {column:?} is not one of {}", all.join(", ")));
        return Err(error.of_word(column, all));
    };
    let is_unknown = matches!(key, Key::Count(count) if count.of_conversions && known == Known::Differences);
    if needs_values && known == Known::Sizes {
        return Err(Failure::usage(format_args!("--sort {name} needs the values, which --dry-run does not read")));
    }
    if is_unknown {
        return Err(Failure::usage(format_args!("--sort {name} belongs to convert: two files do not show this count")));
    }
    Ok(Some(key))
}

impl Listed {
    /// The order of `n` tensors.
    pub fn new<'a>(args: &ListArgs, sorting: Option<Key>, len: usize, item: impl Fn(usize) -> Item<'a>) -> Listed {
        match sorting {
            _ if args.summary => Listed::None,
            None => Listed::All,
            Some(key) => Listed::Ordered(ordered(key, len, item)),
        }
    }

    /// The `most` tensors with the most noise, the worst first.
    pub fn worst<'a>(most: usize, len: usize, item: impl Fn(usize) -> Item<'a>) -> Listed {
        let noise = KEYS.into_iter().find(|(name, ..)| *name == "sqnr_db");
        let mut order = ordered(noise.expect("a key").2, len, item);
        order.truncate(most);
        Listed::Ordered(order)
    }

    /// Rows of the object of JSON.
    pub fn rows(&self) -> Rows<'_> {
        match self {
            Listed::All => Rows::All,
            Listed::None => Rows::None,
            Listed::Ordered(order) => Rows::Ordered(order),
        }
    }

    /// Tables of at most [`ROWS`] of the `len` tensors each; `last` comes under the last of them.
    pub fn write<C: Into<Cell>>(
        &self,
        out: &mut dyn Write,
        terminal: &Terminal,
        len: usize,
        columns: impl Fn() -> Vec<Column>,
        row: impl Fn(usize) -> Vec<C>,
        last: Vec<Vec<Cell>>,
    ) -> io::Result<()> {
        let len = match self {
            Listed::None => 0,
            Listed::All => len,
            Listed::Ordered(order) => order.len(),
        };
        let mut last = Some(last);
        let mut begin = 0;
        loop {
            let end = len.min(begin + ROWS);
            let mut table = Table::new(columns()).or_say("no tensors");
            for at in begin..end {
                table.row(row(match self {
                    Listed::Ordered(order) => order[at],
                    _ => at,
                }));
            }
            if end == len {
                last.take().into_iter().flatten().for_each(|cells| table.row(cells));
                return table.write(terminal, out);
            }
            table.write(terminal, out)?;
            writeln!(out)?;
            begin = end;
        }
    }
}

/// The order of `n` tensors.
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
    // Equal keys stay in the order of the data.
    order.sort_by(compare);
    order
}

/// Measures leave out values that became Inf or NaN, which is worse than any error.
fn lost_first(a: &Item<'_>, b: &Item<'_>) -> Ordering {
    hides_loss(b.counts).cmp(&hides_loss(a.counts))
}

/// Rows of the groups, by these names, and of everything if there are several groups. One tensor speaks for itself.
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
