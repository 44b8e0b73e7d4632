//! Computes the results of each operator.

use std::sync::Arc;

use truecast_core::spec::tosa::block::{BLOCK, BlockCast, Direction};
use truecast_core::{DType, Layout};
use truecast_kernel::{CastOptions, Elements, ElementsMut, RescaleError, Rescaler};

use super::check::{Conversion, RescaleOperands, Rules};
use super::error::{GraphError, operands};
use super::read::{Graph, Operator, op};
use super::value::{Declared, ElementType};
use crate::cast::{DeniedCast, cast, zeros};
use crate::evaluate::OpenResults;
use crate::tensor::{Data, Tensor};

/// Results of an operator.
pub(super) struct Applied {
    pub results: Vec<Arc<Tensor>>,
    /// Results that the specification leaves open.
    pub open: Option<OpenResults>,
}

impl Applied {
    fn defined(value: Tensor) -> Applied {
        Applied { results: vec![Arc::new(value)], open: None }
    }
}

/// An operator to compute.
pub(super) struct Context<'a> {
    pub graph: &'a Graph<'a>,
    pub operator: &'a Operator<'a>,
    pub rules: Rules<'a>,
    pub exec: &'a CastOptions,
}

impl Context<'_> {
    pub fn apply(&self, inputs: &[&Arc<Tensor>], outputs: &[Declared]) -> Result<Applied, GraphError> {
        let Context { graph, operator, rules, .. } = *self;
        let ranks = inputs.iter().map(|value| value.shape.len()).chain(outputs.iter().map(|output| output.shape.len()));
        rules.rank(ranks.max().unwrap_or(0))?;
        match (operator.op, inputs, outputs) {
            (op::CONST | op::CONST_SHAPE, [], [output]) => {
                rules.constant(&graph.tensors[operator.outputs[0]], output).map(Applied::defined)
            }
            (op::IDENTITY, [input], [output]) => self.identity(input, output),
            (op::CAST, [input], [output]) => {
                rules.same_shape(&input.shape, &output.shape)?;
                self.cast(input, output.element)
            }
            (op::CAST_TO_BLOCK_SCALED, [input], [values, scales]) => self.cast_to_block_scaled(input, values, scales),
            (op::CAST_FROM_BLOCK_SCALED, [values, scales], [output]) => {
                self.cast_from_block_scaled(values, scales, output)
            }
            (op::RESCALE, [input, multiplier, shift, input_zp, output_zp], [output]) => {
                self.rescale(input, &RescaleOperands { multiplier, shift, input_zp, output_zp }, output)
            }
            (op::CONST | op::CONST_SHAPE | op::IDENTITY | op::CAST | op::RESCALE, ..)
            | (op::CAST_TO_BLOCK_SCALED | op::CAST_FROM_BLOCK_SCALED, ..) => Err(rules.counts(operator)),
            (number, ..) => Err(GraphError::Operator { place: rules.place.into(), name: op::name(number) }),
        }
    }

    fn identity(&self, input: &Arc<Tensor>, output: &Declared) -> Result<Applied, GraphError> {
        self.rules.same_shape(&input.shape, &output.shape)?;
        let element = ElementType::of(input);
        if element != output.element {
            return Err(operands(self.rules.place, format!("gives {} from {element}", output.element)));
        }
        Ok(Applied { results: vec![Arc::clone(input)], open: None })
    }

    fn cast_to_block_scaled(
        &self,
        input: &Arc<Tensor>,
        values: &Declared,
        scales: &Declared,
    ) -> Result<Applied, GraphError> {
        let rules = self.rules;
        rules.same_shape(&input.shape, &values.shape)?;
        rules.deprecated(self.operator, ElementType::of(input))?;
        rules.scales(scales.element, &scales.shape, &values.shape)?;
        let Applied { mut results, open } = self.cast(input, ElementType::Blocks(values.element.dtype()))?;
        let blocked = results.pop().map(Arc::unwrap_or_clone).map(|tensor| tensor.data);
        let Some(Data::Blocks { codes, scales: scale_codes }) = blocked else {
            unreachable!("a cast to blocks gives blocks")
        };
        let plain = |declared: &Declared, codes| {
            let (dtype, shape) = (declared.element.dtype(), declared.shape.clone());
            Arc::new(Tensor { dtype, shape, data: Data::Codes(codes) })
        };
        Ok(Applied { results: vec![plain(values, codes), plain(scales, scale_codes)], open })
    }

    fn cast_from_block_scaled(
        &self,
        values: &Tensor,
        scales: &Tensor,
        output: &Declared,
    ) -> Result<Applied, GraphError> {
        let rules = self.rules;
        rules.same_shape(&values.shape, &output.shape)?;
        rules.deprecated(self.operator, output.element)?;
        rules.scales(ElementType::of(scales), &scales.shape, &values.shape)?;
        let data = Data::Blocks { codes: values.codes().into(), scales: scales.codes().into() };
        let blocked = Tensor { dtype: values.dtype, shape: values.shape.clone(), data };
        self.cast(&Arc::new(blocked), output.element)
    }

    fn zeros(&self, dtype: DType, tensor: &Tensor) -> Result<Vec<u8>, GraphError> {
        zeros(dtype, Layout::Packed, tensor.len()).map_err(|cause| self.denied(cause))
    }

    fn denied(&self, cause: DeniedCast) -> GraphError {
        match cause {
            DeniedCast::Memory { bytes } => GraphError::Memory { place: self.rules.place.into(), bytes },
            other => operands(self.rules.place, other.to_string()),
        }
    }

    fn cast(&self, input: &Arc<Tensor>, output: ElementType) -> Result<Applied, GraphError> {
        match self.rules.cast(ElementType::of(input), output, &input.shape)? {
            Conversion::Plain(spec) => {
                let (result, open) =
                    cast(&spec, input, self.exec, self.rules.place).map_err(|cause| self.denied(cause))?;
                Ok(Applied { results: vec![result], open })
            }
            Conversion::Blocks(cast) => match cast.direction {
                Direction::ToBlocks => self.to_blocks(&cast, input).map(Applied::defined),
                Direction::FromBlocks => self.out_of_blocks(&cast, input).map(Applied::defined),
            },
        }
    }

    fn to_blocks(&self, cast: &BlockCast, input: &Tensor) -> Result<Tensor, GraphError> {
        let mut codes = self.zeros(cast.element, input)?;
        let given = input.codes();
        let sources = given.chunks_exact(block_bytes(cast.plain));
        let results = codes.chunks_exact_mut(block_bytes(cast.element));
        let block = |(source, result): (&[u8], &mut [u8])| {
            let (scale, codes) = cast.to_block(&unpacked(cast.plain, source));
            pack(cast.element, &codes, result);
            scale
        };
        let scales = sources.zip(results).map(block).collect();
        Ok(Tensor { dtype: cast.element, shape: input.shape.clone(), data: Data::Blocks { codes, scales } })
    }

    fn out_of_blocks(&self, cast: &BlockCast, input: &Tensor) -> Result<Tensor, GraphError> {
        let mut codes = self.zeros(cast.plain, input)?;
        let Data::Blocks { codes: given, scales } = &input.data else {
            unreachable!("a cast from blocks takes blocks")
        };
        let sources = given.chunks_exact(block_bytes(cast.element)).zip(scales);
        for ((source, &scale), result) in sources.zip(codes.chunks_exact_mut(block_bytes(cast.plain))) {
            let values = unpacked(cast.element, source).map(|code| cast.from_block(scale, code));
            pack(cast.plain, &values, result);
        }
        Ok(Tensor { dtype: cast.plain, shape: input.shape.clone(), data: Data::Codes(codes) })
    }

    fn rescale(
        &self,
        input: &Tensor,
        constants: &RescaleOperands<'_>,
        output: &Declared,
    ) -> Result<Applied, GraphError> {
        let Context { graph, operator, rules, .. } = *self;
        rules.constants(graph, operator)?;
        rules.same_shape(&input.shape, &output.shape)?;
        let rescale = rules.rescale(operator.rescale, ElementType::of(input), output.element)?;
        let spec = rules.resolve(&rescale, Some(&input.shape[..]), constants)?;
        let mut codes = self.zeros(rescale.output, input)?;
        let (len, given) = (input.len() as usize, input.codes());
        let source = Elements::new(rescale.input, len, &given).expect("values are consistent");
        let result = ElementsMut::new(rescale.output, len, &mut codes).expect("the buffer is as large");
        match Rescaler::new(&spec, self.exec).rescale(source, result) {
            Ok(_) => {
                let (dtype, shape) = (rescale.output, input.shape.clone());
                Ok(Applied::defined(Tensor { dtype, shape, data: Data::Codes(codes) }))
            }
            Err(RescaleError::Unpredictable { index, requirement }) => {
                Err(rules.unpredictable(requirement, Some(index)))
            }
            Err(other) => Err(operands(rules.place, other.to_string())),
        }
    }
}

fn block_bytes(dtype: DType) -> usize {
    dtype.storage_bits().expect("elements have a width") as usize * BLOCK / 8
}

fn unpacked(dtype: DType, bytes: &[u8]) -> [u64; BLOCK] {
    let block = Elements::new(dtype, BLOCK, bytes).expect("a block is of whole bytes");
    std::array::from_fn(|i| block.storage(i))
}

fn pack(dtype: DType, codes: &[u64; BLOCK], bytes: &mut [u8]) {
    let mut block = ElementsMut::new(dtype, BLOCK, bytes).expect("a block is of whole bytes");
    codes.iter().enumerate().for_each(|(i, code)| block.set(i, *code));
}
