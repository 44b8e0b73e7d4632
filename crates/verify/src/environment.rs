//! Control register of the floating-point unit; the only unsafe code of this crate.
//!
//! A library with fast-math start-up code may set FTZ and DAZ for the process; results must not change
//! (`docs/kernels.md §5`).
#![allow(unsafe_code)]

/// Runs `f` with FTZ and DAZ set, and then restores the register, even after a panic. `None` on other architectures.
/// # Panics
/// If setting the register has no effect, because the check would prove nothing.
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
pub fn flushing<T>(f: impl FnOnce() -> T) -> Option<T> {
    use std::hint::black_box;
    struct Restore(register::Value);
    impl Drop for Restore {
        fn drop(&mut self) {
            register::load(self.0);
        }
    }
    let restore = Restore(register::store());
    register::load(restore.0 | register::FLUSHING);
    let product = black_box(f32::MIN_POSITIVE) * black_box(0.5);
    let sum = black_box(f32::from_bits(1)) + black_box(0.0);
    assert_eq!((product.to_bits(), sum.to_bits()), (0, 0), "flushing has no effect");
    Some(f())
}

/// Returns `None`: this architecture has no such register.
#[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
pub fn flushing<T>(_f: impl FnOnce() -> T) -> Option<T> {
    None
}

/// MXCSR.
#[cfg(target_arch = "x86_64")]
mod register {
    use std::arch::asm;

    pub(super) type Value = u32;

    /// FTZ and DAZ.
    pub(super) const FLUSHING: Value = 0x8040;

    pub(super) fn store() -> Value {
        let mut value = 0u32;
        // SAFETY: the instruction writes four bytes to the given address, of a live, aligned u32.
        unsafe { asm!("stmxcsr [{}]", in(reg) &mut value, options(nostack, preserves_flags)) }
        value
    }

    /// Loads a value of [`store`] with or without FTZ (bit 15) and DAZ (bit 6). Every x86-64 CPU with AVX has both
    /// bits. No reserved bit is set, so the instruction cannot fault.
    pub(super) fn load(value: Value) {
        // SAFETY: the instruction reads four bytes from a live, aligned u32. Rust code assumes the default environment.
        // Only two kinds of code run under another one: the code under test, which is tested for exactly this, and the
        // bookkeeping around it, which has no floating-point arithmetic on subnormals.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &value, options(nostack, readonly, preserves_flags)) }
    }
}

/// FPCR.
#[cfg(target_arch = "aarch64")]
mod register {
    use std::arch::asm;

    pub(super) type Value = u64;

    /// FZ and FZ16; also DN (every NaN becomes the default NaN) and AHP (f16 without infinities and NaN).
    pub(super) const FLUSHING: Value = 1 << 24 | 1 << 19 | 1 << 25 | 1 << 26;

    pub(super) fn store() -> Value {
        let value;
        // SAFETY: the instruction reads a register that every program may read.
        unsafe { asm!("mrs {}, fpcr", out(reg) value, options(nostack, preserves_flags)) }
        value
    }

    /// Loads a value of [`store`] with or without the bits of [`FLUSHING`], which every CPU has.
    pub(super) fn load(value: Value) {
        // SAFETY: no trap is enabled. Rust code assumes the default environment: as on x86-64, only the code under test
        // runs under another one, and the bookkeeping around it.
        unsafe { asm!("msr fpcr, {}", in(reg) value, options(nostack, preserves_flags)) }
    }
}

#[cfg(test)]
mod tests {
    use super::flushing;
    use std::hint::black_box;

    fn halves_to_zero() -> bool {
        black_box(f64::MIN_POSITIVE) * black_box(0.5) == 0.0
    }

    #[test]
    fn set_and_restored() {
        assert!(!halves_to_zero());
        if let Some(inside) = flushing(halves_to_zero) {
            assert!(inside);
        }
        assert!(!halves_to_zero());
        let panicked = std::panic::catch_unwind(|| flushing(|| panic!("as intended")));
        assert!(panicked.is_err() || cfg!(not(any(target_arch = "aarch64", target_arch = "x86_64"))));
        assert!(!halves_to_zero());
    }
}
