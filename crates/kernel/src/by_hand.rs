//! The chooser of kernels written by hand: that of this architecture.

#[cfg(not(target_arch = "x86_64"))]
pub(crate) use crate::no_kernels::*;
#[cfg(target_arch = "x86_64")]
pub(crate) use crate::x86::choose::*;
