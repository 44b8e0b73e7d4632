//! Networks damaged anywhere: an error or a result, never a panic; memory is bounded by the files' size.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use tempfile::TempDir;
use truecast_core::DType;
use truecast_kernel::CastOptions;
use truecast_models::openvino::IrFile;
use truecast_models::openvino::{InputHeader, build, inputs, types};
use truecast_models::{Data, Error, Tensor, evaluate};

/// A network with every supported layer, an unsupported layer, and numbers everywhere.
const NETWORK: &str = r#"<?xml version="1.0"?>
<net name="m" version="11">
<layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="?,2..5,4" element_type="f32"/><output><port id="0" precision="FP32" names="x"><dim>-1</dim></port></output></layer>
<layer id="1" name="c" type="Const" version="opset1"><data element_type="u3" shape="3" offset="1" size="3"/><output><port id="0" precision="U3"/></output></layer>
<layer id="2" name="d" type="Const" version="opset1"><data element_type="i64" shape="" offset="4" size="8"/><output><port id="0"/></output></layer>
<layer id="3" name="v" type="Convert" version="opset1"><data destination_type="u8"/><input><port id="0"/></input><output><port id="1"/></output></layer>
<layer id="4" name="p" type="ConvertPromoteTypes" version="opset14"><data promote_unsafe="true" pytorch_scalar_promotion="1" u64_integer_promotion_target="f64"/><input><port id="0"/><port id="1"/></input><output><port id="2"/><port id="3"/></output></layer>
<layer id="5" name="r" type="Result" version="opset1" output_names="y"><input><port id="0"/></input></layer>
<layer id="6" name="s" type="Result" version="opset1"><input><port id="0"/></input></layer>
</layers>
<edges>
<edge from-layer="0" from-port="0" to-layer="4" to-port="0"/>
<edge from-layer="1" from-port="0" to-layer="3" to-port="0"/>
<edge from-layer="2" from-port="0" to-layer="4" to-port="1"/>
<edge from-layer="4" from-port="2" to-layer="5" to-port="0"/>
<edge from-layer="3" from-port="1" to-layer="6" to-port="0"/>
</edges>
<rt_info><info name="OpenVINO Runtime" value="2026.4.1"/></rt_info>
</net>"#;

const VALUES: [&str; 24] = [
    "", "0", "1", "-1", "7", "4294967296", "9223372036854775807", "18446744073709551615", "99999999999999999999",
    "0x10", "4294967296,4294967296", "0,18446744073709551615", "1,", ",", "...", "..", "f8e4m3", "nf4", "string",
    "dynamic", "u1", "&amp;", "Convert", "Parameter",
];

fn exercise(folder: &TempDir, xml: &[u8]) -> bool {
    let path = folder.path().join("m.xml");
    std::fs::write(&path, xml).unwrap();
    std::fs::write(path.with_extension("bin"), [0x5a; 12]).unwrap();
    let harmless = |text: String| assert!(!text.chars().any(char::is_control), "{text:?}");
    let file = match IrFile::open(&path) {
        Ok(file) => Arc::new(file),
        Err(error) => {
            harmless(error.to_string());
            return false;
        }
    };
    let fed = |(name, dtype): (String, Option<DType>)| (name, InputHeader { dtype, rank: 3 });
    let fed: BTreeMap<String, InputHeader> = inputs(&file).into_iter().map(fed).collect();
    match types(&file, &BTreeMap::new()) {
        Ok(types) => types.report.illegal.iter().for_each(|(layer, cause)| harmless(format!("{layer}: {cause}"))),
        Err(error) => harmless(error.to_string()),
    }
    match build(&file, &fed) {
        Ok((graph, _)) => {
            let provide = |input: &truecast_models::Input| {
                let bytes = input.dtype.storage_bits().map_or(0, |bits| (24 * bits as usize).div_ceil(8));
                Ok(Some(Tensor { dtype: input.dtype, shape: vec![2, 3, 4], data: Data::Codes(vec![0; bytes]) }))
            };
            match evaluate::<Error>(&graph, &CastOptions::default(), provide, |_, _| Ok(())) {
                Ok(_) => return true,
                Err(error) => harmless(error.to_string()),
            }
        }
        Err(error) => harmless(error.to_string()),
    }
    false
}

#[test]
fn the_network_runs() {
    assert!(exercise(&tempfile::tempdir().unwrap(), NETWORK.as_bytes()));
}

#[test]
fn every_attribute_with_every_value() {
    let folder = tempfile::tempdir().unwrap();
    let places: Vec<usize> = NETWORK.match_indices("=\"").map(|(at, _)| at + 2).collect();
    for &at in &places {
        let end = at + NETWORK[at..].find('"').unwrap();
        for value in VALUES {
            exercise(&folder, [&NETWORK[..at], value, &NETWORK[end..]].concat().as_bytes());
        }
    }
    for at in 0..NETWORK.len() {
        exercise(&folder, &NETWORK.as_bytes()[..at]);
    }
}

/// Each layer is (kind, data, number of inputs, number of outputs).
const KINDS: [(&str, &str, usize, usize); 8] = [
    ("Parameter", r#"<data shape="2,3,4" element_type="f32"/>"#, 0, 1),
    ("Const", r#"<data element_type="i16" shape="4" offset="0" size="8"/>"#, 0, 1),
    ("Convert", r#"<data destination_type="f16"/>"#, 1, 1),
    ("ConvertPromoteTypes", r#"<data promote_unsafe="true"/>"#, 2, 2),
    ("Result", "", 1, 0),
    ("Result", "", 1, 1),
    ("Result", "", 1, 2),
    ("Relu", "", 1, 1),
];

/// A network of layers. An edge joins an output to an input. Outputs and inputs are numbered through all layers.
fn wired(kinds: &[usize], edges: &[(usize, usize)]) -> String {
    let mut layers = String::new();
    let (mut sources, mut targets) = (Vec::new(), Vec::new());
    for (id, &kind) in kinds.iter().enumerate() {
        let (operator, data, inputs, outputs) = KINDS[kind];
        let port = |port: usize| format!(r#"<port id="{port}" precision="FP32"/>"#);
        let ports = |range: std::ops::Range<usize>| range.map(port).collect::<String>();
        layers += &format!(
            r#"<layer id="{id}" name="n{id}" type="{operator}" version="opset14">{data}<input>{}</input><output>{}</output></layer>"#,
            ports(0..inputs),
            ports(inputs..inputs + outputs)
        );
        targets.extend((0..inputs).map(|port| (id, port)));
        sources.extend((inputs..inputs + outputs).map(|port| (id, port)));
    }
    let edge = |&(from, to): &(usize, usize)| {
        let ((a, p), (b, q)) = (sources[from % sources.len()], targets[to % targets.len()]);
        format!(r#"<edge from-layer="{a}" from-port="{p}" to-layer="{b}" to-port="{q}"/>"#)
    };
    let edges: String = match sources.is_empty() || targets.is_empty() {
        true => String::new(),
        false => edges.iter().map(edge).collect(),
    };
    format!(r#"<net version="11"><layers>{layers}</layers><edges>{edges}</edges></net>"#)
}

/// The consumers of a Result are a Convert, or another Result, or both.
#[test]
fn a_result_may_feed_others() {
    let folder = tempfile::tempdir().unwrap();
    assert!(exercise(&folder, wired(&[0, 5, 2], &[(0, 0), (1, 1)]).as_bytes()));
    assert!(exercise(&folder, wired(&[0, 5, 4], &[(0, 0), (1, 1)]).as_bytes()));
    assert!(exercise(&folder, wired(&[0, 6, 2, 4, 4], &[(0, 0), (1, 1), (2, 2), (3, 3)]).as_bytes()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Edges go forward, backward, twice, or nowhere.
    #[test]
    fn any_wiring(kinds in prop::collection::vec(0..KINDS.len(), 1..9), edges in prop::collection::vec(any::<(u8, u8)>(), 0..12)) {
        let edges: Vec<_> = edges.into_iter().map(|(from, to)| (from.into(), to.into())).collect();
        exercise(&tempfile::tempdir().unwrap(), wired(&kinds, &edges).as_bytes());
    }

    /// Every input is connected once to an earlier output, so most networks can run.
    #[test]
    fn any_forward_wiring(kinds in prop::collection::vec(1..7usize, 1..9), choices in prop::collection::vec(any::<u8>(), 32)) {
        let kinds: Vec<usize> = std::iter::once(0).chain(kinds).collect();
        let (mut outputs, mut inputs, mut edges) = (0, 0, Vec::new());
        for &kind in &kinds {
            let (_, _, takes, gives) = KINDS[kind];
            edges.extend((0..takes).map(|i| (choices[inputs + i] as usize % outputs.max(1), inputs + i)));
            (inputs, outputs) = (inputs + takes, outputs + gives);
        }
        exercise(&tempfile::tempdir().unwrap(), wired(&kinds, &edges).as_bytes());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_bytes(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut bytes = NETWORK.as_bytes().to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        exercise(&tempfile::tempdir().unwrap(), &bytes);
    }

    #[test]
    fn lines_in_another_order(order in Just((0..NETWORK.lines().count()).collect::<Vec<_>>()).prop_shuffle(), kept in 0..17usize) {
        let lines: Vec<&str> = NETWORK.lines().collect();
        let text: Vec<&str> = order.into_iter().take(kept).map(|i| lines[i]).collect();
        exercise(&tempfile::tempdir().unwrap(), text.join("\n").as_bytes());
    }
}

/// A layer of an operator set with nearly the name of a conversion is reported. Extensions may have any name.
#[test]
fn misspelled_conversions_are_findings() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.xml");
    let causes = |operator: &str, version: &str| {
        let layer = format!("type=\"{operator}\" version=\"{version}\"><data destination_type");
        std::fs::write(&path, NETWORK.replace("type=\"Convert\" version=\"opset1\"><data destination_type", &layer))
            .unwrap();
        std::fs::write(path.with_extension("bin"), [0x5a; 12]).unwrap();
        let found = types(&Arc::new(IrFile::open(&path).unwrap()), &BTreeMap::new()).unwrap();
        found.report.illegal.iter().map(|(_, cause)| cause.to_string()).collect::<Vec<_>>()
    };
    let meant = "no operator set has an operator of this name; did you mean Convert?";
    assert_eq!((causes("Convert", "opset1"), causes("Covnert", "opset1")), (vec![], vec![meant.to_string()]));
    assert_eq!((causes("convert", "opset13"), causes("Converts", "extension")), (vec![meant.to_string()], vec![]));
    assert_eq!(causes("ConvertLike", "opset1"), [""; 0]);
}
