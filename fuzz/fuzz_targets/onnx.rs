//! A model or a tensor: one byte says which, the rest is the file.
//!
//! What is accepted is read through and laid out anew with other types. No input may panic, and what a tensor gives must
//! be as long as its type and shape say.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use truecast_core::DType;
use truecast_io::Source;
use truecast_io::onnx::{Changes, NewModel};

/// A folder with a file of external data.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = truecast_fuzz::folder();
    std::fs::write(folder.join("w"), [7; 64]).expect("the file can be written");
    folder
});

fuzz_target!(|input: &[u8]| {
    let Some((is_model, bytes)) = input.split_first() else { return };
    let path = FOLDER.join(if is_model & 1 == 1 { "a.onnx" } else { "a.pb" });
    std::fs::write(&path, bytes).expect("the file can be written");
    match Source::open(&path, None) {
        Ok(source) => {
            (0..source.tensors().len()).for_each(|index| truecast_fuzz::read(&source, index));
            if let Some(model) = source.model() {
                let dtypes = vec![DType::Bf16; source.tensors().len()];
                let changes = Changes { dtypes, opset: Some(13), ir_version: Some(7) };
                if let Ok(new) = NewModel::new(model, &changes, "b.onnx.data") {
                    assert_eq!(new.tensors().len(), source.tensors().len());
                }
            }
        }
        Err(error) => assert!(!error.to_string().chars().any(char::is_control)),
    }
});
