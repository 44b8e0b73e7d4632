//! Types of rows in [`crate::catalogue`], which list names and types of each scheme's tensors. The name of a
//! dequantized tensor is its logical name.

use truecast_core::DType;
use truecast_core::scaled::{Layout, Part, Planes};

use crate::declared::keys::Keys;
use crate::error::Error;
use crate::found::{Found, Piece};
use crate::scheme::{Family, Parameters};

/// Rule that derives a stored tensor's name from the logical name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// Appends to the logical name: `p.weight` becomes `p.weight_scale`.
    Append(&'static str),
    /// Replaces the last component, `weight`: `p.weight` becomes `p.scale`.
    Sibling(&'static str),
    /// Puts an underscore before the last component, and a suffix after it: `p.weight` becomes `p._weight_qdata`.
    Hidden(&'static str),
}

const WEIGHT: &str = "weight";

impl Name {
    pub(crate) fn stored(self, logical: &str) -> Option<String> {
        match self {
            Name::Append(end) => Some(format!("{logical}{end}")),
            Name::Sibling(last) => replaced(logical, WEIGHT, last),
            Name::Hidden(end) => {
                let (front, last) = split(logical);
                Some(format!("{front}_{last}_{end}"))
            }
        }
    }

    pub(crate) fn may_be(self, stored: &str) -> bool {
        let (Name::Append(end) | Name::Sibling(end) | Name::Hidden(end)) = self;
        stored.ends_with(end)
    }

    pub(crate) fn logical(self, stored: &str) -> Option<String> {
        match self {
            Name::Append(end) => stored.strip_suffix(end).filter(|front| !front.is_empty()).map(str::to_owned),
            Name::Sibling(last) => replaced(stored, last, WEIGHT),
            Name::Hidden(end) => {
                let (front, last) = split(stored);
                let last = last.strip_prefix('_')?.strip_suffix(end)?.strip_suffix('_')?;
                (!last.is_empty()).then(|| format!("{front}{last}"))
            }
        }
    }
}

/// Splits a name before its last component; the first part keeps the dot.
fn split(name: &str) -> (&str, &str) {
    name.split_at(name.rfind('.').map_or(0, |dot| dot + 1))
}

fn replaced(name: &str, old: &str, new: &str) -> Option<String> {
    let front = name.strip_suffix(old)?;
    (front.is_empty() || front.ends_with('.')).then(|| format!("{front}{new}"))
}

/// Whether every group of a scheme has the tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    Required,
    Optional,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) piece: Piece,
    pub(crate) names: &'static [Name],
    pub(crate) dtypes: &'static [DType],
    pub(crate) need: Need,
}

impl Row {
    pub(crate) const fn scales(names: &'static [Name], dtypes: &'static [DType]) -> Row {
        Row::required(Part::Scales, names, dtypes)
    }

    pub(crate) const fn factor(names: &'static [Name], dtypes: &'static [DType]) -> Row {
        Row { piece: Piece::Factor, names, dtypes, need: Need::Optional }
    }

    pub(crate) const fn required(part: Part, names: &'static [Name], dtypes: &'static [DType]) -> Row {
        Row { piece: Piece::Part(part), names, dtypes, need: Need::Required }
    }

    pub(crate) const fn optional(part: Part, names: &'static [Name], dtypes: &'static [DType]) -> Row {
        Row { piece: Piece::Part(part), names, dtypes, need: Need::Optional }
    }
}

/// Names that a scheme's codes may have. Each name has the types that it may have.
pub(crate) type Codes = &'static [(Name, &'static [DType])];

type Describe = fn(&Found<'_>) -> Result<Described, Error>;

/// `quant_method` that declares a scheme for every module, and the other keys allowed next to it.
pub(crate) type Method = (&'static str, &'static Keys);

/// Writing of matrices, for schemes without special names, shapes or constants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    /// Planes for a matrix of these rows and columns, or the reason why the matrix does not fit.
    pub(crate) planes: fn(&Parameters, [u64; 2]) -> Result<Planes, String>,
    /// Types in a file for codes and scales.
    pub(crate) types: [DType; 2],
}

/// One scheme: names of its tensors, description, and, if any, declaration and written form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) family: Family,
    pub(crate) codes: Codes,
    pub(crate) rows: &'static [Row],
    pub(crate) describe: Describe,
    pub(crate) method: Option<Method>,
    pub(crate) written: Option<Written>,
}

impl Entry {
    pub(crate) const fn new(family: Family, codes: Codes, rows: &'static [Row], describe: Describe) -> Entry {
        Entry { family, codes, rows, describe, method: None, written: None }
    }

    pub(crate) const fn method(self, name: &'static str, keys: &'static Keys) -> Entry {
        Entry { method: Some((name, keys)), ..self }
    }

    pub(crate) const fn written(self, written: Written) -> Entry {
        Entry { written: Some(written), ..self }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Described {
    /// Shape when read, row-major.
    pub(crate) shape: Vec<u64>,
    pub(crate) layout: Layout,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_there_and_back() {
        for (name, stored) in [
            (Name::Append("_scale_inv"), "a.weight_scale_inv"),
            (Name::Append(""), "a.weight"),
            (Name::Sibling("scale"), "a.scale"),
            (Name::Hidden("qdata"), "a._weight_qdata"),
        ] {
            assert_eq!(name.stored("a.weight").as_deref(), Some(stored));
            assert_eq!(name.logical(stored).as_deref(), Some("a.weight"));
        }
        assert_eq!(Name::Sibling("scale").logical("scale").as_deref(), Some("weight"));
        assert_eq!(Name::Sibling("scale").logical("logit_scale"), None);
        assert_eq!(Name::Sibling("scale").stored("a.gate_up_proj"), None);
        assert_eq!(Name::Append("_scale").logical("_scale"), None);
    }
}
