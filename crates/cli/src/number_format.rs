//! Types that `explain` and `formats` accept: element types and P3109 formats. Files and arrays have only element
//! types.

use crate::failure::Failure;
use std::fmt;
use truecast::exact::{decode, decode_float};
use truecast::spec::p3109;
use truecast::{DType, ErrorCode, Exact, Kind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberFormat {
    Type(DType),
    P3109(p3109::Format),
}

impl NumberFormat {
    /// Finds the P3109 format that a name such as `binary8p4se` means.
    pub fn read(text: &str) -> Result<NumberFormat, Failure> {
        let is_p3109 = text.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("binary"));
        if is_p3109 {
            let unknown = |error: p3109::InvalidFormat| Failure::new(ErrorCode::UnknownType, error);
            text.parse().map(NumberFormat::P3109).map_err(unknown)
        } else {
            Ok(NumberFormat::Type(DType::parse(text)?))
        }
    }

    pub fn kind(self) -> Kind {
        match self {
            NumberFormat::Type(dtype) => dtype.kind(),
            NumberFormat::P3109(format) => Kind::Float(*format.float()),
        }
    }

    pub fn code_bits(self) -> u32 {
        self.kind().code_bits()
    }

    pub fn decode(self, code: u64) -> Exact {
        match self {
            NumberFormat::Type(dtype) => decode(dtype, code),
            NumberFormat::P3109(format) => decode_float(format.float(), code),
        }
    }
}

impl fmt::Display for NumberFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NumberFormat::Type(dtype) => dtype.fmt(f),
            NumberFormat::P3109(format) => format.fmt(f),
        }
    }
}
