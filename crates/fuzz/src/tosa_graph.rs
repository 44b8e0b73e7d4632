//! `.tosa` graphs: declarations are read, conversions are checked and evaluated in bounded memory.

use truecast_core::Layout;
use truecast_core::spec::tosa::Freedoms;
use truecast_kernel::CastOptions;
use truecast_models::tosa::read::parse;
use truecast_models::tosa::value::{Declared, ElementType};
use truecast_models::tosa::{check, describe, evaluate, target_of};
use truecast_models::{Data, Error, Tensor};

/// The input is the whole graph.
pub fn tosa_graph(bytes: &[u8]) {
    let Ok(graph) = parse(bytes) else { return };
    let names = graph.operators.iter().flat_map(|o| o.inputs.iter().chain(&o.outputs));
    assert!(names.chain(&graph.inputs).chain(&graph.outputs).all(|name| name.len() <= bytes.len()));
    assert!(graph.tensors.values().all(|t| t.data.len() + t.scale_data.len() <= 2 * bytes.len()));
    let _ = describe(std::slice::from_ref(&graph));
    let target = target_of(&graph);
    let _ = check(&graph, &target);
    if let Err(Stopped::Model(error)) = evaluate(&graph, &target, Freedoms::default(), &CastOptions::default(), zeros) {
        crate::harmless(error);
    }
}

enum Stopped {
    Model(Error),
    /// The input is too large, or in blocks.
    Input,
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Stopped {
        Stopped::Model(error)
    }
}

fn zeros(_: &str, declared: &Declared) -> Result<Tensor, Stopped> {
    let ElementType::Plain(dtype) = declared.element else { return Err(Stopped::Input) };
    let bytes = dtype.bytes_in(Layout::Packed, declared.shape.iter().product()).filter(|bytes| *bytes <= 1 << 12);
    let codes = vec![0; bytes.ok_or(Stopped::Input)? as usize];
    Ok(Tensor { dtype, shape: declared.shape.clone(), data: Data::Codes(codes) })
}
