//! Reads the elements of constants and converts them to [`Layout::Packed`]. Source: `docs/spec/openvino.md §10`,
//! §11.5, §11.6.

use super::IrFile;
use super::network::Release;
use crate::Error;
use crate::openvino::error::IrError;
use truecast_core::{DType, Layout};
use truecast_io::Window;

/// A constant whose range has been checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant {
    /// Name of the layer in errors.
    pub layer: String,
    /// The type.
    pub dtype: DType,
    /// The dimensions.
    pub shape: Vec<u64>,
    len: u64,
    offset: u64,
    /// Length in the file, in bytes.
    bytes: u64,
    packing: Packing,
    /// Doubt about the layout, if the file states no release.
    pub uncertain: Option<&'static str>,
}

/// Packing of elements that are narrower than a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// [`Layout::Packed`]: first element in the lowest bits.
    LowFirst,
    /// First element in the highest bits of a byte.
    HighFirst,
    /// Groups of three bytes. Bytes 1 and 2 hold the low bits of the elements, and byte 3 holds the high bits.
    Groups,
}

impl Packing {
    /// Returns how files of a release pack elements of a type. The text, if any, states a doubt about this packing.
    ///
    /// # Errors
    /// The release, if its layout is unknown.
    pub fn in_release(dtype: DType, release: Option<Release>) -> Result<(Packing, Option<&'static str>), Release> {
        let before = |gate| release.is_some_and(|r| r < gate);
        Ok(match dtype {
            DType::U1 => (Packing::HighFirst, None),
            DType::U4 | DType::I4 if before(Release(2023, 2)) => (Packing::HighFirst, None),
            DType::U2 if before(Release(2025, 3)) => (Packing::HighFirst, None),
            DType::U2 if release.is_none() => (
                Packing::LowFirst,
                Some("the file does not state the release that wrote it; u2 is read in the order of 2025.3 and later"),
            ),
            DType::U3 | DType::U6 => match release {
                Some(later) if later > Release(2026, 4) => return Err(later),
                Some(_) => (Packing::Groups, None),
                None => (
                    Packing::Groups,
                    Some(
                        "the file does not state the release that wrote it; u3 and u6 are read in the groups of \
                         2026.4 and earlier",
                    ),
                ),
            },
            _ => (Packing::LowFirst, None),
        })
    }

    fn bytes(self, dtype: DType, len: u64) -> Option<u64> {
        match self {
            Packing::LowFirst | Packing::HighFirst => dtype.bytes_in(Layout::Packed, len),
            Packing::Groups => len.div_ceil(24 / u64::from(dtype.code_bits())).checked_mul(3),
        }
    }
}

impl IrFile {
    /// Checks the range of a constant: offset and size in bytes.
    ///
    /// # Errors
    /// [`Error::Ir`] if the elements do not fit the range, or the range does not fit the file.
    pub fn constant(&self, layer: &str, dtype: DType, shape: Vec<u64>, range: (u64, u64)) -> Result<Constant, Error> {
        let checked = self.checked(layer, dtype, shape, range);
        checked.map_err(|cause| Error::Ir { path: self.path.clone(), cause })
    }

    fn checked(
        &self,
        layer: &str,
        dtype: DType,
        shape: Vec<u64>,
        (offset, size): (u64, u64),
    ) -> Result<Constant, IrError> {
        let layer = || layer.to_string();
        let overflow = |quantity| IrError::Overflow { layer: layer(), quantity };
        if !dtype.is_numeric() {
            return Err(IrError::Elements { layer: layer(), dtype });
        }
        let release =
            |r: Release| IrError::UnknownLayout { layer: layer(), dtype, release: format!("{}.{}", r.0, r.1) };
        let (packing, uncertain) = match (dtype, self.odd_packing) {
            (DType::U3 | DType::U6, Some(named)) => (named, None),
            _ => Packing::in_release(dtype, self.network.release).map_err(release)?,
        };
        let product = shape.iter().try_fold(1u64, |product, &d| product.checked_mul(d));
        let len = if shape.contains(&0) { 0 } else { product.ok_or_else(|| overflow("the number of elements"))? };
        let bytes = packing.bytes(dtype, len).ok_or_else(|| overflow("the number of bytes"))?;
        if size < bytes {
            return Err(IrError::Size { layer: layer(), size, needed: bytes });
        }
        let end = offset.checked_add(size).ok_or_else(|| overflow("offset + size"))?;
        match &self.weights {
            Some(weights) if end > weights.bytes => {
                Err(IrError::Range { layer: layer(), offset, end, bytes: weights.bytes })
            }
            None if bytes > 0 => {
                let path = self.path.with_extension("bin").display().to_string();
                Err(IrError::NoWeights { layer: layer(), path })
            }
            _ => Ok(Constant { layer: layer(), dtype, shape, len, offset, bytes, packing, uncertain }),
        }
    }

    /// Reads the elements of a constant in [`Layout::Packed`]. Booleans become 0 or 1, padding bits become 0.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn codes(&self, constant: &Constant) -> Result<Vec<u8>, Error> {
        let Some(weights) = self.weights.as_ref().filter(|_| constant.bytes > 0) else { return Ok(Vec::new()) };
        let read = || {
            let mut bytes = truecast_io::zeros(constant.bytes)?;
            Window::new(weights.file.clone(), constant.offset, weights.bytes).fill(&mut bytes)?;
            Ok(bytes)
        };
        let (path, tensor, offset) = (weights.path.clone(), constant.layer.clone(), constant.offset);
        let bytes = read().map_err(|source| truecast_io::Error::ReadTensor { path, tensor, offset, source })?;
        Ok(low_first(bytes, constant.dtype, constant.packing, constant.len as usize))
    }
}

fn low_first(mut bytes: Vec<u8>, dtype: DType, packing: Packing, len: usize) -> Vec<u8> {
    let bits = dtype.storage_bits().unwrap_or(8) as usize;
    match (dtype, packing) {
        (DType::Bool, _) => bytes.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0)),
        (_, Packing::LowFirst) => {}
        (DType::U1, _) => bytes.iter_mut().for_each(|byte| *byte = byte.reverse_bits()),
        (DType::U2, _) => bytes.iter_mut().for_each(|b| *b = *b << 6 | *b >> 6 | (*b & 0x0c) << 2 | (*b & 0x30) >> 2),
        (_, Packing::HighFirst) => bytes.iter_mut().for_each(|byte| *byte = byte.rotate_left(4)),
        (_, Packing::Groups) => bytes = bytes.chunks(3).flat_map(|group| packed_group(group, bits)).collect(),
    }
    bytes.truncate((len * bits).div_ceil(8));
    let used = len * bits % 8;
    if let (Some(last), 1..) = (bytes.last_mut(), used) {
        *last &= u8::MAX >> (8 - used);
    }
    bytes
}

/// Converts a group of three bytes with 24 / `bits` elements.
///
/// Bytes 1 and 2 hold the low `w` bits of each element, byte 3 the other bits. In both parts the first element has
/// the highest bits. `w` is 2 for 3-bit and 4 for 6-bit elements.
fn packed_group(group: &[u8], bits: usize) -> [u8; 3] {
    let n = 24 / bits;
    let w = 16 / n;
    let low = u32::from(group[0]) << 8 | u32::from(group[1]);
    let high = u32::from(group[2]);
    let element = |i: usize| {
        let low = low >> (16 - w * (i + 1)) & ((1 << w) - 1);
        let high = high >> (8 - (bits - w) * (i + 1)) & ((1 << (bits - w)) - 1);
        high << w | low
    };
    let stream = (0..n).fold(0, |stream, i| stream | element(i) << (bits * i));
    [stream as u8, (stream >> 8) as u8, (stream >> 16) as u8]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(dtype: DType, packing: Packing, bytes: &[u8], len: usize) -> Vec<u64> {
        let packed = low_first(bytes.to_vec(), dtype, packing, len);
        let bits = dtype.storage_bits().unwrap() as usize;
        assert_eq!(packed.len(), (len * bits).div_ceil(8));
        let bit = |at: usize| u64::from(packed[at / 8] >> (at % 8) & 1);
        assert!((len * bits..packed.len() * 8).all(|at| bit(at) == 0), "padding is zero");
        (0..len).map(|i| (0..bits).fold(0, |code, b| code | bit(i * bits + b) << b)).collect()
    }

    /// Vectors of `docs/spec/openvino.md §10.1`.
    #[test]
    fn layouts() {
        use DType::*;
        use Packing::*;
        let rows: [(DType, Packing, &[u8], &[u64]); 9] = [
            (U1, HighFirst, &[0x80, 0x41], &[1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1]),
            (U2, LowFirst, &[0xe4, 0xe4], &[0, 1, 2, 3, 0, 1, 2, 3]),
            (U2, HighFirst, &[0x1b], &[0, 1, 2, 3]),
            (U4, LowFirst, &[0x10, 0x32], &[0, 1, 2, 3]),
            (I4, LowFirst, &[0x81, 0x43], &[1, 8, 3, 4]),
            (U4, HighFirst, &[0x01, 0x23], &[0, 1, 2, 3]),
            (U3, Groups, &[0x1b, 0x1b, 0x0f], &[0, 1, 2, 3, 4, 5, 6, 7]),
            (U6, Groups, &[0x12, 0x3f, 0x03], &[1, 2, 3, 63]),
            (U3, Groups, &[0x81, 0x43, 0x65], &[2, 4, 4, 1, 1, 4, 0, 7]),
        ];
        for (dtype, packing, bytes, expected) in rows {
            for len in (1..=expected.len()).rev() {
                let used = packing.bytes(dtype, len as u64).unwrap() as usize;
                assert_eq!(elements(dtype, packing, &bytes[..used], len), expected[..len], "{dtype} {packing:?}");
            }
        }
        assert_eq!(elements(U6, Groups, &[0x81, 0x43, 0x65], 4), [24, 33, 20, 19]);
        assert_eq!(elements(F4E2M1, LowFirst, &[0xff], 1), [15]);
    }

    /// Source: `docs/spec/openvino.md §10.2`.
    #[test]
    fn gates() {
        let of = |dtype, release: Option<(u32, u32)>| Packing::in_release(dtype, release.map(|(y, n)| Release(y, n)));
        let warns = |dtype, release| of(dtype, release).unwrap().1.is_some();
        let packing = |dtype, release| of(dtype, release).unwrap().0;
        for dtype in [DType::U4, DType::I4] {
            assert_eq!(packing(dtype, Some((2023, 1))), Packing::HighFirst);
            assert_eq!(packing(dtype, Some((2023, 2))), Packing::LowFirst);
            assert_eq!((packing(dtype, None), warns(dtype, None)), (Packing::LowFirst, false));
        }
        assert_eq!(packing(DType::U2, Some((2025, 2))), Packing::HighFirst);
        assert_eq!(
            (packing(DType::U2, Some((2025, 3))), warns(DType::U2, Some((2025, 3)))),
            (Packing::LowFirst, false)
        );
        assert!(warns(DType::U2, None));
        for dtype in [DType::U3, DType::U6] {
            assert_eq!((packing(dtype, Some((2026, 4))), warns(dtype, Some((2026, 4)))), (Packing::Groups, false));
            assert!(warns(dtype, None));
            assert_eq!(of(dtype, Some((2026, 5))), Err(Release(2026, 5)));
        }
        assert_eq!(packing(DType::U1, None), Packing::HighFirst);
    }
}
