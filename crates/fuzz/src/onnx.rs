//! ONNX files: no panic, and the elements of a tensor match its type and shape.

use std::sync::Arc;

use truecast_core::DType;
use truecast_core::policy::TextStyle;
use truecast_io::onnx::{Changes, ModelFile, NewModel, Options};
use truecast_kernel::CastOptions;
use truecast_models::onnx::{build, check, conversions};
use truecast_models::{Error, evaluate};

use crate::input_file::InputFile;
use crate::{accepted, harmless};

thread_local! {
    static MODEL: InputFile = InputFile::new("a.onnx").with_sibling("w", &[7; 64]);
    static TENSOR: InputFile = InputFile::new("a.pb").with_sibling("w", &[7; 64]);
}

/// A model or a TensorProto with external data; the first byte selects. An accepted file is read completely and
/// rewritten with other types.
pub fn onnx(input: &[u8]) {
    let Some((is_model, bytes)) = input.split_first() else { return };
    let input = if is_model & 1 == 1 { &MODEL } else { &TENSOR };
    input.with(|file| {
        let Some(source) = file.read_tensors(bytes, None) else { return };
        if let Some(model) = source.model() {
            let dtypes = vec![DType::Bf16; source.tensors().len()];
            let changes = Changes { dtypes, opset: Some(13), ir_version: Some(7) };
            if let Ok(new) = NewModel::new(model, &changes, "b.onnx.data") {
                assert_eq!(new.tensors().len(), source.tensors().len());
            }
            for listed in model.text_tensors() {
                let _ = model.texts(&listed.tensor);
            }
        }
    });
}

/// A graph of conversion nodes: checked, described and evaluated.
pub fn onnx_graph(input: &[u8]) {
    MODEL.with(|file| {
        let Some(file) = accepted(ModelFile::open(file.write(input), Options::default())) else { return };
        let file = Arc::new(file);
        for opset in [None, Some(13), Some(28)] {
            check(file.model(), opset).illegal.iter().for_each(|(_, cause)| harmless(cause));
        }
        let _ = conversions(file.model());
        if let Some(graph) = accepted(build(&file, TextStyle::default())) {
            drop(evaluate::<Error>(&graph, &CastOptions::default(), |_| Ok(None), |_, _| Ok(())));
        }
    });
}
