//! What each operator makes of its operands.

use truecast_core::spec::tosa::block::{BLOCK, BlockCast, Direction, SCALE};
use truecast_core::spec::tosa::rescale::{Operand, Operands, RoundingMode};
use truecast_core::spec::tosa::{Cast, Feature, Requirement, Rescale, Target};
use truecast_core::{DType, IntFormat, Layout};
use truecast_io::tosa::{Graph, Operator, RescaleAttribute, Tensor, op};
use truecast_kernel::{Caster, Codes, CodesMut, Exec, RescaleError, Rescaler};

use super::value::{Declared, ElementType, Value};
use super::{GraphError, operands};

/// The results of an operator.
pub(super) fn apply(
    graph: &Graph<'_>,
    operator: &Operator<'_>,
    place: &str,
    target: &Target,
    exec: &Exec,
    inputs: &[&Value],
    outputs: &[Declared],
) -> Result<Vec<Value>, GraphError> {
    let context = Context { place, target, exec };
    let rank = inputs.iter().map(|v| v.shape.len()).chain(outputs.iter().map(|d| d.shape.len())).max().unwrap_or(0);
    target.check_rank(rank).map_err(|requirement| context.unpredictable(requirement, None))?;
    let single = |value: Value| Ok(vec![value]);
    match (operator.op, inputs, outputs) {
        (op::CONST | op::CONST_SHAPE, [], [output]) => {
            let tensor = &graph.tensors[operator.outputs[0]];
            single(context.constant(tensor, output)?)
        }
        (op::IDENTITY, [input], [output]) => {
            context.same_shape(&input.shape, output)?;
            if input.element != output.element {
                return Err(operands(place, format!("gives {} from {}", output.element, input.element)));
            }
            single((*input).clone())
        }
        (op::CAST, [input], [output]) => {
            context.same_shape(&input.shape, output)?;
            single(context.cast(input, output)?)
        }
        (op::CAST_TO_BLOCK_SCALED, [input], [values, scales]) => {
            let blocked =
                Declared { element: ElementType::Blocks(values.element.dtype()), shape: values.shape.clone() };
            context.same_shape(&input.shape, values)?;
            context.deprecated(operator, input.element)?;
            context.scale_operand(scales.element, &scales.shape, &blocked)?;
            let Value { codes, scales: scale_codes, .. } = context.cast(input, &blocked)?;
            let plain =
                |d: &Declared, codes| Value { element: d.element, shape: d.shape.clone(), codes, scales: vec![] };
            Ok(vec![plain(values, codes), plain(scales, scale_codes)])
        }
        (op::CAST_FROM_BLOCK_SCALED, [values, scales], [output]) => {
            context.same_shape(&values.shape, output)?;
            context.deprecated(operator, output.element)?;
            let element = ElementType::Blocks(values.element.dtype());
            let blocked = Declared { element, shape: values.shape.clone() };
            context.scale_operand(scales.element, &scales.shape, &blocked)?;
            let blocked =
                Value { element, shape: blocked.shape, codes: values.codes.clone(), scales: scales.codes.clone() };
            single(context.cast(&blocked, output)?)
        }
        (op::RESCALE, [input, multiplier, shift, input_zp, output_zp], [output]) => {
            let attribute = operator.rescale.ok_or_else(|| operands(place, "has no attributes"))?;
            for name in &operator.inputs[1..] {
                context.compile_time_constant(graph, name)?;
            }
            context.same_shape(&input.shape, output)?;
            single(context.rescale(attribute, input, [multiplier, shift, input_zp, output_zp], output)?)
        }
        (op::CONST | op::CONST_SHAPE | op::IDENTITY | op::CAST | op::RESCALE, ..)
        | (op::CAST_TO_BLOCK_SCALED | op::CAST_FROM_BLOCK_SCALED, ..) => {
            let counts = format!("{} operands and {} results are not its number", inputs.len(), outputs.len());
            Err(operands(place, counts))
        }
        (number, ..) => Err(GraphError::Operator { place: place.into(), op: number }),
    }
}

struct Context<'a> {
    place: &'a str,
    target: &'a Target,
    exec: &'a Exec,
}

impl Context<'_> {
    fn condition(&self, cause: truecast_core::spec::SpecError) -> GraphError {
        GraphError::Condition { place: self.place.into(), cause }
    }

    fn unpredictable(&self, requirement: Requirement, index: Option<u64>) -> GraphError {
        GraphError::Unpredictable { place: self.place.into(), requirement, index }
    }

    fn same_shape(&self, input: &[u64], output: &Declared) -> Result<(), GraphError> {
        match input == output.shape {
            true => Ok(()),
            false => Err(operands(self.place, format!("gives shape {:?} from {input:?} (E15)", output.shape))),
        }
    }

    /// A zeroed buffer, or an error instead of an abort.
    fn room(&self, bytes: u64) -> Result<Vec<u8>, GraphError> {
        let mut room = Vec::new();
        let fits = usize::try_from(bytes).ok().filter(|bytes| room.try_reserve_exact(*bytes).is_ok());
        let bytes = fits.ok_or_else(|| GraphError::Memory { place: self.place.into(), bytes })?;
        room.resize(bytes, 0);
        Ok(room)
    }

    fn bytes(&self, dtype: DType, shape: &[u64]) -> u64 {
        dtype.bytes_in(Layout::Packed, shape.iter().product()).expect("TOSA has no text, and lengths are bounded")
    }

    /// Exactly the bytes that type and shape need; files may be padded.
    fn constant(&self, tensor: &Tensor<'_>, output: &Declared) -> Result<Value, GraphError> {
        let of = |data: &[u8], bytes: u64, what: &str| {
            let part = usize::try_from(bytes).ok().and_then(|bytes| data.get(..bytes));
            part.map(<[u8]>::to_vec)
                .ok_or_else(|| operands(self.place, format!("has {} bytes of {what}, needs {bytes}", data.len())))
        };
        let dtype = output.element.dtype();
        let mut codes = of(tensor.data, self.bytes(dtype, &output.shape), "data")?;
        if dtype == DType::Bool {
            codes.iter_mut().for_each(|byte| *byte = (*byte != 0) as u8);
        }
        let scales = match output.element {
            ElementType::Plain(_) => Vec::new(),
            ElementType::Blocks(_) => of(tensor.scale_data, self.bytes(SCALE, &output.scale_shape()), "scales")?,
        };
        let value = Value { element: output.element, shape: output.shape.clone(), codes, scales };
        match value.is_consistent() {
            true => Ok(value),
            false => Err(operands(self.place, "has blocks that cross a row")),
        }
    }

    fn cast(&self, input: &Value, output: &Declared) -> Result<Value, GraphError> {
        match (input.element, output.element) {
            (ElementType::Plain(src), ElementType::Plain(dst)) => self.plain_cast(input, src, dst),
            (ElementType::Plain(plain), ElementType::Blocks(element)) => {
                let cast = BlockCast { direction: Direction::ToBlocks, element, plain };
                cast.check(&input.shape, self.target).map_err(|cause| self.condition(cause))?;
                self.to_blocks(&cast, input)
            }
            (ElementType::Blocks(element), ElementType::Plain(plain)) => {
                let cast = BlockCast { direction: Direction::FromBlocks, element, plain };
                cast.check(&input.shape, self.target).map_err(|cause| self.condition(cause))?;
                self.out_of_blocks(&cast, input)
            }
            (src, dst) => Err(operands(self.place, format!("there is no CAST from {src} to {dst}"))),
        }
    }

    fn plain_cast(&self, input: &Value, src: DType, dst: DType) -> Result<Value, GraphError> {
        let spec =
            Cast { target: *self.target, ..Cast::to(dst) }.resolve(src).map_err(|cause| self.condition(cause))?;
        let mut codes = self.room(self.bytes(dst, &input.shape))?;
        let len = input.len() as usize;
        let caster = Caster::new(&spec, self.exec).expect("TOSA casts numbers only");
        let source = Codes::new(src, len, &input.codes).expect("values are consistent");
        let result = CodesMut::new(dst, len, &mut codes).expect("the room is as large");
        caster.cast(source, result).expect("TOSA has no policy that refuses");
        Ok(Value { element: ElementType::Plain(dst), shape: input.shape.clone(), codes, scales: Vec::new() })
    }

    fn to_blocks(&self, cast: &BlockCast, input: &Value) -> Result<Value, GraphError> {
        let mut codes = self.room(self.bytes(cast.element, &input.shape))?;
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
        let mut codes = self.room(self.bytes(cast.plain, &input.shape))?;
        let block_bytes = |dtype: DType| dtype.storage_bits().expect("elements have a width") as usize * BLOCK / 8;
        let sources = input.codes.chunks_exact(block_bytes(cast.element)).zip(&input.scales);
        for ((source, &scale), result) in sources.zip(codes.chunks_exact_mut(block_bytes(cast.plain))) {
            let values = unpacked(cast.element, source).map(|code| cast.from_block(scale, code));
            pack(cast.plain, &values, result);
        }
        Ok(Value { element: ElementType::Plain(cast.plain), shape: input.shape.clone(), codes, scales: Vec::new() })
    }

    /// What only the two deprecated operators ask. Source: `docs/spec/tosa.md §5.6`.
    fn deprecated(&self, operator: &Operator<'_>, plain: ElementType) -> Result<(), GraphError> {
        if operator.block_size != BLOCK as u32 {
            return Err(operands(self.place, format!("block_size is {}, not {BLOCK}", operator.block_size)));
        }
        match plain {
            ElementType::Plain(DType::Bf16 | DType::F32) => Ok(()),
            other => Err(operands(self.place, format!("{other} is neither bf16 nor f32"))),
        }
    }

    fn scale_operand(&self, element: ElementType, shape: &[u64], blocked: &Declared) -> Result<(), GraphError> {
        match element == ElementType::Plain(SCALE) && shape == blocked.scale_shape() {
            true => Ok(()),
            false => Err(operands(self.place, format!("scales are {element} of shape {shape:?}"))),
        }
    }

    /// Source: `docs/spec/tosa.md §4.1`.
    fn compile_time_constant(&self, graph: &Graph<'_>, name: &str) -> Result<(), GraphError> {
        let is_constant = || graph.operators.iter().any(|o| o.op == op::CONST && o.outputs.contains(&name));
        match self.target.allows(Feature::ExtDynamic) || is_constant() {
            true => Ok(()),
            false => Err(operands(self.place, "an operand is no constant, which needs EXT-DYNAMIC")),
        }
    }

    fn rescale(
        &self,
        attribute: RescaleAttribute,
        input: &Value,
        small: [&Value; 4],
        output: &Declared,
    ) -> Result<Value, GraphError> {
        let rounding = RoundingMode::of_number(attribute.rounding_mode, self.target);
        let rescale = Rescale {
            input: input.element.dtype(),
            output: output.element.dtype(),
            scale32: attribute.scale32,
            rounding: rounding.map_err(|cause| self.condition(cause))?,
            per_channel: attribute.per_channel,
            input_unsigned: attribute.input_unsigned,
            output_unsigned: attribute.output_unsigned,
        };
        if let Some(blocks) = [input.element, output.element].iter().find(|t| matches!(t, ElementType::Blocks(_))) {
            return Err(operands(self.place, format!("does not take {blocks} (E18)")));
        }
        let values = small.map(Value::signed);
        let operand =
            |i: usize| Operand { dtype: small[i].element.dtype(), shape: &small[i].shape, values: &values[i] };
        let all = Operands { multiplier: operand(0), shift: operand(1), input_zp: operand(2), output_zp: operand(3) };
        let spec = rescale.resolve(&input.shape, &all, self.target).map_err(|cause| self.condition(cause))?;
        let mut codes = self.room(self.bytes(rescale.output, &input.shape))?;
        let len = input.len() as usize;
        let source = Codes::new(rescale.input, len, &input.codes).expect("values are consistent");
        let result = CodesMut::new(rescale.output, len, &mut codes).expect("the room is as large");
        match Rescaler::new(&spec, self.exec).rescale(source, result) {
            Ok(_) => Ok(Value { element: output.element, shape: input.shape.clone(), codes, scales: Vec::new() }),
            Err(RescaleError::Unpredictable { index, requirement }) => {
                Err(self.unpredictable(requirement, Some(index)))
            }
            Err(other) => Err(operands(self.place, other.to_string())),
        }
    }
}

/// The codes of one block.
fn unpacked(dtype: DType, bytes: &[u8]) -> [u64; BLOCK] {
    let bits = dtype.storage_bits().expect("elements have a width") as usize;
    std::array::from_fn(|i| {
        let (first, shift) = (i * bits / 8, i * bits % 8);
        let mut wide = [0; 8];
        let n = (shift + bits).div_ceil(8);
        wide[..n].copy_from_slice(&bytes[first..first + n]);
        u64::from_le_bytes(wide) >> shift & IntFormat { bits: bits as u8, signed: false }.mask()
    })
}

/// Writes the codes of one block into zeroed bytes.
fn pack(dtype: DType, codes: &[u64; BLOCK], bytes: &mut [u8]) {
    let bits = dtype.storage_bits().expect("elements have a width") as usize;
    for (i, code) in codes.iter().enumerate() {
        let (first, shift) = (i * bits / 8, i * bits % 8);
        let n = (shift + bits).div_ceil(8);
        for (byte, part) in bytes[first..first + n].iter_mut().zip((code << shift).to_le_bytes()) {
            *byte |= part;
        }
    }
}
