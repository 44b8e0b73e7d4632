//! OpenVINO: `run` and `check` of IR (`docs/spec/openvino.md §11`), `--spec openvino`, and known deviations in
//! `explain` (§9).

use crate::run::Folder;
use serde_json::{Value, json};
use truecast_testkit::npy::{npy, npy_parts};

/// A layer whose ports declare no types.
fn layer(id: u32, operator: &str, version: &str, attributes: &str, inputs: &[u32], outputs: &[u32]) -> String {
    let ports = |name: &str, ids: &[u32]| match ids {
        [] => String::new(),
        ids => {
            let ports: String = ids.iter().map(|id| format!("<port id=\"{id}\"/>")).collect();
            format!("<{name}>{ports}</{name}>")
        }
    };
    let data = if attributes.is_empty() { String::new() } else { format!("<data {attributes}/>") };
    let ports = ports("input", inputs) + &ports("output", outputs);
    format!(r#"<layer id="{id}" name="n{id}" type="{operator}" version="{version}">{data}{ports}</layer>"#)
}

fn constant(id: u32, element: &str, shape: &str, offset: u64, size: u64) -> String {
    let data = format!(r#"element_type="{element}" shape="{shape}" offset="{offset}" size="{size}""#);
    layer(id, "Const", "opset1", &data, &[], &[0])
}

fn result(id: u32) -> String {
    layer(id, "Result", "opset1", "", &[0], &[])
}

fn promote(id: u32, attributes: &str) -> String {
    layer(id, "ConvertPromoteTypes", "opset14", attributes, &[0, 1], &[2, 3])
}

fn edge(from: (u32, u32), to: (u32, u32)) -> String {
    format!(r#"<edge from-layer="{}" from-port="{}" to-layer="{}" to-port="{}"/>"#, from.0, from.1, to.0, to.1)
}

fn net(layers: &[String], edges: &[String]) -> String {
    let (layers, edges) = (layers.concat(), edges.concat());
    let written = r#"<rt_info><info name="OpenVINO Runtime" value="2026.4.1-22982"/></rt_info>"#;
    format!(
        r#"<?xml version="1.0"?><net name="m" version="11"><layers>{layers}</layers><edges>{edges}</edges>{written}</net>"#
    )
}

/// The weights of §11.7.
const WEIGHTS: [u8; 26] = [
    0xa0, 0xfb, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 1, 0x38, 0x7e, 0x7f, 0x3c, 0x7b, 0x7c, 0x80, 0x3f, 0,
    0x40, 0x40, 0x40, 0x21, 0x03,
];

/// The constants of §11.7 and their promotions. Every output has a Result.
fn fixture() -> Folder {
    let constants = [
        constant(0, "u1", "3", 0, 1),
        constant(1, "i64", "", 1, 8),
        constant(2, "boolean", "3", 9, 3),
        constant(3, "f8e4m3", "3", 12, 3),
        constant(4, "f8e5m2", "3", 15, 3),
        constant(5, "bf16", "3", 18, 6),
        constant(6, "u4", "3", 24, 2),
    ];
    let unsafely = r#"promote_unsafe="true""#;
    let promotions = [
        promote(10, r#"u64_integer_promotion_target="i64" promote_unsafe="false""#),
        promote(11, ""),
        promote(12, unsafely),
        promote(13, unsafely),
    ];
    let mut edges = Vec::new();
    for (node, a, b) in [(10, 0, 1), (11, 2, 1), (12, 3, 4), (13, 5, 6)] {
        edges.extend([edge((a, 0), (node, 0)), edge((b, 0), (node, 1))]);
        edges.extend([edge((node, 2), (2 * node, 0)), edge((node, 3), (2 * node + 1, 0))]);
    }
    let results = (20..28).map(result).collect();
    let folder =
        Folder::with("m.xml", net(&[constants.to_vec(), promotions.to_vec(), results].concat(), &edges).as_bytes());
    folder.write("m.bin", &WEIGHTS);
    folder
}

fn payload(npy: &[u8]) -> &[u8] {
    npy_parts(npy).1
}

#[test]
fn the_fixture() {
    let folder = fixture();
    let ran = folder.run("run m.xml --output-dir out --json").succeeds();
    let outputs = ran.object("run")["outputs"].as_array().unwrap().clone();
    let minus_five = (-5i64).to_le_bytes().to_vec();
    let i64s = |values: [i64; 3]| values.map(i64::to_le_bytes).concat();
    let u16s = |values: [u16; 3]| values.map(u16::to_le_bytes).concat();
    let expected: [(&str, &str, Value, Vec<u8>); 8] = [
        ("n20", "i64", json!([3]), i64s([1, 0, 1])),
        ("n21", "i64", json!([]), minus_five.clone()),
        ("n22", "i64", json!([3]), i64s([1, 0, 1])),
        ("n23", "i64", json!([]), minus_five),
        ("n24", "f16", json!([3]), u16s([0x3c00, 0x5f00, 0x7e00])),
        ("n25", "f16", json!([3]), u16s([0x3c00, 0x7b00, 0x7c00])),
        ("n26", "bf16", json!([3]), u16s([0x3f80, 0x4000, 0x4040])),
        ("n27", "bf16", json!([3]), u16s([0x3f80, 0x4000, 0x4040])),
    ];
    assert_eq!(outputs.len(), expected.len());
    for (output, (name, dtype, shape, bytes)) in outputs.iter().zip(expected) {
        assert_eq!((&output["name"], &output["dtype"], &output["shape"]), (&json!(name), &json!(dtype), &shape));
        assert_eq!(payload(&folder.read(&format!("out/{name}.npy"))), bytes, "{name}");
    }
    let judged = folder.run("check m.xml --spec openvino --json").succeeds().object("check");
    assert_eq!((&judged["conversions"], &judged["illegal"]), (&json!(4), &json!([])));
}

/// `docs/interfaces.md §3`: a graph of conversion nodes also has operations, and types if the model states them.
#[test]
fn inspect_a_network() {
    let layers = [
        layer(0, "Parameter", "opset1", r#"shape="?" element_type="f32""#, &[], &[0]),
        constant(1, "u8", "3", 0, 3),
        layer(2, "Convert", "opset1", r#"destination_type="i16""#, &[0], &[1]),
        promote(3, ""),
        result(4),
    ];
    let edges = [edge((0, 0), (2, 0)), edge((2, 1), (3, 0)), edge((1, 0), (3, 1)), edge((3, 2), (4, 0))];
    let folder = Folder::with("m.xml", net(&layers, &edges).as_bytes());
    folder.write("m.bin", &WEIGHTS);
    let object = folder.run("inspect m.xml --json").succeeds().object("inspect");
    assert_eq!(object["constants"], json!([{ "name": "n1", "dtype": "u8", "shape": "[3]" }]));
    let operators = json!({ "Const": 1, "Convert": 1, "ConvertPromoteTypes": 1, "Parameter": 1, "Result": 1 });
    assert_eq!(object["model"]["operators"], operators);
    assert_eq!(object["model"]["version"], "OpenVINO 2026.4");
    let conversion = |i: usize| {
        let c = &object["model"]["conversions"][i];
        ["operation", "from", "to"].map(|field| c[field].as_str().unwrap().to_string())
    };
    assert_eq!(conversion(0), ["Convert", "f32", "i16"]);
    assert_eq!(conversion(1), ["ConvertPromoteTypes", "i16, u8", "i16, i16"]);
    folder.run("inspect m.xml").succeeds().says(&["5 operations: Const 1, Convert 1"]);
}

#[test]
fn undefined_inputs() {
    let layers = [
        layer(0, "Parameter", "opset1", r#"shape="?" element_type="f32""#, &[], &[0]),
        layer(1, "Convert", "opset1", r#"destination_type="u8""#, &[0], &[1]),
        result(2),
    ];
    let folder = Folder::with("m.xml", net(&layers, &[edge((0, 0), (1, 0)), edge((1, 1), (2, 0))]).as_bytes());
    let values = [300.7f32, -1.5, 7.9, f32::NAN];
    folder.write("x.npy", &npy("<f4", 4, &values.map(f32::to_le_bytes).concat()));
    let ran = folder.run("run m.xml --input n0=x.npy --output-dir out --json").succeeds().object("run");
    assert_eq!(payload(&folder.read("out/n2.npy")), [44, 255, 7, 0]); // §6.5
    assert_eq!((&ran["undefined"][0]["undefined"], &ran["undefined"][0]["elements"]), (&json!(3), &json!(4)));
    folder.run("run m.xml --input n0=x.npy --output-dir out --force").succeeds().says(&["3 of 4 values are left open"]);
    folder.refused("run m.xml --output-dir out", "missing-argument", &["n0", "add --input n0=FILE"]);
}

#[test]
fn malformed_networks() {
    let one = |layer: String| net(&[layer, result(9)], &[edge((0, 0), (9, 0))]);
    let convert_of = |version, attributes| {
        net(
            &[constant(0, "f32", "1", 0, 4), layer(1, "Convert", version, attributes, &[0], &[1]), result(9)],
            &[edge((0, 0), (1, 0)), edge((1, 1), (9, 0))],
        )
    };
    let to_f16 = r#"destination_type="f16""#;
    let promoted = |version: &str, a: &str, b: &str, attributes: &str| {
        let node = layer(2, "ConvertPromoteTypes", version, attributes, &[0, 1], &[2, 3]);
        let edges = [edge((0, 0), (2, 0)), edge((1, 0), (2, 1)), edge((2, 2), (9, 0))];
        net(&[constant(0, a, "1", 0, 8), constant(1, b, "1", 0, 8), node, result(9)], &edges)
    };
    let constant_of = |attributes| one(layer(0, "Const", "opset1", attributes, &[], &[0]));
    let wired = |from, to| net(&[constant(0, "f32", "1", 0, 4), result(9)], &[edge(from, to)]);
    let around = [layer(0, "Convert", "opset1", r#"destination_type="f32""#, &[0], &[1]), result(9)];
    let to_nf4 = r#"u64_integer_promotion_target="nf4""#;
    let (malformed, illegal) = ("malformed-file", "illegal-operation");
    let rows = [
        ("<net".into(), malformed, "XML"),
        ("<net version='12'/>".into(), "unsupported-file", "net version \"12\""),
        (one(constant(0, "f32", "2", 0, 7)), "shape-mismatch", "size 7"),
        (one(constant(0, "u3", "3", 0, 2)), "shape-mismatch", "size 2"),
        (one(constant(0, "f32", "2", 20, 8)), "truncated-file", "outside the weights file of 26 bytes"),
        (one(constant(0, "f32", "2", u64::MAX, 8)), malformed, "offset + size"),
        (one(constant(0, "f32", "4294967296,4294967296", 0, 12)), malformed, "the number of elements"),
        (one(constant(0, "f32", "9223372036854775807", 0, 12)), malformed, "bytes"),
        (one(constant(0, "f32", "-1", 0, 4)), illegal, "is not a dimension"),
        (one(constant(0, "FP32", "1", 0, 4)), illegal, "is not an element type"),
        (one(constant(0, "string", "1", 0, 4)), "unsupported-type", "elements of type string"),
        (constant_of(r#"element_type="f32" shape="1" size="4""#), illegal, "offset is missing"),
        (constant_of(r#"element_type="f32" shape="1" offset="0x0" size="4""#), illegal, "is not a decimal number"),
        (one(layer(0, "Parameter", "opset1", r#"shape="1""#, &[], &[0])), illegal, "element_type is missing"),
        (one(layer(0, "ReLU", "opset1", "", &[], &[0])), "unsupported-operator", "not a conversion"),
        (convert_of("opset1", ""), illegal, "destination_type is missing"),
        (convert_of("opset1", r#"destination_type="string""#), illegal, "is not a concrete element type"),
        (convert_of("opset99", to_f16), illegal, "\"opset99\"; operator sets are opset1 to opset17"),
        (convert_of("opset", to_f16), illegal, "unknown operator set \"opset\""),
        (promoted("opset13", "u8", "u8", ""), illegal, "operator set \"opset13\""),
        (promoted("opset16", "u8", "i8", ""), illegal, "TC-PRM-04"),
        (promoted("opset14", "u8", "u2", ""), illegal, "TC-PRM-01"),
        (promoted("opset14", "u8", "u8", to_nf4), illegal, "TC-PRM-06"),
        (net(&[result(9)], &[]), illegal, "nothing is connected to input port 0"),
        (wired((5, 0), (9, 0)), illegal, "no such source layer"),
        (wired((0, 7), (9, 0)), illegal, "no such output port"),
        (wired((0, 0), (9, 3)), illegal, "no such input port"),
        (net(&around, &[edge((0, 1), (0, 0)), edge((0, 1), (9, 0))]), illegal, "depends on itself"),
    ];
    for (xml, code, said) in rows {
        let folder = Folder::with("m.xml", xml.as_bytes());
        folder.write("m.bin", &WEIGHTS);
        folder.refused("run m.xml --output-dir out", code, &["m.xml", said]);
        assert_eq!(folder.names(), ["m.bin", "m.xml"], "{said}");
    }
    let folder = Folder::with("m.xml", convert_of("opset17", to_f16).as_bytes());
    folder.write("m.bin", &WEIGHTS);
    folder.run("run m.xml --output-dir out").succeeds();
    let folder = Folder::with("m.xml", one(constant(0, "f32", "1", 0, 4)).as_bytes());
    folder.refused("run m.xml --output-dir out", "missing-file", &["m.xml", "\"n0\"", "m.bin"]);
    folder.refused("check m.xml --spec tile", "inapplicable-option", &["--spec openvino"]);
}

#[test]
fn hostile_xml() {
    let inside = |layers: &str| format!("<net version='11'><layers>{layers}</layers></net>");
    let entities: String = (1..30).map(|i| format!("<!ENTITY e{i} '&e{0};&e{0};'>", i - 1)).collect();
    // 2^29 copies of a text, and a file of the system.
    let bomb = format!("<!DOCTYPE net [<!ENTITY e0 'aaaa'>{entities}]><net name='&e29;' version='11'/>");
    let file = "<!DOCTYPE net [<!ENTITY x SYSTEM 'file:///etc/hostname'>]><net version='11'>&x;</net>";
    let rows = [
        (bomb, "malformed-file", "DTD"),
        (file.into(), "malformed-file", "DTD"),
        (inside(&"<a>".repeat(1_000_000)), "malformed-file", "XML"),
        (inside("<a xmlns:b='c'/>"), "unsupported-file", "namespaces"),
        (inside(&"<a b=''/>".repeat((1 << 21) + 1)), "limit-exceeded", "attributes"),
        (inside(&"<a/>".repeat(1 << 21)), "malformed-file", "XML"),
    ];
    for (xml, code, said) in rows {
        let folder = Folder::with("m.xml", xml.as_bytes());
        for line in ["run m.xml --output-dir out", "check m.xml --spec openvino"] {
            folder.refused(line, code, &["m.xml", said]);
            assert_eq!(folder.names(), ["m.xml"], "{said}");
        }
    }
    // A million nested elements: no recursion.
    let folder = Folder::with("m.xml", inside(&("<a>".repeat(1_000_000) + &"</a>".repeat(1_000_000))).as_bytes());
    folder.run("check m.xml --spec openvino").succeeds();
    // One byte above the limit of 64 MiB.
    let folder = Folder::with("m.xml", b"");
    std::fs::File::options().write(true).open(folder.path("m.xml")).unwrap().set_len((64 << 20) + 1).unwrap();
    folder.refused("run m.xml --output-dir out", "limit-exceeded", &["67108865", "XML"]);
    folder.write("m.xml", b"<net version='11' name='\xff'/>");
    folder.refused("run m.xml --output-dir out", "malformed-file", &["m.xml"]);
}

#[test]
fn legality_among_other_layers() {
    let layers = [
        layer(0, "Parameter", "opset1", r#"shape="" element_type="u8""#, &[], &[0]),
        r#"<layer id="1" name="n1" type="MatMul" version="opset1"><output><port id="0" precision="I8"/></output></layer>"#
            .into(),
        promote(2, ""),
        promote(3, r#"promote_unsafe="yes""#),
    ];
    let edges = [edge((0, 0), (2, 0)), edge((1, 0), (2, 1)), edge((0, 0), (3, 0)), edge((0, 0), (3, 1))];
    let folder = Folder::with("m.xml", net(&layers, &edges).as_bytes());
    let ran = folder.run("check m.xml --spec openvino").exits(1);
    ran.says(&["layer 2 \"n2\" (ConvertPromoteTypes): TC-PRM-04", "ILLEGAL: 1 legal, 1 illegal"])
        .warns(&["promote_unsafe: \"yes\" is read as false"]);
}

/// §10.2: the writer of the file determines the layout. An unknown writer gives a warning.
#[test]
fn the_layout_of_an_unknown_writer() {
    let model = net(&[constant(0, "u2", "4", 0, 1), result(9)], &[edge((0, 0), (9, 0))]);
    let written = r#"<rt_info><info name="OpenVINO Runtime" value="2026.4.1-22982"/></rt_info>"#;
    let folder = Folder::with("m.xml", model.replace(written, "").as_bytes());
    folder.write("m.bin", &[0x1b]);
    folder.run("run m.xml --output-dir out").exits(0).warns(&["does not state the release"]);
    assert_eq!(payload(&folder.read("out/n9.npy")), [3, 2, 1, 0]);
}

#[test]
fn layouts_that_are_named() {
    let written = |xml: String| xml.replace("2026.4.1-22982", "2027.0.0-1");
    let model = written(net(&[constant(0, "u3", "2", 0, 3), result(9)], &[edge((0, 0), (9, 0))]));
    let folder = Folder::with("m.xml", model.as_bytes());
    folder.write("m.bin", &[0b11_01_00_00, 0, 0b0100_0000]);
    folder.refused("run m.xml --output-dir out", "unsupported-file", &["2027.0", "--ir-layout"]);
    for (layout, expected) in [("groups", [3, 5]), ("stream", [0, 2])] {
        folder.run(&format!("run m.xml --output-dir out --force --ir-layout {layout}")).succeeds();
        assert_eq!(payload(&folder.read("out/n9.npy")), expected, "{layout}");
    }
}

#[test]
fn the_specification() {
    let folder = Folder::with("x.npy", &npy("<f4", 2, &[465f32, 1.0].map(f32::to_le_bytes).concat()));
    folder.run("convert x.npy y.npy --to f8e4m3fn --spec openvino").succeeds();
    assert_eq!(payload(&folder.read("y.npy")), [0x7f, 0x38]); // overflow is NaN, §6.6
    folder.run("verify x.npy y.npy --to f8e4m3fn --spec openvino@2026.4").succeeds();
    folder.refused("convert x.npy z.npy --to tf32 --spec openvino", "unsupported-type", &["tf32", "--spec ieee"]);
}

/// Rows of §9.
#[test]
fn known_differences() {
    let folder = Folder::new();
    let explained = folder.run("explain 0x3f80ffff --to bf16 --spec openvino --json").succeeds().object("explain");
    let results = explained["results"].as_array().unwrap();
    assert_eq!((results.len(), &results[0]["bits"]), (1, &json!("0x3f81")));
    let differences = explained["known_differences"].as_array().unwrap();
    let reference = differences.iter().find(|d| d["implementation"] == "reference evaluator").unwrap();
    assert_eq!(reference["version"], "2026.4.1");
    assert_eq!(reference["witness"]["given"], json!([{ "bits": "0x3f80", "value": "1" }]));
    assert_eq!(reference["witness"]["is_this_value"], true);
    let text = folder.run("explain 5e9 --to u32 --spec openvino").succeeds().out;
    assert!(text.contains("this value gives 0x00000000 = 0 or 0x2a05f200 = 705032704 instead of 0x2a05f200"), "{text}");
    folder.run("explain 1 --to f16 --spec onnx").succeeds().lacks(&["CPU plugin"]);
    let none = folder.run("explain 1 --from i8 --to i32 --spec openvino --json").succeeds().object("explain");
    assert_eq!(none["known_differences"], json!([]));
}
