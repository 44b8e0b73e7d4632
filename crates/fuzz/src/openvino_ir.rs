//! OpenVINO IR: the XML, with twelve bytes of weights. Types are resolved, a graph is made, and constants are loaded.

use std::collections::BTreeMap;
use std::sync::Arc;

use truecast_kernel::CastOptions;
use truecast_models::openvino::{IrFile, build, describe, types};
use truecast_models::{Error, evaluate};

use crate::input_file::InputFile;
use crate::{accepted, harmless};

thread_local! {
    static FILE: InputFile = InputFile::new("a.xml").with_sibling("a.bin", &[0x5a; 12]);
}

/// The input is the XML.
pub fn openvino_ir(xml: &[u8]) {
    FILE.with(|file| {
        let Some(file) = accepted(IrFile::open(file.write(xml))) else { return };
        let file = Arc::new(file);
        if let Ok(types) = types(&file, &BTreeMap::new()) {
            types.report.illegal.iter().for_each(|(_, cause)| harmless(cause));
        }
        let _ = describe(&file);
        if let Some((graph, _)) = accepted(build(&file, &BTreeMap::new())) {
            drop(evaluate::<Error>(&graph, &CastOptions::default(), |_| Ok(None), |_, _| Ok(())));
        }
    });
}
