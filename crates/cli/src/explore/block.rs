//! One worked block of a scheme: values, scale, codes and bytes.

use super::cast::fields;
use super::{code, invalid};
use crate::failure::Failure;
use crate::number::count;
use crate::output::bits;
use serde::Deserialize;
use serde_json::{Value, json};
use truecast::DType;
use truecast::decimal::to_decimal;
use truecast::exact::decode;
use truecast::scaled::{Form, scheme};
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

/// Name in requests, scheme (empty for a block of GGUF), elements of the block, and order of the bytes.
const SCHEMES: [(&str, &str, u64, &str); 6] = [
    ("mxfp4", "mxfp4", 32, "two codes in a byte, the first in the low nibble; then the scale"),
    ("nvfp4", "nvfp4", 16, "two codes in a byte, the first in the low nibble; then the scale; then the global scale"),
    ("fp8", "fp8-channel", 16, "one code in a byte; then the scale of a tensor, a row or a block of 128 × 128 values"),
    ("int4", "int4-group,group=32", 32, "eight codes in 32 bits, the first in the lowest; then the scale"),
    ("q4_0", "", 32, "the scale; then 16 bytes: the low nibbles are the first 16 codes, the high nibbles the last 16"),
    ("q8_0", "", 32, "the scale; then one code in a byte"),
];

pub fn answer(asked: &Asked) -> Result<Value, Failure> {
    let row = SCHEMES.iter().find(|row| row.0 == asked.scheme);
    let &(name, long, elements, order) =
        row.ok_or_else(|| invalid(format_args!("{:?} is not a scheme of the explorer", asked.scheme)))?;
    let block = BlockType::ALL.into_iter().find(|block| block.name().eq_ignore_ascii_case(name));
    let layout = match block.filter(|_| long.is_empty()) {
        Some(block) => Layout::new(1, [1, elements], Coding::Blocks { block, factor: false }),
        None => *Form::new(scheme(long).map_err(invalid)?, &[1, elements])?.layout(),
    };
    let values = asked.values.as_ref().map(|texts| numbers(texts, elements as usize)).transpose()?;
    let bytes = match (&asked.bytes, &values) {
        (Some(text), _) => bytes(text, size(&layout))?,
        (None, Some(values)) => quantized(&layout, values)?,
        (None, None) => return Err(invalid("a block needs values or bytes")),
    };
    let number = |bits: u32| to_decimal(decode(DType::F32, bits.into()));
    let element = |at: u64| {
        let Place { code, width, bit, value } = place(&layout, &bytes, at);
        let decoded = layout.value(&parts(&layout, &bytes), at).ok();
        let input = values.as_ref().map(|values| values[at as usize]);
        let error = input.zip(decoded).map(|(a, b)| f64::from(f32::from_bits(b)) - f64::from(f32::from_bits(a)));
        json!({
            "bits": bits(code, width), "byte": bit / 8, "bit": bit % 8, "value": value,
            "decoded": decoded.map(number), "input": input.map(number), "error": error
        })
    };
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let [scale, global] = scales(&layout, &bytes, values.as_deref());
    Ok(json!({
        "scheme": name, "elements": elements, "scale": scale, "global_scale": global, "bytes": hex, "order": order,
        "codes": (0..elements).map(element).collect::<Value>(), "fields": fields(layout.code_type())
    }))
}

/// Bits of the first numbers as f32; missing ones are 0.
fn numbers(texts: &[String], elements: usize) -> Result<Vec<u32>, Failure> {
    let number = |text: &String| Ok(code(text, DType::F32)? as u32);
    let mut numbers = texts.iter().take(elements).map(number).collect::<Result<Vec<_>, Failure>>()?;
    numbers.resize(elements, 0);
    Ok(numbers)
}

fn bytes(text: &str, expected: usize) -> Result<Vec<u8>, Failure> {
    let digits = text.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_digit(16)).collect::<Option<Vec<_>>>();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2));
    let digits = digits.ok_or_else(|| invalid("the bytes are not pairs of hexadecimal digits"))?;
    let bytes: Vec<u8> = digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect();
    let wrong = || invalid(format_args!("{}; the block has {expected}", count(bytes.len() as u64, "byte")));
    if bytes.len() == expected { Ok(bytes) } else { Err(wrong()) }
}

/// Parts of a block, in the order of its bytes.
const PARTS: [Part; 3] = [Part::Codes, Part::Scales, Part::Global];

fn length(layout: &Layout, part: Part) -> usize {
    layout.part_bytes(part).ok().flatten().unwrap_or(0) as usize
}

fn size(layout: &Layout) -> usize {
    PARTS.map(|part| length(layout, part)).iter().sum()
}

fn parts<'a>(layout: &Layout, bytes: &'a [u8]) -> Parts<'a> {
    Parts::of(|part| {
        let begin: usize = PARTS.iter().take_while(|one| **one != part).map(|one| length(layout, *one)).sum();
        bytes.get(begin..begin + length(layout, part)).unwrap_or_default()
    })
}

/// Code of an element, its width in bits, the place of its lowest bit, and its value without the scale.
#[derive(Default)]
struct Place {
    code: u64,
    width: u32,
    bit: u64,
    value: String,
}

fn place(layout: &Layout, bytes: &[u8], at: u64) -> Place {
    match layout.coding {
        Coding::Planes(Planes { codes, zero, .. }) => {
            let (shape, at, width) = ([1, layout.cols], [0, at], codes.code.bits());
            let code = codes.get(shape, at, parts(layout, bytes).codes);
            let value = match (codes.code, zero) {
                (Code::Int(format), Zero::Constant(zero)) => (format.value(code) - i128::from(zero)).to_string(),
                (other, _) => to_decimal(other.value(code)),
            };
            Place { code, width, bit: codes.packing.bit(width, shape, at, 0), value }
        }
        // Two bytes of scale come first. The codes of Q4_0 are stored with the offset 8.
        Coding::Blocks { block, .. } => {
            let value = block.code(bytes, at as usize);
            let (offset, width, bit) =
                if block == BlockType::Q8_0 { (0, 8, 8 * at) } else { (8, 4, 8 * (at % 16) + at / 16 * 4) };
            Place { code: (value + offset) as u64 & 0xff, width, bit: 16 + bit, value: value.to_string() }
        }
        _ => Place::default(),
    }
}

/// Scale of the block and global scale; without values, their rules are those of any block.
fn scales(layout: &Layout, bytes: &[u8], values: Option<&[u32]>) -> [Value; 2] {
    let parts = parts(layout, bytes);
    let scale = |code: Code, stored: u64, rule: &str| {
        let kind = if let Code::Float(dtype) = code { dtype } else { layout.code_type() };
        json!({
            "type": kind.name(), "bits": bits(stored, code.bits()), "value": to_decimal(code.value(stored)),
            "rule": rule, "fields": fields(kind)
        })
    };
    match layout.coding {
        Coding::Planes(planes) => {
            let stored = planes.scales.plane.get([1, 1], [0, 0], parts.scales);
            let global = planes.global.map_or(Value::Null, |global| {
                let stored = parts.global.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
                let divides = global.rule == GlobalRule::Divide;
                let rule = match (divides, values.is_some_and(are_zeros)) {
                    (true, true) => "1 for a tensor of zeros; the scale is divided by it",
                    (true, false) => "2688 / the largest magnitude of the tensor; the scale is divided by it",
                    _ => "the scale is multiplied by it",
                };
                scale(Code::Float(DType::F32), stored, rule)
            });
            [scale(planes.scales.plane.code, stored, rule(&planes, values)), global]
        }
        coding => {
            let is_q8_0 = matches!(coding, Coding::Blocks { block: BlockType::Q8_0, .. });
            let rule = if is_q8_0 { "the largest magnitude / 127" } else { "the number of the largest magnitude / -8" };
            let stored = u16::from_le_bytes([bytes[0], bytes[1]]);
            [scale(Code::Float(DType::F16), stored.into(), &format!("{rule}, rounded to f16")), Value::Null]
        }
    }
}

fn are_zeros(values: &[u32]) -> bool {
    values.iter().all(|bits| bits << 1 == 0)
}

fn rule(planes: &Planes, values: Option<&[u32]>) -> &'static str {
    match (planes.scales.plane.code, planes.global) {
        _ if values.is_some_and(are_zeros) => "the scheme's scale for a block of zeros",
        (Code::Float(DType::F8E8M0), _) => {
            "the power of two below the largest magnitude, or the one above it if the magnitude is at least 1.75 times \
             the power, / 4: the rule \"even\"; OCP's rule \"floor\" always takes the one below"
        }
        (_, Some(_)) if values.is_some() => {
            "the largest magnitude / 6, times the global scale, rounded: 448 here, where the block is the whole tensor; \
             type bytes to see another"
        }
        (_, Some(_)) => "the largest magnitude / 6, times the global scale, rounded",
        (_, None) if matches!(planes.codes.code, Code::Int(_)) => "the largest magnitude / 7.5, rounded",
        (_, None) => "the largest magnitude / the largest value of a code, rounded",
    }
}

/// Bytes of all parts, by the definition: the quantizer of tensors would enlarge the WebAssembly much.
fn quantized(layout: &Layout, values: &[u32]) -> Result<Vec<u8>, Failure> {
    let mut bytes = vec![0; size(layout)];
    match layout.coding {
        Coding::Planes(planes) => {
            let how = Quantization::default();
            let largest = amax(how.nonfinite, values).map_err(invalid)?;
            let global = planes.global.map(|global| global.rule.of_amax(largest)).transpose().map_err(invalid)?;
            let block = planes.quantize(&how, global.unwrap_or(0), values).map_err(invalid)?;
            let (codes, scales) = bytes.split_at_mut(length(layout, Part::Codes));
            let (scale, global_scale) = scales.split_at_mut(length(layout, Part::Scales));
            let plane = planes.codes;
            for (at, code) in block.codes.iter().enumerate() {
                plane.packing.set(plane.code.bits(), [1, layout.cols], [0, at as u64], codes, *code);
            }
            let plane = planes.scales.plane;
            plane.packing.set(plane.code.bits(), [1, 1], [0, 0], scale, block.scale);
            global.into_iter().for_each(|global| global_scale.copy_from_slice(&global.to_le_bytes()));
        }
        Coding::Blocks { block, .. } => block.quantize(NonFinite::Error, values, &mut bytes).map_err(invalid)?,
        _ => return Err(invalid("the explorer has no such block")),
    }
    Ok(bytes)
}
