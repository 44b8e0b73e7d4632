//! Parses the start of a `.npy` stream. Source: `numpy.lib.format`, versions 1.0, 2.0 and 3.0.

use std::io::{self, Read};

use truecast_core::{DType, Layout};

use super::MAGIC;
use super::descr::{Element, element, resolve};
use super::literal::Literal;
use crate::error::ReadError;
use crate::error::npy::{HeaderError, MAX_HEADER_BYTES};
use crate::room;
use crate::tensor::checked_len;

/// Contents of a header, before the caller's `from` is applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Offset of the data in the stream.
    pub data_start: u64,
    /// Descriptor as written.
    pub descr: String,
    /// The dimensions.
    pub shape: Vec<u64>,
    element: Element,
    len: u64,
    is_fortran: bool,
}

impl Header {
    /// Reads the header of a whole stream.
    ///
    /// Cost: memory bounded by [`MAX_HEADER_BYTES`].
    ///
    /// # Errors
    /// An error in the header, or data of another length than stated.
    ///
    /// # Examples
    /// ```
    /// use truecast_io::npy::Header;
    /// let mut file = b"\x93NUMPY\x01\x00\x37\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}".to_vec();
    /// file.extend_from_slice(&[0; 8]);
    /// assert_eq!(Header::parse(&file).unwrap().shape, [2]);
    /// assert!(Header::parse(&file[..60]).is_err());
    /// ```
    pub fn parse(stream: &[u8]) -> Result<Header, HeaderError> {
        Header::read(&mut &stream[..], stream.len() as u64).map_err(|e| match e {
            ReadError::Cause(cause) => cause,
            ReadError::Io(_) => HeaderError::Magic,
        })
    }

    pub(crate) fn read(stream: &mut dyn Read, stream_bytes: u64) -> Result<Header, ReadError<HeaderError>> {
        let mut start = [0; 12];
        if stream_bytes < 10 {
            return Err(HeaderError::Magic.into());
        }
        fill(stream, &mut start[..10], HeaderError::Magic)?;
        if start[..6] != MAGIC[..] {
            return Err(HeaderError::Magic.into());
        }
        let (prefix, length) = match (start[6], start[7]) {
            (1, 0) => (10, u64::from(u16::from_le_bytes([start[8], start[9]]))),
            (2 | 3, 0) => {
                fill(stream, &mut start[10..], HeaderError::Magic)?;
                (12, u64::from(u32::from_le_bytes([start[8], start[9], start[10], start[11]])))
            }
            (major, minor) => return Err(HeaderError::Version { major, minor }.into()),
        };
        if length > MAX_HEADER_BYTES {
            return Err(HeaderError::HeaderTooLong { bytes: length }.into());
        }
        let data_start = prefix + length;
        if data_start > stream_bytes {
            return Err(HeaderError::HeaderPastEnd { bytes: length }.into());
        }
        let mut text = room::zeros(length)?;
        fill(stream, &mut text, HeaderError::HeaderPastEnd { bytes: length })?;
        let Literal { descr, is_fortran, shape } = Literal::parse(&text)?;
        let element = element(&descr)?;
        let len = checked_len(&shape).ok_or(HeaderError::ShapeTooBig)?;
        let expected = len.checked_mul(u64::from(element.bytes)).ok_or(HeaderError::ShapeTooBig)?;
        if element.bytes == 0 && len > 0 {
            return Err(HeaderError::NoWidth { descr }.into());
        }
        // If at most one dimension is other than 1, Fortran order equals C order.
        let is_fortran = is_fortran && len > 1 && shape.iter().filter(|&&d| d != 1).count() > 1;
        let actual = stream_bytes - data_start;
        if actual != expected {
            return Err(HeaderError::DataLength { data_start, expected, actual }.into());
        }
        Ok(Header { data_start, descr, shape, element, len, is_fortran })
    }

    /// Element type: `from` if given, else the type that the header states.
    ///
    /// # Errors
    /// [`HeaderError::FromNeeded`], [`HeaderError::FromWidth`].
    pub fn dtype(&self, from: Option<DType>) -> Result<DType, HeaderError> {
        resolve(&self.descr, self.element, from)
    }

    /// Layout of the elements. An element narrower than a byte takes a byte, and text is in cells.
    pub fn layout(&self) -> Layout {
        self.element.layout
    }

    /// The number of elements.
    pub fn elements(&self) -> u64 {
        self.len
    }

    /// Whether the elements are in Fortran order, and this order differs from C order.
    pub(crate) fn is_fortran(&self) -> bool {
        self.is_fortran
    }

    /// Length in bytes of the units whose byte order is reversed; `None` for little-endian elements.
    pub(crate) fn swap(&self) -> Option<usize> {
        self.element.swap
    }
}

fn fill(stream: &mut dyn Read, buf: &mut [u8], early: HeaderError) -> Result<(), ReadError<HeaderError>> {
    stream.read_exact(buf).map_err(|e| match e.kind() {
        io::ErrorKind::UnexpectedEof => ReadError::Cause(early),
        _ => ReadError::Io(e),
    })
}
