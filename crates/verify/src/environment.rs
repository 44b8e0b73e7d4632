//! The control register of the floating-point unit: the only unsafe code of this crate.
//!
//! A process may run with FTZ and DAZ set because some library was linked with fast-math start-up code; results must
//! not change (`docs/kernels.md §5`).
#![allow(unsafe_code)]

/// Runs `f` with FTZ and DAZ set, and restores the environment after, also if `f` panics. `None` where that is not
/// possible: on other architectures.
///
/// # Panics
/// If setting them had no effect, since a check would then prove nothing.
#[cfg(target_arch = "x86_64")]
pub fn flushing<T>(f: impl FnOnce() -> T) -> Option<T> {
    use std::hint::black_box;
    const FTZ_AND_DAZ: u32 = 0x8040;
    struct Restore(u32);
    impl Drop for Restore {
        fn drop(&mut self) {
            mxcsr::load(self.0);
        }
    }
    let restore = Restore(mxcsr::store());
    mxcsr::load(restore.0 | FTZ_AND_DAZ);
    let product = black_box(f32::MIN_POSITIVE) * black_box(0.5);
    let sum = black_box(f32::from_bits(1)) + black_box(0.0);
    assert_eq!((product.to_bits(), sum.to_bits()), (0, 0), "FTZ and DAZ have no effect");
    Some(f())
}

/// Runs nothing: this architecture has no such register.
#[cfg(not(target_arch = "x86_64"))]
pub fn flushing<T>(_f: impl FnOnce() -> T) -> Option<T> {
    None
}

#[cfg(target_arch = "x86_64")]
mod mxcsr {
    use std::arch::asm;

    pub(super) fn store() -> u32 {
        let mut value = 0u32;
        // SAFETY: the instruction writes four bytes to the address given, which is that of a live, aligned u32.
        unsafe { asm!("stmxcsr [{}]", in(reg) &mut value, options(nostack, preserves_flags)) }
        value
    }

    /// Loads a value that came from [`store`], with or without FTZ (bit 15) and DAZ (bit 6), which every x86-64 CPU with
    /// AVX has and every 64-bit CPU since 2004 accepts; no reserved bit is set, so the instruction cannot fault.
    pub(super) fn load(value: u32) {
        // SAFETY: the instruction reads four bytes from a live, aligned u32. Rust code assumes the default environment:
        // the code that runs under another one is the code under test, for which this is the question, and the
        // bookkeeping around it, which has no floating-point arithmetic on subnormals.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &value, options(nostack, readonly, preserves_flags)) }
    }
}

#[cfg(test)]
mod tests {
    use super::flushing;
    use std::hint::black_box;

    fn halves_to_zero() -> bool {
        black_box(f64::MIN_POSITIVE) * black_box(0.5) == 0.0
    }

    /// Set inside, and restored after, also after a panic.
    #[test]
    fn set_and_restored() {
        assert!(!halves_to_zero());
        if let Some(inside) = flushing(halves_to_zero) {
            assert!(inside);
        }
        assert!(!halves_to_zero());
        let panicked = std::panic::catch_unwind(|| flushing(|| panic!("as intended")));
        assert!(panicked.is_err() || cfg!(not(target_arch = "x86_64")));
        assert!(!halves_to_zero());
    }
}
