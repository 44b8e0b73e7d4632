//! Any bytes as a `.tosa` graph: an error or a graph whose declarations can be asked, in bounded memory.
#![no_main]

use libfuzzer_sys::fuzz_target;
use truecast_models::tosa::read::parse;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(graph) = parse(bytes) {
        let names = graph.operators.iter().flat_map(|o| o.inputs.iter().chain(&o.outputs));
        assert!(names.chain(&graph.inputs).chain(&graph.outputs).all(|name| name.len() <= bytes.len()));
        assert!(graph.tensors.values().all(|t| t.data.len() + t.scale_data.len() <= 2 * bytes.len()));
    }
});
