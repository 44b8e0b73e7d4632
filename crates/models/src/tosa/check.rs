//! Rules for an operator that do not depend on its input elements: types, shapes, attributes, constants.
//!
//! [`check_structure`] applies the rules to all operators before evaluation, `operator` during evaluation, and
//! [`check`] to a graph without evaluation.

use truecast_core::spec::SpecError;
use truecast_core::spec::tosa::block::{BLOCK, BlockCast, Direction, SCALE};
use truecast_core::spec::tosa::rescale::{Operand, Operands, rounding_mode};
use truecast_core::spec::tosa::{Cast, Feature, Freedoms, Requirement, Rescale, RescaleSpec, Target};
use truecast_core::{CastSpec, DType, Layout};
use truecast_io::Escaped;

use super::error::{GraphError, operands};
use super::read::{Graph, Operator, RescaleAttribute, Tensor, op};
use super::value::{Declared, ElementType, declared, element_type, scale_shape};
use crate::description::LegalityReport;
use crate::evaluate::{Reason, UndefinedResult};
use crate::tensor::{Data, Tensor as Value};

pub(super) fn place(index: usize, operator: &Operator<'_>) -> String {
    let name = op::name(operator.op);
    match operator.outputs.first() {
        Some(result) => format!("{name} {}", Escaped(result)),
        None => format!("{name} number {index}"),
    }
}

#[derive(Clone, Copy)]
pub(super) struct Rules<'a> {
    pub place: &'a str,
    pub target: &'a Target,
    pub freedoms: Freedoms,
}

pub(super) enum Conversion {
    Plain(CastSpec),
    Blocks(BlockCast),
}

impl Rules<'_> {
    pub fn condition(&self, cause: SpecError) -> GraphError {
        GraphError::Condition { place: self.place.into(), cause }
    }

    pub fn unpredictable(&self, requirement: Requirement, index: Option<u64>) -> GraphError {
        GraphError::Unpredictable(UndefinedResult {
            place: self.place.into(),
            index,
            reason: Reason::Requirement(requirement),
        })
    }

    pub fn same_shape(&self, input: &[u64], output: &[u64]) -> Result<(), GraphError> {
        if input == output {
            Ok(())
        } else {
            Err(operands(self.place, format!("gives shape {output:?} from {input:?} (E15)")))
        }
    }

    pub fn rank(&self, rank: usize) -> Result<(), GraphError> {
        self.target.check_rank(rank).map_err(|requirement| self.unpredictable(requirement, None))
    }

    pub fn cast(&self, src: ElementType, dst: ElementType, shape: &[u64]) -> Result<Conversion, GraphError> {
        let (direction, element, plain) = match (src, dst) {
            (ElementType::Plain(src), ElementType::Plain(dst)) => {
                let cast = Cast { target: *self.target, freedoms: self.freedoms, ..Cast::to(dst) }.resolve(src);
                return cast.map(Conversion::Plain).map_err(|cause| self.condition(cause));
            }
            (ElementType::Plain(plain), ElementType::Blocks(element)) => (Direction::ToBlocks, element, plain),
            (ElementType::Blocks(element), ElementType::Plain(plain)) => (Direction::FromBlocks, element, plain),
            (src, dst) => return Err(operands(self.place, format!("there is no CAST from {src} to {dst}"))),
        };
        let cast = BlockCast { direction, element, plain };
        cast.check(shape, self.target).map_err(|cause| self.condition(cause))?;
        Ok(Conversion::Blocks(cast))
    }

    /// Checks the rules of the two deprecated operators (`docs/spec/tosa.md §5.6`).
    pub fn deprecated(&self, operator: &Operator<'_>, plain: ElementType) -> Result<(), GraphError> {
        if operator.block_size != BLOCK as u32 {
            return Err(operands(self.place, format!("block_size is {}, not {BLOCK}", operator.block_size)));
        }
        match plain {
            ElementType::Plain(DType::Bf16 | DType::F32) => Ok(()),
            other => Err(operands(self.place, format!("{other} is neither bf16 nor f32"))),
        }
    }

    /// Checks type and shape of the scales for values of shape `values`.
    pub fn scales(&self, element: ElementType, shape: &[u64], values: &[u64]) -> Result<(), GraphError> {
        if element == ElementType::Plain(SCALE) && shape == scale_shape(values) {
            Ok(())
        } else {
            Err(operands(self.place, format!("scales are {element} of shape {shape:?}")))
        }
    }

    pub fn rescale(
        &self,
        attribute: Option<RescaleAttribute>,
        input: ElementType,
        output: ElementType,
    ) -> Result<Rescale, GraphError> {
        let attribute = attribute.ok_or_else(|| operands(self.place, "has no attributes"))?;
        let rounding = rounding_mode(attribute.rounding_mode, self.target);
        if let Some(blocks) = [input, output].iter().find(|t| matches!(t, ElementType::Blocks(_))) {
            return Err(operands(self.place, format!("does not take {blocks} (E18)")));
        }
        Ok(Rescale {
            input: input.dtype(),
            output: output.dtype(),
            scale32: attribute.scale32,
            rounding: rounding.map_err(|cause| self.condition(cause))?,
            per_channel: attribute.per_channel,
            input_unsigned: attribute.input_unsigned,
            output_unsigned: attribute.output_unsigned,
        })
    }

    /// Checks that operands 1 to 4 of a RESCALE are constants, unless EXT-DYNAMIC is allowed (`docs/spec/tosa.md
    /// §4.1`).
    pub fn constants(&self, graph: &Graph<'_>, operator: &Operator<'_>) -> Result<(), GraphError> {
        if self.target.allows(Feature::ExtDynamic) || has_constants(graph, operator) {
            Ok(())
        } else {
            Err(operands(self.place, DYNAMIC_OPERAND))
        }
    }

    /// Value of a constant. It takes as many bytes as its type and shape need, and further bytes in the file are
    /// padding.
    pub fn constant(&self, tensor: &Tensor<'_>, output: &Declared) -> Result<Value, GraphError> {
        let of = |data: &[u8], bytes: u64, what: &str| {
            let part = usize::try_from(bytes).ok().and_then(|bytes| data.get(..bytes));
            part.map(<[u8]>::to_vec)
                .ok_or_else(|| operands(self.place, format!("has {} bytes of {what}, needs {bytes}", data.len())))
        };
        let dtype = output.element.dtype();
        let mut codes = of(tensor.data, bytes(dtype, &output.shape), "data")?;
        if dtype == DType::Bool {
            codes.iter_mut().for_each(|byte| *byte = (*byte != 0) as u8);
        }
        let data = match output.element {
            ElementType::Plain(_) => Data::Codes(codes),
            ElementType::Blocks(_) => {
                let scales = of(tensor.scale_data, bytes(SCALE, &output.scale_shape()), "scales")?;
                Data::Blocks { codes, scales }
            }
        };
        let value = Value { dtype, shape: output.shape.clone(), data };
        if value.is_consistent() { Ok(value) } else { Err(operands(self.place, "has blocks that cross a row")) }
    }
}

/// Error of a RESCALE if operands 1 to 4 are not all constants (`docs/spec/tosa.md §4.1`).
const DYNAMIC_OPERAND: &str = "an operand is not a constant, which needs EXT-DYNAMIC";

fn has_constants(graph: &Graph<'_>, operator: &Operator<'_>) -> bool {
    operator.inputs.iter().skip(1).all(|name| is_constant(graph, name))
}

fn is_constant(graph: &Graph<'_>, name: &str) -> bool {
    graph.operators.iter().any(|operator| operator.op == op::CONST && operator.outputs.contains(&name))
}

pub(super) fn bytes(dtype: DType, shape: &[u64]) -> u64 {
    dtype.bytes_in(Layout::Packed, shape.iter().product()).expect("TOSA has no text, and lengths are bounded")
}

/// Operands 1 to 4 of a RESCALE.
pub(super) struct RescaleOperands<'a> {
    pub multiplier: &'a Value,
    pub shift: &'a Value,
    pub input_zp: &'a Value,
    pub output_zp: &'a Value,
}

fn operand<'a>(value: &'a Value, values: &'a [i64]) -> Operand<'a> {
    Operand { dtype: value.dtype, shape: &value.shape, values }
}

/// Checks every conversion of a graph against a target. Nothing is evaluated.
///
/// A conversion is illegal if it is an error, or unpredictable for all elements. Checks that need an unknown shape
/// are skipped. A conversion that only an experimental extension allows gives a warning.
pub fn check(graph: &Graph<'_>, target: &Target) -> LegalityReport<GraphError> {
    let mut report = LegalityReport::default();
    for (index, operator) in graph.operators.iter().enumerate().filter(|(_, o)| op::CONVERSIONS.contains(&o.op)) {
        report.conversions += 1;
        let place = place(index, operator);
        let typeless = |name: &&&str| graph.tensors.get(**name).is_some_and(|tensor| tensor.dtype == 0);
        if operator.inputs.iter().chain(&operator.outputs).any(|name| typeless(&name)) {
            report.of_unknown_type += 1;
            report.unknown += 1;
        } else if let Err(error) = (Rules { place: &place, target, freedoms: Freedoms::STRICT }).check(graph, operator)
        {
            report.illegal.push((place, error));
        } else {
            report.legal += 1;
            if operator.op == op::RESCALE && !has_constants(graph, operator) {
                report.warnings.push(format!("{place}: {DYNAMIC_OPERAND}"));
            }
        }
    }
    report
}

/// Rejects the first operator that is an error for all values: by its attributes, or by number, types and shapes of
/// its operands.
///
/// An error is therefore reported before unpredictable elements, as in Arm's model (`docs/spec/tosa.md §4.4`).
pub(super) fn check_structure(graph: &Graph<'_>, target: &Target) -> Result<(), GraphError> {
    for (index, operator) in graph.operators.iter().enumerate() {
        let place = place(index, operator);
        let rules = Rules { place: &place, target, freedoms: Freedoms::STRICT };
        let checked = match operator.op {
            op::CONST | op::CONST_SHAPE | op::IDENTITY => Ok(()),
            number if op::CONVERSIONS.contains(&number) => rules.structure(graph, operator).map(|_| ()),
            number => Err(GraphError::Operator { place: place.clone(), name: op::name(number) }),
        };
        match checked {
            Err(error) if !error.is_unpredictable() => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

type Scaled = (Rescale, Option<Vec<u64>>);

struct Described {
    element: ElementType,
    shape: Option<Vec<u64>>,
}

impl Described {
    fn find(graph: &Graph<'_>, name: &str) -> Result<Described, GraphError> {
        let wrong = |what: &str| GraphError::Tensor { name: name.into(), what: what.into() };
        let tensor = graph.tensors.get(name).ok_or_else(|| wrong("the graph does not declare it"))?;
        let is_open = tensor.is_unranked || tensor.shape.contains(&-1);
        let shape = (!is_open).then(|| declared(graph, name).map(|declared| declared.shape)).transpose()?;
        Ok(Described { element: element_type(tensor).map_err(|what| wrong(&what))?, shape })
    }
}

impl Rules<'_> {
    fn check(&self, graph: &Graph<'_>, operator: &Operator<'_>) -> Result<(), GraphError> {
        match self.structure(graph, operator)? {
            Some((rescale, shape)) => self.check_operands(graph, operator, &rescale, shape.as_ref()),
            None => Ok(()),
        }
    }

    /// Checks the rules that do not need values. Returns a RESCALE, whose constants are checked later.
    fn structure(&self, graph: &Graph<'_>, operator: &Operator<'_>) -> Result<Option<Scaled>, GraphError> {
        let described = |names: &[&str]| -> Result<Vec<Described>, GraphError> {
            names.iter().map(|name| Described::find(graph, name)).collect()
        };
        let (inputs, outputs) = (described(&operator.inputs)?, described(&operator.outputs)?);
        let shapes = || inputs.iter().chain(&outputs).filter_map(|tensor| tensor.shape.as_ref());
        self.rank(shapes().map(Vec::len).max().unwrap_or(0))?;
        let (Some(input), Some(output)) = (inputs.first(), outputs.first()) else { return Err(self.counts(operator)) };
        if let (Some(from), Some(to)) = (&input.shape, &output.shape) {
            self.same_shape(from, to)?;
        }
        // One whole block replaces an unknown shape.
        let shape = input.shape.as_ref().or(output.shape.as_ref());
        let blocks = vec![BLOCK as u64];
        let for_cast = shape.unwrap_or(&blocks);
        match (operator.op, inputs.len(), outputs.len()) {
            (op::CAST, 1, 1) => self.cast(input.element, output.element, for_cast).map(|_| None),
            (op::CAST_TO_BLOCK_SCALED, 1, 2) => {
                self.deprecated(operator, input.element)?;
                self.known_scales(&outputs[1], shape)?;
                let blocks = ElementType::Blocks(output.element.dtype());
                self.cast(input.element, blocks, for_cast).map(|_| None)
            }
            (op::CAST_FROM_BLOCK_SCALED, 2, 1) => {
                self.deprecated(operator, output.element)?;
                self.known_scales(&inputs[1], shape)?;
                let blocks = ElementType::Blocks(input.element.dtype());
                self.cast(blocks, output.element, for_cast).map(|_| None)
            }
            (op::RESCALE, 5, 1) => {
                self.constants(graph, operator)?;
                let rescale = self.rescale(operator.rescale, input.element, output.element)?;
                let rank = shape.map_or(1, Vec::len);
                rescale.check(rank, self.target).map_err(|cause| self.condition(cause))?;
                Ok(Some((rescale, shape.cloned())))
            }
            _ => Err(self.counts(operator)),
        }
    }

    pub fn counts(&self, operator: &Operator<'_>) -> GraphError {
        let (inputs, outputs) = (operator.inputs.len(), operator.outputs.len());
        operands(self.place, format!("the operator does not take {inputs} operands and {outputs} results"))
    }

    fn known_scales(&self, scales: &Described, values: Option<&Vec<u64>>) -> Result<(), GraphError> {
        match (&scales.shape, values) {
            (Some(shape), Some(values)) => self.scales(scales.element, shape, values),
            _ => Ok(()),
        }
    }

    /// Resolves a RESCALE with constant operands. For an unknown shape, the number of channels is the number of
    /// multipliers.
    pub fn resolve(
        &self,
        rescale: &Rescale,
        shape: Option<&[u64]>,
        constants: &RescaleOperands<'_>,
    ) -> Result<RescaleSpec, GraphError> {
        let RescaleOperands { multiplier, shift, input_zp, output_zp } = constants;
        let [multipliers, shifts, input_zps, output_zps] =
            [multiplier, shift, input_zp, output_zp].map(|value| value.integers());
        let operands = Operands {
            multiplier: operand(multiplier, &multipliers),
            shift: operand(shift, &shifts),
            input_zp: operand(input_zp, &input_zps),
            output_zp: operand(output_zp, &output_zps),
        };
        let as_many = [multipliers.len() as u64];
        let spec = rescale.resolve(shape.unwrap_or(&as_many), &operands, self.target);
        spec.map_err(|cause| self.condition(cause))
    }

    /// Checks the conditions on constant operands, and the requirements that do not depend on elements.
    fn check_operands(
        &self,
        graph: &Graph<'_>,
        operator: &Operator<'_>,
        rescale: &Rescale,
        shape: Option<&Vec<u64>>,
    ) -> Result<(), GraphError> {
        if !has_constants(graph, operator) {
            return Ok(());
        }
        let constant = |name: &&str| self.constant(&graph.tensors[*name], &declared(graph, name)?);
        let constants = operator.inputs[1..].iter().map(constant).collect::<Result<Vec<Value>, _>>()?;
        let [multiplier, shift, input_zp, output_zp] = &constants[..] else { return Err(self.counts(operator)) };
        let constants = RescaleOperands { multiplier, shift, input_zp, output_zp };
        let spec = self.resolve(rescale, shape.map(Vec::as_slice), &constants)?;
        let failed = spec.channels.iter().find_map(|channel| channel.check().err());
        failed.map_or(Ok(()), |requirement| Err(self.unpredictable(requirement, None)))
    }
}
