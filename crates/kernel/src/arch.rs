//! The chooser of kernels written by hand: that of this architecture.

#[cfg(target_arch = "aarch64")]
pub(crate) use crate::aarch64::choose::*;
#[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
pub(crate) use crate::no_kernels::*;
#[cfg(target_arch = "x86_64")]
pub(crate) use crate::x86::choose::*;
