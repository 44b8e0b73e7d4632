//! The default floating-point environment, for arithmetic that FTZ or DAZ would change.

/// Runs `f` in the default floating-point environment, then restores the environment of the caller.
#[cfg(target_arch = "x86_64")]
pub fn default<T>(f: impl FnOnce() -> T) -> T {
    use std::arch::asm;
    const DEFAULT: u32 = 0x1f80;
    struct Restore(u32);
    impl Drop for Restore {
        fn drop(&mut self) {
            // SAFETY: `self.0` is the value that MXCSR had; the pointer is to a live u32.
            unsafe { asm!("ldmxcsr [{}]", in(reg) &self.0, options(nostack, readonly)) }
        }
    }
    let mut old = 0u32;
    // SAFETY: stores MXCSR into a live u32.
    unsafe { asm!("stmxcsr [{}]", in(reg) &mut old, options(nostack)) }
    let _restore = Restore(old);
    // SAFETY: loads the environment for which Rust code is compiled, with all exceptions masked; the pointer is to a
    // live u32. `_restore` restores the caller's environment, also on unwinding.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &DEFAULT, options(nostack, readonly)) }
    f()
}

/// Runs `f` in the default floating-point environment, then restores the environment of the caller.
#[cfg(target_arch = "aarch64")]
pub fn default<T>(f: impl FnOnce() -> T) -> T {
    use std::arch::asm;
    struct Restore(u64);
    impl Drop for Restore {
        fn drop(&mut self) {
            // SAFETY: `self.0` is the value that FPCR had.
            unsafe { asm!("msr fpcr, {}", in(reg) self.0, options(nostack, preserves_flags)) }
        }
    }
    let old: u64;
    // SAFETY: reads FPCR.
    unsafe { asm!("mrs {}, fpcr", out(reg) old, options(nostack, preserves_flags)) }
    let _restore = (old != 0).then(|| {
        // SAFETY: 0 is the environment for which Rust code is compiled: nearest even, no flushing, no traps. `_restore`
        // restores the caller's environment, also on unwinding. A register that is 0 is not written, which avoids a
        // wait.
        unsafe { asm!("msr fpcr, xzr", options(nostack, preserves_flags)) }
        Restore(old)
    });
    f()
}

/// Runs `f`; on this architecture, the environment is unchanged.
#[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
pub fn default<T>(f: impl FnOnce() -> T) -> T {
    f()
}
