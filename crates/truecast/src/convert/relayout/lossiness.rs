//! What blocks of NVFP4 do not hold of a tensor (`docs/spec/checkpoints.md §8`), as numbers and in words.

use crate::convert::relayout::Relaid;
use std::path::Path;
use truecast_io::{Escaped, counted};

/// Values that are not quite the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Loss {
    /// Zeros that had a sign.
    pub unsigned: u64,
    /// Values that differ in their last bits.
    pub rounded: u64,
}

impl Loss {
    /// Every value is the same.
    pub fn is_nothing(self) -> bool {
        self == Loss::default()
    }

    fn and(self, other: Loss) -> Loss {
        Loss { unsigned: self.unsigned + other.unsigned, rounded: self.rounded + other.rounded }
    }
}

impl std::fmt::Display for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let zeros = |f: &mut std::fmt::Formatter<'_>| match self.unsigned {
            1 => f.write_str("1 zero loses its sign"),
            n => write!(f, "{} lose their sign", counted(n, "zero")),
        };
        if self.unsigned > 0 {
            zeros(f)?;
        }
        if self.rounded > 0 {
            let joint = if self.unsigned > 0 { ", " } else { "" };
            let verb = if self.rounded == 1 { "differs" } else { "differ" };
            let values = counted(self.rounded, "value");
            write!(
                f,
                "{joint}{values} {verb} in the last bits of f32, as the second scale is multiplied by last there"
            )?;
        }
        Ok(())
    }
}

/// What is said of all tensors that lost something.
pub(crate) fn warning(src: &Path, relaid: &[Relaid]) -> Option<String> {
    let mut found = relaid.iter().filter(|relaid| !relaid.loss.is_nothing());
    let first = found.next()?;
    let (all, others) = found.fold((first.loss, 0), |(all, n), relaid| (all.and(relaid.loss), n + 1));
    let others = match others {
        0 => String::new(),
        n => format!(" and {}", counted(n, "other")),
    };
    Some(format!("{}: tensor {}{others}: {all}", src.display(), Escaped(&first.quantized.name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_in_words() {
        let words = |unsigned, rounded| Loss { unsigned, rounded }.to_string();
        let last = "in the last bits of f32, as the second scale is multiplied by last there";
        assert_eq!(words(1, 0), "1 zero loses its sign");
        assert_eq!(words(2, 1), format!("2 zeros lose their sign, 1 value differs {last}"));
        assert_eq!(words(0, 3), format!("3 values differ {last}"));
    }
}
