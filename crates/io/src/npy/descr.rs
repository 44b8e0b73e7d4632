//! Element descriptors such as `'<f4'`. Source: the table of `docs/interfaces.md §4`.

use truecast_core::{DType, Layout};

use crate::error::npy::HeaderError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Element {
    /// `None` for a descriptor that fits several types (`<V1`, `|V1`).
    pub(crate) dtype: Option<DType>,
    pub(crate) bytes: u32,
    /// Length in bytes of the units whose byte order is reversed: an element, half of a complex element, or a code
    /// point.
    pub(crate) swap: Option<usize>,
    pub(crate) layout: Layout,
}

/// Maximum length of text in code points: 256 MiB per element.
const MAX_WIDTH: u32 = 1 << 26;

/// NumPy's descriptor of each type. The descriptor of f8e5m2 is accepted, but not written.
const TYPES: [(&str, DType); 15] = [
    ("|b1", DType::Bool),
    ("|i1", DType::I8),
    ("|u1", DType::U8),
    ("<i2", DType::I16),
    ("<u2", DType::U16),
    ("<i4", DType::I32),
    ("<u4", DType::U32),
    ("<i8", DType::I64),
    ("<u8", DType::U64),
    ("<f1", DType::F8E5M2),
    ("<f2", DType::F16),
    ("<f4", DType::F32),
    ("<f8", DType::F64),
    ("<c8", DType::C64),
    ("<V2", DType::Bf16),
];

pub(crate) fn descr(dtype: DType, layout: Layout) -> Option<String> {
    match (dtype, layout) {
        (DType::String, Layout::Utf32 { width }) => Some(format!("<U{width}")),
        _ => descr_of(dtype).map(str::to_owned),
    }
}

/// Descriptor for writing. `None` for types that `.npy` does not support, and for text, whose descriptor contains its
/// width.
///
/// # Examples
/// ```
/// use truecast_core::DType;
/// use truecast_io::npy::descr_of;
/// assert_eq!(descr_of(DType::Bf16), Some("<V2"));
/// assert_eq!(descr_of(DType::I4), Some("<V1")); // one element a byte
/// assert_eq!(descr_of(DType::I48), None);
/// ```
pub fn descr_of(dtype: DType) -> Option<&'static str> {
    match dtype {
        // ml_dtypes 0.6 itself saves `<f1`, which NumPy cannot load.
        DType::F8E5M2 => Some("|V1"),
        // tf32 is stored in the layout of f32.
        DType::Tf32 => Some("<f4"),
        _ => {
            let named = TYPES.iter().find(|(_, named)| *named == dtype).map(|(descr, _)| *descr);
            named.or((dtype.bits_in(Layout::Bytes) == Some(8)).then_some("<V1"))
        }
    }
}

pub(crate) fn element(descr: &str) -> Result<Element, HeaderError> {
    let refuse = |why: &'static str| HeaderError::Descr { descr: descr.to_owned(), why };
    let mut chars = descr.chars();
    let order = chars.next().unwrap_or(' ');
    if !matches!(order, '<' | '>' | '|') {
        return Err(refuse("does not begin with one of < > |"));
    }
    let rest = chars.as_str();
    if let Some(width) = rest.strip_prefix('U') {
        return text(order, width).map_err(refuse);
    }
    let named = TYPES.iter().find(|(descr, _)| descr[1..] == *rest).map(|(_, dtype)| *dtype);
    let dtype = match rest {
        "V1" => None,
        _ => Some(named.ok_or_else(|| refuse(why_not(rest)))?),
    };
    let bytes = dtype.and_then(DType::storage_bits).unwrap_or(8) / 8;
    // NumPy writes single bytes and void with `|` or `<`.
    if bytes > 1 && order == '|' && rest != "V2" {
        return Err(refuse("has no byte order"));
    }
    if rest == "V2" && order == '>' {
        return Err(refuse("void has no byte order; save little-endian bf16"));
    }
    let unit = if dtype == Some(DType::C64) { 4 } else { bytes as usize };
    Ok(Element { dtype, bytes, swap: (order == '>' && bytes > 1).then_some(unit), layout: Layout::Bytes })
}

fn text(order: char, width: &str) -> Result<Element, &'static str> {
    if order == '|' {
        return Err("has no byte order");
    }
    let is_plain = !width.starts_with(['0', '+']) || width == "0";
    let width: u32 = width.parse().ok().filter(|_| is_plain).ok_or("does not state the width of the text")?;
    if width > MAX_WIDTH {
        return Err("elements of more than 2^26 characters are not read");
    }
    let layout = Layout::Utf32 { width };
    Ok(Element { dtype: Some(DType::String), bytes: 4 * width, swap: (order == '>').then_some(4), layout })
}

/// Reason why a descriptor is not supported; `rest` lacks the byte order.
fn why_not(rest: &str) -> &'static str {
    match (rest.chars().next(), rest) {
        (Some('S' | 'a'), _) => "bytes are not text; save with astype('U')",
        (Some('O'), _) => "Python objects are not read",
        (Some('M' | 'm'), _) => "dates and time spans are not numbers; save them as int64",
        (_, "c16") => "complex128 is not supported; save the parts as float64",
        (Some('f'), "f10" | "f12" | "f16") => "longdouble is not supported; save as float64",
        (Some('c'), "c20" | "c24" | "c32") => "clongdouble is not supported; save the parts as float64",
        (Some('V'), _) => "opaque elements are not supported",
        _ => "unknown element type",
    }
}

/// Chooses the element type: `from` if given, else the descriptor's type.
///
/// `from` must have the same number of bytes; a type narrower than a byte counts as one byte (`docs/interfaces.md
/// §3`, `--from`).
pub(crate) fn resolve(descr: &str, element: Element, from: Option<DType>) -> Result<DType, HeaderError> {
    match (from, element.dtype) {
        (Some(DType::String) | None, Some(DType::String)) => Ok(DType::String),
        (Some(from), Some(DType::String)) => Err(HeaderError::FromText { descr: descr.to_owned(), from }),
        (Some(from), _) if from.bits_in(Layout::Bytes) == Some(8 * element.bytes) => Ok(from),
        (Some(from), _) => Err(HeaderError::FromWidth { descr: descr.to_owned(), from }),
        (None, Some(dtype)) => Ok(dtype),
        (None, None) => Err(HeaderError::FromNeeded { descr: descr.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_descriptors_agree() {
        for dtype in DType::ALL {
            let Some(descr) = descr_of(dtype) else {
                assert!(matches!(dtype, DType::I48 | DType::String), "{dtype}");
                continue;
            };
            let element = element(descr).unwrap();
            assert_eq!(resolve(descr, element, Some(dtype)), Ok(dtype));
            if !matches!(descr, "<V1" | "|V1" | "<f4") {
                assert_eq!(resolve(descr, element, None), Ok(dtype));
            }
        }
    }
}
