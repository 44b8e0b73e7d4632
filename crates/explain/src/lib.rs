//! Conversions between people and the definition: what is asked for in words, what comes of a value and why, and which
//! values tell conversions apart.
//!
//! Everything asks `truecast_core`, one value at a time; no buffer of a tensor and no file is seen here. The crate
//! `truecast` shows these modules as its own.
#![forbid(unsafe_code)]

pub mod explain;
pub mod request;
pub mod setting;
pub mod vectors;
