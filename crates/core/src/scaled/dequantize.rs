//! Definition of dequantization: code and scales, combined with the roundings of §3.2.
//!
//! In formulas, `c` is the code, `s` the scale, `g` the global scale, `b` the bias, `t` the effective scale, and `p`
//! the f32 result.

use super::arithmetic::{NAN, integer, is_neg, negated, product, quotient, rounded, sum};
use super::blocks::BlockTerms;
use super::book::Book;
use super::error::ScaledError;
use super::gguf::BlockType;
use super::layout::{Code, Coding, Form, GlobalRule, Group, Layout, Plane, Planes, Zero};
use super::packing::Packing;
use super::part::Parts;
use crate::dtype::DType;
use crate::exact::{Exact, decode_float, encode_float};
use crate::format::{F32, FloatFormat};
use crate::policy::CastPolicy;

/// Terms of an element's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Decoded code; for integers, minus the zero point.
    pub code: Exact,
    /// The scale.
    pub scale: Exact,
    /// Global scale and its rule.
    pub global: Option<(GlobalRule, Exact)>,
    /// Bias of [`Form::Affine`].
    pub bias: Option<Exact>,
}

/// Returns the f32 value `p` of an element, as bits. `scale_format` is the format that [`Form::Affine`] rounds to.
///
/// A NaN result is canonical. The sign is the sign of a NaN code, else positive (§3.6).
///
/// # Examples
/// ```
/// use truecast_core::{DType, exact::decode, scaled::{Form, Terms, value_of}};
/// // `docs/spec/checkpoints.md §3.4`: f8e4m3fn 03 times the f32 scale 3BA1AAAB.
/// let terms = Terms {
///     code: decode(DType::F8E4M3Fn, 0x03), scale: decode(DType::F32, 0x3ba1_aaab), global: None, bias: None,
/// };
/// assert_eq!(value_of(Form::Times, &truecast_core::format::F32, &terms), 0x37f2_8000);
/// ```
#[must_use]
pub fn value_of(form: Form, scale_format: &FloatFormat, terms: &Terms) -> u32 {
    let Terms { code, scale, global, bias } = *terms;
    let scale = match global {
        None => scale,
        Some((rule, g)) => effective_scale(rule, scale, g),
    };
    let p = match form {
        Form::Times => rounded(&F32, product(code, scale)),
        Form::Divide => rounded(&F32, quotient(code, scale)),
        Form::TimesConstant(k) => {
            rounded(&F32, product(rounded(&F32, product(code, scale)), decode_float(&F32, k.into())))
        }
        Form::Affine => {
            let m = rounded(scale_format, product(code, scale));
            rounded(scale_format, sum(m, bias.unwrap_or(NAN)))
        }
    };
    let neg = matches!(code, Exact::Nan { .. }) && is_neg(code);
    f32_bits(if matches!(p, Exact::Nan { .. }) { Exact::Nan { neg, payload: None } } else { p })
}

/// Effective scale `t`. It combines the block's scale and the global scale in one f32.
pub(super) fn effective_scale(rule: GlobalRule, scale: Exact, global: Exact) -> Exact {
    match rule {
        GlobalRule::Times => rounded(&F32, product(scale, global)),
        GlobalRule::Divide => rounded(&F32, quotient(scale, global)),
        GlobalRule::Amax => rounded(&F32, product(scale, rounded(&F32, quotient(global, integer(2688))))),
        GlobalRule::TimesPlus(offset) => {
            rounded(&F32, sum(rounded(&F32, product(scale, global)), decode_float(&F32, offset.into())))
        }
    }
}

/// `value` must be exact in f32.
pub(super) fn f32_bits(value: Exact) -> u32 {
    let code = encode_float(&F32, &CastPolicy::IEEE, value).code;
    code.map_or(0x7fc0_0000, |code| code as u32)
}

impl Code {
    /// Returns the value of a code; NaN for [`Book::Stored`].
    #[must_use]
    pub fn value(self, code: u64) -> Exact {
        match (self, self.format()) {
            (_, Some(f)) => decode_float(&f, code),
            (Code::Int(f), None) => integer(f.value(code) as i64),
            (Code::Book(book), None) => {
                let value = book.values().and_then(|all| all.get(code as usize).copied());
                value.map_or(NAN, |bits| decode_float(&F32, bits.into()))
            }
            (Code::Float(_), None) => NAN,
        }
    }
}

impl Plane {
    /// Returns the code at row and column `at` of a `shape` matrix.
    ///
    /// # Panics
    /// If `bytes` is too short.
    #[must_use]
    pub fn get(&self, shape: [u64; 2], at: [u64; 2], bytes: &[u8]) -> u64 {
        self.packing.get(self.code.bits(), shape, at, bytes)
    }
}

impl Layout {
    /// Returns the f32 value of an element, as bits. A cast from f32 to the requested type is the second and last step
    /// (§3.2).
    ///
    /// `index` counts elements in row-major order, after any transposition.
    ///
    /// # Errors
    /// [`ScaledError`]: an invalid code, scale or group.
    ///
    /// # Panics
    /// If the parts do not pass [`Layout::check_parts`], or `index` is out of bounds.
    ///
    /// # Examples
    /// ```
    /// use truecast_core::{DType, scaled::{Coding, Layout, Parts, Plane, Planes}};
    /// // MXFP4: 32 codes, the low nibble first, and a power of two.
    /// let planes = Planes::times(Plane::of(DType::F4E2M1), Plane::of(DType::F8E8M0), [1, 32]);
    /// let layout = Layout::new(1, [1, 32], Coding::Planes(planes));
    /// let parts = Parts { codes: &[0x8f; 16], scales: &[126], ..Parts::default() };
    /// let value = |i| layout.value(&parts, i).map(f32::from_bits);
    /// assert_eq!((value(0)?, value(1)?), (-3.0, -0.0)); // -6 and -0, halved
    /// # Ok::<(), truecast_core::scaled::ScaledError>(())
    /// ```
    pub fn value(&self, parts: &Parts<'_>, index: u64) -> Result<u32, ScaledError> {
        let [out_rows, out_cols] = self.out();
        let (matrix, row, col) = (index / (out_rows * out_cols), index / out_cols % out_rows, index % out_cols);
        let at = if self.transposed { [col, row] } else { [row, col] };
        match &self.coding {
            Coding::Planes(planes) => self.of_planes(planes, parts, matrix, at, index),
            Coding::Blocks { block, factor } => self.of_blocks(*block, *factor, parts, matrix, at, index),
        }
    }

    fn of_blocks(
        &self,
        block: BlockType,
        factor: bool,
        parts: &Parts<'_>,
        matrix: u64,
        [row, col]: [u64; 2],
        index: u64,
    ) -> Result<u32, ScaledError> {
        let per_row = self.cols / block.elements();
        let number = (matrix * self.rows + row) * per_row + col / block.elements();
        let bytes = of_matrix(parts.codes, block.bytes(), number);
        let Some(terms) = block.terms(bytes, (col % block.elements()) as usize) else {
            return Err(ScaledError::Scale { index, scale: bytes[0].into() });
        };
        let form = if terms.bias.is_some() { Form::Affine } else { Form::Times };
        let BlockTerms { code, scale, bias } = terms;
        let value = value_of(form, &F32, &Terms { code: integer(code), scale, global: None, bias });
        if !factor {
            return Ok(value);
        }
        let scale =
            Plane::of(DType::F32).code.value(Packing::BYTES.get(32, [matrix + 1, 1], [matrix, 0], parts.global));
        let code = decode_float(&F32, value.into());
        Ok(value_of(Form::Times, &F32, &Terms { code, scale, global: None, bias: None }))
    }

    fn of_planes(
        &self,
        planes: &Planes,
        parts: &Parts<'_>,
        matrix: u64,
        at: [u64; 2],
        index: u64,
    ) -> Result<u32, ScaledError> {
        let shape = [self.rows, self.cols];
        let entry = |plane: &Plane, bytes, shape, at| {
            plane.get(shape, at, of_matrix(bytes, plane.bytes(shape).unwrap_or(0), matrix))
        };
        let code = entry(&planes.codes, parts.codes, shape, at);
        if planes.refused == Some(code) {
            return Err(ScaledError::Code { index, code });
        }
        let block = planes.scales.block;
        let grid = self.grid(block);
        let mut place = [at[0] / block[0], at[1] / block[1]];
        let axis = match planes.group {
            Group::Grid => None,
            Group::OfRow => Some((0, self.rows)),
            Group::OfColumn => Some((1, self.cols)),
        };
        if let Some((axis, len)) = axis {
            let groups = Plane { code: Code::signed(32), ..Plane::of(DType::F32) };
            let group = entry(&groups, parts.index, [1, len], [0, at[axis]]) as u32 as i32;
            if group < 0 || group as u64 >= grid[axis] {
                return Err(ScaledError::Index { index: at[axis], group: group.into(), groups: grid[axis] });
            }
            place[axis] = group as u64;
        }
        let zero = match planes.zero {
            Zero::None => 0,
            Zero::Constant(zero) => zero.into(),
            Zero::Grid { plane, plus } => zero_point(&plane, plus, entry(&plane, parts.zeros, grid, place)),
        };
        let code = match (planes.codes.code, planes.zero) {
            (Code::Int(f), Zero::Grid { plane: plane @ Plane { code: Code::Float(_), .. }, .. }) => {
                let zero = plane.code.value(entry(&plane, parts.zeros, grid, place));
                rounded(&F32, sum(integer(f.value(code) as i64), negated(zero)))
            }
            (Code::Int(f), _) => integer(f.value(code) as i64 - zero),
            (Code::Float(_) | Code::Book(_), _) => planes.codes.code.value(code),
        };
        let scales = planes.scales.plane;
        let global = planes.global.map(|global| {
            let place = [at[0] / global.block[0], at[1] / global.block[1]];
            let plane = Plane::of(DType::F32);
            (global.rule, plane.code.value(entry(&plane, parts.global, self.grid(global.block), place)))
        });
        let bias = (planes.form == Form::Affine).then(|| scales.code.value(entry(&scales, parts.biases, grid, place)));
        let scale = match entry(&scales, parts.scales, grid, place) {
            code if planes.has_book() => {
                decode_float(&F32, entry(&Plane::of(DType::F32), parts.book, [1, Book::STORED], [0, code]))
            }
            code => scales.code.value(code),
        };
        let format = scales.code.format().unwrap_or(F32);
        Ok(value_of(planes.form, &format, &Terms { code, scale, global, bias }))
    }
}

/// Zero point of an entry. `code + plus` wraps at the width of the code (§4.10).
pub(super) fn zero_point(plane: &Plane, plus: u8, code: u64) -> i64 {
    match plane.code {
        Code::Int(f) => f.value(code.wrapping_add(plus.into()) & f.mask()) as i64,
        Code::Float(_) | Code::Book(_) => 0,
    }
}

fn of_matrix(bytes: &[u8], each: u64, matrix: u64) -> &[u8] {
    &bytes[(matrix * each) as usize..][..each as usize]
}
