//! One worked block of a scheme: values, scale, codes and bytes.

use super::invalid;
use crate::failure::Failure;
use crate::output::bits;
use serde::Deserialize;
use serde_json::{Value, json};
use truecast::DType;
use truecast::decimal::to_decimal;
use truecast::exact::{decode, encode};
use truecast::literal::{Literal, read};
use truecast::policy::CastPolicy;
use truecast::scaled::{Array, Form, scheme};
use truecast_core::scaled::{
    BlockType, Code, Coding, GlobalRule, Layout, NonFinite, Part, Parts, Planes, Quantization, Zero, amax,
};

#[derive(Deserialize)]
pub struct Asked {
    scheme: String,
    values: Option<Vec<String>>,
    /// Bytes of all parts in hexadecimal, in the order of the answer.
    bytes: Option<String>,
}

/// Storage of a scheme.
enum Stored {
    /// Name of the scheme, and elements of the block.
    Planes(&'static str, u64),
    Block(BlockType),
}

/// Name in requests, storage, and order of the bytes.
const SCHEMES: [(&str, Stored, &str); 6] = [
    ("mxfp4", Stored::Planes("mxfp4", 32), "two codes in a byte, the first in the low nibble; then the scale"),
    (
        "nvfp4",
        Stored::Planes("ct:nvfp4-pack-quantized", 16),
        "two codes in a byte, the first in the low nibble; then the scale; then the global scale",
    ),
    ("fp8", Stored::Planes("fp8-channel", 16), "one code in a byte; then the scale of the row"),
    (
        "int4",
        Stored::Planes("int4-group,group=32", 32),
        "eight codes in a word of 32 bits, the first in the lowest bits; then the scale",
    ),
    (
        "q4_0",
        Stored::Block(BlockType::Q4_0),
        "the scale; then 16 bytes: the low nibbles are the first 16 codes, the high nibbles the last 16",
    ),
    ("q8_0", Stored::Block(BlockType::Q8_0), "the scale; then one code in a byte"),
];

enum Given<'a> {
    Bytes(Vec<u8>),
    /// Values as f32 bits.
    Values(&'a [u32]),
}

impl Given<'_> {
    /// Bytes of a block of `expected` bytes.
    fn bytes(
        self,
        expected: usize,
        encode: impl FnOnce(&[u32]) -> Result<Vec<u8>, Failure>,
    ) -> Result<Vec<u8>, Failure> {
        match self {
            Given::Values(values) => encode(values),
            Given::Bytes(bytes) if bytes.len() == expected => Ok(bytes),
            Given::Bytes(bytes) => Err(invalid(format_args!("{} bytes; the block has {expected}", bytes.len()))),
        }
    }
}

struct Element {
    code: u64,
    /// Width of the code in bits.
    width: u32,
    /// Value of the code, without the scale.
    value: String,
    /// Place of the lowest bit of the code, in bits from the start of the bytes.
    place: u64,
}

/// Codes, scale and bytes of a block.
struct Worked {
    bytes: Vec<u8>,
    codes: Vec<Element>,
    /// Decoded f32 values as bits; `None` where the scale has no value.
    decoded: Vec<Option<u32>>,
    scale: Value,
    global: Value,
}

pub fn answer(asked: &Asked) -> Result<Value, Failure> {
    let row = SCHEMES.iter().find(|row| row.0 == asked.scheme);
    let (name, stored, order) =
        row.ok_or_else(|| invalid(format_args!("{:?} is not a scheme of the explorer", asked.scheme)))?;
    let elements = match stored {
        Stored::Planes(_, elements) => *elements,
        Stored::Block(block) => block.elements(),
    };
    let values = asked.values.as_ref().map(|texts| numbers(texts, elements)).transpose()?;
    let given = match (&asked.bytes, &values) {
        (Some(text), _) => Given::Bytes(bytes(text)?),
        (None, Some(values)) => Given::Values(values),
        (None, None) => return Err(invalid("a block needs values or bytes")),
    };
    let worked = match stored {
        Stored::Planes(scheme, elements) => of_planes(scheme, *elements, given)?,
        Stored::Block(block) => of_block(*block, given)?,
    };
    let number = |bits: u32| to_decimal(decode(DType::F32, bits.into()));
    let code = |(at, Element { code, width, value, place }): (usize, &Element)| {
        let decoded = worked.decoded[at];
        let input = values.as_ref().map(|values| values[at]);
        let error = input.zip(decoded).map(|(a, b)| f64::from(f32::from_bits(b)) - f64::from(f32::from_bits(a)));
        json!({
            "bits": bits(*code, *width), "byte": place / 8, "bit": place % 8, "value": value,
            "decoded": decoded.map(number), "input": input.map(number), "error": error
        })
    };
    let hex: String = worked.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(json!({
        "scheme": name, "elements": elements, "scale": worked.scale, "global_scale": worked.global,
        "codes": worked.codes.iter().enumerate().map(code).collect::<Value>(), "bytes": hex, "order": order
    }))
}

/// Numbers as f32 bits, rounded to nearest even. Missing numbers are 0.
fn numbers(texts: &[String], elements: u64) -> Result<Vec<u32>, Failure> {
    if texts.len() as u64 > elements {
        return Err(invalid(format_args!("{} numbers; the block has {elements}", texts.len())));
    }
    let number = |text: &String| match read(text) {
        Ok(Literal::Number(value)) => {
            let code = encode(DType::F32, &CastPolicy::IEEE, value).code;
            Ok(code.map_or(0, |code| code as u32))
        }
        Ok(Literal::Code(code)) if code <= u32::MAX.into() => Ok(code as u32),
        _ => Err(invalid(format_args!("{text:?} is not a number"))),
    };
    let mut numbers = texts.iter().map(number).collect::<Result<Vec<_>, _>>()?;
    numbers.resize(elements as usize, 0);
    Ok(numbers)
}

fn bytes(text: &str) -> Result<Vec<u8>, Failure> {
    let digits = text.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_digit(16)).collect::<Option<Vec<_>>>();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2));
    let digits = digits.ok_or_else(|| invalid("the bytes are not pairs of hexadecimal digits"))?;
    Ok(digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect())
}

fn of_block(block: BlockType, given: Given<'_>) -> Result<Worked, Failure> {
    let bytes = given.bytes(block.bytes() as usize, |values| {
        let mut bytes = vec![0; block.bytes() as usize];
        block.quantize(NonFinite::Error, values, &mut bytes).map_err(invalid)?;
        Ok(bytes)
    })?;
    let layout = Layout::new(1, [1, block.elements()], Coding::Blocks { block, factor: false });
    let parts = Parts { codes: &bytes, ..Parts::default() };
    let decoded = (0..block.elements()).map(|at| layout.value(&parts, at).ok()).collect();
    // The codes of Q4_0 are stored with the offset 8.
    let (width, offset) = if block == BlockType::Q8_0 { (8, 0) } else { (4, 8) };
    let code = |at: u64| {
        let code = block.code(&bytes, at as usize);
        // The first bit that changes the code.
        let changes = |place: &u64| {
            let mut other = bytes.clone();
            other[(place / 8) as usize] ^= 1 << (place % 8);
            block.code(&other, at as usize) != code
        };
        let place = (0..8 * block.bytes()).find(changes).unwrap_or_default();
        Element { code: (code + offset) as u64 & 0xff, width, value: code.to_string(), place }
    };
    let codes = (0..block.elements()).map(code).collect();
    let raw = u16::from_le_bytes([bytes[0], bytes[1]]);
    let rule = match block {
        BlockType::Q8_0 => "the largest magnitude / 127, rounded to f16",
        _ => "the number of the largest magnitude / -8, rounded to f16",
    };
    let scale = scale_to_json(Code::Float(DType::F16), raw.into(), rule);
    Ok(Worked { codes, bytes, decoded, scale, global: Value::Null })
}

fn scale_to_json(code: Code, bits: u64, rule: &str) -> Value {
    let value = to_decimal(code.value(bits));
    let kind = match code {
        Code::Float(dtype) => dtype.name(),
        _ => "integer",
    };
    json!({ "type": kind, "bits": crate::output::bits(bits, code.bits()), "value": value, "rule": rule })
}

fn of_planes(name: &str, elements: u64, given: Given<'_>) -> Result<Worked, Failure> {
    let form = Form::new(scheme(name).map_err(invalid)?, &[1, elements])?;
    let layout = form.layout();
    let Coding::Planes(planes) = layout.coding else { return Err(invalid("the scheme has no planes")) };
    let lengths: Vec<usize> = form.arrays().iter().map(|array| array.bytes()).collect();
    let bytes = given.bytes(lengths.iter().sum(), |values| quantized(&form, &planes, values))?;
    let is_code = |array: &&Array| array.part == Part::Codes;
    let before: usize = form.arrays().iter().take_while(|array| !is_code(array)).map(|array| array.bytes()).sum();
    let mut rest = &bytes[..];
    let mut stored = Vec::new();
    for (array, length) in form.arrays().iter().zip(lengths) {
        let (part, after) = rest.split_at(length);
        stored.push((array.part, part));
        rest = after;
    }
    let parts = Parts::of(|part| stored.iter().find(|(known, _)| *known == part).map_or(&[], |(_, bytes)| *bytes));
    let decoded = (0..elements).map(|at| layout.value(&parts, at).ok()).collect();
    let zero = if let Zero::Constant(zero) = planes.zero { zero } else { 0 };
    let code = |at: u64| {
        let code = planes.codes.get([1, elements], [0, at], parts.codes);
        let value = match planes.codes.code {
            Code::Int(format) => (format.value(code) - i128::from(zero)).to_string(),
            other => to_decimal(other.value(code)),
        };
        let width = planes.codes.code.bits();
        let place = 8 * before as u64 + planes.codes.packing.bit(width, [1, elements], [0, at], 0);
        Element { code, width, value, place }
    };
    let codes = (0..elements).map(code).collect();
    let scale = planes.scales.plane.get([1, 1], [0, 0], parts.scales);
    let scale = scale_to_json(planes.scales.plane.code, scale, rule(&planes));
    let global = planes.global.map_or(Value::Null, |global| {
        let bits = parts.global.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
        let divides = global.rule == GlobalRule::Divide;
        let rule = if divides { "the scale is divided by it" } else { "the scale is multiplied by it" };
        scale_to_json(Code::Float(DType::F32), bits, rule)
    });
    Ok(Worked { codes, decoded, scale, global, bytes })
}

fn rule(planes: &Planes) -> &'static str {
    match (planes.scales.plane.code, planes.global) {
        (Code::Float(DType::F8E8M0), _) => "a power of two from the largest magnitude",
        (_, Some(_)) => "the largest magnitude / 6, times the global scale, rounded",
        (_, None) if matches!(planes.codes.code, Code::Int(_)) => "the largest magnitude / 7.5, rounded",
        (_, None) => "the largest magnitude / the largest value of a code, rounded",
    }
}

/// Bytes of all parts, by the definition.
fn quantized(form: &Form, planes: &Planes, values: &[u32]) -> Result<Vec<u8>, Failure> {
    let how = Quantization::default();
    let largest = amax(how.nonfinite, values).map_err(invalid)?;
    let global = planes.global.map(|global| global.rule.of_amax(largest)).transpose().map_err(invalid)?;
    let block = planes.quantize(&how, global.unwrap_or(0), values).map_err(invalid)?;
    let mut all = Vec::new();
    for array in form.arrays() {
        let mut bytes = vec![0; array.bytes()];
        let mut set = |shape, at, code| array.plane.packing.set(array.plane.code.bits(), shape, at, &mut bytes, code);
        match array.part {
            Part::Codes => {
                let shape = [1, values.len() as u64];
                block.codes.iter().enumerate().for_each(|(at, code)| set(shape, [0, at as u64], *code));
            }
            Part::Scales => set([1, 1], [0, 0], block.scale),
            Part::Global => set([1, 1], [0, 0], global.unwrap_or(0).into()),
            _ => return Err(invalid("the explorer has no such part")),
        }
        all.extend(bytes);
    }
    Ok(all)
}
