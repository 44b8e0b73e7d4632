//! Instruction-set levels, and tokens that prove detection. Reference: `docs/kernels.md §9`.
//!
//! A function with a token argument may run code for the token's features, because only detection makes tokens.

use std::sync::OnceLock;

/// Proof that AVX2, FMA, F16C, BMI1, BMI2, LZCNT and POPCNT were detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Avx2(());

/// Proof that the features of [`Avx2`] and AVX-512 F, BW, CD, DQ, VL and VBMI were detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Avx512(());

impl Avx512 {
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn avx2(self) -> Avx2 {
        Avx2(())
    }
}

/// Proof that NEON was detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Neon(());

/// CPU features for compiled code, weakest first.
///
/// # Examples
/// ```
/// use truecast_kernel::Level;
/// assert!(Level::available().contains(&Level::detect()));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Features that the compilation target guarantees.
    Baseline,
    /// Haswell, Zen 1 and later.
    Avx2(Avx2),
    /// Ice Lake, Zen 4 and later.
    Avx512(Avx512),
    /// Every aarch64 CPU: hand-written NEON kernels, and the baseline's lanes.
    Neon(Neon),
}

/// Piece of work that is compiled once per level.
///
/// `run` must be `#[inline(always)]`: the body is then compiled inside the function with the level's features.
pub(crate) trait Task {
    type Output;
    fn run(self) -> Self::Output;
}

impl Level {
    /// Returns the strongest level of this CPU, or the level that the environment variable `TRUECAST_LEVEL` names, if
    /// the CPU has it. The variable is read once.
    #[must_use]
    pub fn detect() -> Level {
        static DETECTED: OnceLock<Level> = OnceLock::new();
        *DETECTED.get_or_init(|| {
            let levels = Level::available();
            let named = std::env::var("TRUECAST_LEVEL").ok();
            let is_named = |level: &&Level| Some(level.name()) == named.as_deref();
            *levels.iter().find(is_named).or(levels.last()).unwrap_or(&Level::Baseline)
        })
    }

    /// Returns every level of this CPU, weakest first.
    #[cfg(target_arch = "x86_64")]
    #[must_use]
    pub fn available() -> Vec<Level> {
        use std::arch::is_x86_feature_detected as has;
        let mut levels = vec![Level::Baseline];
        let bits = has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("popcnt");
        let avx2 = has!("avx2") && has!("fma") && has!("f16c") && bits;
        if avx2 {
            levels.push(Level::Avx2(Avx2(())));
        }
        let avx512 = has!("avx512f") && has!("avx512bw") && has!("avx512cd") && has!("avx512dq") && has!("avx512vl");
        if avx2 && avx512 && has!("avx512vbmi") {
            levels.push(Level::Avx512(Avx512(())));
        }
        levels
    }

    /// Returns every level of this CPU, weakest first.
    #[cfg(target_arch = "aarch64")]
    #[must_use]
    pub fn available() -> Vec<Level> {
        let neon = std::arch::is_aarch64_feature_detected!("neon").then_some(Level::Neon(Neon(())));
        std::iter::once(Level::Baseline).chain(neon).collect()
    }

    /// Returns every level of this CPU, weakest first.
    #[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
    #[must_use]
    pub fn available() -> Vec<Level> {
        vec![Level::Baseline]
    }

    /// Returns the name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Level::Baseline => "baseline",
            Level::Avx2(_) => "avx2",
            Level::Avx512(_) => "avx512",
            Level::Neon(_) => "neon",
        }
    }

    #[inline]
    pub(crate) fn run<T: Task>(self, task: T) -> T::Output {
        match self {
            Level::Baseline | Level::Neon(_) => baseline(task),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the token exists only if detection succeeded (`Level::available`).
            Level::Avx2(_) => unsafe { x86::avx2(task) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the token exists only if detection succeeded (`Level::available`).
            Level::Avx512(_) => unsafe { x86::avx512(task) },
            #[cfg(not(target_arch = "x86_64"))]
            Level::Avx2(_) | Level::Avx512(_) => unreachable!("no token exists on this architecture"),
        }
    }
}

impl Level {
    pub(crate) fn has_fused_products(self) -> bool {
        self != Level::Baseline
    }

    /// [`Level::run`] for a task with [`f32::mul_add`], which is a function call at levels without the instruction.
    #[inline]
    pub(crate) fn run_with_fused_products<T: Task>(self, task: T) -> T::Output {
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the token exists only if detection succeeded.
            Level::Avx2(_) => unsafe { x86::avx2(task) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the token exists only if detection succeeded.
            Level::Avx512(_) => unsafe { x86::avx512(task) },
            #[cfg(target_arch = "x86_64")]
            _ => unreachable!("levels without them are not asked for them"),
            #[cfg(not(target_arch = "x86_64"))]
            _ => baseline(task),
        }
    }

    /// Runs a task like [`Level::run`], but level AVX-512 takes the code for AVX2.
    #[inline]
    pub(crate) fn run_at_most_avx2<T: Task>(self, task: T) -> T::Output {
        match self {
            Level::Baseline | Level::Neon(_) => baseline(task),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the token exists only if detection succeeded; AVX-512's contains AVX2's.
            Level::Avx2(_) | Level::Avx512(_) => unsafe { x86::avx2(task) },
            #[cfg(not(target_arch = "x86_64"))]
            Level::Avx2(_) | Level::Avx512(_) => unreachable!("no token exists on this architecture"),
        }
    }
}

/// [`Level::run`] at the level that the target guarantees.
pub(crate) fn run_at_baseline<T: Task>(task: T) -> T::Output {
    baseline(task)
}

impl std::fmt::Display for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// Runs a task at baseline. Not inlined, because `verify asm` finds the function by name.
#[inline(never)]
fn baseline<T: Task>(task: T) -> T::Output {
    task.run()
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Task;

    #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) fn avx2<T: Task>(task: T) -> T::Output {
        task.run()
    }

    #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi")]
    pub(super) fn avx512<T: Task>(task: T) -> T::Output {
        task.run()
    }
}
