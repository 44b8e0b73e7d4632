//! What [`detect`](crate::detect) is asked, and what it answers.

use std::fmt;
use std::sync::Arc;

use truecast_core::DType;
use truecast_core::scaled::{Layout, Part};
use truecast_io::gguf::Block;

use crate::finding::Finding;
use crate::found::Nibbles;
use crate::scheme::Scheme;

/// The shape of a tensor by its name, if there is one.
pub type ShapeOf<'a> = dyn Fn(&str) -> Option<Vec<u64>> + 'a;

/// What decides beside the checkpoint itself.
#[derive(Clone, Copy, Default)]
pub struct Options<'a> {
    /// `--from-scheme`: in place of what is declared and of what names tell.
    pub from_scheme: Option<Scheme>,
    /// `--nibbles`, for ComfyUI's NVFP4.
    pub nibbles: Option<Nibbles>,
    /// `--trust-scales`: global scales are not checked for plausibility.
    pub trust_scales: bool,
    /// Contradictions are listed, not refused (§5.7).
    pub lists: bool,
    /// `--reference`: the shape that a dense checkpoint has for a name.
    pub reference: Option<&'a ShapeOf<'a>>,
}

impl fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("from_scheme", &self.from_scheme).finish_non_exhaustive()
    }
}

/// What a checkpoint's tensors are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detection {
    /// Of each tensor, in the order of [`Checkpoint::tensors`](crate::Checkpoint::tensors).
    pub roles: Vec<Role>,
    /// Groups of tensors that stand for a dense one, in the order of their codes.
    pub groups: Vec<Group>,
    /// The schemes of the groups, each once.
    pub schemes: Vec<Scheme>,
    /// What was decided that no file says, as sentences.
    pub choices: Vec<String>,
    /// What may be wrong, as sentences.
    pub warnings: Vec<String>,
    /// Statements that do not agree.
    pub findings: Vec<Finding>,
}

/// What a tensor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// What its header says. Integers are no weights and are copied.
    Plain,
    /// A part of a group.
    Part {
        /// The position of the group.
        group: usize,
        /// Which part.
        part: Part,
    },
    /// Not wanted in a dense checkpoint.
    Dropped(Dropped),
    /// Blocks of a GGUF file that are not decoded: bytes without values.
    Undecoded(Block),
}

/// Why a tensor is not wanted. Displays as the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dropped {
    /// Scales activations.
    ActivationScale,
    /// Scales keys or values in a cache.
    CacheScale,
    /// Says which scheme others are stored in.
    Marker,
    /// Says the shape of packed codes.
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

/// Tensors that stand for a dense one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The name of the dense tensor.
    pub name: Arc<str>,
    /// The module that it belongs to.
    pub module: String,
    /// How it is stored.
    pub scheme: Scheme,
    /// Its shape as it is read, row-major.
    pub shape: Arc<[u64]>,
    /// Its parts, by the positions of their tensors; the codes first.
    pub parts: Vec<(Part, usize)>,
    /// What the parts are together. Its matrices are the last two dimensions of `shape`.
    pub layout: Layout,
    /// The type that it had, if the checkpoint says so.
    pub original: Option<DType>,
}

impl Group {
    /// The position of the tensor of a part.
    pub fn tensor(&self, part: Part) -> Option<usize> {
        self.parts.iter().find(|(known, _)| *known == part).map(|(_, number)| *number)
    }
}
