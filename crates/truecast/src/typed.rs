//! Casts between slices of Rust types; a layer over [`Caster`], which works on bytes.
//!
//! A slice may have the element type itself (`f32`, `i8`; with the features `half` and `float8` also `bf16`, `F8E4M3`,
//! ..). If Rust lacks the type, unsigned integers of its width hold the codes. `u8` holds the bytes of any type;
//! elements narrower than a byte are packed. These functions exist only on little-endian machines;
//! [`cast`](crate::cast) works everywhere.

use crate::error::Error;
use bytemuck::Pod;
use truecast_core::spec::onnx;
use truecast_core::{CastSpec, DType, Layout};
use truecast_kernel::{CastError, CastOptions, Caster, Counts, Elements, ElementsMut};

mod sealed {
    pub trait Sealed {}
}

/// Rust type that can hold elements.
pub trait Element: Pod + sealed::Sealed {
    /// Element type of the Rust type.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($rust:ty = $dtype:ident),* $(,)?) => {$(
        impl sealed::Sealed for $rust {}
        impl Element for $rust {
            const DTYPE: DType = DType::$dtype;
        }
    )*};
}

elements! { f32 = F32, f64 = F64, i8 = I8, i16 = I16, i32 = I32, i64 = I64, u8 = U8, u16 = U16, u32 = U32, u64 = U64 }
#[cfg(feature = "half")]
elements! { half::f16 = F16, half::bf16 = Bf16 }
#[cfg(feature = "float8")]
elements! { float8::F8E4M3 = F8E4M3Fn, float8::F8E5M2 = F8E5M2 }

/// Number of elements that fit in a slice.
enum Capacity {
    Exactly(usize),
    /// At most this number. Packed elements may leave bits of the last byte unused.
    AtMost(usize),
}

/// Number of elements of `dtype` that fit in `len` values of `T`.
fn capacity<T: Element>(dtype: DType, len: usize) -> Result<Capacity, CastError> {
    let bits = dtype.bits_in(Layout::Packed).ok_or(CastError::Text)? as usize;
    let has_own = matches!(dtype, DType::F32 | DType::F64 | DType::I16 | DType::I32 | DType::I64);
    let is_code = matches!(T::DTYPE, DType::U16 | DType::U32 | DType::U64) && bits == 8 * size_of::<T>() && !has_own;
    match T::DTYPE {
        DType::U8 if bits < 8 => Ok(Capacity::AtMost(len / bits * 8 + len % bits * 8 / bits)),
        DType::U8 => Ok(Capacity::Exactly(len / (bits / 8))),
        own if own == dtype || is_code => Ok(Capacity::Exactly(len)),
        own => Err(CastError::Type { expected: dtype, got: own }),
    }
}

/// Converts values to the bytes of a type under ONNX Cast: overflow of narrow floats saturates.
///
/// Result: little-endian elements, packed from the lowest bit if they are narrower than a byte. Other rules: [`cast_vec`].
///
/// # Errors
/// [`Error::Spec`] for a type that ONNX lacks.
///
/// # Examples
/// ```
/// use truecast::{DType, decode, encode};
/// let f8 = encode(&[1.0f32, 0.3, 465.0], DType::F8E4M3Fn)?;
/// assert_eq!(f8, [0x38, 0x2a, 0x7e]);
/// assert_eq!(decode::<f32>(&f8, DType::F8E4M3Fn)?, [1.0, 0.3125, 448.0]);
/// # Ok::<(), truecast::Error>(())
/// ```
pub fn encode<S: Element>(values: &[S], to: DType) -> Result<Vec<u8>, Error> {
    cast_vec(&onnx::Cast::to(to).resolve(S::DTYPE)?, values)
}

/// Converts the bytes of a type to values under ONNX Cast; the inverse of [`encode`] for types whose values `D` has.
///
/// # Errors
/// [`Error::Spec`] for a type that ONNX lacks.
pub fn decode<D: Element>(bytes: &[u8], from: DType) -> Result<Vec<D>, Error> {
    cast_vec(&onnx::Cast::to(D::DTYPE).resolve(from)?, bytes)
}

/// Converts a slice into another.
///
/// Shapes: equal numbers of elements. If one side packs narrow elements in bytes, the other side determines the number;
/// if both sides do, the source determines it. Cost: plans the conversion, which takes microseconds, then converts on
/// every core; [`cast_slice_with`] plans once.
///
/// # Errors
/// [`Error::Cast`] if a slice cannot hold elements of its type, if the numbers of elements differ, or with the first
/// element that an `error` policy refuses; [`Error::Plan`].
///
/// # Examples
/// ```
/// use truecast::{DType, cast_slice, spec::onnx::Cast};
/// let mut f8 = [0u8; 3];
/// cast_slice(&Cast::to(DType::F8E4M3Fn).resolve(DType::F32)?, &[1.0f32, 0.3, 465.0], &mut f8)?;
/// assert_eq!(f8, [0x38, 0x2a, 0x7e]); // 1, 0.3125 and 448
/// # Ok::<(), truecast::Error>(())
/// ```
pub fn cast_slice<S: Element, D: Element>(spec: &CastSpec, src: &[S], dst: &mut [D]) -> Result<(), Error> {
    cast_slice_with(&Caster::new(spec, &CastOptions::default())?, src, dst)?;
    Ok(())
}

/// Converts a slice into another by a planned conversion, which has its own options for threads and counts. Shapes are
/// those of [`cast_slice`].
///
/// # Errors
/// Errors of [`cast_slice`].
///
/// # Examples
/// ```
/// use truecast::{Caster, Counting, DType, CastOptions, cast_slice_with, spec::onnx::Cast};
/// let exec = CastOptions { counting: Counting::Full, ..CastOptions::default() };
/// let caster = Caster::new(&Cast::to(DType::I4).resolve(DType::F32)?, &exec)?;
/// let mut packed = [0u8; 2]; // three elements of 4 bits
/// let counts = cast_slice_with(&caster, &[1.0f32, -2.0, 3.0], &mut packed)?;
/// assert_eq!((packed, counts.exact), ([0xe1, 0x03], 3));
/// # Ok::<(), truecast::Error>(())
/// ```
pub fn cast_slice_with<S: Element, D: Element>(caster: &Caster, src: &[S], dst: &mut [D]) -> Result<Counts, Error> {
    let &CastSpec { src: from, dst: to, .. } = caster.spec();
    let n = match (capacity::<S>(from, src.len())?, capacity::<D>(to, dst.len())?) {
        (Capacity::Exactly(src), Capacity::Exactly(dst)) if src != dst => {
            return Err(CastError::Count { src, dst }.into());
        }
        (Capacity::Exactly(n), _) | (_, Capacity::Exactly(n)) | (Capacity::AtMost(n), _) => n,
    };
    let src = Elements::new(from, n, bytemuck::cast_slice(src))?;
    let dst = ElementsMut::new(to, n, bytemuck::cast_slice_mut(dst))?;
    Ok(caster.cast(src, dst)?)
}

/// Converts a slice into a vector. If the source is packed, converts every element that its bytes can hold.
///
/// # Errors
/// Errors of [`cast_slice`].
///
/// # Examples
/// ```
/// use truecast::{DType, cast_vec, spec::onnx::Cast};
/// let f8: Vec<u8> = cast_vec(&Cast::to(DType::F8E5M2).resolve(DType::F32)?, &[1.0f32, 0.3, 1e9])?;
/// let back: Vec<f32> = cast_vec(&Cast::to(DType::F32).resolve(DType::F8E5M2)?, &f8)?;
/// assert_eq!(back, [1.0, 0.3125, 57344.0]);
/// # Ok::<(), truecast::Error>(())
/// ```
pub fn cast_vec<S: Element, D: Element>(spec: &CastSpec, src: &[S]) -> Result<Vec<D>, Error> {
    let (Capacity::Exactly(n) | Capacity::AtMost(n)) = capacity::<S>(spec.src, src.len())?;
    capacity::<D>(spec.dst, 0)?;
    let bytes = spec.dst.bytes_in(Layout::Packed, n as u64).ok_or(CastError::Text)? as usize;
    let mut dst = vec![D::zeroed(); bytes / size_of::<D>()];
    cast_slice(spec, src, &mut dst)?;
    Ok(dst)
}

/// True if elements of one type can be converted to another by value. [`DType::embeds_in`] tells whether the conversion
/// preserves every value; the `resolve` of a specification tells whether the specification allows the pair.
///
/// # Examples
/// ```
/// use truecast::{DType, can_cast};
/// assert!(can_cast(DType::F64, DType::F4E2M1));
/// assert!(!can_cast(DType::C64, DType::F32));
/// ```
#[must_use]
pub fn can_cast(src: DType, dst: DType) -> bool {
    let converts = |dtype: DType| dtype.is_numeric() || dtype == DType::String;
    src == dst || (converts(src) && converts(dst))
}
