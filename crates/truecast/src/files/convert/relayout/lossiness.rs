//! What blocks of NVFP4 do not hold of a tensor (`docs/spec/checkpoints.md §8`), as numbers and in words.

use crate::files::convert::error::of_others;
use crate::files::convert::relayout::Relaid;
use std::fmt;
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

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let zeros = |f: &mut fmt::Formatter<'_>| match self.unsigned {
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
                "{joint}{values} {verb} in the last bits of f32, because the target multiplies by the global scale last"
            )?;
        }
        Ok(())
    }
}

/// What a user should know of codes and scales that are carried over.
pub(crate) fn warnings(src: &Path, relaid: &[Relaid]) -> Vec<String> {
    let told = |is_such: fn(&Relaid) -> bool, what: &dyn fmt::Display| {
        let mut found = relaid.iter().filter(|relaid| is_such(relaid));
        let (first, others) = (found.next()?, of_others(found.count() as u64));
        let (path, name) = (src.display(), Escaped(&first.quantized.name));
        Some(format!("{path}: tensor {name}{others}: {what}"))
    };
    let all = relaid.iter().fold(Loss::default(), |all, relaid| all.and(relaid.loss));
    let rounded = told(|relaid| relaid.is_rounded, &"the global scale is rounded to f32");
    rounded.into_iter().chain(told(|relaid| !relaid.loss.is_nothing(), &all)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_in_words() {
        let words = |unsigned, rounded| Loss { unsigned, rounded }.to_string();
        let last = "in the last bits of f32, because the target multiplies by the global scale last";
        assert_eq!(words(1, 0), "1 zero loses its sign");
        assert_eq!(words(2, 1), format!("2 zeros lose their sign, 1 value differs {last}"));
        assert_eq!(words(0, 3), format!("3 values differ {last}"));
    }
}
