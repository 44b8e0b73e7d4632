//! What a network of OpenVINO or a module of Tile IR is made of, without evaluating it.

use super::RunError;
use super::model::{File, Model};
use std::collections::BTreeMap;
use truecast_core::promote::Element;
use truecast_core::spec::tile::{Release, Rules};
use truecast_models::openvino::IrFile;
use truecast_models::tile::Module;
use truecast_models::tile::bytecode::MAGIC;
use truecast_models::tile::module::{Function, Operation, Statement};
use truecast_models::{onnx, openvino};

/// What a model holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// Who wrote the file, or the version that it has, if it says so.
    pub version: Option<String>,
    /// Its constants.
    pub constants: Vec<Constant>,
    /// How often each operation occurs.
    pub operators: BTreeMap<String, usize>,
    /// Its conversions, in the order of the file.
    pub conversions: Vec<Conversion>,
}

/// A constant of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant {
    /// Its name.
    pub name: String,
    /// Its type, as the file writes it.
    pub dtype: String,
    /// Its shape, as the file writes it.
    pub shape: String,
}

/// A conversion of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// Where it stands.
    pub place: String,
    /// What it does, with its attributes.
    pub operation: String,
    /// The types of its operands; `?` for one that the model does not tell.
    pub from: String,
    /// The types of its results.
    pub to: String,
    /// Whether the specification allows it; `None` where that was not asked.
    pub legality: Option<Legality>,
}

/// What a specification says of a conversion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Legality {
    /// It has the conversion.
    Legal,
    /// The model does not tell the types.
    Unknown,
    /// It forbids the conversion, and why.
    Illegal(String),
}

/// The conversions of an ONNX model, judged by the opset that the model, and each of its functions, imports.
#[must_use]
pub fn onnx_conversions(model: &truecast_io::onnx::Model) -> Vec<Conversion> {
    let one = |c: onnx::Conversion| {
        let words = std::iter::once(c.operator.name().to_string()).chain(c.attributes);
        let legality = match (c.illegal, c.from.and(c.to)) {
            (Some(cause), _) => Legality::Illegal(cause.to_string()),
            (None, Some(_)) => Legality::Legal,
            (None, None) => Legality::Unknown,
        };
        let name = |dtype: Option<&str>| dtype.unwrap_or("?").to_string();
        let (operation, from, to) = (words.collect::<Vec<_>>().join(" "), name(c.from), name(c.to));
        Conversion { place: c.place, operation, from, to, legality: Some(legality) }
    };
    onnx::judge(model, None).conversions.into_iter().map(one).collect()
}

impl Model {
    /// Describes the model; an ONNX model is described by its tensors instead ([`truecast_io::Source::model`]).
    ///
    /// # Errors
    /// [`RunError::Model`], [`RunError::Tile`] if it cannot be read, and [`RunError::UnknownKind`] for ONNX.
    pub fn describe(&self) -> Result<Description, RunError> {
        match self.file() {
            File::OpenVino(file) => {
                let types = openvino::types(file, &BTreeMap::new()).map_err(|cause| self.wrong(cause))?;
                Ok(of_network(file, types.list(file)))
            }
            File::Tile(bytes) => {
                let module = self.tile_module(Rules::Of(Release::NEWEST))?;
                // Text has no version (`docs/spec/tile-ir.md §2.2`).
                let version = bytes.starts_with(&MAGIC).then(|| format!("Tile IR {}", module.version));
                Ok(Description { version, ..of_module(&module) })
            }
            File::Tosa(bytes) => super::tosa::describe(&self.shown(), bytes),
            File::Onnx(_) => Err(RunError::UnknownKind { path: self.shown() }),
        }
    }
}

fn of_network(file: &IrFile, conversions: Vec<openvino::Conversion>) -> Description {
    let network = file.network();
    let names = |elements: &[Option<Element>]| {
        let name = |element: &Option<Element>| element.map_or("?".into(), |element| element.to_string());
        elements.iter().map(name).collect::<Vec<_>>().join(", ")
    };
    let mut all = Description {
        version: network.release.map(|release| format!("OpenVINO {}.{}", release.0, release.1)),
        ..Description::default()
    };
    for layer in &network.layers {
        *all.operators.entry(layer.operator.clone()).or_default() += 1;
        if layer.operator == "Const" {
            let attribute = |name| layer.data.get(name).map_or("?".into(), String::clone);
            let (dtype, shape) = (attribute("element_type"), format!("[{}]", attribute("shape")));
            all.constants.push(Constant { name: layer.name.clone(), dtype, shape });
        }
    }
    let conversion = |c: openvino::Conversion| {
        let (from, to) = (names(&c.from), names(&c.to));
        Conversion { place: c.layer, operation: c.operator, from, to, legality: None }
    };
    all.conversions = conversions.into_iter().map(conversion).collect();
    all
}

fn of_module(module: &Module) -> Description {
    let mut all = Description::default();
    for function in &module.functions {
        all.add(function, &function.body);
    }
    all
}

impl Description {
    fn add(&mut self, function: &Function, statements: &[Statement]) {
        for statement in statements {
            let value = statement.results.first().map_or(String::new(), |id| function.name_of(*id));
            let place = format!("{} {} {value}", statement.place, function.name.escape_debug());
            let operator = match &statement.operation {
                Operation::Convert { conversion, from, to, .. } => {
                    let operation = truecast_models::tile::text::operation(*conversion);
                    let (from, to) = (from.to_string(), to.to_string());
                    self.conversions.push(Conversion { place, operation, from, to, legality: None });
                    conversion.op().to_string()
                }
                Operation::Pack { kind, from, to, .. } => {
                    let operation = kind.name().to_string();
                    let (from, to) = (from.to_string(), to.to_string());
                    self.conversions.push(Conversion { place, operation, from, to, legality: None });
                    kind.name().into()
                }
                Operation::Constant { tile, .. } => {
                    let (dtype, shape) = (tile.element.to_string(), format!("{:?}", tile.shape));
                    self.constants.push(Constant { name: value, dtype, shape });
                    "constant".into()
                }
                Operation::Return { .. } => "return".into(),
                Operation::Opaque { name, regions } => {
                    regions.iter().for_each(|region| self.add(function, region));
                    name.to_string()
                }
            };
            *self.operators.entry(operator).or_default() += 1;
        }
    }
}
