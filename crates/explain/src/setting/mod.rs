//! The settings of specifications: their names stand in `names`.

mod names;

/// One setting of a [`Request`](crate::request::Request).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Setting {
    /// ONNX: values out of range of 8-bit floats.
    Saturate,
    /// ONNX: rounding to f8e8m0.
    RoundMode,
    /// `ieee`, Tile IR: rounding.
    Rounding,
    /// `ieee`: finite values beyond the largest.
    Overflow,
    /// `ieee`: infinities.
    Inf,
    /// `ieee`: integers out of range.
    IntOverflow,
    /// `ieee`: NaN to an integer.
    NanToInt,
    /// `ieee`: subnormals.
    Subnormals,
    /// Tile IR: the flag of ftoi.
    Saturating,
    /// Tile IR: whose values. TOSA: what the implementation chooses.
    Profile,
    /// Tile IR: an option, as [`tile::Options::names`] has it.
    TileOption(&'static str),
    /// Sign and payload of NaN, with every specification.
    Nan,
    /// ONNX, `ieee`: the notation of floating-point numbers as text.
    TextStyle,
}
