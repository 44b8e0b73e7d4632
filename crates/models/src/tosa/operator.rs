//! What each operator makes of its operands.

use truecast_core::spec::tosa::block::{BLOCK, BlockCast, Direction};
use truecast_core::{CastSpec, DType};
use truecast_kernel::{CastOptions, Caster, Counting, Elements, ElementsMut, RescaleError, Rescaler};

use super::check::{Conversion, Rules, bytes, operands_of};
use super::error::{GraphError, operands};
use super::read::{Graph, Operator, op};
use super::value::{Declared, ElementType, Value};
use crate::OpenResults;

/// The results of an operator, and what they leave open.
pub(super) fn apply(
    graph: &Graph<'_>,
    operator: &Operator<'_>,
    rules: Rules<'_>,
    exec: &CastOptions,
    inputs: &[&Value],
    outputs: &[Declared],
) -> Result<(Vec<Value>, Option<OpenResults>), GraphError> {
    let place = rules.place;
    let context = Context { rules, exec };
    rules.rank(inputs.iter().map(|v| v.shape.len()).chain(outputs.iter().map(|d| d.shape.len())).max().unwrap_or(0))?;
    let single = |value: Value| Ok((vec![value], None));
    match (operator.op, inputs, outputs) {
        (op::CONST | op::CONST_SHAPE, [], [output]) => {
            single(rules.constant(&graph.tensors[operator.outputs[0]], output)?)
        }
        (op::IDENTITY, [input], [output]) => {
            rules.same_shape(&input.shape, &output.shape)?;
            if input.element != output.element {
                return Err(operands(place, format!("gives {} from {}", output.element, input.element)));
            }
            single((*input).clone())
        }
        (op::CAST, [input], [output]) => {
            rules.same_shape(&input.shape, &output.shape)?;
            let (value, left_open) = context.cast(input, output)?;
            Ok((vec![value], left_open))
        }
        (op::CAST_TO_BLOCK_SCALED, [input], [values, scales]) => {
            let blocked =
                Declared { element: ElementType::Blocks(values.element.dtype()), shape: values.shape.clone() };
            rules.same_shape(&input.shape, &values.shape)?;
            rules.deprecated(operator, input.element)?;
            rules.scales(scales.element, &scales.shape, &values.shape)?;
            let (Value { codes, scales: scale_codes, .. }, _) = context.cast(input, &blocked)?;
            let plain =
                |d: &Declared, codes| Value { element: d.element, shape: d.shape.clone(), codes, scales: vec![] };
            Ok((vec![plain(values, codes), plain(scales, scale_codes)], None))
        }
        (op::CAST_FROM_BLOCK_SCALED, [values, scales], [output]) => {
            rules.same_shape(&values.shape, &output.shape)?;
            rules.deprecated(operator, output.element)?;
            rules.scales(scales.element, &scales.shape, &values.shape)?;
            let element = ElementType::Blocks(values.element.dtype());
            let (shape, codes, scales) = (values.shape.clone(), values.codes.clone(), scales.codes.clone());
            single(context.cast(&Value { element, shape, codes, scales }, output)?.0)
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
    /// A zeroed buffer, or an error instead of an abort.
    fn room(&self, bytes: u64) -> Result<Vec<u8>, GraphError> {
        let mut room = Vec::new();
        let fits = usize::try_from(bytes).ok().filter(|bytes| room.try_reserve_exact(*bytes).is_ok());
        let bytes = fits.ok_or_else(|| GraphError::Memory { place: self.rules.place.into(), bytes })?;
        room.resize(bytes, 0);
        Ok(room)
    }

    fn cast(&self, input: &Value, output: &Declared) -> Result<(Value, Option<OpenResults>), GraphError> {
        match self.rules.cast(input.element, output.element, &input.shape)? {
            Conversion::Plain(spec) => self.plain_cast(input, &spec),
            Conversion::Blocks(cast) if cast.direction == Direction::ToBlocks => {
                self.to_blocks(&cast, input).map(|value| (value, None))
            }
            Conversion::Blocks(cast) => self.out_of_blocks(&cast, input).map(|value| (value, None)),
        }
    }

    fn plain_cast(&self, input: &Value, spec: &CastSpec) -> Result<(Value, Option<OpenResults>), GraphError> {
        let mut codes = self.room(bytes(spec.dst, &input.shape))?;
        let len = input.len() as usize;
        let counting = if spec.undefined.is_empty() { Counting::Off } else { Counting::Full };
        let caster = Caster::new(spec, &CastOptions { counting, ..*self.exec }).expect("TOSA casts numbers only");
        let source = Elements::new(spec.src, len, &input.codes).expect("values are consistent");
        let result = ElementsMut::new(spec.dst, len, &mut codes).expect("the room is as large");
        let counts = caster.cast(source, result).expect("TOSA has no policy that refuses");
        let left_open = (counts.undefined > 0).then(|| OpenResults {
            conversion: self.rules.place.into(),
            elements: input.len(),
            undefined: counts.undefined,
            clause: spec.clause,
        });
        let element = ElementType::Plain(spec.dst);
        Ok((Value { element, shape: input.shape.clone(), codes, scales: Vec::new() }, left_open))
    }

    fn to_blocks(&self, cast: &BlockCast, input: &Value) -> Result<Value, GraphError> {
        let mut codes = self.room(bytes(cast.element, &input.shape))?;
        let block_bytes = |dtype: DType| dtype.storage_bits().expect("elements have a width") as usize * BLOCK / 8;
        let sources = input.codes.chunks_exact(block_bytes(cast.plain));
        let results = codes.chunks_exact_mut(block_bytes(cast.element));
        let one = |(source, result): (&[u8], &mut [u8])| {
            let (scale, codes) = cast.to_block(&unpacked(cast.plain, source));
            pack(cast.element, &codes, result);
            scale
        };
        let scales = sources.zip(results).map(one).collect();
        Ok(Value { element: ElementType::Blocks(cast.element), shape: input.shape.clone(), codes, scales })
    }

    fn out_of_blocks(&self, cast: &BlockCast, input: &Value) -> Result<Value, GraphError> {
        let mut codes = self.room(bytes(cast.plain, &input.shape))?;
        let block_bytes = |dtype: DType| dtype.storage_bits().expect("elements have a width") as usize * BLOCK / 8;
        let sources = input.codes.chunks_exact(block_bytes(cast.element)).zip(&input.scales);
        for ((source, &scale), result) in sources.zip(codes.chunks_exact_mut(block_bytes(cast.plain))) {
            let values = unpacked(cast.element, source).map(|code| cast.from_block(scale, code));
            pack(cast.plain, &values, result);
        }
        Ok(Value { element: ElementType::Plain(cast.plain), shape: input.shape.clone(), codes, scales: Vec::new() })
    }

    fn rescale(
        &self,
        operator: &Operator<'_>,
        input: &Value,
        small: [&Value; 4],
        output: &Declared,
    ) -> Result<Value, GraphError> {
        let rules = self.rules;
        let rescale = rules.rescale(operator.rescale, input.element, output.element)?;
        let values = small.map(Value::signed);
        let spec = rescale.resolve(&input.shape, &operands_of(small, &values), rules.target);
        let spec = spec.map_err(|cause| rules.condition(cause))?;
        let mut codes = self.room(bytes(rescale.output, &input.shape))?;
        let len = input.len() as usize;
        let source = Elements::new(rescale.input, len, &input.codes).expect("values are consistent");
        let result = ElementsMut::new(rescale.output, len, &mut codes).expect("the room is as large");
        match Rescaler::new(&spec, self.exec).rescale(source, result) {
            Ok(_) => Ok(Value { element: output.element, shape: input.shape.clone(), codes, scales: Vec::new() }),
            Err(RescaleError::Unpredictable { index, requirement }) => {
                Err(rules.unpredictable(requirement, Some(index)))
            }
            Err(other) => Err(operands(rules.place, other.to_string())),
        }
    }
}

/// The codes of one block.
fn unpacked(dtype: DType, bytes: &[u8]) -> [u64; BLOCK] {
    let block = Elements::new(dtype, BLOCK, bytes).expect("a block is of whole bytes");
    std::array::from_fn(|i| block.storage(i))
}

/// Writes the codes of one block.
fn pack(dtype: DType, codes: &[u64; BLOCK], bytes: &mut [u8]) {
    let mut block = ElementsMut::new(dtype, BLOCK, bytes).expect("a block is of whole bytes");
    codes.iter().enumerate().for_each(|(i, code)| block.set(i, *code));
}
