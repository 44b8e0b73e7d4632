//! Resolves the element type and rank of every output port in a network. Source: `docs/spec/openvino.md §11.6`.
//!
//! Outputs of other operators have the types that their ports declare. Outputs of an illegal layer get an unknown
//! type.

use std::collections::{BTreeMap, HashMap, VecDeque};

use truecast_core::promote::openvino::{SafeMode, TensorType};
use truecast_core::promote::{Element, Rank};
use truecast_core::spec::openvino::Convert;
use truecast_core::{DType, Ecosystem};
use truecast_io::Escaped;

use super::error::{Direction, LayerError, ModelError};
use super::layer::{Meaning, meaning, rank_of};
use super::read::{IrFile, Layer, Port, PortId};
use crate::description::{Conversion, LegalityReport};

/// Type and rank of the tensor supplied for a parameter, used if the model leaves a type or rank open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputHeader {
    /// Element type, if the file states one.
    pub dtype: Option<DType>,
    /// The number of dimensions.
    pub rank: usize,
}

/// The types of a network.
#[derive(Debug)]
pub struct Types {
    /// Findings. A result that depends on an open type or rank has an unknown type.
    pub report: LegalityReport<LayerError>,
    pub(super) ports: HashMap<PortId, TensorType>,
    pub(super) order: Vec<usize>,
    pub(super) producers: HashMap<PortId, PortId>,
    pub(super) meanings: Vec<Option<Meaning>>,
}

impl Types {
    /// Lists every conversion of the network in file order, with types and legality.
    pub fn list(&self, file: &IrFile) -> Vec<Conversion> {
        let element = |id: &PortId| self.ports.get(id).map(|port| port.element);
        let fed = |id: &PortId| self.producers.get(id).and_then(element);
        let is_conversion = |m: &Option<Meaning>| matches!(m, Some(Meaning::Convert { .. } | Meaning::Promote(_)));
        let layers = file.network().layers.iter().zip(&self.meanings).filter(|(_, meaning)| is_conversion(meaning));
        let named = |elements: &mut dyn Iterator<Item = Option<Element>>| {
            let name = |element: Option<Element>| element.map_or("?".into(), |element| element.to_string());
            elements.map(name).collect::<Vec<_>>().join(", ")
        };
        let conversion = |(layer, _): (&Layer, _)| Conversion {
            place: label(layer),
            operation: layer.operator.clone(),
            from: named(&mut layer.inputs.iter().map(|port| fed(&layer.port_id(port.id)))),
            to: named(&mut layer.outputs.iter().map(|port| element(&layer.port_id(port.id)))),
            legality: None,
        };
        layers.map(conversion).collect()
    }
}

pub(super) fn label(layer: &Layer) -> String {
    format!("layer {} {} ({})", layer.id, Escaped(&layer.name), layer.operator.escape_debug())
}

/// Resolves the types of a network. Parameters in `fed` have the supplied types.
///
/// # Errors
/// An edge to a missing port, or a cycle of layers.
pub fn types(file: &IrFile, fed: &BTreeMap<String, InputHeader>) -> Result<Types, ModelError> {
    let layers = &file.network().layers;
    let (producers, order) = connections(file)?;
    let mut types = Types {
        report: LegalityReport::default(),
        ports: HashMap::new(),
        order,
        producers,
        meanings: layers.iter().map(|_| None).collect(),
    };
    for index in types.order.clone() {
        let layer = &layers[index];
        match types.layer(file, layer, fed) {
            Ok(meaning) => types.meanings[index] = Some(meaning),
            Err(cause) => {
                types.report.illegal.push((label(layer), cause));
                types.declare(layer, |_| TensorType { element: Element::Dynamic, rank: Rank::Dynamic });
            }
        }
    }
    Ok(types)
}

impl Types {
    fn declare(&mut self, layer: &Layer, of: impl Fn(&Port) -> TensorType) {
        self.ports.extend(layer.outputs.iter().map(|port| (layer.port_id(port.id), of(port))));
    }

    fn unknown(&mut self) {
        self.report.unknown += 1;
        self.report.of_unknown_type += 1;
    }

    fn layer(
        &mut self,
        file: &IrFile,
        layer: &Layer,
        fed: &BTreeMap<String, InputHeader>,
    ) -> Result<Meaning, LayerError> {
        let warnings = &mut self.report.warnings;
        let meaning = meaning(file, layer, |warning| warnings.push(format!("{}: {warning}", label(layer))))?;
        let inputs = self.inputs(layer);
        match &meaning {
            Meaning::Parameter { element, shape } => {
                ports(layer, 0, 1)?;
                let fed = fed.get(&layer.name);
                let element = match (element, fed) {
                    (Element::Dynamic, Some(fed)) => fed.dtype.map_or(Element::Dynamic, Element::Type),
                    (element, _) => *element,
                };
                let rank = fed.map_or(rank_of(shape.as_ref().map(Vec::len)), |fed| rank_of(Some(fed.rank)));
                self.infer(layer, TensorType { element, rank });
            }
            Meaning::Const(constant) => {
                ports(layer, 0, 1)?;
                let (element, rank) = (Element::Type(constant.dtype), rank_of(Some(constant.shape.len())));
                self.infer(layer, TensorType { element, rank });
            }
            Meaning::Convert { to } => {
                ports(layer, 1, 1)?;
                self.report.conversions += 1;
                let input = inputs?[0];
                match input.element {
                    Element::Type(src) => {
                        Convert::to(*to).resolve(src)?;
                        self.report.legal += 1;
                    }
                    Element::Dynamic => self.unknown(),
                }
                self.infer(layer, TensorType { element: Element::Type(*to), ..input });
            }
            Meaning::Promote(attributes) => {
                ports(layer, 2, 2)?;
                self.report.conversions += 1;
                let inputs = inputs?;
                let common = attributes.promote(inputs[0], inputs[1], SafeMode::OpenVino)?;
                match common {
                    Element::Dynamic => self.unknown(),
                    Element::Type(_) => self.report.legal += 1,
                }
                if let Some(loss) = attributes.loss(inputs[0].element, inputs[1].element, common) {
                    self.report.warnings.push(format!("{}: {loss}", label(layer)));
                }
                let mut outputs: Vec<&Port> = layer.outputs.iter().collect();
                outputs.sort_by_key(|port| port.id);
                for (port, input) in outputs.into_iter().zip(inputs) {
                    self.check(layer, port, common);
                    self.ports.insert(layer.port_id(port.id), TensorType { element: common, ..input });
                }
            }
            Meaning::Result => {
                ports(layer, 1, layer.outputs.len())?;
                let input = inputs?[0];
                self.declare(layer, |_| input);
            }
            Meaning::Opaque => {
                let rank = |port: &Port| if port.rank == 0 { Rank::Dynamic } else { Rank::Dimensioned };
                let element = |port: &Port| declared(port).unwrap_or(Element::Dynamic);
                self.declare(layer, |port| TensorType { element: element(port), rank: rank(port) });
            }
        }
        Ok(meaning)
    }

    fn infer(&mut self, layer: &Layer, inferred: TensorType) {
        layer.outputs.iter().for_each(|port| self.check(layer, port, inferred.element));
        self.declare(layer, |_| inferred);
    }

    /// Warns if a port declares another type than inferred. The declaration is not used.
    fn check(&mut self, layer: &Layer, port: &Port, inferred: Element) {
        let contradicts = declared(port).is_some_and(|d| d != inferred && d != Element::Dynamic);
        if contradicts && inferred != Element::Dynamic {
            let (layer, precision) = (label(layer), Escaped(&port.precision));
            self.report.warnings.push(format!("{layer}: port {} declares {precision}, but gives {inferred}", port.id));
        }
    }

    /// Types and ranks of the inputs, in the order of port numbers.
    fn inputs(&self, layer: &Layer) -> Result<Vec<TensorType>, LayerError> {
        let mut ids: Vec<u64> = layer.inputs.iter().map(|port| port.id).collect();
        ids.sort_unstable();
        let find = |port: u64| {
            let producer = self.producers.get(&layer.port_id(port)).ok_or(LayerError::Unconnected { port })?;
            Ok(self.ports[producer])
        };
        ids.into_iter().map(find).collect()
    }
}

fn ports(layer: &Layer, inputs: usize, outputs: usize) -> Result<(), LayerError> {
    for (direction, found, expected) in
        [(Direction::Input, layer.inputs.len(), inputs), (Direction::Output, layer.outputs.len(), outputs)]
    {
        if found != expected {
            return Err(LayerError::Ports { direction, found, expected });
        }
    }
    Ok(())
}

/// Parses the type that a port declares. Ports use the legacy names of `docs/spec/openvino.md §1.2`.
fn declared(port: &Port) -> Option<Element> {
    if port.precision.eq_ignore_ascii_case("UNSPECIFIED") {
        return Some(Element::Dynamic);
    }
    DType::parse_in(Ecosystem::OpenVino, &port.precision).ok().map(Element::Type)
}

fn connections(file: &IrFile) -> Result<(HashMap<PortId, PortId>, Vec<usize>), ModelError> {
    let network = file.network();
    let index: HashMap<u64, usize> = network.layers.iter().enumerate().map(|(i, layer)| (layer.id, i)).collect();
    let mut producers = HashMap::new();
    let mut consumers: Vec<Vec<usize>> = vec![Vec::new(); network.layers.len()];
    let mut waiting = vec![0; network.layers.len()];
    for edge in &network.edges {
        let wrong = |why| ModelError::Edge { from: edge.from, to: edge.to, why };
        let find = |layer, why| index.get(&layer).copied().ok_or_else(|| wrong(why));
        let (from, to) =
            (find(edge.from.layer, "no such source layer")?, find(edge.to.layer, "no such destination layer")?);
        if !network.layers[from].outputs.iter().any(|port| port.id == edge.from.port) {
            return Err(wrong("the source layer has no such output port"));
        }
        if !network.layers[to].inputs.iter().any(|port| port.id == edge.to.port) {
            return Err(wrong("the destination layer has no such input port"));
        }
        if producers.insert(edge.to, edge.from).is_some() {
            return Err(wrong("the destination port already has a connection"));
        }
        consumers[from].push(to);
        waiting[to] += 1;
    }
    let mut ready: VecDeque<usize> = (0..network.layers.len()).filter(|&i| waiting[i] == 0).collect();
    let mut order = Vec::with_capacity(network.layers.len());
    while let Some(next) = ready.pop_front() {
        order.push(next);
        for &consumer in &consumers[next] {
            waiting[consumer] -= 1;
            if waiting[consumer] == 0 {
                ready.push_back(consumer);
            }
        }
    }
    match waiting.iter().position(|&n| n > 0) {
        Some(stuck) => Err(ModelError::Cycle { layer: label(&network.layers[stuck]) }),
        None => Ok((producers, order)),
    }
}
