//! Description of a new file, and checks of the format's limits.

use std::path::Path;
use std::sync::Arc;

use foldhash::{HashSet, HashSetExt};

use super::{Block, Keys};
use crate::error::Error;
use crate::error::denied::DeniedTensor;
use crate::error::gguf::{MAX_ENTRIES, MAX_NAME_BYTES, MAX_RANK};
use crate::tensor::{Tensor, checked_len};

/// A tensor of a new file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTensor {
    /// Name.
    pub name: Arc<str>,
    /// Block type.
    pub block: Block,
    /// Dimensions in elements, row-major.
    pub shape: Arc<[u64]>,
}

impl NewTensor {
    /// Bytes of all blocks; saturates at `u64::MAX`, which no writable tensor reaches.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let elements = checked_len(&self.shape).unwrap_or(u64::MAX);
        (elements / self.block.elements()).saturating_mul(self.block.bytes())
    }

    /// Entry for the tensor in a container. Blocks of several elements become rows of `u8` bytes.
    #[must_use]
    pub fn listed(&self) -> Tensor {
        self.block.listed(&self.name, &self.shape)
    }

    fn refusal(&self) -> Option<DeniedTensor> {
        let columns = self.shape.last().copied().unwrap_or(1);
        if self.name.len() as u64 > MAX_NAME_BYTES {
            return Some(DeniedTensor::NameTooLong { bytes: self.name.len() });
        }
        if self.shape.len() > MAX_RANK {
            return Some(DeniedTensor::RankOfGguf { rank: self.shape.len(), most: MAX_RANK });
        }
        let block = self.block.elements();
        if !columns.is_multiple_of(block) {
            return Some(DeniedTensor::PartialBlock { columns, block });
        }
        if checked_len(&self.shape).is_none() {
            return Some(DeniedTensor::ShapeTooBig);
        }
        (self.bytes() >= 1 << 60).then_some(DeniedTensor::ShapeTooBig)
    }
}

/// A new file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFile {
    /// Keys.
    pub keys: Keys,
    /// Tensors in data order.
    pub tensors: Vec<NewTensor>,
}

impl NewFile {
    /// Checks that readers will accept the file; `path` is for errors.
    ///
    /// # Errors
    /// [`Error::Refused`] for a tensor that the format cannot hold.
    pub fn check(&self, path: &Path) -> Result<(), Error> {
        let mut names = HashSet::new();
        let mut total = 0u64;
        for (number, tensor) in self.tensors.iter().enumerate() {
            let mut cause = tensor.refusal();
            if !names.insert(&tensor.name) {
                cause = Some(DeniedTensor::DuplicateName);
            }
            total = total.saturating_add(tensor.bytes());
            if total >= 1 << 60 {
                cause = cause.or(Some(DeniedTensor::ShapeTooBig));
            }
            if number as u64 >= MAX_ENTRIES {
                cause = Some(DeniedTensor::TooMany { most: MAX_ENTRIES });
            }
            if let Some(cause) = cause {
                return Err(Error::Refused { path: path.into(), tensor: tensor.name.to_string(), cause });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gguf::Header;

    fn new(tensors: &[(&str, Block, &[u64])]) -> NewFile {
        let tensor = |(name, block, shape): &(&str, Block, &[u64])| NewTensor {
            name: (*name).into(),
            block: *block,
            shape: (*shape).into(),
        };
        NewFile { keys: Keys::new(), tensors: tensors.iter().map(tensor).collect() }
    }

    #[test]
    fn headers_are_read_as_they_were_meant() {
        let [f32, q8] = [0, 8].map(|id| Block::of_id(id).unwrap());
        let mut file =
            new(&[("a", f32, &[3]), ("a\u{7}\u{1f600}", q8, &[2, 3, 64]), ("", f32, &[]), ("e", f32, &[0, 5])]);
        file.keys.set("general.name", "x\ny");
        file.keys.set("n", &7u32);
        file.check(Path::new("a.gguf")).unwrap();
        let head = file.keys.header(&file.tensors);
        assert_eq!(head.len() % 32, 0);
        let bytes = [&head[..], &[0; 32 + 416 + 32]].concat();
        let read = Header::parse(&bytes).unwrap();
        let found: Vec<_> = read.tensors.iter().map(|t| (&*t.name, t.block, &t.shape[..], t.offset)).collect();
        let data = head.len() as u64;
        let expected = [
            ("a", f32, &[3][..], data),
            ("a\u{7}\u{1f600}", q8, &[2, 3, 64], data + 32),
            ("", f32, &[], data + 32 + 416),
            ("e", f32, &[0, 5], data + 32 + 416 + 32),
        ];
        assert_eq!(found, expected);
        assert_eq!(read.data_start, data);
    }

    #[test]
    fn what_no_reader_takes_is_refused() {
        let f32 = Block::of_id(0).unwrap();
        let refused = |file: NewFile| match file.check(Path::new("a.gguf")) {
            Err(Error::Refused { cause, .. }) => cause,
            other => panic!("{other:?}"),
        };
        assert_eq!(refused(new(&[("a", f32, &[1; 9])])), DeniedTensor::RankOfGguf { rank: 9, most: 8 });
        assert_eq!(refused(new(&[("a", f32, &[1]), ("a", f32, &[2])])), DeniedTensor::DuplicateName);
        assert_eq!(refused(new(&[("a", f32, &[1 << 40, 1 << 40])])), DeniedTensor::ShapeTooBig);
        assert_eq!(refused(new(&[("a", f32, &[1 << 57]), ("b", f32, &[1 << 57])])), DeniedTensor::ShapeTooBig);
        assert_eq!(
            refused(new(&[("a", Block::of_id(8).unwrap(), &[33])])),
            DeniedTensor::PartialBlock { columns: 33, block: 32 }
        );
        let long = "x".repeat(65_536);
        assert_eq!(refused(new(&[(&long, f32, &[1])])), DeniedTensor::NameTooLong { bytes: 65_536 });
    }
}
