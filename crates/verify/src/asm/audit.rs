//! Audit: all kernels of an executable, compared with the table.

use super::functions::{Function, functions};
use super::instructions::{decode, text};
use super::kernels::{CRATE, Expected, FloatTests, Kernel, Row, lost_its_arguments};
use super::level::Level;
use super::loops::{Loop, hot, loops};
use super::rules::{Fault, allowed, faults, per_kib};
use crate::report::{Findings, aligned};
use iced_x86::Instruction;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

#[derive(Clone, Debug)]
pub struct Entry {
    pub kernel: String,
    pub level: Level,
    /// Pattern of the table's row.
    pub row: &'static str,
    /// Expectation of the table's row.
    pub expected: Expected,
    pub loops: Vec<Loop>,
    pub faults: Vec<Fault>,
    /// True if the kernel would pass as a vector loop of any length.
    pub is_vector: bool,
}

impl Entry {
    fn new(name: &str, level: Level, row: &Row, code: &[Instruction]) -> Entry {
        let (expected, loops) = (row.at(level), loops(code));
        let breaks = |expected| faults(code, &loops, level, expected, row.float_tests);
        let is_vector = breaks(Expected::Vector { recorded: None }).is_empty();
        let faults = match expected {
            Expected::Aside(_) => Vec::new(),
            _ => breaks(expected),
        };
        Entry { kernel: name.to_owned(), level, row: row.kernels, expected, loops, faults, is_vector }
    }

    /// Entry for a kernel without a row. Shows the loop, which helps to write the row.
    fn unlisted(name: &str, level: Option<Level>, code: &[Instruction]) -> Entry {
        let level = level.unwrap_or_else(|| Level::of_code(code));
        let nothing = Row { kernels: "", expected: [Expected::Absent; 3], float_tests: FloatTests::Allowed };
        Entry { faults: vec![Fault::Unlisted], ..Entry::new(name, level, &nothing, code) }
    }

    fn per_kib(&self) -> Option<u32> {
        hot(&self.loops).and_then(per_kib)
    }

    fn cells(&self) -> [String; 8] {
        let hot = hot(&self.loops);
        let number = |n: Option<usize>| n.map_or("-".into(), |n| n.to_string());
        let allowed = match self.expected {
            Expected::Vector { recorded } => recorded.map(allowed),
            _ => None,
        };
        [
            self.kernel.clone(),
            self.level.name().into(),
            number(hot.map(|one| one.instructions.len())),
            number(hot.map(|one| one.read)),
            number(hot.map(|one| one.written)),
            number(self.per_kib().map(|n| n as usize)),
            number(allowed.map(|n| n as usize)),
            self.verdict(),
        ]
    }

    fn verdict(&self) -> String {
        if !self.faults.is_empty() {
            return "FAIL".into();
        }
        match self.expected {
            Expected::Vector { .. } => "vector".into(),
            Expected::Scalar(reason) => format!("scalar: {reason}"),
            Expected::Calls(reason) => format!("calls: {reason}"),
            Expected::Aside(reason) => format!("aside: {reason}"),
            Expected::Absent => "absent".into(),
        }
    }

    /// The hot loop, one instruction per line.
    fn listing(&self) -> String {
        let Some(hot) = hot(&self.loops) else { return "no loop\n".into() };
        hot.instructions.iter().map(|one| format!("    {}\n", text(one))).collect()
    }
}

/// Result for all kernels of an executable.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    /// Description of the checked code, or the reason why nothing was checked.
    pub covers: String,
    /// Entries by name, then level.
    pub entries: Vec<Entry>,
    /// Faults of the executable or the table.
    pub problems: Vec<String>,
}

impl Audit {
    pub fn of_executable(path: &Path, table: &[Row]) -> Audit {
        match functions(path, CRATE) {
            Ok(functions) => {
                let audit = Audit::of_functions(&functions, table);
                let covers = format!("asm: {} compiled kernels in {}", audit.entries.len(), path.display());
                Audit { covers, ..audit }
            }
            Err(error) => Audit::failed(error.to_string()),
        }
    }

    /// Failed audit in which nothing was checked.
    pub fn failed(problem: String) -> Audit {
        Audit { covers: "asm: nothing".into(), problems: vec![problem], ..Audit::default() }
    }

    pub fn of_functions(functions: &[Function], table: &[Row]) -> Audit {
        if let Some(problem) = unusable(functions) {
            return Audit::failed(problem.into());
        }
        let matchers: Vec<_> = table.iter().map(Row::matcher).collect();
        let mut audit = Audit::default();
        let mut seen = Vec::new();
        for (function, kernel) in functions.iter().filter_map(|function| Some((function, Kernel::of(function)?))) {
            let Kernel { name, level, certain } = kernel;
            let code = || decode(&function.code, function.address);
            let rows: Vec<usize> = (0..table.len()).filter(|row| matchers[*row].is_match(&name)).collect();
            let row = match rows[..] {
                [] if certain => {
                    audit.entries.push(Entry::unlisted(&name, level, &code()));
                    continue;
                }
                [] => continue,
                [row] => row,
                _ => {
                    audit.problems.push(format!("{name} is in {} rows of the table", rows.len()));
                    continue;
                }
            };
            match level.or_else(|| only_level(&table[row])) {
                None => audit.problems.push(format!("{name}: neither its name nor its row says its level")),
                Some(level) if table[row].at(level) == Expected::Absent => {
                    audit.entries.push(Entry::unlisted(&name, Some(level), &code()));
                }
                Some(level) => {
                    seen.push((row, level));
                    audit.entries.push(Entry::new(&name, level, &table[row], &code()));
                }
            }
        }
        for (index, row) in table.iter().enumerate() {
            for level in row.levels().filter(|level| !seen.contains(&(index, *level))) {
                audit.problems.push(format!("{} at {}: no such kernel in the executable", row.kernels, level.name()));
            }
        }
        audit.entries.sort_by(|a, b| (&a.kernel, a.level).cmp(&(&b.kernel, b.level)));
        audit
    }

    /// Hot loops of kernels. A kernel is listed if the table's text for its level and name contains `text`.
    pub fn listing(&self, text: &str) -> String {
        let titled = self.entries.iter().map(|entry| (format!("{} {}", entry.level.name(), entry.kernel), entry));
        let matching = titled.filter(|(title, _)| title.contains(text));
        let listing: String = matching.map(|(title, entry)| format!("{title}\n{}\n", entry.listing())).collect();
        if listing.is_empty() { format!("no kernel's level and name contain '{text}'\n\n") } else { listing }
    }

    /// Table of the kernels, one per line.
    pub fn table(&self) -> String {
        let header = ["kernel", "level", "instructions", "bytes in", "bytes out", "per KiB", "at most", "verdict"];
        let rows = self.entries.iter().map(|entry| entry.cells().to_vec());
        let lines: Vec<Vec<String>> = [header.map(String::from).to_vec()].into_iter().chain(rows).collect();
        aligned(&lines, &[2, 3, 4, 5, 6])
    }
}

/// Rows with weak expectations: a limit far above the actual number of instructions, or no vectors for kernels that use
/// vectors.
fn outdated(entries: &[Entry]) -> Vec<String> {
    let mut rows: BTreeMap<(&str, Level), Vec<&Entry>> = BTreeMap::new();
    for entry in entries {
        rows.entry((entry.row, entry.level)).or_default().push(entry);
    }
    let line = |((row, level), entries): ((&str, Level), Vec<&Entry>)| {
        let longest = entries.iter().filter_map(|entry| entry.per_kib()).max()?;
        let listed = match entries[0].expected {
            Expected::Vector { recorded: Some(recorded) } if allowed(longest) < recorded => format!("with {recorded}"),
            Expected::Scalar(_) if entries.iter().all(|entry| entry.is_vector) => "as scalar".into(),
            Expected::Calls(_) if entries.iter().all(|entry| entry.is_vector) => "as calling".into(),
            _ => return None,
        };
        Some(format!("{row} at {} is listed {listed}, now a vector loop of {longest} per KiB", level.name()))
    };
    rows.into_iter().filter_map(line).collect()
}

fn unusable(functions: &[Function]) -> Option<&'static str> {
    if functions.is_empty() {
        return Some("the executable has no symbols of the engine: build it without `strip`");
    }
    let lost = functions.iter().any(lost_its_arguments);
    lost.then_some(
        "names have lost their generic arguments: build with `-C symbol-mangling-version=v0`, as .cargo/config.toml says; \
         RUSTFLAGS in the environment replaces what that file says, so add it there",
    )
}

fn only_level(row: &Row) -> Option<Level> {
    let mut levels = row.levels();
    levels.next().filter(|_| levels.next().is_none())
}

impl Findings for Audit {
    fn failures(&self) -> u64 {
        let faults: usize = self.entries.iter().map(|entry| entry.faults.len()).sum();
        (faults + self.problems.len()) as u64
    }
}

/// Prints the summary and the failures. The table of kernels is left out.
impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = ["asm", "vector", "scalar", "aside", "failures"].map(String::from).to_vec();
        let row = |level: Level| {
            let of = |is: fn(&Expected) -> bool| {
                self.entries.iter().filter(|entry| entry.level == level && is(&entry.expected)).count().to_string()
            };
            let faults: usize = self.entries.iter().filter(|entry| entry.level == level).map(|e| e.faults.len()).sum();
            let vector = of(|expected| matches!(expected, Expected::Vector { .. }));
            let scalar = of(|expected| matches!(expected, Expected::Scalar(_) | Expected::Calls(_)));
            let aside = of(|expected| matches!(expected, Expected::Aside(_)));
            vec![level.name().into(), vector, scalar, aside, faults.to_string()]
        };
        let lines: Vec<Vec<String>> = [header].into_iter().chain(Level::ALL.map(row)).collect();
        if !self.entries.is_empty() {
            f.write_str(&aligned(&lines, &[1, 2, 3, 4]))?;
        }
        outdated(&self.entries).iter().try_for_each(|line| writeln!(f, "outdated: {line}"))?;
        for entry in &self.entries {
            for fault in &entry.faults {
                writeln!(f, "failure in {} at {}: {fault}", entry.kernel, entry.level.name())?;
            }
        }
        self.problems.iter().try_for_each(|problem| writeln!(f, "failure: {problem}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asm::kernels::tests::{ROWS, copying};
    use crate::asm::loops::tests::{SCALAR_COPY, VECTOR_COPY};

    fn problems(functions: &[Function]) -> Vec<String> {
        Audit::of_functions(functions, ROWS).problems
    }

    #[test]
    fn the_rows_and_their_kernels_pass() {
        let functions = copying(VECTOR_COPY);
        let audit = Audit::of_functions(&functions, ROWS);
        assert_eq!((audit.failures(), audit.entries.len()), (0, functions.len()), "{audit}");
        assert!(audit.table().lines().count() > functions.len());
    }

    #[test]
    fn a_kernel_that_became_scalar_fails() {
        let audit = Audit::of_functions(&copying(SCALAR_COPY), ROWS);
        let text = audit.to_string();
        for level in Level::ALL {
            assert!(text.contains(&format!("failure in stage::Loop<Copy> at {}: no packed", level.name())), "{text}");
        }
    }

    #[test]
    fn a_kernel_in_no_row_fails_and_can_be_looked_at() {
        let with = |name: &str| {
            let mut functions = copying(VECTOR_COPY);
            functions.push(Function { name: name.into(), ..functions[2].clone() });
            Audit::of_functions(&functions, ROWS)
        };
        let audit = with(&format!("{CRATE}::level::x86::avx2::<{CRATE}::New>"));
        assert!(audit.to_string().contains("failure in New at avx2: in no row of the table"), "{audit}");
        let audit = with(&format!("<{CRATE}::x86::New as {CRATE}::Stage>::run"));
        assert!(audit.to_string().contains("failure in <x86::New as Stage>::run at avx512: in no row"), "{audit}");
        assert!(audit.listing("avx512 <x86::New").contains("vpaddd"), "{}", audit.listing("New"));
        assert!(audit.listing("Old").contains("no kernel"));
    }

    #[test]
    fn a_function_without_vectors_is_no_kernel() {
        let mut functions = copying(VECTOR_COPY);
        functions.push(Function { name: format!("{CRATE}::plan"), code: vec![0xc3], address: 0 });
        assert_eq!(Audit::of_functions(&functions, ROWS).failures(), 0);
    }

    #[test]
    fn a_kernel_in_two_rows_or_at_a_level_that_its_row_lacks_fails() {
        let functions = copying(VECTOR_COPY);
        let twice: Vec<Row> = ROWS.iter().chain(&ROWS[..1]).copied().collect();
        let problems = Audit::of_functions(&functions, &twice).problems;
        assert!(problems[0].contains("stage::Loop<Copy> is in 2 rows"), "{problems:?}");
        let [baseline, avx2, _] = ROWS[0].expected;
        let narrower = [Row { expected: [baseline, avx2, Expected::Absent], ..ROWS[0] }, ROWS[1]];
        let audit = Audit::of_functions(&functions, &narrower);
        assert!(audit.to_string().contains("failure in stage::Loop<Copy> at avx512: in no row"), "{audit}");
    }

    #[test]
    fn a_row_without_a_kernel_fails() {
        let mut functions = copying(VECTOR_COPY);
        functions.retain(|function| !function.name.contains("avx2"));
        assert_eq!(problems(&functions), ["stage::Loop<Copy> at avx2: no such kernel in the executable"]);
    }

    #[test]
    fn names_that_say_too_little_are_explained() {
        assert!(problems(&[])[0].contains("strip"));
        let mut functions = copying(VECTOR_COPY);
        functions.push(Function { name: format!("{CRATE}::level::x86::avx2"), ..functions[0].clone() });
        assert!(problems(&functions)[0].contains("symbol-mangling-version=v0"));
    }

    #[test]
    fn rows_that_expect_too_little_are_pointed_out() {
        let lines = |expected, write| {
            let table = [Row { expected, ..ROWS[0] }, ROWS[1]];
            let text = Audit::of_functions(&copying(write), &table).to_string();
            text.lines().filter(|line| line.starts_with("outdated: stage::Loop<Copy>")).count()
        };
        for loose in [Expected::Vector { recorded: Some(10_000) }, Expected::Scalar(""), Expected::Calls("")] {
            assert_eq!(lines([loose; 3], VECTOR_COPY), 3, "{loose:?}");
        }
        assert_eq!(lines([Expected::Scalar(""); 3], SCALAR_COPY), 0);
        assert_eq!(lines(ROWS[0].expected, VECTOR_COPY), 0);
    }
}
