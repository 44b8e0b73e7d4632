//! Specifications that are tables: libraries, languages and chips.
//!
//! A table has versions, and rows with the rule for a group of pairs. The first row with the version, source and
//! destination decides. A pair without a row has no conversion.

mod amd;
mod arm;
mod avx10;
mod c;
mod jax;
mod ml_dtypes;
mod mlir;
mod numpy;
mod ptx;
mod riscv;
mod rust;
mod spirv;
mod stablehlo;
mod tflite;
mod torch;
mod wasm;
mod wgsl;

use super::{Interpretation, SpecError};
use crate::dtype::{DType, Kind};
use crate::policy::*;
use crate::round::Rounding;
use crate::words::words;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Every table, in listing order.
pub static TABLES: [&Table; 17] = [
    &c::TABLE,
    &rust::TABLE,
    &wasm::TABLE,
    &mlir::TABLE,
    &spirv::TABLE,
    &stablehlo::TABLE,
    &wgsl::TABLE,
    &ptx::TABLE,
    &arm::TABLE,
    &avx10::TABLE,
    &riscv::TABLE,
    &amd::TABLE,
    &torch::TABLE,
    &jax::TABLE,
    &ml_dtypes::TABLE,
    &numpy::TABLE,
    &tflite::TABLE,
];

words! {
    /// Kind of specification.
    pub enum Group {
        /// Published standard of tensors.
        Standard = "standards",
        /// Programming language or intermediate representation.
        Language = "languages",
        /// Instructions of a chip.
        Chip = "chips",
        /// Library, with the observed behavior of a release.
        Library = "libraries",
    }
}

/// One specification.
#[derive(Debug)]
pub struct Table {
    /// Name in requests.
    pub name: &'static str,
    /// Description in one line.
    pub about: &'static str,
    /// Kind of specification.
    pub group: Group,
    /// Versions, oldest first; empty for a table without versions.
    pub versions: &'static [&'static str],
    /// Rules; the first matching row decides.
    pub rows: &'static [Row],
}

/// Rule for a group of pairs.
#[derive(Debug)]
pub struct Row {
    /// Versions with this rule; empty for all.
    pub versions: &'static [&'static str],
    /// Source types.
    pub from: &'static [DType],
    /// Destination types.
    pub to: &'static [DType],
    /// Treatment of values without any choice.
    pub policy: CastPolicy,
    /// Choices in a request.
    pub choices: &'static [Choice],
    /// Open cases.
    pub undefined: &'static [Undefined],
    /// Clause of the rule.
    pub clause: &'static str,
}

const fn row(
    from: &'static [DType],
    to: &'static [DType],
    policy: CastPolicy,
    choices: &'static [Choice],
    undefined: &'static [Undefined],
    clause: &'static str,
) -> Row {
    Row { versions: &[], from, to, policy, choices, undefined, clause }
}

/// Rule of the x86 instructions that convert to an integer: one result for NaN and all values out of range.
const X86: CastPolicy =
    CastPolicy { int_overflow: IntOverflow::Indefinite, nan_to_int: NanToInt::Indefinite, ..CastPolicy::IEEE };
/// Destinations of the instructions with rule [`X86`].
const X86_SIGNED: &[DType] = &[DType::I32, DType::I64];

/// Cases that C and C++ leave undefined in conversions to integers, with a reason per case.
const fn out_of_range_open(overflow: &'static str, infinite: &'static str, nan: &'static str) -> [Undefined; 3] {
    [
        Undefined::any(Condition::Overflow, overflow),
        Undefined::any(Condition::Infinite, infinite),
        Undefined::any(Condition::Nan, nan),
    ]
}

impl Row {
    const fn at(self, versions: &'static [&'static str]) -> Row {
        Row { versions, ..self }
    }
}

/// Policy field that a request may set, with its allowed values.
#[derive(Clone, Copy, Debug)]
pub enum Choice {
    /// Rounding to floats and integers.
    Rounding(&'static [Rounding]),
    /// Result for a float out of range, including infinities.
    Overflow(&'static [Overflow]),
    /// Result for an integer out of range. NaN has the result that goes with it.
    IntOverflow(&'static [(IntOverflow, NanToInt)]),
    /// Treatment of subnormals.
    Subnormals(&'static [Subnormals]),
    /// [`CastPolicy::relu`].
    Relu,
    /// [`CastPolicy::scale_exponent`]: minimum and maximum.
    ScaleExponent(i16, i16),
}

/// Placeholder for any integer in the values of a setting.
pub const INTEGER: &str = "N";

/// Request to one table.
///
/// # Examples
/// ```
/// use truecast_core::{cast_one, spec::table, DType, Outcome};
/// let torch = table::Cast::find("torch", Some("2.11"))?.unwrap();
/// let cast = table::Cast { to: DType::F8E4M3Fn, ..torch }.resolve(DType::F32)?;
/// assert_eq!(cast_one(&cast, 465f32.to_bits().into()), Outcome::Defined(0x7f)); // NaN
/// # Ok::<(), truecast_core::spec::SpecError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Cast {
    /// Table of the specification.
    pub table: &'static Table,
    /// Version; `None` for tables without versions.
    pub version: Option<&'static str>,
    /// Destination type.
    pub to: DType,
    /// Rounding to floats and integers. Default: the rounding of the row.
    pub rounding: Option<Rounding>,
    /// Result for a float out of range. Default: the result of the row.
    pub overflow: Option<Overflow>,
    /// Result for an integer out of range. Default: the result of the row.
    pub int_overflow: Option<IntOverflow>,
    /// Treatment of subnormals. Default: the treatment of the row.
    pub subnormals: Option<Subnormals>,
    /// [`CastPolicy::relu`].
    pub relu: bool,
    /// [`CastPolicy::scale_exponent`]. Default: 0.
    pub scale_exponent: Option<i64>,
}

impl PartialEq for Cast {
    fn eq(&self, other: &Cast) -> bool {
        let of = |cast: &Cast| {
            let Cast { table, version, to, rounding, overflow, int_overflow, subnormals, relu, scale_exponent } = *cast;
            (table.name, version, to, rounding, overflow, int_overflow, subnormals, relu, scale_exponent)
        };
        of(self) == of(other)
    }
}

impl Eq for Cast {}

impl Table {
    /// Returns the table with this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<&'static Table> {
        TABLES.into_iter().find(|table| table.name == name)
    }

    fn row(&self, version: Option<&str>, src: DType, dst: DType) -> Option<&'static Row> {
        let is_of =
            |row: &&Row| row.versions.is_empty() || version.is_some_and(|version| row.versions.contains(&version));
        self.rows.iter().filter(is_of).find(|row| row.from.contains(&src) && row.to.contains(&dst))
    }

    /// Types from which a conversion to `dst` exists, without `dst` itself.
    fn sources(&self, version: Option<&str>, dst: DType) -> Vec<DType> {
        DType::ALL.into_iter().filter(|src| *src != dst && self.row(version, *src, dst).is_some()).collect()
    }

    /// Returns the values of a setting that at least one row allows, as words.
    #[must_use]
    pub fn values(&self, setting: &str) -> Vec<&'static str> {
        let mut all = Vec::new();
        for word in self.rows.iter().flat_map(|row| row.choices).flat_map(|choice| choice.words(setting)) {
            if !all.contains(&word) {
                all.push(word);
            }
        }
        all
    }
}

impl Choice {
    /// Allowed values of a setting as words; empty if this choice is for another setting.
    fn words(&self, setting: &str) -> Vec<&'static str> {
        match (self, setting) {
            (Choice::Rounding(all), "rounding") => all.iter().map(|one| one.name()).collect(),
            (Choice::Overflow(all), "overflow") => all.iter().map(|one| one.name()).collect(),
            (Choice::IntOverflow(all), "int-overflow") => all.iter().map(|(one, _)| one.name()).collect(),
            (Choice::Subnormals(all), "subnormals") => all.iter().map(|one| one.name()).collect(),
            (Choice::Relu, "relu") => ["true", "false"].into(),
            (Choice::ScaleExponent(..), "scale-exponent") => [INTEGER].into(),
            _ => Vec::new(),
        }
    }

    /// Sets the requested choice in a policy; `None` if the choice is not allowed.
    fn apply(&self, cast: &Cast, policy: CastPolicy) -> Option<CastPolicy> {
        /// Requested choice; `None` without a request, an error if the choice is not allowed.
        fn pick<T: Copy, U>(asked: Option<T>, all: &[U], is: impl Fn(&U, T) -> bool) -> Result<Option<&U>, ()> {
            asked.map(|asked| all.iter().find(|one| is(one, asked)).ok_or(())).transpose()
        }
        let mut policy = policy;
        match self {
            Choice::Rounding(all) => {
                if let Some(rounding) = pick(cast.rounding, all, |one, asked| *one == asked).ok()? {
                    (policy.to_float, policy.to_int) = (*rounding, *rounding);
                }
            }
            Choice::Overflow(all) => {
                if let Some(overflow) = pick(cast.overflow, all, |one, asked| *one == asked).ok()? {
                    (policy.overflow, policy.inf) = (*overflow, *overflow);
                }
            }
            Choice::IntOverflow(all) => {
                if let Some((overflow, nan)) = pick(cast.int_overflow, all, |one, asked| one.0 == asked).ok()? {
                    (policy.int_overflow, policy.nan_to_int) = (*overflow, *nan);
                }
            }
            Choice::Subnormals(all) => {
                if let Some(subnormals) = pick(cast.subnormals, all, |one, asked| *one == asked).ok()? {
                    policy.subnormals = *subnormals;
                }
            }
            Choice::Relu => policy.relu = cast.relu,
            Choice::ScaleExponent(least, most) => {
                let asked = i16::try_from(cast.scale_exponent.unwrap_or(0)).ok()?;
                policy.scale_exponent = (*least..=*most).contains(&asked).then_some(asked)?;
            }
        }
        Some(policy)
    }
}

impl Cast {
    /// Returns a request to the table `name` without choices; `None` if the table does not exist. The default version
    /// is the newest. The caller sets the destination.
    ///
    /// # Errors
    /// [`SpecError::Version`] for an unknown version.
    pub fn find(name: &str, version: Option<&str>) -> Result<Option<Cast>, SpecError> {
        let Some(table) = Table::of_name(name) else { return Ok(None) };
        let version = match version {
            None => table.versions.last().copied(),
            Some(version) => Some(*table.versions.iter().find(|known| **known == version).ok_or_else(|| {
                let known = if table.versions.is_empty() { "none".into() } else { table.versions.join(", ") };
                SpecError::Version { spec: table.name, version: version.into(), known: known.into() }
            })?),
        };
        Ok(Some(Cast::of_table(table, version)))
    }

    const fn of_table(table: &'static Table, version: Option<&'static str>) -> Cast {
        Cast {
            table,
            version,
            to: DType::F32,
            rounding: None,
            overflow: None,
            int_overflow: None,
            subnormals: None,
            relu: false,
            scale_exponent: None,
        }
    }

    /// Name of the specification with its version, for example `torch@2.15`.
    #[must_use]
    fn named(&self) -> String {
        self.version.map_or_else(|| self.table.name.into(), |version| format!("{}@{version}", self.table.name))
    }

    /// Returns every setting, with the chosen value if any.
    #[must_use]
    pub fn choices(&self) -> [(&'static str, Option<String>); 6] {
        let word = |value: Option<&str>| value.map(String::from);
        [
            ("rounding", word(self.rounding.map(Rounding::name))),
            ("overflow", word(self.overflow.map(Overflow::name))),
            ("int-overflow", word(self.int_overflow.map(IntOverflow::name))),
            ("subnormals", word(self.subnormals.map(Subnormals::name))),
            ("relu", word(self.relu.then_some("true"))),
            ("scale-exponent", self.scale_exponent.map(|exponent| exponent.to_string())),
        ]
    }

    /// Resolves every option.
    ///
    /// # Errors
    /// [`SpecError::NoConversion`] for a pair without a row; [`SpecError::Attribute`] for a choice that the pair does
    /// not have.
    pub fn resolve(&self, src: DType) -> Result<CastSpec, SpecError> {
        let (dst, Table { name, versions, .. }) = (self.to, self.table);
        let row = self.table.row(self.version, src, dst).ok_or_else(|| {
            let since = versions.iter().find(|version| self.table.row(Some(version), src, dst).is_some());
            SpecError::NoConversion {
                spec: self.named(),
                src,
                dst,
                sources: self.table.sources(self.version, dst),
                since: since.map(|since| format!("{name}@{since}")),
            }
        })?;
        let mut policy = row.policy;
        for (setting, value) in self.choices() {
            let Some(value) = value else { continue };
            let fixed = if matches!(dst.kind(), Kind::Int(_)) { policy.to_int } else { policy.to_float };
            if setting == "rounding" && value == fixed.name() {
                continue;
            }
            let choice = row.choices.iter().find(|choice| !choice.words(setting).is_empty());
            policy = choice.and_then(|choice| choice.apply(self, policy)).ok_or_else(|| {
                let why = match choice {
                    Some(Choice::ScaleExponent(least, most)) => {
                        format!("{value} is not in {least} to {most} for {src} to {dst}")
                    }
                    Some(choice) => {
                        format!("{value:?} is not one of {} for {src} to {dst}", choice.words(setting).join(", "))
                    }
                    None if setting == "rounding" => format!("{src} to {dst} rounds {} only", fixed.name()),
                    None => format!("{src} to {dst} has no choice of it"),
                };
                SpecError::Attribute { spec: self.named(), name: setting, why, clause: row.clause }
            })?;
        }
        Ok(CastSpec { src, dst, policy, undefined: row.undefined, clause: row.clause })
    }

    /// Returns the table's interpretations of a pair: the default, and one per alternative result out of range.
    #[must_use]
    pub fn every_interpretation(&self, src: DType) -> Vec<Interpretation> {
        let plain = Cast { to: self.to, ..Cast::of_table(self.table, self.version) };
        let Some(row) = self.table.row(self.version, src, self.to) else { return Vec::new() };
        let others = row.choices.iter().flat_map(|choice| match choice {
            Choice::Overflow(all) => all.iter().map(|one| Cast { overflow: Some(*one), ..plain }).collect::<Vec<_>>(),
            Choice::IntOverflow(all) => {
                all.iter().map(|(one, _)| Cast { int_overflow: Some(*one), ..plain }).collect::<Vec<_>>()
            }
            _ => Vec::new(),
        });
        let is_other = |cast: &Cast| cast.resolve(src).is_ok_and(|cast| cast.policy != row.policy);
        let all = [plain].into_iter().chain(others.filter(is_other));
        all.filter_map(|cast| {
            let chosen = cast.choices().into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value?)));
            Some(Interpretation {
                spec: self.table.name,
                version: self.version.unwrap_or_default().to_string(),
                attributes: chosen.collect::<Vec<_>>().join(", "),
                cast: cast.resolve(src).ok()?,
            })
        })
        .collect()
    }
}

/// Every table's interpretations of a pair; within a table, the newest version comes first.
pub(super) fn interpretations(src: DType, dst: DType) -> Vec<Interpretation> {
    let at = |table: &'static Table, version| Cast::find(table.name, version).ok().flatten();
    let versions = |table: &'static Table| {
        let none = table.versions.is_empty().then_some(None);
        none.into_iter().chain(table.versions.iter().rev().map(|version| Some(*version)))
    };
    TABLES
        .into_iter()
        .flat_map(|table| versions(table).filter_map(move |version| at(table, version)))
        .flat_map(|cast| Cast { to: dst, ..cast }.every_interpretation(src))
        .collect()
}
