//! Computes results from decoded codes and scales, which it combines in f32. All other methods give equal results.
//!
//! Tiles are bytes; a tile of f32 has four bytes per element. All functions require the default floating-point
//! environment.

use super::products::{Combination, Narrow};
use super::rows::F32;
use crate::level::{Level, Task};
use crate::pipeline::{Pipeline, Scratch, Source, Target};
use crate::plan::{PlanError, plan};
use crate::stage::slot_bytes;
use truecast_core::scaled::{Code, Form, GlobalRule, ScaledError};
use truecast_core::{CastPolicy, CastSpec, DType, Layout};

pub(super) const TILE: usize = 2048;

#[derive(Debug)]
pub(super) struct Decoder {
    of: Of,
}

#[derive(Debug)]
enum Of {
    Float(DType, Pipeline),
    /// Values of 16 codes, as f32 bits.
    Book([u32; 16]),
    /// Number of bits above the code, and whether the code has a sign.
    Int {
        unused: u32,
        signed: bool,
        minus: i32,
        level: Level,
    },
}

/// Conversion of an element type from or to f32, by the IEEE 754 policy.
pub(super) fn pipeline(src: DType, dst: DType, level: Level) -> Result<Pipeline, ScaledError> {
    let spec = CastSpec { src, dst, policy: CastPolicy::IEEE, undefined: &[], clause: "exact" };
    plan(&spec, level).map(|(_, pipeline)| pipeline).map_err(|_| ScaledError::Layout { why: "its codes have no value" })
}

impl Decoder {
    pub fn has_nan(&self) -> bool {
        matches!(self.of, Of::Float(dtype, _) if dtype.code_bits() > 6)
    }

    /// `minus` is subtracted from integers.
    pub fn new(code: Code, minus: i32, level: Level) -> Result<Decoder, ScaledError> {
        let of = match code {
            Code::Float(dtype) => Of::Float(dtype, pipeline(dtype, DType::F32, level)?),
            Code::Book(book) => {
                Of::Book(book.values().ok_or(ScaledError::Layout { why: "the values of its codes are not known" })?)
            }
            Code::Int(f) => Of::Int { unused: 8 - u32::from(f.bits), signed: f.signed, minus, level },
        };
        Ok(Decoder { of })
    }

    /// Values of codes below 16.
    pub fn of_values(values: [f32; 16]) -> Decoder {
        Decoder { of: Of::Book(values.map(f32::to_bits)) }
    }

    pub fn is_int(&self) -> bool {
        matches!(self.of, Of::Int { .. })
    }

    /// Computes the products of integer codes, in whole groups, with the scale of the group; adds its bias if there are
    /// biases. Signed codes must have 8 bits.
    pub fn products(&self, codes: &[u8], group: usize, scales: &[u8], biases: Option<&[u8]>, values: &mut [F32]) {
        let Of::Int { signed, minus, level, .. } = self.of else { return };
        let (scales, biases) = (scales.as_chunks().0, biases.map(|biases| biases.as_chunks().0));
        match (signed, biases) {
            (true, _) => level.run(OfGroups::<true, false> { codes, group, minus, scales, biases: scales, values }),
            (_, None) => level.run(OfGroups::<false, false> { codes, group, minus, scales, biases: scales, values }),
            (_, Some(biases)) => level.run(OfGroups::<false, true> { codes, group, minus, scales, biases, values }),
        }
    }

    pub fn run(&self, codes: &[u8], values: &mut [u8], scratch: &mut Scratch) {
        match &self.of {
            Of::Float(dtype, pipeline) => {
                let layout = if dtype.code_bits() < 8 { Layout::Bytes } else { Layout::Packed };
                let (from, to) = (Source { layout, bytes: codes }, Target { layout: Layout::Packed, bytes: values });
                pipeline.run_total(from, to, codes.len(), scratch);
            }
            Of::Book(table) => {
                for (value, code) in values.as_chunks_mut::<4>().0.iter_mut().zip(codes) {
                    *value = table[usize::from(code & 15)].to_le_bytes();
                }
            }
            Of::Int { unused, signed, minus, level } => {
                let (unused, signed, minus) = (*unused, *signed, *minus);
                level.run(OfInt { codes, unused, signed, minus, values: values.as_chunks_mut().0 });
            }
        }
    }
}

struct OfInt<'a> {
    codes: &'a [u8],
    unused: u32,
    signed: bool,
    minus: i32,
    values: &'a mut [F32],
}

impl Task for OfInt<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let OfInt { codes, unused, signed, minus, values } = self;
        if signed {
            for (value, code) in values.iter_mut().zip(codes) {
                *value = (((i32::from((code << unused) as i8) >> unused) - minus) as f32).to_le_bytes();
            }
        } else {
            for (value, code) in values.iter_mut().zip(codes) {
                *value = ((i32::from(*code) - minus) as f32).to_le_bytes();
            }
        }
    }
}

struct OfGroups<'a, const SIGNED: bool, const BIASED: bool> {
    codes: &'a [u8],
    group: usize,
    minus: i32,
    scales: &'a [F32],
    biases: &'a [F32],
    values: &'a mut [F32],
}

impl<const SIGNED: bool, const BIASED: bool> Task for OfGroups<'_, SIGNED, BIASED> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let OfGroups { codes, group, minus, scales, biases, values } = self;
        let operands = scales.iter().zip(biases).map(|(s, b)| (f32::from_le_bytes(*s), f32::from_le_bytes(*b)));
        for ((codes, values), (scale, bias)) in
            codes.chunks_exact(group).zip(values.chunks_exact_mut(group)).zip(operands)
        {
            for (code, value) in codes.iter().zip(values) {
                let code = if SIGNED { i32::from(*code as i8) } else { i32::from(*code) } - minus;
                let product = code as f32 * scale;
                let x = if BIASED { product + bias } else { product };
                *value = (if x.is_nan() { 0x7fc0_0000 } else { x.to_bits() }).to_le_bytes();
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct Values {
    form: Form,
    level: Level,
    encode: Pipeline,
    pub dst_bytes: usize,
    /// Form A6: conversions to the type of the scales and back; `None` if that type is f32.
    narrow: Option<(DType, Pipeline, Pipeline)>,
    /// One loop for the whole conversion; `None` without such a loop.
    pub loops: Option<Narrow>,
}

/// Operands as f32 bytes, one for each element or one for each block; `None` if the layout has no such operand.
#[derive(Clone, Copy, Default)]
pub(super) struct Operands<'a> {
    pub scales: &'a [u8],
    pub zeros: Option<&'a [u8]>,
    pub biases: Option<&'a [u8]>,
    /// Factor of the results before their conversion (§9.5).
    pub factor: Option<f32>,
}

impl<'a> Operands<'a> {
    pub fn len(&self) -> usize {
        self.scales.len() / 4
    }

    /// Empty without either; no layout has both.
    pub fn zeros_or_biases(&self) -> &'a [u8] {
        self.zeros.or(self.biases).unwrap_or(&[])
    }
}

#[derive(Debug, Default)]
pub(super) struct Buffers {
    pub scratch: Scratch,
    narrow: Vec<u8>,
}

impl Values {
    /// Results are f32 values cast by `spec`. `scale_type` is `t` of form A6.
    pub fn new(form: Form, scale_type: DType, spec: &CastSpec, level: Level) -> Result<Values, ScaledError> {
        let no_result = |_: PlanError| ScaledError::Layout { why: "f32 is not converted to the requested type" };
        if spec.src != DType::F32 || !spec.dst.is_numeric() || spec.dst.storage_bits().is_none_or(|bits| bits < 8) {
            return Err(ScaledError::Layout { why: "results must be numbers of whole bytes, converted from f32" });
        }
        if spec.policy.refuses() {
            return Err(ScaledError::Layout { why: "results are refused by a policy; only casts do that" });
        }
        let narrow = match (form, scale_type) {
            (Form::Affine, DType::F16 | DType::Bf16) => {
                let there = pipeline(DType::F32, scale_type, level)?;
                Some((scale_type, there, pipeline(scale_type, DType::F32, level)?))
            }
            _ => None,
        };
        let encode = plan(spec, level).map_err(no_result)?.1;
        let dst_bytes = slot_bytes(spec.dst);
        let mut values = Values { form, level, encode, dst_bytes, narrow, loops: None };
        if dst_bytes == 2 {
            let mut nan = [[0; 2]; 2];
            values.encode([0x7fc0_0000u32, 0xffc0_0000].map(u32::to_le_bytes).as_flattened(), nan.as_flattened_mut());
            values.loops = Narrow::new(spec, nan.map(u16::from_le_bytes));
        }
        Ok(values)
    }

    fn encode(&self, values: &[u8], results: &mut [u8]) {
        self.encode.run_packed(values, results, values.len() / 4, &mut Scratch::default());
    }

    /// Combination of codes with operands; `None` without a loop.
    pub fn combination(&self, has_zeros: bool, has_nan: bool) -> Option<(&Narrow, Combination)> {
        let scale_type = self.narrow.as_ref().map(|(dtype, ..)| *dtype);
        let how = match (self.form, has_zeros, has_nan, scale_type) {
            (Form::Times, false, false, _) => Combination::Times,
            (Form::Times, false, true, _) => Combination::TimesOfNan,
            (Form::Times, true, false, _) => Combination::MinusTimes,
            (Form::Divide, false, false, _) => Combination::Divide,
            (Form::Affine, false, false, None) => Combination::TimesPlus,
            (Form::Affine, false, false, Some(DType::Bf16)) => Combination::TimesPlusBf16,
            _ => return None,
        };
        self.loops.as_ref().map(|narrow| (narrow, how))
    }

    pub fn form(&self) -> Form {
        self.form
    }

    /// Computes results of at most [`TILE`] decoded codes; overwrites `values`.
    pub fn run(&self, values: &mut [u8], operands: Operands<'_>, results: &mut [u8], buffers: &mut Buffers) {
        let Operands { scales, zeros, biases, factor } = operands;
        let codes = values;
        if let Some(zeros) = zeros {
            self.level.run(Minus { values: codes.as_chunks_mut().0, zeros: zeros.as_chunks().0 });
        }
        match (self.form, biases) {
            (Form::Times | Form::TimesConstant(_), _) => {
                self.level.run(Combine::<TIMES> { codes: codes.as_chunks_mut().0, scales: scales.as_chunks().0 });
            }
            (Form::Divide, _) => {
                self.level.run(Combine::<DIVIDE> { codes: codes.as_chunks_mut().0, scales: scales.as_chunks().0 });
            }
            (Form::Affine, biases) => {
                self.level.run(Combine::<TIMES> { codes: codes.as_chunks_mut().0, scales: scales.as_chunks().0 });
                self.round(codes, buffers);
                let biases = biases.unwrap_or(&[]);
                self.level.run(Combine::<PLUS> { codes: codes.as_chunks_mut().0, scales: biases.as_chunks().0 });
                self.round(codes, buffers);
            }
        }
        self.finish(codes, factor, results, buffers);
    }

    /// Multiplies products by the factors of the tensor and converts them; overwrites `values`.
    pub fn finish(&self, values: &mut [u8], factor: Option<f32>, results: &mut [u8], buffers: &mut Buffers) {
        let constant = if let Form::TimesConstant(k) = self.form { Some(f32::from_bits(k)) } else { None };
        for factor in [constant, factor].into_iter().flatten() {
            self.level.run(Factor { values: values.as_chunks_mut().0, factor });
        }
        self.encode.run_packed(values, results, values.len() / 4, &mut buffers.scratch);
    }

    /// Rounds to the type of the scales, and converts back.
    fn round(&self, values: &mut [u8], buffers: &mut Buffers) {
        let Some((dtype, there, back)) = &self.narrow else { return };
        let len = values.len() / 4;
        buffers.narrow.resize(len * slot_bytes(*dtype), 0);
        let Buffers { scratch, narrow, .. } = buffers;
        there.run_packed(values, narrow, len, scratch);
        back.run_packed(narrow, values, len, scratch);
    }
}

const TIMES: u8 = 0;
const DIVIDE: u8 = 1;
const PLUS: u8 = 2;

/// `c * s`, `c / s` or `c + s`; NaN by `docs/spec/checkpoints.md §3.6`.
struct Combine<'a, const HOW: u8> {
    codes: &'a mut [F32],
    scales: &'a [F32],
}

impl<const HOW: u8> Task for Combine<'_, HOW> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        const SIGN: u32 = 0x8000_0000;
        const NAN: u32 = 0x7fc0_0000;
        for (code, scale) in self.codes.iter_mut().zip(self.scales) {
            let (c, s) = (f32::from_le_bytes(*code), f32::from_le_bytes(*scale));
            let p = match HOW {
                TIMES => c * s,
                DIVIDE => c / s,
                _ => c + s,
            };
            // A NaN result has the sign of a NaN code.
            let sign = if c.is_nan() { c.to_bits() & SIGN } else { 0 };
            let bits = if p.is_nan() { NAN | sign } else { p.to_bits() };
            *code = bits.to_le_bytes();
        }
    }
}

/// Value before any rounding, in f64.
pub(super) struct Exact<'a> {
    pub form: Form,
    pub codes: &'a [u8],
    pub operands: Operands<'a>,
    pub global: Option<(GlobalRule, &'a [u8])>,
    pub exact: &'a mut [u8],
}

impl Task for Exact<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Exact { form, codes, operands, global, exact } = self;
        let of = |all: &[u8], i: usize| {
            f64::from(f32::from_le_bytes([all[4 * i], all[4 * i + 1], all[4 * i + 2], all[4 * i + 3]]))
        };
        for (i, x) in exact.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let c = of(codes, i) - operands.zeros.map_or(0.0, |zeros| of(zeros, i));
            let s = of(operands.scales, i);
            // A bias is added after both scales, so the global scale cannot be applied last.
            let s = match global {
                Some((GlobalRule::TimesPlus(offset), g)) => s * of(g, i) + f64::from(f32::from_bits(offset)),
                _ => s,
            };
            let value = match form {
                Form::Divide => c / s,
                Form::Times => c * s,
                Form::TimesConstant(k) => c * s * f64::from(f32::from_bits(k)),
                Form::Affine => c * s + operands.biases.map_or(0.0, |biases| of(biases, i)),
            };
            let value = match global {
                None | Some((GlobalRule::TimesPlus(_), _)) => value,
                Some((GlobalRule::Times, g)) => value * of(g, i),
                Some((GlobalRule::Divide, g)) => value / of(g, i),
                Some((GlobalRule::Amax, g)) => value * of(g, i) / 2688.0,
            };
            *x = (value * operands.factor.map_or(1.0, f64::from)).to_le_bytes();
        }
    }
}

struct Minus<'a> {
    values: &'a mut [F32],
    zeros: &'a [F32],
}

impl Task for Minus<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (value, zero) in self.values.iter_mut().zip(self.zeros) {
            // Exact for integers.
            let difference = f32::from_le_bytes(*value) - f32::from_le_bytes(*zero);
            *value = (if difference.is_nan() { 0x7fc0_0000 } else { difference.to_bits() }).to_le_bytes();
        }
    }
}

struct Factor<'a> {
    values: &'a mut [F32],
    factor: f32,
}

impl Task for Factor<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for value in self.values {
            let p = f32::from_le_bytes(*value) * self.factor;
            *value = (if p.is_nan() { 0x7fc0_0000 } else { p.to_bits() }).to_le_bytes();
        }
    }
}

/// Copies each f32 `times` times, beginning with copy `skip` of the first f32, until `dst` is full.
pub(super) fn spread(src: &[u8], times: usize, skip: usize, dst: &mut [u8]) {
    let (src, mut dst) = (src.as_chunks::<4>().0, dst.as_chunks_mut::<4>().0);
    if times == 1 {
        dst.copy_from_slice(&src[skip..skip + dst.len()]);
        return;
    }
    let (mut next, mut skip) = (skip / times, skip % times);
    while !dst.is_empty() {
        let n = (times - skip).min(dst.len());
        let (now, rest) = dst.split_at_mut(n);
        now.fill(src[next]);
        (dst, next, skip) = (rest, next + 1, 0);
    }
}
