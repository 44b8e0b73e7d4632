//! Quantized checkpoints: groups of tensors, declarations in configurations, and forms for writing.
//!
//! [`detect`] classifies every tensor, from headers and JSON files: plain, dropped, or a part of a group. A group
//! represents one dequantized tensor. A tensor that cannot be classified is an error, because raw codes must not pass
//! as values.
//!
//! This crate opens no files, converts no data and prints nothing. Read first: `docs/spec/checkpoints.md §3` to §5,
//! then [`detect`], then one scheme of the `catalogue`.
//!
//! # Examples
//! ```
//! use truecast_core::{DType, Layout};
//! use truecast_io::Tensor;
//! use truecast_schemes::{Checkpoint, Documents, Options, Stored, detect};
//!
//! let stored = |name: &str, dtype, shape: &[u64]| {
//!     let tensor = Tensor { name: name.into(), dtype, layout: Layout::Packed, shape: shape.into() };
//!     Stored { tensor, shard: 0 }
//! };
//! let tensors = [
//!     stored("a.weight", DType::F8E4M3Fn, &[576, 256]),
//!     stored("a.weight_scale_inv", DType::F32, &[5, 2]),
//!     stored("norm.weight", DType::Bf16, &[256]),
//! ];
//! let config = r#"{"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}"#;
//! let documents = Documents { config: Some(serde_json::from_str(config)?), ..Documents::default() };
//! let checkpoint = Checkpoint { tensors: &tensors, metadata: &[], documents: &documents };
//! let found = detect(checkpoint, &mut |_| unreachable!("no data is needed"), &Options::default())?;
//! assert_eq!((&*found.groups[0].name, &found.groups[0].shape[..]), ("a.weight", &[576, 256][..]));
//! assert_eq!(found.schemes[0].to_string(), "fp8-block:128x128");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod activation;
mod blocks;
mod catalogue;
mod checkpoint;
mod configuration;
mod declared;
mod detect;
mod detection;
mod error;
mod finding;
mod found;
mod grid;
mod in_memory;
mod layer;
mod limits;
mod mixture;
mod model;
mod modules;
mod scheme;
mod table;
mod write;

pub use activation::{ActivationScale, Need};
pub use checkpoint::{Checkpoint, Documents, MAX_READ_BYTES, ReadTensor, Stored};
pub use configuration::{Change, Outcome, changes, metadata};
pub use declared::{REQUEST, declared, preset};
pub use detect::{detect, detect_gguf, is_auxiliary};
pub use detection::{Detection, Dropped, Group, Options, Role, ShapeOf};
pub use error::{Error, NO_EQUAL_GLOBAL_SCALE};
pub use finding::{Advice, Check, Effect, Finding};
pub use found::Nibbles;
pub use layer::{Layer, UnknownLayer, loaded_module};
pub use limits::Limit;
pub use mixture::{Form, Hyperparameters, Mixture, is_token_table};
pub use model::Model;
pub use scheme::{Family, Kind, Parameter, Parameters, ScaleType, Scheme, SchemeError, Strategy, Writing};
pub use write::{Content, Output, Target, target, target_of_experts, target_of_layout};
