//! Input and output of [`detect`](crate::detect).

use std::fmt;
use std::sync::Arc;

use truecast_core::DType;
use truecast_core::scaled::{Layout, Part};

use crate::finding::Finding;
use crate::found::Nibbles;
use crate::scheme::Scheme;

/// Function that returns the shape of a tensor by name; `None` for an unknown name.
pub type ShapeOf<'a> = dyn Fn(&str) -> Option<Vec<u64>> + 'a;

/// Options of detection.
#[derive(Clone, Copy, Default)]
pub struct Options<'a> {
    /// `--from-scheme`: the scheme to assume instead of declarations and names.
    pub from_scheme: Option<Scheme>,
    /// `--nibbles`, for ComfyUI's NVFP4.
    pub nibbles: Option<Nibbles>,
    /// `--trust-scales`: skips the plausibility check of global scales.
    pub trust_scales: bool,
    /// True if contradictions are listed instead of causing errors (§5.7).
    pub lists: bool,
    /// True if no data can be read: types and shapes tell the formats of ComfyUI's markers, and no scale is checked.
    pub header_alone: bool,
    /// `--reference`: shapes of an unquantized checkpoint's tensors.
    pub reference: Option<&'a ShapeOf<'a>>,
}

impl fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("from_scheme", &self.from_scheme).finish_non_exhaustive()
    }
}

/// Meaning of a checkpoint's tensors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Detection {
    /// Role of each tensor, in the order of [`Checkpoint::tensors`](crate::Checkpoint::tensors).
    pub roles: Vec<Role>,
    /// Groups in the order of their codes in the files. There is one group for each dequantized tensor.
    pub groups: Vec<Group>,
    /// The schemes of the groups, each once.
    pub schemes: Vec<Scheme>,
    /// Choices of detection where the files leave them open, as sentences.
    pub choices: Vec<String>,
    /// Possible problems, as sentences.
    pub warnings: Vec<String>,
    /// Contradictory statements.
    pub findings: Vec<Finding>,
}

/// Role of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Unquantized: values of the type in the header. Integers are not weights and are copied.
    Plain,
    /// A part of a group.
    Part {
        /// Index of the tensor's group.
        group: usize,
        /// Role of the tensor in the group.
        part: Part,
    },
    /// Not needed in a dequantized checkpoint.
    Dropped(Dropped),
}

/// Reason for dropping a tensor. Displays as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dropped {
    /// Scale of activations.
    ActivationScale,
    /// Scale of keys or values in a cache.
    CacheScale,
    /// Marker that names the scheme of other tensors.
    Marker,
    /// Tensor that states the shape of packed codes.
    Shape,
    /// Factors of activations, all 1.
    Ones,
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Dropped::ActivationScale => "scale of activations",
            Dropped::CacheScale => "scale of a cache",
            Dropped::Marker => "marker of a scheme",
            Dropped::Shape => "shape of packed codes",
            Dropped::Ones => "factors that are all 1",
        })
    }
}

/// Tensors that together represent a dequantized tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Name of the dequantized tensor.
    pub name: Arc<str>,
    /// Module of the dequantized tensor.
    pub module: String,
    /// Scheme of the group.
    pub scheme: Scheme,
    /// Shape of the dequantized tensor, row-major.
    pub shape: Arc<[u64]>,
    /// Parts, each with the index of its tensor. Codes come first.
    pub parts: Vec<(Part, usize)>,
    /// Layout of the parts. Matrices are the last two dimensions of `shape`.
    pub layout: Layout,
    /// Original type, if the checkpoint states it.
    pub original: Option<DType>,
}

impl Group {
    /// Index of a part's tensor; `None` if the group lacks the part.
    pub fn tensor(&self, part: Part) -> Option<usize> {
        self.parts.iter().find(|(known, _)| *known == part).map(|(_, number)| *number)
    }
}
