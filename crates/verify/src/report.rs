//! Counts of checks, first witnesses, and the final table.

use crate::policies::describe;
use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};
use truecast_core::policy::Condition;
use truecast_core::{CastPolicy, DType};
use truecast_kernel::{Level, Route};

/// Witnesses kept per check and pair of types, so that errors in one pair do not hide another.
const WITNESSES: usize = 12;
const WITNESSES_OF_A_PAIR: usize = 2;

/// Answer of one side for an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Code(u64),
    /// A refusal, with its reason if known.
    Refused(Option<Condition>),
    /// Text that does not concern a single element.
    Text(String),
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Code(code) => write!(f, "{code:#x}"),
            Answer::Refused(Some(condition)) => write!(f, "refused ({condition:?})"),
            Answer::Refused(None) => f.write_str("refused"),
            Answer::Text(text) => f.write_str(text),
        }
    }
}

/// An input on which two sides differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    pub src: DType,
    pub dst: DType,
    pub policy: CastPolicy,
    /// Level, or another source of the wrong answer.
    pub who: String,
    /// Stored source element; `None` if the answer does not concern a single element.
    pub code: Option<u64>,
    pub got: Answer,
    pub want: Answer,
}

impl fmt::Display for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Witness { src, dst, policy, who, code, got, want } = self;
        write!(f, "{src} -> {dst}, {}, {who}: ", describe(policy))?;
        if let Some(code) = code {
            write!(f, "{code:#x} gives ")?;
        }
        write!(f, "{got}, not {want}")
    }
}

/// Result of one kind of check.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub checks: u64,
    pub mismatches: u64,
    pub witnesses: Vec<Witness>,
    /// Total time of all threads.
    pub busy: Duration,
}

impl Tally {
    pub fn fail(&mut self, witness: Witness) {
        self.mismatches += 1;
        self.keep(witness);
    }

    fn keep(&mut self, witness: Witness) {
        let same_pair = |other: &&Witness| (other.src, other.dst) == (witness.src, witness.dst);
        if self.witnesses.len() < WITNESSES && self.witnesses.iter().filter(same_pair).count() < WITNESSES_OF_A_PAIR {
            self.witnesses.push(witness);
        }
    }

    pub fn add(&mut self, next: Tally) {
        self.checks += next.checks;
        self.mismatches += next.mismatches;
        self.busy += next.busy;
        next.witnesses.into_iter().for_each(|witness| self.keep(witness));
    }

    /// Runs `f` and measures its time.
    pub fn timed(f: impl FnOnce(&mut Tally)) -> Tally {
        let start = Instant::now();
        let mut tally = Tally::default();
        f(&mut tally);
        tally.busy = start.elapsed();
        tally
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes(BTreeMap<Route, u64>);

impl Routes {
    pub fn count(&mut self, route: &Route) {
        *self.0.entry(route.clone()).or_default() += 1;
    }

    pub fn add(&mut self, next: Routes) {
        next.0.into_iter().for_each(|(route, n)| *self.0.entry(route).or_default() += n);
    }

    /// True if every method of these levels was used.
    pub fn covers_all(&self, levels: &[Level]) -> bool {
        let taken = |method| self.0.keys().any(|route| route.methods().contains(&method));
        levels.iter().all(|level| Route::methods_at(*level).all(taken))
    }
}

impl fmt::Display for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = self.0.iter().map(|(route, n)| format!("{route} {n}"));
        f.write_str(&each.collect::<Vec<_>>().join(", "))
    }
}

/// Tallies by name, in order of appearance, and the routes taken.
#[derive(Clone, Debug, Default)]
pub struct Sheet {
    pub rows: Vec<(String, Tally)>,
    pub routes: Routes,
}

impl Sheet {
    pub fn add(&mut self, name: &str, tally: Tally) {
        match self.rows.iter_mut().find(|(row, _)| row == name) {
            Some((_, total)) => total.add(tally),
            None => self.rows.push((name.to_owned(), tally)),
        }
    }

    pub fn merge(&mut self, next: Sheet) {
        self.routes.add(next.routes);
        next.rows.into_iter().for_each(|(name, tally)| self.add(&name, tally));
    }

    pub fn total(sheets: impl IntoIterator<Item = Sheet>) -> Sheet {
        sheets.into_iter().fold(Sheet::default(), |mut total, sheet| {
            total.merge(sheet);
            total
        })
    }
}

/// Findings of a command, with a display and a number of failures.
pub trait Findings: fmt::Display {
    /// Number of failures. Any failure fails the command.
    fn failures(&self) -> u64;
}

/// Findings of a command that compares elements.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Description of the tested inputs.
    pub covers: String,
    pub sheet: Sheet,
    pub elapsed: Duration,
}

impl Report {
    pub fn checks(&self) -> u64 {
        self.sheet.rows.iter().map(|(_, tally)| tally.checks).sum()
    }

    pub fn mismatches(&self) -> u64 {
        self.sheet.rows.iter().map(|(_, tally)| tally.mismatches).sum()
    }
}

impl Findings for Report {
    fn failures(&self) -> u64 {
        self.mismatches()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |d: Duration| format!("{:.1}", d.as_secs_f64());
        let header = ["check", "checks", "mismatches", "cpu s", "s"].map(String::from);
        let mut lines = vec![header.to_vec()];
        for (name, tally) in &self.sheet.rows {
            let numbers = [grouped(tally.checks), grouped(tally.mismatches), seconds(tally.busy), String::new()];
            let [checks, mismatches, busy, wall] = numbers;
            lines.push(vec![name.clone(), checks, mismatches, busy, wall]);
        }
        let busy = self.sheet.rows.iter().map(|(_, tally)| tally.busy).sum();
        let (checks, mismatches) = (grouped(self.checks()), grouped(self.mismatches()));
        lines.push(vec!["total".into(), checks, mismatches, seconds(busy), seconds(self.elapsed)]);
        f.write_str(&aligned(&lines, &[1, 2, 3, 4]))?;
        if self.sheet.routes != Routes::default() {
            writeln!(f, "conversions by route: {}", self.sheet.routes)?;
        }
        for (name, tally) in &self.sheet.rows {
            for witness in &tally.witnesses {
                writeln!(f, "mismatch in {name}: {witness}")?;
            }
            let kept = tally.witnesses.len() as u64;
            if tally.mismatches > kept {
                writeln!(f, "mismatch in {name}: and {} more", grouped(tally.mismatches - kept))?;
            }
        }
        Ok(())
    }
}

/// Aligns the cells of lines in columns. The columns `right` are right-aligned.
pub fn aligned(lines: &[Vec<String>], right: &[usize]) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let cell = |line: &[String], column: usize| line.get(column).map_or(0, String::len);
    let widths: Vec<usize> =
        (0..columns).map(|column| lines.iter().map(|line| cell(line, column)).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for line in lines {
        let cells = line.iter().zip(&widths).enumerate().map(|(column, (cell, &w))| {
            if right.contains(&column) { format!("{cell:>w$}") } else { format!("{cell:<w$}") }
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn columns_are_aligned() {
        let lines =
            [vec!["a", "1", "x"], vec!["bcd", "23", "y z"]].map(|line| line.into_iter().map(String::from).collect());
        assert_eq!(super::aligned(&lines, &[1]), "a     1  x\nbcd  23  y z\n");
    }

    #[test]
    fn grouped_thousands() {
        assert_eq!([0, 999, 1000, 1_234_567].map(super::grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
