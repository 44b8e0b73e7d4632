//! Table of the assembly guard (`kernels.txt`): the kernels, and the expected code at each level.
//!
//! Each kernel needs one row, and each row and level needs a kernel. To add a kernel, run `verify asm`: the failure
//! shows the number to record (per KiB).

use super::functions::Function;
use super::instructions::{decode, needs_avx};
use super::level::Level;
use globset::{Glob, GlobMatcher};
use std::collections::BTreeMap;

/// Crate whose functions are checked.
pub const CRATE: &str = "truecast_kernel";

/// Expected code of a kernel at a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// A loop over the level's vectors. A recorded number limits the instructions per 1024 bytes read and written, with
    /// a tolerance.
    Vector {
        /// Number in the table of `verify asm`.
        recorded: Option<u32>,
    },
    /// One element at a time, for the stated reason.
    Scalar(&'static str),
    /// Calls a function for some elements, for the stated reason.
    Calls(&'static str),
    /// Not checked, for the stated reason: no loop over elements, or a loop that never runs.
    Aside(&'static str),
    /// Not compiled for this level.
    Absent,
}

/// How a kernel may test floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloatTests {
    Allowed,
    /// Only as integers, because FTZ and DAZ affect float comparisons (`docs/kernels.md §5.3`).
    AsIntegers,
}

/// Kernels with the same expectations.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Glob pattern for [`Kernel::name`].
    pub kernels: &'static str,
    /// Expectations in the order of [`Level::ALL`].
    pub expected: [Expected; 3],
    pub float_tests: FloatTests,
}

impl Row {
    pub fn at(&self, level: Level) -> Expected {
        self.expected[level as usize]
    }

    pub fn levels(&self) -> impl Iterator<Item = Level> {
        Level::ALL.into_iter().filter(|level| self.at(*level) != Expected::Absent)
    }

    /// Matcher for the kernels.
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
    /// Path with generic arguments. The crate is left out. A task has its type as name, and the level is left out.
    pub name: String,
    /// Level, if the function's name states it.
    pub level: Option<Level>,
    /// True if the function must be in the table: `Level::run` compiles it, or it has vector instructions of a level.
    pub certain: bool,
}

impl Kernel {
    /// Kernel of a function, by name and code; `None` if the function cannot be a kernel.
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

/// True if `Level::run` compiled the function, but its name lacks the task.
pub fn lost_its_arguments(function: &Function) -> bool {
    Level::ALL.iter().any(|level| function.name == format!("{CRATE}::{}", level.entry()))
}

/// Parses `kernels.txt`, which explains its format.
///
/// # Panics
/// If a line is invalid.
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
                let float_tests = if rest.is_empty() { FloatTests::Allowed } else { FloatTests::AsIntegers };
                rows.push(Row { kernels, expected, float_tests });
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
        Row { kernels, expected, float_tests: FloatTests::Allowed }
    }

    /// A task at every level, and a hand-written kernel.
    pub const ROWS: &[Row] = &[
        row("stage::Loop<Copy>", [vector(144), vector(56), vector(28)]),
        row("x86::copy*", [Expected::Absent, Expected::Absent, vector(28)]),
    ];

    /// Functions with the names of [`ROWS`], each a loop written for its level.
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
