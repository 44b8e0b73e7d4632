//! How far ahead of its use a source is asked for: what differs by CPU (`docs/kernels.md §8`).

use super::{AHEAD, prefetch};
use std::arch::x86_64::{__cpuid, CpuidResult};
use std::sync::OnceLock;

/// Bytes between what is read and what is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ahead(usize);

/// CPUs, by vendor and family, that do best without: while results go past the caches, whatever is asked for in advance
/// takes a fifth of the speed out of cache. Others are asked for [`AHEAD`].
const NOTHING_AHEAD: &[(&[u8; 12], u32)] = &[
    // Zen 4; Zen 3 has the same family.
    (b"AuthenticAMD", 0x19),
];

impl Ahead {
    pub const NOTHING: Ahead = Ahead(0);

    /// That of this CPU, which is asked once.
    pub fn of_this_cpu() -> Ahead {
        static AHEAD_OF_THIS_CPU: OnceLock<Ahead> = OnceLock::new();
        *AHEAD_OF_THIS_CPU.get_or_init(|| {
            let CpuidResult { ebx, ecx, edx, .. } = __cpuid(0);
            Ahead::of(&[ebx, edx, ecx], __cpuid(1).eax)
        })
    }

    /// For a CPU's vendor and signature, as it gives them.
    fn of(vendor: &[u32; 3], signature: u32) -> Ahead {
        let family = (signature >> 8 & 0xf) + if signature >> 8 & 0xf == 0xf { signature >> 20 & 0xff } else { 0 };
        let name = vendor.map(u32::to_le_bytes);
        let nothing = NOTHING_AHEAD.iter().any(|(of, best)| of[..] == *name.as_flattened() && *best == family);
        if nothing { Ahead::NOTHING } else { Ahead(AHEAD) }
    }

    /// Asks for as many lines as are read from here.
    #[inline(always)]
    pub fn ask(self, source: &[u8], bytes: usize) {
        if self.0 == 0 {
            return;
        }
        let mut line = 0;
        while line < bytes {
            prefetch(source.as_ptr().wrapping_add(self.0 + line));
            line += 64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Signatures of an EPYC 9004 (Zen 4), an EPYC 9005 (Zen 5) and a Sapphire Rapids.
    #[test]
    fn zen_4_alone_asks_for_nothing() {
        let words = |name: &[u8; 12]| [0, 1, 2].map(|i| u32::from_le_bytes(name.as_chunks().0[i]));
        let (amd, intel) = (words(b"AuthenticAMD"), words(b"GenuineIntel"));
        assert_eq!(Ahead::of(&amd, 0x00a1_0f11), Ahead(0));
        assert_eq!(Ahead::of(&amd, 0x00b0_0f21), Ahead(AHEAD));
        assert_eq!(Ahead::of(&intel, 0x0008_06f8), Ahead(AHEAD));
    }
}
