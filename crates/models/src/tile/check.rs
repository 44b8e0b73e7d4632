//! Checks a module against a release (§4). Errors are in the order of the text.

use truecast_core::DType;
use truecast_core::spec::tile::{ElementType, Options, Profile, Release, Rules, TileType};

use crate::description::LegalityReport;
use crate::tile::error::{Cause, Diagnostic, shown};
use crate::tile::module::{Function, MAX_FINDINGS, Module, Operation, Statement, ValueId};
use crate::tile::pack;

/// Result of checking a module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleLegality {
    /// Number of conversions, including pack and unpack.
    pub conversions: usize,
    /// Number of legal conversions.
    pub legal: usize,
    /// Errors.
    pub errors: Vec<Diagnostic>,
    /// Warnings about legal operations without a value, and about harmless omissions.
    pub warnings: Vec<Diagnostic>,
}

impl From<ModuleLegality> for LegalityReport {
    fn from(report: ModuleLegality) -> LegalityReport {
        LegalityReport {
            conversions: report.conversions,
            legal: report.legal,
            unknown: 0,
            of_unknown_type: 0,
            illegal: report.errors.iter().map(|error| (error.place.to_string(), error.message())).collect(),
            warnings: report.warnings.iter().map(ToString::to_string).collect(),
        }
    }
}

/// Checks every operation of a module against a release, also in regions.
///
/// Source: §3.7, §4; §2.2 defines `rules`. Only the profile `seed` affects legality (§4.10).
pub fn check(module: &Module, rules: Rules, profile: Profile, options: &Options) -> ModuleLegality {
    let release = rules.release(module.version);
    let (errors, warnings) = (module.findings.clone(), module.warnings.clone());
    let mut checker =
        Checker { release, profile, options, report: ModuleLegality { conversions: 0, legal: 0, errors, warnings } };
    if module.version > release {
        checker.newer_file(module);
    }
    for function in &module.functions {
        checker.signature(function);
        checker.statements(function, &function.body);
    }
    checker.report.errors.sort_by_key(|e| match e.place {
        crate::tile::Place::Text { line, column } => (u64::from(line), u64::from(column)),
        crate::tile::Place::Byte(offset) => (0, offset),
    });
    checker.report
}

struct Checker<'a> {
    release: Release,
    profile: Profile,
    options: &'a Options,
    report: ModuleLegality,
}

impl Checker<'_> {
    fn newer_file(&mut self, module: &Module) {
        let Some(first) = module.functions.first() else { return };
        let cause = Cause::Newer { what: "the module".into(), since: module.version, file: self.release };
        self.error(Diagnostic::new(first.place, cause));
    }

    fn signature(&mut self, function: &Function) {
        for (index, &argument) in function.arguments.iter().enumerate() {
            let Some(tile) = function.value(argument).tile.as_deref() else { continue };
            let cause = match tile.check() {
                Err(malformed) => Cause::Type(malformed),
                Ok(()) if tile.shape.is_empty() => continue,
                Ok(()) => {
                    let why = format!("argument {index} is {tile}; entry arguments must be rank-0 tiles");
                    Cause::Signature { entry: shown(&function.name), why }
                }
            };
            self.error(Diagnostic::new(function.place, cause));
        }
    }

    fn error(&mut self, error: Diagnostic) {
        if self.report.errors.len() < MAX_FINDINGS {
            self.report.errors.push(error);
        }
    }

    fn statements(&mut self, function: &Function, statements: &[Statement]) {
        for statement in statements {
            let is_conversion = matches!(statement.operation, Operation::Convert { .. } | Operation::Pack { .. });
            match self.statement(function, statement) {
                Err(cause) => self.error(statement.wrong(cause)),
                Ok(()) => self.report.legal += usize::from(is_conversion),
            }
            if let Operation::Opaque { regions, .. } = &statement.operation {
                regions.iter().for_each(|region| self.statements(function, region));
            }
        }
    }

    fn statement(&mut self, function: &Function, statement: &Statement) -> Result<(), Cause> {
        let value = || statement.results.first().map_or(String::new(), |&id| function.name_of(id));
        match &statement.operation {
            Operation::Convert { conversion, operand, from, to } => {
                self.report.conversions += 1;
                let illegal =
                    |violation| Cause::Illegal { value: value(), operand: from.clone(), result: to.clone(), violation };
                conversion.check(from, to, self.release, self.profile, self.options).map_err(illegal)?;
                operand_type(function, value(), conversion.op().name(), *operand, from)?;
                let violation = conversion.check_value(from.element, to.element).err();
                if let Some(violation) = violation.filter(|_| self.report.warnings.len() < MAX_FINDINGS) {
                    self.report.warnings.push(statement.wrong(illegal(violation)));
                }
                Ok(())
            }
            Operation::Pack { kind, operand, from, to } => {
                self.report.conversions += 1;
                let (op, operand_tile, result) = (kind.name(), from.clone(), to.clone());
                pack::check(*kind, from, to).map_err(|(code, why)| Cause::Pack {
                    value: value(),
                    op,
                    operand: operand_tile,
                    result,
                    why,
                    code,
                })?;
                operand_type(function, value(), op, *operand, from)
            }
            Operation::Constant { tile, .. } => {
                tile.check()?;
                match tile.element {
                    ElementType::Number(DType::I4) | ElementType::Pointer(_) => Err(Cause::Literal {
                        element: tile.element.to_string(),
                        why: "the type has no constants".into(),
                    }),
                    ElementType::Number(_) => Ok(()),
                }
            }
            Operation::Return { operands } if function.is_entry && !operands.is_empty() => {
                let why = format!("returns {} values; an entry returns nothing", operands.len());
                Err(Cause::Signature { entry: shown(&function.name), why })
            }
            Operation::Return { .. } | Operation::Opaque { .. } => Ok(()),
        }
    }
}

/// Checks that an operation states its operand's defined type.
fn operand_type(
    function: &Function,
    value: String,
    op: &'static str,
    operand: ValueId,
    written: &TileType,
) -> Result<(), Cause> {
    match &function.value(operand).tile {
        Some(found) if **found != *written => Err(Cause::OperandType {
            value,
            op,
            operand: function.name_of(operand),
            found: found.to_string(),
            written: written.to_string(),
        }),
        _ => Ok(()),
    }
}
