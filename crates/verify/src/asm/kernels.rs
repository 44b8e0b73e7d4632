//! The kernels and the expectations for their code at each level: the table of the assembly guard, in the file
//! `kernels.txt`.
//!
//! A kernel in the executable with no row, or two, fails the guard; so does a row, or one of its levels, without a
//! kernel. To add a kernel, run `verify asm`: the failure names it, its line shows the number to record (per KiB), and
//! `verify asm --show NAME` prints its loop.

use super::functions::Function;
use super::instructions::{decode, needs_avx};
use super::level::Level;
use globset::{Glob, GlobMatcher};
use std::collections::BTreeMap;

/// Crate of the functions to check.
pub const CRATE: &str = "truecast_kernel";

/// Expectation for a kernel's code at one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// A loop over the level's vectors, with at most the recorded number of instructions per 1024 bytes read and
    /// written, plus a tolerance, if a number was recorded.
    Vector {
        /// Number shown in the table of `verify asm`.
        recorded: Option<u32>,
    },
    /// One element at a time, for this reason.
    Scalar(&'static str),
    /// Calls a function for some elements, for this reason.
    Calls(&'static str),
    /// No loop over elements, or one that is never run, for this reason: nothing is checked.
    Aside(&'static str),
    /// Not compiled for this level.
    Absent,
}

/// Kernels with the same expectations.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// A glob over [`Kernel::name`].
    pub kernels: &'static str,
    /// In the order of [`Level::ALL`].
    pub expected: [Expected; 3],
    /// Whether the kernels test floats as integers, since FTZ and DAZ affect float comparisons (`docs/kernels.md
    /// §5.3`).
    pub compares_no_floats: bool,
}

impl Row {
    /// Returns the expectation at a level.
    pub fn at(&self, level: Level) -> Expected {
        self.expected[level as usize]
    }

    /// Returns the levels that the row's kernels are compiled for.
    pub fn levels(&self) -> impl Iterator<Item = Level> {
        Level::ALL.into_iter().filter(|level| self.at(*level) != Expected::Absent)
    }

    /// Returns a matcher of the row's kernels.
    ///
    /// # Panics
    /// If the pattern is not a glob.
    pub fn matcher(&self) -> GlobMatcher {
        Glob::new(self.kernels).expect("patterns in the table are globs").compile_matcher()
    }
}

/// A function that may be a kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Path with generic arguments, without the crate. For tasks, the task's type, without the level.
    pub name: String,
    /// Level, if it is in the name.
    pub level: Option<Level>,
    /// Whether the function must be in the table: it is compiled for a level by `Level::run`, or has vector
    /// instructions that only a level allows.
    pub certain: bool,
}

impl Kernel {
    /// Returns the kernel of a function, by name and code; `None` if it cannot be a kernel.
    pub fn of(function: &Function) -> Option<Kernel> {
        let path = function.name.replace(&format!("{CRATE}::"), "");
        for level in Level::ALL {
            let task = path.strip_prefix(level.entry()).and_then(|rest| rest.strip_prefix("::<")?.strip_suffix('>'));
            if let Some(task) = task {
                return Some(Kernel { name: task.to_owned(), level: Some(level), certain: true });
            }
        }
        let ours = function.name.trim_start_matches('<').starts_with(CRATE);
        let certain = decode(&function.code, function.address).iter().any(needs_avx);
        (ours || certain).then_some(Kernel { name: path, level: None, certain })
    }
}

/// Whether a function is where `Level::run` compiles tasks, but its name lacks the task.
pub fn lost_its_arguments(function: &Function) -> bool {
    Level::ALL.iter().any(|level| function.name == format!("{CRATE}::{}", level.entry()))
}

/// Reads the table in `kernels.txt`; the file explains its format.
///
/// # Panics
/// If a line of it is invalid.
pub fn table() -> Vec<Row> {
    let lines = include_str!("kernels.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let (mut reasons, mut rows) = (BTreeMap::new(), Vec::new());
    for line in lines {
        let fields: Vec<&str> = line.split("  ").map(str::trim).filter(|field| !field.is_empty()).collect();
        match fields[..] {
            [name, kind @ ("scalar" | "calls" | "aside"), why] => {
                let reason = match kind {
                    "scalar" => Expected::Scalar,
                    "calls" => Expected::Calls,
                    _ => Expected::Aside,
                };
                reasons.insert(name, reason(why));
            }
            [kernels, baseline, avx2, avx512, ref rest @ ..] if rest.is_empty() || rest == ["integers"] => {
                let expected = [baseline, avx2, avx512].map(|field| match (field, field.parse()) {
                    ("-", _) => Expected::Absent,
                    ("any", _) => Expected::Vector { recorded: None },
                    (_, Ok(recorded)) => Expected::Vector { recorded: Some(recorded) },
                    _ => *reasons.get(field).unwrap_or_else(|| panic!("no reason {field} in the table of kernels")),
                });
                rows.push(Row { kernels, expected, compares_no_floats: !rest.is_empty() });
            }
            _ => panic!("no line of the table of kernels: {line}"),
        }
    }
    rows
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::asm::loops::tests::assembled;
    use iced_x86::IcedError;
    use iced_x86::code_asm::CodeAssembler;

    const fn vector(recorded: u32) -> Expected {
        Expected::Vector { recorded: Some(recorded) }
    }

    const fn row(kernels: &'static str, expected: [Expected; 3]) -> Row {
        Row { kernels, expected, compares_no_floats: false }
    }

    /// A task at every level, and a hand-written kernel.
    pub const ROWS: &[Row] = &[
        row("stage::Loop<Copy>", [vector(144), vector(56), vector(28)]),
        row("x86::copy*", [Expected::Absent, Expected::Absent, vector(28)]),
    ];

    /// Returns functions of those names, each a loop written for its level.
    pub fn copying(write: fn(&mut CodeAssembler, Level) -> Result<(), IcedError>) -> Vec<Function> {
        let task = |level: Level| (format!("{CRATE}::{}::<{CRATE}::stage::Loop<{CRATE}::Copy>>", level.entry()), level);
        let names = Level::ALL.map(task).into_iter().chain([(format!("{CRATE}::x86::copy::<u8>"), Level::Avx512)]);
        names.map(|(name, level)| Function { name, address: 0x1000, code: assembled(|a| write(a, level)) }).collect()
    }

    #[test]
    fn a_task_is_named_without_its_level() {
        let functions = copying(crate::asm::loops::tests::VECTOR_COPY);
        let kernels: Vec<Kernel> = functions.iter().map(|function| Kernel::of(function).unwrap()).collect();
        for (kernel, level) in kernels.iter().zip(Level::ALL) {
            assert_eq!((kernel.name.as_str(), kernel.level), ("stage::Loop<Copy>", Some(level)));
        }
        assert_eq!((kernels[3].name.as_str(), kernels[3].level), ("x86::copy::<u8>", None));
    }

    #[test]
    fn functions_of_others_are_no_kernels() {
        let name = "core::ptr::drop_in_place::<truecast_kernel::stage::Pipeline>".into();
        assert!(Kernel::of(&Function { name, address: 0, code: vec![0xc3] }).is_none());
    }

    #[test]
    fn levels_are_those_of_the_engine() {
        for level in truecast_kernel::Level::available() {
            assert!(Level::ALL.iter().any(|own| own.name() == level.name()));
        }
    }

    #[test]
    fn patterns_are_globs_and_no_two_are_equal() {
        let table = table();
        for (i, row) in table.iter().enumerate() {
            row.matcher();
            assert!(table[..i].iter().all(|other| other.kernels != row.kernels), "{}", row.kernels);
        }
    }
}
