//! OpenVINO IR: the XML, with twelve bytes of weights beside it. Types are settled and a graph is made of what is
//! accepted, and its constants are loaded.
#![no_main]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use truecast_models::openvino::{build, types};
use truecast_models::{Error, evaluate};
use truecast_models::openvino::IrFile;
use truecast_kernel::CastOptions;

/// A folder in memory, if the system has one.
static FILE: LazyLock<PathBuf> = LazyLock::new(|| {
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
    let path = tempfile::tempdir_in(place).expect("a folder can be made").keep().join("a.xml");
    std::fs::write(path.with_extension("bin"), [0x5a; 12]).expect("the weights can be written");
    path
});

fuzz_target!(|xml: &[u8]| {
    std::fs::write(&*FILE, xml).expect("the file can be written");
    let harmless = |text: String| assert!(!text.chars().any(char::is_control));
    let file = match IrFile::open(&FILE) {
        Ok(file) => Arc::new(file),
        Err(error) => return harmless(error.to_string()),
    };
    if let Ok(types) = types(&file, &BTreeMap::new()) {
        types.findings.iter().for_each(|finding| harmless(finding.cause.to_string()));
    }
    match build(&file, &BTreeMap::new()) {
        Ok((graph, _)) => drop(evaluate::<Error>(&graph, &CastOptions::default(), |_| Ok(None), |_, _| Ok(()))),
        Err(error) => harmless(error.to_string()),
    }
});
