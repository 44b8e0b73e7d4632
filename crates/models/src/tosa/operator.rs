//! Computes the results of each operator.

use std::sync::Arc;

use truecast_core::spec::tosa::block::{BLOCK, BlockCast, Direction};
use truecast_core::{DType, Layout};
use truecast_kernel::{CastOptions, Elements, ElementsMut, RescaleError, Rescaler};

use super::check::{Conversion, Rules, operands_of};
use super::error::{GraphError, operands};
use super::read::{Graph, Operator, op};
use super::value::{Declared, ElementType};
use crate::cast::{DeniedCast, cast, zeros};
use crate::evaluate::OpenResults;
use crate::tensor::{Data, Tensor};

pub(super) fn apply(
    graph: &Graph<'_>,
    operator: &Operator<'_>,
    rules: Rules<'_>,
    exec: &CastOptions,
    inputs: &[&Arc<Tensor>],
    outputs: &[Declared],
) -> Result<(Vec<Arc<Tensor>>, Option<OpenResults>), GraphError> {
    let place = rules.place;
    let context = Context { rules, exec };
    rules.rank(inputs.iter().map(|v| v.shape.len()).chain(outputs.iter().map(|d| d.shape.len())).max().unwrap_or(0))?;
    let single = |value: Tensor| Ok((vec![Arc::new(value)], None));
    match (operator.op, inputs, outputs) {
        (op::CONST | op::CONST_SHAPE, [], [output]) => {
            single(rules.constant(&graph.tensors[operator.outputs[0]], output)?)
        }
        (op::IDENTITY, [input], [output]) => {
            rules.same_shape(&input.shape, &output.shape)?;
            let element = ElementType::of(input);
            if element != output.element {
                return Err(operands(place, format!("gives {} from {element}", output.element)));
            }
            Ok((vec![Arc::clone(input)], None))
        }
        (op::CAST, [input], [output]) => {
            rules.same_shape(&input.shape, &output.shape)?;
            let (value, open) = context.cast(input, output.element)?;
            Ok((vec![value], open))
        }
        (op::CAST_TO_BLOCK_SCALED, [input], [values, scales]) => {
            rules.same_shape(&input.shape, &values.shape)?;
            rules.deprecated(operator, ElementType::of(input))?;
            rules.scales(scales.element, &scales.shape, &values.shape)?;
            let (blocked, _) = context.cast(input, ElementType::Blocks(values.element.dtype()))?;
            let Data::Blocks { codes, scales: scale_codes } = Arc::unwrap_or_clone(blocked).data else {
                unreachable!("a cast to blocks gives blocks")
            };
            let plain = |declared: &Declared, codes| {
                let (dtype, shape) = (declared.element.dtype(), declared.shape.clone());
                Arc::new(Tensor { dtype, shape, data: Data::Codes(codes) })
            };
            Ok((vec![plain(values, codes), plain(scales, scale_codes)], None))
        }
        (op::CAST_FROM_BLOCK_SCALED, [values, scales], [output]) => {
            rules.same_shape(&values.shape, &output.shape)?;
            rules.deprecated(operator, output.element)?;
            rules.scales(ElementType::of(scales), &scales.shape, &values.shape)?;
            let data = Data::Blocks { codes: values.codes().into(), scales: scales.codes().into() };
            let blocked = Tensor { dtype: values.dtype, shape: values.shape.clone(), data };
            Ok((vec![context.cast(&Arc::new(blocked), output.element)?.0], None))
        }
        (op::RESCALE, [input, multiplier, shift, input_zp, output_zp], [output]) => {
            rules.constants(graph, operator)?;
            rules.same_shape(&input.shape, &output.shape)?;
            single(context.rescale(operator, input, [multiplier, shift, input_zp, output_zp], output)?)
        }
        (op::CONST | op::CONST_SHAPE | op::IDENTITY | op::CAST | op::RESCALE, ..)
        | (op::CAST_TO_BLOCK_SCALED | op::CAST_FROM_BLOCK_SCALED, ..) => Err(rules.counts(operator)),
        (number, ..) => Err(GraphError::Operator { place: place.into(), name: op::name(number) }),
    }
}

struct Context<'a> {
    rules: Rules<'a>,
    exec: &'a CastOptions,
}

impl Context<'_> {
    fn zeros(&self, dtype: DType, tensor: &Tensor) -> Result<Vec<u8>, GraphError> {
        zeros(dtype, Layout::Packed, tensor.len()).map_err(|cause| self.denied(cause))
    }

    fn denied(&self, cause: DeniedCast) -> GraphError {
        match cause {
            DeniedCast::Memory { bytes } => GraphError::Memory { place: self.rules.place.into(), bytes },
            other => operands(self.rules.place, other.to_string()),
        }
    }

    fn cast(&self, input: &Arc<Tensor>, output: ElementType) -> Result<(Arc<Tensor>, Option<OpenResults>), GraphError> {
        match self.rules.cast(ElementType::of(input), output, &input.shape)? {
            Conversion::Plain(spec) => {
                cast(&spec, input, self.exec, self.rules.place).map_err(|cause| self.denied(cause))
            }
            Conversion::Blocks(cast) if cast.direction == Direction::ToBlocks => {
                self.to_blocks(&cast, input).map(|value| (value.into(), None))
            }
            Conversion::Blocks(cast) => self.out_of_blocks(&cast, input).map(|value| (value.into(), None)),
        }
    }

    fn to_blocks(&self, cast: &BlockCast, input: &Tensor) -> Result<Tensor, GraphError> {
        let mut codes = self.zeros(cast.element, input)?;
        let given = input.codes();
        let sources = given.chunks_exact(block_bytes(cast.plain));
        let results = codes.chunks_exact_mut(block_bytes(cast.element));
        let one = |(source, result): (&[u8], &mut [u8])| {
            let (scale, codes) = cast.to_block(&unpacked(cast.plain, source));
            pack(cast.element, &codes, result);
            scale
        };
        let scales = sources.zip(results).map(one).collect();
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
        operator: &Operator<'_>,
        input: &Tensor,
        small: [&Arc<Tensor>; 4],
        output: &Declared,
    ) -> Result<Tensor, GraphError> {
        let (rules, small) = (self.rules, small.map(|operand| &**operand));
        let rescale = rules.rescale(operator.rescale, ElementType::of(input), output.element)?;
        let values = small.map(Tensor::integers);
        let spec = rescale.resolve(&input.shape, &operands_of(small, &values), rules.target);
        let spec = spec.map_err(|cause| rules.condition(cause))?;
        let mut codes = self.zeros(rescale.output, input)?;
        let (len, given) = (input.len() as usize, input.codes());
        let source = Elements::new(rescale.input, len, &given).expect("values are consistent");
        let result = ElementsMut::new(rescale.output, len, &mut codes).expect("the buffer is as large");
        match Rescaler::new(&spec, self.exec).rescale(source, result) {
            Ok(_) => Ok(Tensor { dtype: rescale.output, shape: input.shape.clone(), data: Data::Codes(codes) }),
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
