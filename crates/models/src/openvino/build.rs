//! Builds a graph from a network. ConvertPromoteTypes becomes two conversions.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use truecast_core::promote::Element;
use truecast_core::spec::openvino::Convert;
use truecast_core::{CastSpec, DType};

use super::check::{InputHeader, Types, label, types};
use super::error::{LayerError, ModelError};
use super::layer::{Meaning, meaning};
use super::read::{Constant, IrFile, Layer, PortId};
use crate::Error;
use crate::graph::{Graph, Load, ValueId};
use crate::tensor::{Data, Tensor};

/// Parameters: name, and element type if the model states it.
pub fn inputs(file: &IrFile) -> Vec<(String, Option<DType>)> {
    let parameter = |layer: &Layer| match meaning(file, layer, |_| ()) {
        Ok(Meaning::Parameter { element: Element::Type(dtype), .. }) => Some((layer.name.clone(), Some(dtype))),
        Ok(Meaning::Parameter { element: Element::Dynamic, .. }) => Some((layer.name.clone(), None)),
        _ => None,
    };
    file.network().layers.iter().filter(|layer| layer.operator == "Parameter").filter_map(parameter).collect()
}

/// Builds the graph of a network that consists of conversions. Also returns warnings.
///
/// # Errors
/// The first layer that is illegal or not a conversion. A type that remains unknown with the types in `fed`.
pub fn build(file: &Arc<IrFile>, fed: &BTreeMap<String, InputHeader>) -> Result<(Graph, Vec<String>), ModelError> {
    let mut types = types(file, fed)?;
    if !types.report.illegal.is_empty() {
        let (layer, cause) = types.report.illegal.swap_remove(0);
        return Err(ModelError::Layer { layer, cause: cause.into() });
    }
    let mut builder = Builder { file, types: &types, graph: Graph::default(), values: HashMap::new() };
    for &index in &types.order {
        builder.layer(index)?;
    }
    builder.results()?;
    let graph = builder.graph;
    Ok((graph, types.report.warnings))
}

struct Builder<'a> {
    file: &'a Arc<IrFile>,
    types: &'a Types,
    graph: Graph,
    values: HashMap<PortId, ValueId>,
}

impl Builder<'_> {
    fn layer(&mut self, index: usize) -> Result<(), ModelError> {
        let layer = &self.file.network().layers[index];
        let outputs = sorted(layer.outputs.iter().map(|port| port.id));
        let meaning = self.types.meanings[index].as_ref().expect("a layer without findings has a meaning");
        match meaning {
            Meaning::Parameter { shape, .. } => {
                if self.graph.inputs().iter().any(|input| input.name == layer.name) {
                    return Err(ModelError::DuplicateName { what: "parameters", name: layer.name.clone() });
                }
                let dtype = self.dtype(layer, outputs[0])?;
                let value = self.graph.input(&layer.name, dtype, shape.clone(), None);
                self.values.insert(layer.port_id(outputs[0]), value);
            }
            Meaning::Const(constant) => {
                let stored = Stored { file: self.file.clone(), constant: constant.clone() };
                let value = self.graph.constant(label(layer), constant.dtype, Arc::new(stored));
                self.values.insert(layer.port_id(outputs[0]), value);
            }
            Meaning::Convert { .. } | Meaning::Promote(_) => {
                let inputs = sorted(layer.inputs.iter().map(|port| port.id));
                for (&input, &output) in inputs.iter().zip(&outputs) {
                    let value = self.convert(layer, input, self.dtype(layer, output)?)?;
                    self.values.insert(layer.port_id(output), value);
                }
            }
            Meaning::Result => {
                let value = self.input(layer, layer.inputs[0].id);
                self.values.extend(outputs.into_iter().map(|output| (layer.port_id(output), value)));
            }
            Meaning::Opaque => {
                return Err(ModelError::Layer { layer: label(layer), cause: LayerError::Unsupported.into() });
            }
        }
        Ok(())
    }

    fn dtype(&self, layer: &Layer, output: u64) -> Result<DType, ModelError> {
        match self.types.ports[&layer.port_id(output)].element {
            Element::Type(dtype) => Ok(dtype),
            Element::Dynamic => Err(ModelError::Dynamic { layer: label(layer) }),
        }
    }

    fn input(&self, layer: &Layer, port: u64) -> ValueId {
        self.values[&self.types.producers[&layer.port_id(port)]]
    }

    fn convert(&mut self, layer: &Layer, input: u64, to: DType) -> Result<ValueId, ModelError> {
        let source = self.input(layer, input);
        let resolved: Result<CastSpec, _> = Convert::to(to).resolve(self.graph.dtype(source));
        let wrong = |cause| ModelError::Layer { layer: label(layer), cause: LayerError::Spec(cause).into() };
        Ok(self.graph.cast(label(layer), resolved.map_err(wrong)?, source))
    }

    /// Adds the Results as outputs in file order. An output is named by the Result's first unused tensor name, else
    /// by the layer.
    fn results(&mut self) -> Result<(), ModelError> {
        let mut names = HashSet::new();
        for layer in self.file.network().layers.iter().filter(|layer| layer.operator == "Result") {
            let tensor_name = layer.output_names.iter().find(|name| !names.contains(*name));
            let name = tensor_name.unwrap_or(&layer.name).clone();
            if !names.insert(name.clone()) {
                return Err(ModelError::DuplicateName { what: "results", name });
            }
            let value = self.input(layer, layer.inputs[0].id);
            self.graph.output(&name, value, None);
        }
        Ok(())
    }
}

fn sorted(ids: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut ids: Vec<u64> = ids.collect();
    ids.sort_unstable();
    ids
}

#[derive(Debug)]
struct Stored {
    file: Arc<IrFile>,
    constant: Constant,
}

impl Load for Stored {
    fn load(&self) -> Result<Arc<Tensor>, Error> {
        let data = Data::Codes(self.file.codes(&self.constant)?);
        Ok(Arc::new(Tensor { dtype: self.constant.dtype, shape: self.constant.shape.clone(), data }))
    }
}
