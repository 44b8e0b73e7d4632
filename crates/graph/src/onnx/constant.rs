//! Constants of a model: tensors that stay in the file until they are needed, and the short forms of `Constant`.

use std::sync::Arc;

use truecast_core::DType;
use truecast_io::onnx::{AttributeValue, ModelFile, Node, TensorProto};

use super::error::NodeError;
use super::node::{Bindings, kind_name};
use crate::graph::Load;
use crate::tensor::{Data, Tensor};

/// A tensor of a model file.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) file: Arc<ModelFile>,
    pub(super) tensor: TensorProto,
}

impl Load for Stored {
    fn load(&self) -> Result<Tensor, truecast_io::Error> {
        let dtype = self.tensor.dtype().expect("checked where the constant was added");
        let data = match dtype {
            DType::String => Data::Texts(self.file.texts(&self.tensor)?.collect::<Result<_, _>>()?),
            _ => Data::Codes(self.file.codes(&self.tensor)?),
        };
        Ok(Tensor { dtype, shape: self.tensor.dims.clone(), data })
    }
}

/// The type and elements of a tensor of the file.
pub(super) fn stored(file: &Arc<ModelFile>, tensor: &TensorProto) -> Result<(DType, Box<dyn Load>), NodeError> {
    let dtype = tensor.dtype().ok_or(NodeError::ElementType { name: tensor.data_type.name })?;
    Ok((dtype, Box::new(Stored { file: file.clone(), tensor: tensor.clone() })))
}

/// The short forms came with Constant-12; before it there was `value` only.
const SHORT_FORMS_SINCE: u32 = 12;

/// What a Constant node gives: exactly one of its attributes says it.
pub(super) fn of_node<'a>(
    file: &Arc<ModelFile>,
    opset: u32,
    node: &'a Node,
    bindings: &Bindings<'a>,
) -> Result<(DType, Box<dyn Load>), NodeError> {
    let mut found = None;
    for attribute in &node.attributes {
        let Some(value) = bindings.resolve(attribute)? else { continue };
        let wrong = |why: String| NodeError::Attribute { name: attribute.name.clone(), why };
        if found.is_some() {
            return Err(wrong("a Constant has exactly one attribute".into()));
        }
        if attribute.name.starts_with("value_") && opset < SHORT_FORMS_SINCE {
            return Err(wrong(format!("exists from opset {SHORT_FORMS_SINCE} on, this is {opset}")));
        }
        found = Some(match (attribute.name.as_str(), value) {
            ("value", AttributeValue::Tensor(tensor)) => stored(file, tensor)?,
            ("value_float", AttributeValue::Float(x)) => floats(&[x], vec![]),
            ("value_floats", AttributeValue::Floats(all)) => {
                floats(&all.iter().collect::<Vec<_>>(), vec![all.len() as u64])
            }
            ("value_int", AttributeValue::Int(n)) => ints(&[*n], vec![]),
            ("value_ints", AttributeValue::Ints(all)) => ints(all, vec![all.len() as u64]),
            ("value_string", AttributeValue::String(text)) => texts(std::slice::from_ref(text), vec![]),
            ("value_strings", AttributeValue::Strings(all)) => texts(all, vec![all.len() as u64]),
            ("sparse_value", _) => return Err(wrong("sparse tensors are not converted".into())),
            (
                "value" | "value_float" | "value_floats" | "value_int" | "value_ints" | "value_string"
                | "value_strings",
                other,
            ) => return Err(wrong(format!("has the wrong type {}", kind_name(other)))),
            _ => return Err(wrong("a Constant has no such attribute".into())),
        });
    }
    found.ok_or_else(|| NodeError::Attribute {
        name: "value".into(),
        why: "a Constant has exactly one attribute".into(),
    })
}

fn floats(values: &[&f32], shape: Vec<u64>) -> (DType, Box<dyn Load>) {
    let codes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    (DType::F32, Box::new(Tensor { dtype: DType::F32, shape, data: Data::Codes(codes) }))
}

fn ints(values: &[i64], shape: Vec<u64>) -> (DType, Box<dyn Load>) {
    let codes = values.iter().flat_map(|n| n.to_le_bytes()).collect();
    (DType::I64, Box::new(Tensor { dtype: DType::I64, shape, data: Data::Codes(codes) }))
}

fn texts(values: &[Vec<u8>], shape: Vec<u64>) -> (DType, Box<dyn Load>) {
    (DType::String, Box::new(Tensor { dtype: DType::String, shape, data: Data::Texts(values.iter().collect()) }))
}
