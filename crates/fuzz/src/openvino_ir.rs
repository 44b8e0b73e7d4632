//! OpenVINO IR: the XML, with twelve bytes of weights beside it. Types are settled and a graph is made of what is
//! accepted, and its constants are loaded.

use std::collections::BTreeMap;
use std::sync::Arc;

use truecast_kernel::CastOptions;
use truecast_models::openvino::{IrFile, build, describe, types};
use truecast_models::{Error, evaluate};

use crate::harmless;
use crate::place::Place;

thread_local! {
    static FILE: Place = Place::new("a.xml").beside("a.bin", &[0x5a; 12]);
}

/// A network.
pub fn openvino_ir(xml: &[u8]) {
    FILE.with(|place| {
        let file = match IrFile::open(place.holding(xml)) {
            Ok(file) => Arc::new(file),
            Err(error) => return harmless(error),
        };
        if let Ok(types) = types(&file, &BTreeMap::new()) {
            types.report.illegal.iter().for_each(|(_, cause)| harmless(cause));
        }
        let _ = describe(&file);
        match build(&file, &BTreeMap::new()) {
            Ok((graph, _)) => drop(evaluate::<Error>(&graph, &CastOptions::default(), |_| Ok(None), |_, _| Ok(()))),
            Err(error) => harmless(error),
        }
    });
}
