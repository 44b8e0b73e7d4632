//! Assigns each tensor to at most one group.

use truecast_core::exact::decode_float;
use truecast_core::scaled::{Book, GlobalRule, Layout, Part};
use truecast_core::{DType, Ecosystem, Exact, Kind};
use truecast_io::Tensor;

use crate::catalogue;
use crate::checkpoint::{Checkpoint, Index, MAX_READ_BYTES, ReadTensor};
use crate::detection::{Dropped, Group, Options, Role};
use crate::error::Error;
use crate::finding::{Effect, Finding};
use crate::found::{Found, Nibbles, Piece, Setting};
use crate::modules::module_of;
use crate::scheme::Family;
use crate::table::{Described, Entry, Name, Need};

/// Limit on the bytes of all zero points that are read (§5.7).
const MAX_ZERO_POINT_BYTES: u64 = 4 << 20;
const MAX_DIMENSIONS: usize = 64;

pub(super) struct Claims<'a> {
    pub(super) index: Index<'a>,
    pub(super) options: &'a Options<'a>,
    pub(super) groups: Vec<Group>,
    pub(super) choices: Vec<String>,
    pub(super) warnings: Vec<String>,
    pub(super) findings: Vec<Finding>,
    pub(super) unread: u64,
    roles: Vec<Option<Role>>,
    pub(super) read: ReadTensor<'a>,
}

/// Tensors that can form a group, before assignment. Another group may already own some.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) group: Group,
    others: Vec<(Piece, usize)>,
}

impl<'a> Claims<'a> {
    pub(super) fn new(
        checkpoint: Checkpoint<'a>,
        read: ReadTensor<'a>,
        options: &'a Options<'a>,
    ) -> Result<Claims<'a>, Error> {
        let index = Index::new(checkpoint)?;
        let roles = vec![None; index.len()];
        let (groups, choices, warnings, findings) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Ok(Claims { index, options, groups, choices, warnings, findings, unread: MAX_ZERO_POINT_BYTES, roles, read })
    }

    pub(super) fn is_claimed(&self, number: usize) -> bool {
        self.roles[number].is_some()
    }

    pub(super) fn read(&mut self, number: usize) -> Result<Vec<u8>, Error> {
        let tensor = self.index.tensor(number);
        if tensor.bytes() > MAX_READ_BYTES {
            return Err(Error::TooLargeToRead { tensor: tensor.name.to_string(), bytes: tensor.bytes() });
        }
        Ok((self.read)(number)?)
    }

    /// Adds a contradiction to the findings.
    ///
    /// # Errors
    /// A contradiction that affects values, unless the options list all contradictions.
    pub(super) fn report(&mut self, finding: Finding) -> Result<(), Error> {
        if finding.check.effect() == Effect::Refused && !self.options.lists {
            return Err(Error::Inconsistent(Box::new(finding)));
        }
        self.findings.push(finding);
        Ok(())
    }

    pub(super) fn drop(&mut self, number: usize, reason: Dropped) {
        self.roles[number] = Some(Role::Dropped(reason));
    }

    pub(super) fn into_parts(self) -> (Vec<Role>, Vec<Group>, Vec<String>, Vec<String>) {
        let roles = self.roles.into_iter().map(|role| role.unwrap_or(Role::Plain)).collect();
        (roles, self.groups, self.choices, self.warnings)
    }

    /// Name of the group whose codes the tensor may be.
    ///
    /// A tensor with the logical name itself needs the required tensors next to it, unless the name ends in `weight`.
    pub(super) fn logical(&self, entry: &Entry, tensor: &Tensor) -> Option<String> {
        let known = entry.codes.iter().filter(|(_, dtypes)| dtypes.contains(&tensor.dtype));
        let mut names = known.filter_map(|(name, _)| Some((*name, name.logical(&tensor.name)?)));
        names
            .find(|(name, logical)| {
                let is_weight = logical == "weight" || logical.ends_with(".weight");
                let required = || entry.rows.iter().filter(|row| row.need == Need::Required);
                let is_there = |names: &[Name]| {
                    names.iter().any(|name| name.stored(logical).is_some_and(|n| self.index.find(&n).is_some()))
                };
                *name != Name::Append("") || is_weight || required().all(|row| is_there(row.names))
            })
            .map(|(_, logical)| logical)
    }

    /// Describes the group with this setting and codes. The error says why the tensors do not form the group.
    pub(super) fn attempt(&mut self, setting: &Setting, name: &str, codes: usize) -> Result<Claim, Error> {
        let entry = catalogue::entry(setting.scheme.family).expect("groups have schemes with entries");
        let pieces = self.gather(entry, setting, name, codes)?;
        let shape = pieces.iter().find(|(piece, _)| *piece == Piece::Shape);
        let stated = shape.map(|&(_, number)| self.stated(number)).transpose()?;
        let found = Found {
            index: &self.index,
            name,
            setting,
            codes,
            pieces: &pieces,
            stated,
            reference: self.options.reference.and_then(|reference| reference(name)),
            nibbles: self.nibbles(),
        };
        let Described { shape, layout } = (entry.describe)(&found)?;
        self.check(name, codes, &pieces, &layout)?;
        let parts = pieces.iter().filter_map(|&(piece, number)| match piece {
            Piece::Part(part) => Some((part, number)),
            _ => None,
        });
        let group = Group {
            name: name.to_owned().into(),
            module: module_of(name).to_owned(),
            scheme: setting.scheme,
            shape: shape.into(),
            parts: [(Part::Codes, codes)].into_iter().chain(parts).collect(),
            layout,
            original: setting.torchao.as_ref().and_then(|torchao| torchao.original),
        };
        let others = pieces.into_iter().filter(|(piece, _)| !matches!(piece, Piece::Part(_))).collect();
        Ok(Claim { group, others })
    }

    /// Finds the tensors next to the codes, and checks their types.
    fn gather(&self, entry: &Entry, setting: &Setting, name: &str, codes: usize) -> Result<Vec<(Piece, usize)>, Error> {
        let mut pieces = Vec::new();
        for row in entry.rows {
            let mut names = row.names.iter().filter_map(|rule| rule.stored(name));
            let Some(number) = names.find_map(|name| self.index.find(&name)) else {
                let is_declared = setting.parts.iter().any(|part| row.piece == Piece::Part(*part));
                if row.need == Need::Required || is_declared {
                    let expected = row.names.iter().find_map(|rule| rule.stored(name)).unwrap_or_default();
                    let codes = self.index.tensor(codes).name.clone();
                    let scheme = Box::new(setting.scheme);
                    return Err(Error::Missing { codes: codes.to_string(), part: row.piece.name(), scheme, expected });
                }
                continue;
            };
            let tensor = self.index.tensor(number);
            if !row.dtypes.contains(&tensor.dtype) {
                return Err(Error::Type {
                    tensor: tensor.name.to_string(),
                    scheme: Box::new(setting.scheme),
                    part: row.piece.name(),
                    found: tensor.dtype,
                    expected: row.dtypes.to_vec(),
                });
            }
            pieces.push((row.piece, number));
        }
        Ok(pieces)
    }

    /// Checks the layout, and the byte counts of the parts against the layout.
    fn check(&self, name: &str, codes: usize, pieces: &[(Piece, usize)], layout: &Layout) -> Result<(), Error> {
        let refused = |cause: String| Error::Layout { tensor: name.to_owned(), cause };
        layout.check().map_err(|cause| refused(cause.to_string()))?;
        for part in Part::ALL {
            let expected = layout.part_bytes(part).map_err(|cause| refused(cause.to_string()))?.unwrap_or(0);
            let number = match part {
                Part::Codes => Some(codes),
                _ => pieces.iter().find(|(piece, _)| *piece == Piece::Part(part)).map(|(_, number)| *number),
            };
            let bytes = number.map_or(0, |number| self.index.tensor(number).bytes());
            if bytes != expected {
                let tensor = number.map_or(name, |number| &self.index.tensor(number).name);
                let part = part.name();
                let cause = format!("{bytes} bytes of {part}, expected {expected} ({})", truecast_io::Escaped(tensor));
                return Err(refused(cause));
            }
        }
        Ok(())
    }

    pub(super) fn commit(&mut self, claim: Claim) -> Result<(), Error> {
        let Claim { group, others } = claim;
        let number = self.groups.len();
        for &(part, tensor) in &group.parts {
            self.take(tensor, Role::Part { group: number, part }, &group)?;
        }
        for (piece, tensor) in others {
            let reason = match piece {
                Piece::Factor => {
                    self.check_ones(tensor)?;
                    Dropped::Ones
                }
                Piece::Values(book) => {
                    let known = book.and_then(Book::values).map(|all| all.map(f32::from_bits));
                    self.check_numbers(tensor, known.as_ref().map_or(&[0.0], |all| all))?;
                    Dropped::Marker
                }
                Piece::Shape | Piece::Part(_) => Dropped::Shape,
            };
            self.take(tensor, Role::Dropped(reason), &group)?;
        }
        if !(self.options.trust_scales || self.options.header_alone) {
            self.guard(&group)?;
        }
        self.groups.push(group);
        Ok(())
    }

    fn take(&mut self, tensor: usize, role: Role, group: &Group) -> Result<(), Error> {
        if let Some(taken) = self.roles[tensor] {
            let first = match taken {
                Role::Part { group: first, .. } => self.groups.get(first).unwrap_or(group),
                _ => group,
            };
            let codes = |group: &Group| self.index.tensor(group.parts[0].1).name.clone();
            let tensor = self.index.tensor(tensor).name.clone();
            return Err(Error::Twice {
                tensor: tensor.to_string(),
                first: codes(first).to_string(),
                second: codes(group).to_string(),
            });
        }
        self.roles[tensor] = Some(role);
        Ok(())
    }

    fn stated(&mut self, number: usize) -> Result<Vec<u64>, Error> {
        let bytes = self.read(number)?;
        let tensor = self.index.tensor(number);
        let numbers: Vec<i64> = match tensor.dtype {
            DType::I32 => bytes.as_chunks().0.iter().map(|entry| i32::from_le_bytes(*entry).into()).collect(),
            _ => bytes.as_chunks().0.iter().map(|entry| i64::from_le_bytes(*entry)).collect(),
        };
        let wrong = || Error::Content {
            tensor: tensor.name.to_string(),
            found: format!("{numbers:?}"),
            expected: "a shape".to_owned(),
        };
        let shape: Option<Vec<u64>> = numbers.iter().map(|n| u64::try_from(*n).ok()).collect();
        let fits = |shape: &Vec<u64>| {
            let product = shape.iter().try_fold(1u64, |product, n| product.checked_mul((*n).max(1)));
            (2..=MAX_DIMENSIONS).contains(&shape.len()) && product.is_some_and(|product| product < 1 << 60)
        };
        shape.filter(fits).ok_or_else(wrong)
    }

    /// Tells which nibble of a byte comes first in ComfyUI's NVFP4 (§5.4).
    pub(super) fn nibbles(&self) -> Nibbles {
        let is_modelopt = self.index.checkpoint.metadata.iter().any(|shard| shard.contains_key("quantization_config"));
        let assumed = if is_modelopt { Nibbles::Low } else { Nibbles::High };
        self.options.nibbles.unwrap_or(assumed)
    }

    /// Rejects a global scale whose value suggests the opposite rule, such as a divisor read as a multiplier
    /// (§4.5.1).
    fn guard(&mut self, group: &Group) -> Result<(), Error> {
        let rule = group.layout.planes().and_then(|planes| planes.global).map(|global| global.rule);
        let (Some(rule), Some(number)) = (rule, group.tensor(Part::Global)) else { return Ok(()) };
        let (is_likely, why): (fn(f32) -> bool, _) = match rule {
            GlobalRule::Times => {
                (|value| value < 1.0, "implies weights above 2688 if the scale multiplies, so it may be a divisor")
            }
            GlobalRule::Divide => {
                (|value| value >= 1.0, "implies weights above 2688 if the scale divides, so it may be a multiplier")
            }
            GlobalRule::Amax | GlobalRule::TimesPlus(_) => return Ok(()),
        };
        let bytes = self.read(number)?;
        let mut values = bytes.as_chunks().0.iter().map(|entry| f32::from_le_bytes(*entry));
        match values.find(|value| !is_likely(*value)) {
            Some(value) => Err(Error::Guard { tensor: self.index.tensor(number).name.to_string(), value, why }),
            None => Ok(()),
        }
    }

    pub(super) fn check_ones(&mut self, number: usize) -> Result<(), Error> {
        let tensor = self.index.tensor(number);
        let name = tensor.name.clone();
        let is_factor = name.ends_with("pre_quant_scale") || name.ends_with("act_pre_scale");
        let (what, why) = if is_factor {
            (
                "a factor in addition to the weight",
                "it belongs to the activation, and the dequantized weight would be different",
            )
        } else {
            ("a tensor that changes the weight", "the scheme has no place for it")
        };
        let place = format!("tensor {}", truecast_io::Escaped(&name));
        let refused = Error::Refused { place, what: what.to_owned(), why };
        let Kind::Float(format) = tensor.dtype.kind() else { return Err(refused) };
        let size = (tensor.dtype.code_bits() / 8) as usize;
        let bytes = self.read(number)?;
        let one = Exact::Finite { neg: false, sig: 1, exp: 0, sticky: false };
        let is_one = |entry: &[u8]| {
            let code = entry.iter().rev().fold(0, |code, byte| code << 8 | u64::from(*byte));
            same(decode_float(&format, code), one)
        };
        if is_factor && bytes.chunks_exact(size.max(1)).all(is_one) { Ok(()) } else { Err(refused) }
    }

    fn check_numbers(&mut self, number: usize, expected: &[f32]) -> Result<(), Error> {
        let bytes = self.read(number)?;
        let tensor = self.index.tensor(number);
        let found: Vec<f32> = match tensor.dtype {
            DType::F32 => bytes.as_chunks().0.iter().map(|entry| f32::from_le_bytes(*entry)).collect(),
            _ => bytes.iter().map(|byte| f32::from(*byte)).collect(),
        };
        let (shown, expected) = match found.iter().zip(expected).find(|(found, expected)| found != expected) {
            None if found.len() == expected.len() => return Ok(()),
            None => (format!("{} numbers", found.len()), expected.len().to_string()),
            Some((found, expected)) => (format!("the number {found:?}"), format!("{expected:?}")),
        };
        Err(Error::Content { tensor: tensor.name.to_string(), found: shown, expected })
    }

    pub(super) fn claim(&mut self, setting: &Setting, name: &str, codes: usize) -> Result<(), Error> {
        let claim = self.attempt(setting, name, codes)?;
        self.commit(claim)
    }

    pub(super) fn set_original(&mut self, torch: Option<&str>) {
        let known = torch.and_then(|name| DType::parse_in(Ecosystem::Torch, name.trim_start_matches("torch.")).ok());
        if let Some(group) = self.groups.last_mut() {
            group.original = group.original.or(known);
        }
    }

    pub(super) fn count(&self, family: Family) -> usize {
        self.groups.iter().filter(|group| group.scheme.family == family).count()
    }
}

fn same(a: Exact, b: Exact) -> bool {
    match (a, b) {
        (Exact::Finite { neg, sig, exp, .. }, Exact::Finite { neg: n, sig: s, exp: e, .. }) => {
            let least = exp.min(e);
            let at = |sig: u64, exp: i32| u128::from(sig).checked_shl((exp - least) as u32);
            neg == n && exp.abs_diff(e) < 64 && at(sig, exp) == at(s, e)
        }
        _ => false,
    }
}
