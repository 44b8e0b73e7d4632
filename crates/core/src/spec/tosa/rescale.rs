//! RESCALE in a graph: attributes, operands, error conditions (E1 to E18), profiles, and the interval of INEXACT_ROUND.
//! The arithmetic is in [`crate::rescale`]. Names are from `docs/spec/tosa.md §4`.

use super::super::SpecError;
use super::cast::unsigned;
use super::target::{Feature, Features, Target};
use crate::binary64::{ceil, floor, pow2};
use crate::dtype::DType;
use crate::format::IntFormat;
use alloc::format;
use alloc::string::String;

pub use crate::rescale::{Channel, Requirement, RescaleSpec, Rescaled, RoundingMode, ScaleError};

const CLAUSE: &str = "docs/spec/tosa.md §4.3";

/// Attributes of a RESCALE. Types are signless: i8, i16 and i32; for the input, also i48.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rescale {
    /// Type `in_t` of the input.
    pub input: DType,
    /// Type `out_t` of the output.
    pub output: DType,
    /// True for i32 multipliers, false for i16 multipliers. With i32, values must be in the range that the shift
    /// allows.
    pub scale32: bool,
    /// Rounding of the scaled value.
    pub rounding: RoundingMode,
    /// True if each index in the last dimension has a multiplier and a shift.
    pub per_channel: bool,
    /// True if the input and the input zero point are zero-extended.
    pub input_unsigned: bool,
    /// True if the output and the output zero point are unsigned.
    pub output_unsigned: bool,
}

/// Constant operand in a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand<'a> {
    /// Element type.
    pub dtype: DType,
    /// Shape.
    pub shape: &'a [u64],
    /// Values, as signed integers.
    pub values: &'a [i64],
}

/// Operands 1 to 4, for NC channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operands<'a> {
    /// Shape `[NC]`; type i32 with `scale32`, else i16.
    pub multiplier: Operand<'a>,
    /// Shape `[NC]`; type i8.
    pub shift: Operand<'a>,
    /// Shape `[1]`; type `in_t`.
    pub input_zp: Operand<'a>,
    /// Shape `[1]`; type `out_t`.
    pub output_zp: Operand<'a>,
}

fn condition(target: &Target, id: &'static str, why: String) -> SpecError {
    SpecError::Condition { spec: target.spec(), id, why: format!("RESCALE: {why}"), clause: CLAUSE }
}

/// Returns the rounding mode of number 1 to 3 in a file. Source: `docs/spec/tosa.md §8.3`.
///
/// # Errors
/// E18 for any other number.
pub fn rounding_mode(number: u32, target: &Target) -> Result<RoundingMode, SpecError> {
    let index = (number as usize).checked_sub(1);
    index
        .and_then(|i| RoundingMode::ALL.get(i))
        .copied()
        .ok_or_else(|| condition(target, "E18", format!("rounding_mode {number} is not 1, 2 or 3")))
}

impl Rescale {
    /// Returns a signed RESCALE with one channel, SINGLE_ROUND and 32-bit multipliers.
    #[must_use]
    pub const fn new(input: DType, output: DType) -> Self {
        Self {
            input,
            output,
            scale32: true,
            rounding: RoundingMode::Single,
            per_channel: false,
            input_unsigned: false,
            output_unsigned: false,
        }
    }

    /// Returns the input and output types, made unsigned by the attributes: u8 for an unsigned i8.
    #[must_use]
    pub fn types(&self) -> [DType; 2] {
        [(self.input, self.input_unsigned), (self.output, self.output_unsigned)]
            .map(|(dtype, is_unsigned)| if is_unsigned { unsigned(dtype).unwrap_or(dtype) } else { dtype })
    }

    /// Returns the element type of the multiplier.
    #[must_use]
    pub const fn multiplier_type(&self) -> DType {
        if self.scale32 { DType::I32 } else { DType::I16 }
    }

    /// Checks attributes, types and rank.
    ///
    /// # Errors
    /// E1 to E10, E18.
    pub fn check(&self, rank: usize, target: &Target) -> Result<(), SpecError> {
        use DType::{I8, I16, I32, I48};
        let Rescale { input, output, .. } = *self;
        if !matches!(input, I8 | I16 | I32 | I48) || !matches!(output, I8 | I16 | I32) {
            return Err(condition(
                target,
                "E18",
                format!(
                    "there is no RESCALE from {input} to {output}; inputs are i8, i16, i32 or i48, outputs are i8, \
                     i16 or i32"
                ),
            ));
        }
        let conditions = [
            (self.input_unsigned && self.output_unsigned, "E1", "input and output cannot both be unsigned"),
            (output == I32 && self.input_unsigned, "E2", "an unsigned input has no i32 output"),
            (output == I32 && self.output_unsigned, "E3", "an i32 output cannot be unsigned"),
            (input == I32 && self.input_unsigned, "E4", "an i32 input cannot be unsigned"),
            (input == I32 && self.output_unsigned, "E5", "an i32 input has no unsigned output"),
            (input == I48 && self.input_unsigned, "E6", "an i48 input cannot be unsigned"),
            (input == I48 && self.output_unsigned, "E7", "an i48 input has no unsigned output"),
            (input == I48 && self.scale32, "E8", "an i48 input takes 16-bit multipliers, so scale32 must be false"),
            (self.rounding == RoundingMode::Double && !self.scale32, "E9", "DOUBLE_ROUND needs scale32"),
            (self.per_channel && rank == 0, "E10", "per_channel needs a dimension, the input has rank 0"),
        ];
        if let Some((_, id, why)) = conditions.into_iter().find(|(holds, ..)| *holds) {
            return Err(condition(target, id, why.into()));
        }
        target.require(format!("RESCALE from {input} to {output} (E18)"), self.needs(), CLAUSE)
    }

    /// Returns the profiles and extensions that the types and the rounding mode need. Source: `docs/spec/tosa.md §4.1`,
    /// §4.2.
    #[must_use]
    pub fn needs(&self) -> Features {
        let types = if self.input == DType::I48 { Feature::ExtInt16 } else { Feature::ProInt };
        let mode = match self.rounding {
            RoundingMode::Single => Features::NONE,
            RoundingMode::Inexact => Features::of(&[Feature::ExtInexactRound]),
            RoundingMode::Double => Features::of(&[Feature::ExtDoubleRound]),
        };
        Features::of(&[types]).union(mode)
    }

    /// Returns the number of multipliers and shifts for an input of this shape.
    #[must_use]
    pub fn channels(&self, shape: &[u64]) -> u64 {
        if self.per_channel { shape.last().copied().unwrap_or(1) } else { 1 }
    }

    /// Resolves every option for an input of this shape.
    ///
    /// # Errors
    /// The first error of E1 to E18, in this order: attributes, types and shapes of operands, zero points.
    pub fn resolve(&self, shape: &[u64], operands: &Operands<'_>, target: &Target) -> Result<RescaleSpec, SpecError> {
        self.check(shape.len(), target)?;
        let error = |id, why| Err(condition(target, id, why));
        let channels = self.channels(shape);
        let Operands { multiplier, shift, input_zp, output_zp } = *operands;
        let all = [
            ("multiplier", multiplier, self.multiplier_type(), channels, "E15"),
            ("shift", shift, DType::I8, channels, "E15"),
            ("input_zp", input_zp, self.input, 1, "E16"),
            ("output_zp", output_zp, self.output, 1, "E16"),
        ];
        for (name, operand, dtype, len, shape_id) in all {
            if operand.dtype != dtype {
                return error("E17", format!("{name} is {}, not {dtype}", operand.dtype));
            }
            if operand.shape != [len] || operand.values.len() as u64 != len {
                let many = operand.shape.first().is_some_and(|n| *n > 1);
                let hint =
                    if many && !self.per_channel && shape_id == "E15" { ", since per_channel is false" } else { "" };
                return error(shape_id, format!("{name} has shape {:?}, not [{len}]{hint}", operand.shape));
            }
        }
        let spec = self.assume_legal(operands);
        let zero_points = [
            ("input_zp", self.input, self.input_unsigned, spec.input_zp, "E11", "E13"),
            ("output_zp", self.output, self.output_unsigned, spec.output_zp, "E12", "E14"),
        ];
        for (name, dtype, unsigned, zero_point, id, id16) in zero_points {
            match (dtype, unsigned, zero_point) {
                (DType::I8, ..) | (_, _, 0) | (DType::I16, true, 32768) => {}
                (DType::I16, true, _) => return error(id16, format!("{name} of u16 is {zero_point}, not 0 or 32768")),
                _ => return error(id, format!("{name} is {zero_point}; for this type it must be 0")),
            }
        }
        Ok(spec)
    }

    /// The shapes of the operands must fit. Legality is not checked.
    fn assume_legal(&self, operands: &Operands<'_>) -> RescaleSpec {
        let format = |dtype: DType, unsigned: bool| IntFormat { bits: dtype.code_bits() as u8, signed: !unsigned };
        let (input, output) = (format(self.input, self.input_unsigned), format(self.output, self.output_unsigned));
        let zero_point = |f: IntFormat, o: Operand<'_>| f.value(o.values[0] as u64) as i64;
        let pairs = operands.multiplier.values.iter().zip(operands.shift.values);
        RescaleSpec {
            input,
            output,
            scale32: self.scale32,
            rounding: self.rounding,
            channels: pairs.map(|(&m, &s)| Channel { multiplier: m as i32, shift: s as i8 }).collect(),
            input_zp: zero_point(input, operands.input_zp),
            output_zp: zero_point(output, operands.output_zp),
        }
    }
}

/// Version of the text that defines the bound of INEXACT_ROUND. Source: `docs/spec/tosa.md §4.6`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bound {
    /// Texts 1.0.0 to the 1.1 draft.
    Released,
    /// The text of 2025-03-18.
    Seed,
}

/// Returns the minimum and maximum value that INEXACT_ROUND permits, with the signedness of the output.
///
/// Each operation is rounded to binary64, as in the text.
///
/// # Errors
/// As [`RescaleSpec::rescale_one`].
pub fn inexact_interval(
    spec: &RescaleSpec,
    channel: usize,
    code: u64,
    bound: Bound,
) -> Result<(i64, i64), Requirement> {
    spec.rescale_one(channel, code)?;
    let Channel { multiplier, shift } = spec.channels[channel];
    let v = spec.input.value(code) as i64 - spec.input_zp;
    let r = (v as f64 * f64::from(multiplier)) * pow2(-i32::from(shift));
    let ozp = spec.output_zp as f64;
    let operands = match bound {
        Bound::Released => 3.0 * r.abs() + (r + ozp).abs(),
        Bound::Seed => 3.0 * r.abs(),
    };
    let error = 0.5 + operands * pow2(-24);
    let (min, max) = (spec.output.min() as f64, spec.output.max() as f64);
    let lo = ceil(((r - error) + ozp).clamp(min, max));
    let hi = floor(((r + error) + ozp).clamp(min, max));
    Ok((lo, hi))
}

/// Result that the text gives for a whole graph. Source: `docs/spec/tosa.md §6.1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GraphResult {
    /// Every element is defined.
    Valid,
    /// The implementation must report an error.
    Error(SpecError),
    /// A requirement fails, so the text permits every result. The element is the first such element of the input.
    Unpredictable {
        /// Broken requirement.
        requirement: Requirement,
        /// Index of the element; `None` for R0.
        index: Option<u64>,
    },
}

impl Rescale {
    /// Returns the result that a conforming implementation must give for the graph. A broken requirement takes
    /// precedence over an error.
    ///
    /// `input` yields the codes of the input in order.
    pub fn graph_result(
        &self,
        shape: &[u64],
        operands: &Operands<'_>,
        target: &Target,
        input: impl IntoIterator<Item = u64>,
    ) -> GraphResult {
        if let Err(requirement) = target.check_rank(shape.len()) {
            return GraphResult::Unpredictable { requirement, index: None };
        }
        let resolved = self.resolve(shape, operands, target);
        let spec = match &resolved {
            Ok(spec) => spec.clone(),
            Err(_) if self.is_computable(shape, operands) => self.assume_legal(operands),
            Err(error) => return GraphResult::Error(error.clone()),
        };
        let failed =
            (0..).zip(input).find_map(|(i, code)| Some((i, spec.rescale_one(spec.channel_of(i), code).err()?)));
        match (failed, resolved) {
            (Some((index, requirement)), _) => GraphResult::Unpredictable { requirement, index: Some(index) },
            (None, Err(error)) => GraphResult::Error(error),
            (None, Ok(_)) => GraphResult::Valid,
        }
    }

    /// True if the requirements of an illegal graph can be checked, by its types and shapes.
    fn is_computable(&self, shape: &[u64], operands: &Operands<'_>) -> bool {
        let channels = self.channels(shape);
        let Operands { multiplier, shift, input_zp, output_zp } = operands;
        let fits = |operand: &Operand<'_>, len: u64| operand.values.len() as u64 == len;
        let integers = matches!(self.input, DType::I8 | DType::I16 | DType::I32 | DType::I48)
            && matches!(self.output, DType::I8 | DType::I16 | DType::I32);
        let in_64_bits = !(self.input == DType::I48 && self.scale32);
        integers
            && in_64_bits
            && fits(multiplier, channels)
            && fits(shift, channels)
            && fits(input_zp, 1)
            && fits(output_zp, 1)
    }
}
