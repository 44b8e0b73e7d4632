//! What the tensors of a scheme are called: rows of data that the schemes of [`crate::catalogue`] fill in.
//!
//! A group of tensors is known by the name of the dense tensor that it stands for, its logical name.

use truecast_core::DType;
use truecast_core::scaled::{Layout, Part, Planes};

use crate::declared::keys::Keys;
use crate::error::Error;
use crate::found::{Found, Piece};
use crate::scheme::{Family, Parameters};

/// How a stored tensor's name follows from the logical name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// The logical name and this: `p.weight` and `_scale` are `p.weight_scale`.
    Append(&'static str),
    /// This in place of the last component, which is `weight`: `p.weight` becomes `p.scale`.
    Sibling(&'static str),
    /// The last component hidden by an underscore, and this: `p.weight` becomes `p._weight_qdata`.
    Hidden(&'static str),
}

/// The last component of the logical names that [`Name::Sibling`] replaces.
const WEIGHT: &str = "weight";

impl Name {
    /// The stored name.
    pub(crate) fn of(self, logical: &str) -> Option<String> {
        match self {
            Name::Append(end) => Some(format!("{logical}{end}")),
            Name::Sibling(last) => replaced(logical, WEIGHT, last),
            Name::Hidden(end) => {
                let (front, last) = split(logical);
                Some(format!("{front}_{last}_{end}"))
            }
        }
    }

    /// Whether a stored name ends as it has to.
    pub(crate) fn may_be(self, stored: &str) -> bool {
        let (Name::Append(end) | Name::Sibling(end) | Name::Hidden(end)) = self;
        stored.ends_with(end)
    }

    /// The logical name.
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

/// A name as what precedes its last component, with the dot, and that.
fn split(name: &str) -> (&str, &str) {
    name.split_at(name.rfind('.').map_or(0, |dot| dot + 1))
}

/// `a.old` as `a.new`.
fn replaced(name: &str, old: &str, new: &str) -> Option<String> {
    let front = name.strip_suffix(old)?;
    (front.is_empty() || front.ends_with('.')).then(|| format!("{front}{new}"))
}

/// Whether a group may lack a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    Required,
    Optional,
}

/// A tensor beside the codes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) piece: Piece,
    /// What it may be called; the first that exists is it.
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

/// Names and types of a tensor of codes.
pub(crate) type Codes = &'static [(Name, &'static [DType])];

/// What the tensors of a group are together.
type Describe = fn(&Found<'_>) -> Result<Described, Error>;

/// The `quant_method` that declares a scheme for every module, and the keys beside it, none of which says more of the weights.
pub(crate) type Method = (&'static str, &'static Keys);

/// How matrices of dense tensors are stored, of schemes without names, shapes or constants of their own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    /// Of a matrix of these rows and columns; or why it does not fit.
    pub(crate) planes: fn(&Parameters, [u64; 2]) -> Result<Planes, String>,
    /// The types of codes and scales in a file.
    pub(crate) types: [DType; 2],
}

/// A scheme's tensors, and what they are together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) family: Family,
    pub(crate) codes: Codes,
    /// The tensors beside the codes.
    pub(crate) rows: &'static [Row],
    /// The logical tensor.
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

/// A logical tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Described {
    /// As it is read, row-major.
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
            assert_eq!(name.of("a.weight").as_deref(), Some(stored));
            assert_eq!(name.logical(stored).as_deref(), Some("a.weight"));
        }
        assert_eq!(Name::Sibling("scale").logical("scale").as_deref(), Some("weight"));
        assert_eq!(Name::Sibling("scale").logical("logit_scale"), None);
        assert_eq!(Name::Sibling("scale").of("a.gate_up_proj"), None);
        assert_eq!(Name::Append("_scale").logical("_scale"), None);
    }
}
