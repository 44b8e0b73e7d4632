//! Memory accesses of each kind of CPU (`docs/kernels.md §8`): whether stores past the caches are faster, and the number
//! of bytes between a load and the prefetched line.

use super::{AHEAD, prefetch, prefetch_l2};
use std::arch::x86_64::{__cpuid, CpuidResult};
use std::sync::OnceLock;

/// Distances in bytes between a load and the lines that are prefetched to L1 and to L2. A distance of 0 prefetches
/// nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ahead {
    l1: usize,
    l2: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cpu {
    /// Whether large results are stored past the caches.
    stores_past_caches: bool,
    /// Distances while results stay in the caches.
    plain: Ahead,
    /// Distances while results go past the caches, one whole line in each iteration.
    past_caches_by_lines: Ahead,
    /// Distances while results go past the caches, and several stores fill a line.
    past_caches_by_parts: Ahead,
}

const USUAL: Cpu = Cpu {
    stores_past_caches: true,
    plain: Ahead::USUAL,
    past_caches_by_lines: Ahead::USUAL,
    past_caches_by_parts: Ahead::NOTHING,
};

const INTEL: Cpu = Cpu { past_caches_by_lines: Ahead::BY_L2, past_caches_by_parts: Ahead::BY_L2, ..USUAL };

/// Vendor, family, model unless the whole family is meant, and accesses of the CPUs that are not [`USUAL`].
const CPUS: &[(&[u8; 12], u32, Option<u32>, Cpu)] = &[
    // Family of Zen 3 and Zen 4. Results that go past the caches lose a fifth of the speed to any prefetch.
    (
        b"AuthenticAMD",
        0x19,
        None,
        Cpu {
            plain: Ahead::NOTHING,
            past_caches_by_lines: Ahead::NOTHING,
            past_caches_by_parts: Ahead::NOTHING,
            ..USUAL
        },
    ),
    // Skylake-SP and Cascade Lake. A core has few buffers for lines on their way past the caches.
    (b"GenuineIntel", 6, Some(0x55), Cpu { stores_past_caches: false, ..INTEL }),
    // L1 can wait for few lines at a time, and results on their way to memory count among these. L2 can wait for many
    // lines, but the CPU's own prefetches to L2 end with a page.
    (b"GenuineIntel", 6, None, INTEL),
];

/// Whether large results are stored past the caches on this CPU.
pub(crate) fn stores_past_caches() -> bool {
    Cpu::this().stores_past_caches
}

impl Ahead {
    const NOTHING: Ahead = Ahead { l1: 0, l2: 0 };
    const USUAL: Ahead = Ahead { l1: AHEAD, l2: 0 };
    const BY_L2: Ahead = Ahead { l1: 1024, l2: 6144 };

    pub fn plain() -> Ahead {
        Cpu::this().plain
    }

    pub fn past_caches_by_lines() -> Ahead {
        Cpu::this().past_caches_by_lines
    }

    pub fn past_caches_by_parts() -> Ahead {
        Cpu::this().past_caches_by_parts
    }

    /// Returns the distances for a pass that only moves bytes. Such a pass gains from prefetches on every CPU.
    pub fn of_plain_passes() -> Ahead {
        match Ahead::past_caches_by_lines() {
            Ahead::NOTHING => Ahead::USUAL,
            ahead => ahead,
        }
    }

    /// Prefetches `bytes` bytes at the distances from `source`, to L1 and to L2.
    #[inline(always)]
    pub fn prefetch<T>(self, source: &[T], bytes: usize) {
        self.each_line(source, bytes, |line| {
            prefetch(line.wrapping_add(self.l1));
            if self.l2 != 0 {
                prefetch_l2(line.wrapping_add(self.l2));
            }
        });
    }

    /// Prefetches `bytes` bytes at the distance from `source`, to L1 only.
    #[inline(always)]
    pub fn prefetch_l1<T>(self, source: &[T], bytes: usize) {
        self.each_line(source, bytes, |line| prefetch(line.wrapping_add(self.l1)));
    }

    #[inline(always)]
    fn each_line<T>(self, source: &[T], bytes: usize, prefetch_line: impl Fn(*const u8)) {
        if self.l1 == 0 {
            return;
        }
        let mut line = 0;
        while line < bytes {
            prefetch_line(source.as_ptr().cast::<u8>().wrapping_add(line));
            line += 64;
        }
    }
}

impl Cpu {
    fn this() -> Cpu {
        static THIS: OnceLock<Cpu> = OnceLock::new();
        *THIS.get_or_init(|| {
            let CpuidResult { ebx, ecx, edx, .. } = __cpuid(0);
            Cpu::of(&[ebx, edx, ecx], __cpuid(1).eax)
        })
    }

    /// Finds a CPU by the vendor and the signature from `cpuid`.
    fn of(vendor: &[u32; 3], signature: u32) -> Cpu {
        let family = (signature >> 8 & 0xf) + if signature >> 8 & 0xf == 0xf { signature >> 20 & 0xff } else { 0 };
        let model = signature >> 4 & 0xf | signature >> 12 & 0xf0;
        let name = vendor.map(u32::to_le_bytes);
        let found = CPUS.iter().find(|(vendor, of_family, of_model, _)| {
            vendor[..] == *name.as_flattened() && *of_family == family && of_model.is_none_or(|of| of == model)
        });
        found.map_or(USUAL, |&(.., cpu)| cpu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The signatures belong to an EPYC 9004 (Zen 4), an EPYC 9005 (Zen 5), a Sapphire Rapids, a Cascade Lake and a CPU
    /// of another maker.
    #[test]
    fn cpus_are_told_by_vendor_family_and_model() {
        let words = |name: &[u8; 12]| [0, 1, 2].map(|i| u32::from_le_bytes(name.as_chunks().0[i]));
        let (amd, intel) = (words(b"AuthenticAMD"), words(b"GenuineIntel"));
        assert_eq!(Cpu::of(&amd, 0x00a1_0f11).past_caches_by_lines, Ahead::NOTHING);
        assert_eq!(Cpu::of(&amd, 0x00b0_0f21), USUAL);
        assert_eq!(Cpu::of(&intel, 0x0008_06f8), INTEL);
        assert!(!Cpu::of(&intel, 0x0005_0657).stores_past_caches);
        assert_eq!(Cpu::of(&words(b"CentaurHauls"), 0x0008_06f8), USUAL);
    }
}
