//! Matrices of common types.

use super::invalid;
use crate::command::promote::system_to_json;
use crate::failure::Failure;
use serde_json::{Value, json};
use truecast::promote::jax::X64;
use truecast::promote::openvino::{ConvertPromoteTypes, SafeMode};
use truecast::promote::tensorflow::Mode;
use truecast::promote::{Element, Input, Operand, Rank, System};

fn all() -> [System; 5] {
    [
        System::Torch,
        System::Jax(X64::On),
        System::Numpy,
        System::TensorFlow(Mode::All),
        System::OpenVino(ConvertPromoteTypes::default(), SafeMode::OpenVino),
    ]
}

pub fn systems() -> Value {
    json!({ "systems": all().map(System::name) })
}

pub fn answer(name: &str) -> Result<Value, Failure> {
    let system = all().into_iter().find(|system| system.name() == name);
    let system = system.ok_or_else(|| invalid(format_args!("{name:?} is not a promotion system")))?;
    let types: Vec<Element> = system.elements().filter(|element| matches!(element, Element::Type(_))).collect();
    let input = |element| Input { operand: Operand::Tensor(element), rank: Rank::Dimensioned };
    let promote = |a, b| system.promote(input(a), input(b));
    let table = |cell: &dyn Fn(Element, Element) -> Option<String>| -> Value {
        types.iter().map(|&a| types.iter().map(|&b| cell(a, b)).collect::<Value>()).collect()
    };
    let mut answer = system_to_json(system);
    answer["types"] = types.iter().map(ToString::to_string).collect();
    answer["rows"] = table(&|a, b| promote(a, b).ok().map(|promoted| promoted.element.to_string()));
    answer["why"] = table(&|a, b| promote(a, b).err().map(|refusal| refusal.to_string()));
    Ok(answer)
}
