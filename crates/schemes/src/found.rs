//! The tensors of one group, as a scheme's description asks for them, and the errors that say what was seen.

use std::str::FromStr;

use truecast_core::scaled::{Book, Part};
use truecast_core::{DType, words};
use truecast_io::Tensor;

use crate::checkpoint::Index;
use crate::error::Error;
use crate::scheme::{Parameters, Scheme};

words! {
    /// Which nibble of a byte comes first.
    pub enum Nibbles {
        /// Bits 4 to 7.
        High = "high",
        /// Bits 0 to 3.
        Low = "low",
    }
}

impl FromStr for Nibbles {
    type Err = String;

    fn from_str(text: &str) -> Result<Nibbles, String> {
        let known = Nibbles::of_name(text);
        known.ok_or_else(|| format!("expected high or low, the nibble of a byte that comes first, not {text:?}"))
    }
}

/// A scheme with what its configuration says beyond its parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) scheme: Scheme,
    /// Words of pack-quantized are a bit stream: versions from 0.18.0 on (§4.4.2).
    pub(crate) is_dense_packing: Option<bool>,
    /// The type of experts: f4e2m1 or f8e4m3fn (§4.2).
    pub(crate) expert: Option<DType>,
    /// What a header says of a tensor of torchao (§4.7).
    pub(crate) torchao: Option<Torchao>,
    /// What a tensor says of one of bitsandbytes (§4.16).
    pub(crate) bitsandbytes: Option<QuantState>,
    /// The scale of BitNet multiplies (§4.11).
    pub(crate) multiplies: bool,
    /// The key, with its value, that states that every zero point is the midpoint of the codes.
    pub(crate) symmetric: Option<&'static str>,
    /// Parts that the configuration says are there, though the scheme can do without.
    pub(crate) parts: Vec<Part>,
}

/// The attributes of a tensor of torchao.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Torchao {
    pub(crate) class: String,
    pub(crate) block: Vec<u64>,
    pub(crate) element: Option<DType>,
    pub(crate) original: Option<DType>,
    pub(crate) is_swizzled: bool,
}

/// How bitsandbytes says that a tensor of four bits is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QuantState {
    pub(crate) shape: Vec<u64>,
    /// Elements that share an absmax.
    pub(crate) block: u64,
    /// Of absmax that are quantized: how many share one of their own, and the bits of what is added to them.
    pub(crate) nested: Option<(u64, u32)>,
}

impl Setting {
    pub(crate) fn of(scheme: Scheme) -> Setting {
        Setting { scheme, ..Setting::default() }
    }

    /// The part is there if the configuration says so.
    pub(crate) fn with(mut self, is_there: bool, part: Part) -> Setting {
        self.parts.extend(is_there.then_some(part));
        self
    }
}

/// What a tensor beside the codes is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// A part of the layout.
    Part(Part),
    /// The logical shape, as numbers.
    Shape,
    /// A second tensor beside the codes that changes what they mean, so that the group cannot be read.
    Factor,
    /// The values of 16 codes, which are known; or a number that has to be 0.
    Values(Option<Book>),
}

impl Piece {
    /// Its name in messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Piece::Part(part) => part.name(),
            Piece::Shape => "shape",
            Piece::Factor => "factor",
            Piece::Values(_) => "values",
        }
    }
}

/// A group's tensors.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    pub(crate) index: &'a Index<'a>,
    /// The logical name.
    pub(crate) name: &'a str,
    pub(crate) setting: &'a Setting,
    pub(crate) codes: usize,
    pub(crate) pieces: &'a [(Piece, usize)],
    /// The numbers of [`Piece::Shape`].
    pub(crate) stated: Option<Vec<u64>>,
    /// The shape that a dense checkpoint has for the logical name.
    pub(crate) reference: Option<Vec<u64>>,
    /// How the nibbles of ComfyUI's NVFP4 lie.
    pub(crate) nibbles: Nibbles,
}

impl<'a> Found<'a> {
    pub(crate) fn scheme(&self) -> Scheme {
        self.setting.scheme
    }

    pub(crate) fn parameters(&self) -> &Parameters {
        &self.setting.scheme.parameters
    }

    pub(crate) fn codes(&self) -> &'a Tensor {
        self.index.tensor(self.codes)
    }

    /// The tensor of a part beside the codes, if the group has it.
    pub(crate) fn part(&self, part: Part) -> Option<&'a Tensor> {
        let found = self.pieces.iter().find(|(piece, _)| *piece == Piece::Part(part));
        found.map(|(_, number)| self.index.tensor(*number))
    }

    /// The scales, which every description asks for.
    pub(crate) fn scales(&self) -> Result<&'a Tensor, Error> {
        self.part(Part::Scales).ok_or_else(|| self.unknown("scales", "the group has none"))
    }

    /// Elements of a group, which the scheme's name or the configuration says; `advice` where neither does.
    pub(crate) fn group(&self, advice: &str) -> Result<u64, Error> {
        self.parameters().group.ok_or_else(|| self.unknown("the group", advice))
    }

    /// Bits of a code.
    pub(crate) fn bits(&self, advice: &str) -> Result<u32, Error> {
        self.parameters().bits.ok_or_else(|| self.unknown("the width", advice))
    }

    /// Rows and columns of a block.
    pub(crate) fn block(&self, advice: &str) -> Result<[u64; 2], Error> {
        self.parameters().block.ok_or_else(|| self.unknown("the block", advice))
    }

    /// A product of sizes of the codes.
    pub(crate) fn product(&self, a: u64, b: u64) -> Result<u64, Error> {
        a.checked_mul(b).ok_or_else(|| self.bad_shape("it is too big"))
    }

    /// The shape of the codes is none of the scheme.
    pub(crate) fn bad_shape(&self, why: impl Into<String>) -> Error {
        Error::Shape {
            tensor: self.codes().name.to_string(),
            scheme: Box::new(self.scheme()),
            found: self.codes().shape.to_vec(),
            why: why.into(),
        }
    }

    /// A tensor beside the codes does not fit them.
    pub(crate) fn bad_grid(&self, tensor: &Tensor, logical: &[u64], expected: &[Vec<u64>]) -> Error {
        let shown: Vec<String> = expected.iter().map(|shape| format!("{shape:?}")).collect();
        Error::Grid {
            tensor: tensor.name.to_string(),
            codes: self.codes().name.to_string(),
            scheme: Box::new(self.scheme()),
            found: (*tensor.shape).into(),
            logical: logical.into(),
            expected: shown.join(" or "),
        }
    }

    /// Only a configuration could tell.
    pub(crate) fn unknown(&self, what: &'static str, advice: impl Into<String>) -> Error {
        Error::Unknown {
            tensor: self.codes().name.to_string(),
            scheme: Box::new(self.scheme()),
            what,
            advice: advice.into(),
        }
    }
}
