//! Evaluates a Tile IR module: every conversion's result becomes a file, named after the value.
//!
//! Integers in Tile IR have no sign: signed and unsigned arrays are accepted, and results are signed. i1 is written
//! as bool, an address as u64.

use super::error::RunError;
use super::model::Model;
use super::outputs::{Outputs, RunOptions, RunReport};
use crate::array::{self, ArrayError};
use crate::tile::Module;
use crate::tile::evaluate::{Converted, Elements, evaluate};
use crate::tile::module::{Function, written_type};
use crate::{OpenResults, Tensor};
use std::collections::BTreeSet;
use std::path::Path;
use truecast_core::DType;
use truecast_core::spec::tile::{Profile, Rules, Signedness};
use truecast_kernel::CastOptions;

/// Settings for evaluating an entry of a module.
#[derive(Clone, Debug, Default)]
pub struct EntrySettings {
    /// Release whose rules apply.
    pub rules: Rules,
    /// Name of the entry; `None` if the module has only one.
    pub entry: Option<String>,
    /// Source of the values.
    pub values: crate::tile::evaluate::Settings,
}

impl Model {
    /// Evaluates an entry and writes the result of every conversion with a known operand.
    ///
    /// Inputs are arguments of the entry, or results of operations that are not conversions. Names of inputs may
    /// begin with `%`.
    ///
    /// # Errors
    /// [`RunError`]; [`RunError::Tile`] for the first illegal operation.
    pub fn run_tile(&self, settings: &EntrySettings, options: &RunOptions<'_>) -> Result<RunReport, RunError> {
        let EntrySettings { rules, values, .. } = settings;
        let module = self.tile_module(*rules)?;
        let report = crate::tile::check(&module, *rules, values.profile, &values.options);
        if let Some(cause) = report.errors.into_iter().next() {
            return Err(RunError::Tile { path: self.shown(), cause });
        }
        let entry = self.entry(&module, settings.entry.as_deref())?;
        let (supplied, masked) = supplied(entry, options.inputs, &options.exec)?;
        let mut warnings: Vec<String> = report.warnings.iter().map(|w| w.to_string()).collect();
        if values.profile == Profile::Hw {
            warnings.extend(masked);
        }
        let outputs = Outputs::new(options, self.reads(options.inputs)?);
        let mut results = Results { names: BTreeSet::new(), outputs, left_open: Vec::new(), warnings };
        evaluate(entry, values, supplied, |converted| results.add(&converted))
            .map_err(|failed| failed.in_file(self.path()))?;
        let Results { outputs, left_open, warnings, .. } = results;
        Ok(RunReport { written: outputs.commit()?, left_open, warnings })
    }

    fn entry<'a>(&self, module: &'a Module, name: Option<&str>) -> Result<&'a Function, RunError> {
        module.entry(name).map_err(|cause| self.wrong(cause))
    }
}

/// Low bits of a 32-bit word that the 19 bits of tf32 do not include.
const TF32_LOW_BITS: u32 = (1 << 13) - 1;
const MASKED: &str = "U14: the 13 low bits of a tf32 word are masked to zero; docs/spec/tile-ir.md §7";

type Supplied = (String, Tensor);

/// Reads values from files. Also returns a note for each value with bits that machine code would keep (U14).
fn supplied(entry: &Function, inputs: &[String], exec: &CastOptions) -> Result<(Vec<Supplied>, Vec<String>), RunError> {
    let (mut supplied, mut masked) = (Vec::new(), Vec::new());
    for given in inputs {
        let (name, path) = given.split_once('=').ok_or_else(|| RunError::NoInput {
            given: given.clone(),
            why: "is not of the form NAME=FILE",
            inputs: "values of the entry".into(),
        })?;
        let name = format!("%{}", name.trim_start_matches('%'));
        let wrong = |cause: ArrayError| RunError::Input { name: name.clone(), cause: Box::new(cause) };
        // A value without a declaration has the type that its first use states.
        let declared = entry
            .value_of(&name)
            .and_then(|id| entry.value(id).tile.as_deref().or_else(|| written_type(&entry.body, id)));
        let Some(declared) = declared else {
            let inputs = "arguments, and operands of conversions".into();
            return Err(RunError::NoInput { given: given.clone(), why: "does not name a value of known type", inputs });
        };
        let dtype = declared.element.storage();
        let tensor = read(Path::new(path), dtype, exec).map_err(wrong)?;
        if tensor.shape != declared.shape {
            let (found, expected) = (tensor.shape, declared.shape.clone());
            return Err(wrong(ArrayError::Shape { path: path.into(), found, expected }));
        }
        match low_bits(&tensor, dtype) {
            0 => {}
            n => masked
                .push(format!("input {name}: {} another value in other implementations: {MASKED}", have(n as u64))),
        }
        supplied.push((name, Tensor { dtype, ..tensor }));
    }
    Ok((supplied, masked))
}

/// Reads an array as the type of a value. Integers may be signed or unsigned, and i1 may be bool.
fn read(path: &Path, dtype: DType, exec: &CastOptions) -> Result<Tensor, ArrayError> {
    let other = match dtype {
        DType::U64 => DType::I64,
        DType::I1 => DType::Bool,
        _ => Signedness::Unsigned.dtype(dtype),
    };
    match array::read(path, dtype, exec) {
        Err(ArrayError::Type { .. }) if other != dtype => array::read(path, other, exec),
        done => done,
    }
}

fn have(elements: u64) -> String {
    if elements == 1 { "1 element has".into() } else { format!("{elements} elements have") }
}

fn low_bits(tensor: &Tensor, dtype: DType) -> usize {
    if dtype != DType::Tf32 {
        return 0;
    }
    let codes = tensor.codes();
    let (words, _) = codes.as_chunks::<4>();
    words.iter().filter(|word| u32::from_le_bytes(**word) & TF32_LOW_BITS != 0).count()
}

struct Results {
    /// File names in use. Values of different regions may have the same name.
    names: BTreeSet<String>,
    outputs: Outputs,
    left_open: Vec<OpenResults>,
    warnings: Vec<String>,
}

impl Results {
    fn add(&mut self, converted: &Converted<'_>) -> Result<(), RunError> {
        let label = format!("{} = {}", converted.name, converted.op);
        let Some(elements) = converted.elements else {
            self.warnings.push(format!("{label}: operand {} is unknown; supply it as an input", converted.operand));
            return Ok(());
        };
        for (clause, &undefined) in &converted.undefined {
            let (conversion, elements) = (label.clone(), elements.tensor.len());
            self.left_open.push(OpenResults { conversion, elements, undefined, clause });
        }
        for (note, n) in &converted.notes {
            self.warnings.push(format!("{label}: {} another value in other implementations: {note}", have(*n)));
        }
        let name = self.free_name(converted.name.trim_start_matches('%'));
        self.outputs.add_tensor(&name, &tensor(elements))
    }

    fn free_name(&mut self, name: &str) -> String {
        let mut free = name.to_string();
        let mut n = 1;
        while !self.names.insert(free.clone()) {
            n += 1;
            free = format!("{name}~{n}");
        }
        free
    }
}

/// Tensor that a file stores for the elements. i1 becomes bool.
fn tensor(elements: &Elements) -> Tensor {
    let tensor = (*elements.tensor).clone();
    match tensor.dtype {
        DType::I1 => Tensor { dtype: DType::Bool, ..tensor },
        _ => tensor,
    }
}
