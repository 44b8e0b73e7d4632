//! Constants of a model: tensors, loaded from the file when needed, and the short forms of `Constant`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use truecast_core::DType;
use truecast_io::onnx::{AttributeValue, ModelFile, Node, TensorProto};

use super::error::NodeError;
use super::node::{Bindings, kind_name};
use crate::Error;
use crate::graph::Load;
use crate::tensor::{Data, Tensor};

/// A tensor of a model file. It stays in memory only while another user holds it.
#[derive(Debug)]
struct Stored {
    file: Arc<ModelFile>,
    tensor: TensorProto,
    held: Mutex<Weak<Tensor>>,
}

impl Load for Stored {
    fn load(&self) -> Result<Arc<Tensor>, Error> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tensor) = held.upgrade() {
            return Ok(tensor);
        }
        let dtype = self.tensor.dtype().expect("checked where the constant was added");
        let data = match dtype {
            DType::String => Data::Texts(self.file.texts(&self.tensor)?.collect::<Result<_, _>>()?),
            _ => Data::Codes(self.file.codes(&self.tensor)?),
        };
        let tensor = Arc::new(Tensor { dtype, shape: self.tensor.dims.clone(), data });
        *held = Arc::downgrade(&tensor);
        Ok(tensor)
    }
}

pub(super) type Constant = (DType, Arc<dyn Load>);

pub(super) fn stored(file: &Arc<ModelFile>, tensor: &TensorProto) -> Result<Constant, NodeError> {
    let dtype = tensor.dtype().ok_or(NodeError::ElementType { name: tensor.data_type.name })?;
    Ok((dtype, Arc::new(Stored { file: file.clone(), tensor: tensor.clone(), held: Mutex::default() })))
}

/// Constants of a model. Each is created once, even if a function's body is expanded several times.
#[derive(Debug)]
pub(super) struct Constants<'a> {
    file: &'a Arc<ModelFile>,
    /// Constants, by the address that their attribute has in the model's structure.
    made: HashMap<*const AttributeValue, Constant>,
}

/// First opset with short forms (Constant-12); older opsets have only `value`.
const SHORT_FORMS_SINCE: u32 = 12;

impl<'a> Constants<'a> {
    pub(super) fn new(file: &'a Arc<ModelFile>) -> Constants<'a> {
        Constants { file, made: HashMap::new() }
    }

    pub(super) fn of_node(
        &mut self,
        opset: u32,
        node: &'a Node,
        bindings: &Bindings<'a>,
    ) -> Result<Constant, NodeError> {
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
            let kind = FORMS.iter().find(|(name, _)| *name == attribute.name);
            found = Some(match kind {
                Some((_, kind)) if *kind == kind_name(value) => self.of_value(value)?,
                Some(_) => return Err(wrong(format!("has the wrong type {}", kind_name(value)))),
                None if attribute.name == "sparse_value" => {
                    return Err(wrong("sparse tensors are not converted".into()));
                }
                None => return Err(wrong("a Constant has no such attribute".into())),
            });
        }
        found.ok_or_else(|| NodeError::Attribute {
            name: "value".into(),
            why: "a Constant has exactly one attribute".into(),
        })
    }

    fn of_value(&mut self, value: &'a AttributeValue) -> Result<Constant, NodeError> {
        let place = std::ptr::from_ref(value);
        if let Some(constant) = self.made.get(&place) {
            return Ok(constant.clone());
        }
        let vector = |len: usize| vec![len as u64];
        let constant = match value {
            AttributeValue::Tensor(tensor) => stored(self.file, tensor)?,
            AttributeValue::Float(x) => floats(std::slice::from_ref(x), vec![]),
            AttributeValue::Floats(all) => floats(all, vector(all.len())),
            AttributeValue::Int(n) => ints(&[*n], vec![]),
            AttributeValue::Ints(all) => ints(all, vector(all.len())),
            AttributeValue::String(text) => texts(std::slice::from_ref(text), vec![]),
            AttributeValue::Strings(all) => texts(all, vector(all.len())),
            other => unreachable!("no form of a Constant is {}", kind_name(other)),
        };
        self.made.insert(place, constant.clone());
        Ok(constant)
    }
}

const FORMS: [(&str, &str); 7] = [
    ("value", "TENSOR"),
    ("value_float", "FLOAT"),
    ("value_floats", "FLOATS"),
    ("value_int", "INT"),
    ("value_ints", "INTS"),
    ("value_string", "STRING"),
    ("value_strings", "STRINGS"),
];

fn floats(values: &[f32], shape: Vec<u64>) -> Constant {
    let codes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    in_memory(DType::F32, shape, Data::Codes(codes))
}

fn ints(values: &[i64], shape: Vec<u64>) -> Constant {
    let codes = values.iter().flat_map(|n| n.to_le_bytes()).collect();
    in_memory(DType::I64, shape, Data::Codes(codes))
}

fn texts(values: &[Vec<u8>], shape: Vec<u64>) -> Constant {
    in_memory(DType::String, shape, Data::Texts(values.iter().collect()))
}

fn in_memory(dtype: DType, shape: Vec<u64>, data: Data) -> Constant {
    (dtype, Arc::new(Arc::new(Tensor { dtype, shape, data })))
}
