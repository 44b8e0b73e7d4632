//! Models of conversions, made byte by byte. Results are written by hand from `docs/spec/onnx.md §1` and the public
//! rules of functions and constants.

use std::sync::Arc;
use truecast_core::DType;
use truecast_core::policy::TextStyle;
use truecast_io::onnx::{ModelFile, Options};
use truecast_kernel::CastOptions;
use truecast_models::onnx::{NodeError, build, check, conversions};
use truecast_models::{Data, Error, Graph, Legality, LegalityReport, Tensor, evaluate};
use truecast_testkit::proto::{
    self, attribute, bytes, choice, constant, fixed32, graph, int, node, raw, tensor, value,
};
use truecast_testkit::{memory, timing};

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

const FLOAT: i64 = 1;
const INT64: i64 = 7;
const STRING: i64 = 8;
const FLOAT16: i64 = 10;
const E4M3FN: i64 = 17;
const E8M0: i64 = 24;

// ---- messages ----

fn input(info: Vec<u8>) -> Vec<u8> {
    bytes(11, info)
}

fn output(info: Vec<u8>) -> Vec<u8> {
    bytes(12, info)
}

fn number(name: &str, n: i64) -> Vec<u8> {
    attribute(name, 2, int(3, n))
}

fn string(name: &str, text: &str) -> Vec<u8> {
    attribute(name, 3, bytes(4, text))
}

/// An attribute whose value is an attribute of the function's call.
fn reference(name: &str, kind: i64, of: &str) -> Vec<u8> {
    attribute(name, kind, bytes(21, of))
}

fn cast(from: &str, to: &str, code: i64) -> Vec<u8> {
    node("Cast", &[from], &[to], &[number("to", code)])
}

fn in_domain(node: Vec<u8>, domain: &str) -> Vec<u8> {
    [node, bytes(7, domain)].concat()
}

fn function(name: &str, inputs: &[&str], outputs: &[&str], nodes: &[Vec<u8>], others: Vec<u8>) -> Vec<u8> {
    let all = |number: u32, names: &[&str]| names.iter().flat_map(|n| bytes(number, n)).collect::<Vec<_>>();
    let nodes: Vec<u8> = nodes.iter().flat_map(|n| bytes(7, n)).collect();
    [bytes(1, name), all(4, inputs), all(5, outputs), nodes, bytes(9, int(2, 25)), bytes(10, "f"), others].concat()
}

fn model(opset: i64, graph: Vec<u8>, functions: &[Vec<u8>]) -> Vec<u8> {
    let functions: Vec<u8> = functions.iter().flat_map(|f| bytes(25, f)).collect();
    [proto::model(13, opset, &graph), functions].concat()
}

// ---- running ----

fn open(model: &[u8]) -> Arc<ModelFile> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.onnx");
    std::fs::write(&path, model).unwrap();
    Arc::new(ModelFile::open(&path, Options::default()).unwrap())
}

fn built(model: &[u8]) -> Result<Graph, String> {
    build(&open(model), TextStyle::default()).map_err(|e| e.to_string())
}

fn floats(values: &[f32]) -> Tensor {
    let codes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    Tensor { dtype: DType::F32, shape: vec![values.len() as u64], data: Data::Codes(codes) }
}

fn run(model: &[u8], inputs: &[(&str, Tensor)]) -> Result<Vec<(String, Tensor)>, String> {
    let graph = built(model)?;
    let mut results = Vec::new();
    let provide = |input: &truecast_models::Input| {
        Ok(inputs.iter().find(|(name, _)| *name == input.name).map(|(_, tensor)| tensor.clone()))
    };
    let done = evaluate::<Error>(&graph, &CastOptions::default(), provide, |output, tensor| {
        results.push((output.name.clone(), tensor.clone()));
        Ok(())
    });
    done.map_err(|e| e.to_string())?;
    Ok(results)
}

fn one(model: &[u8], inputs: &[(&str, Tensor)]) -> Tensor {
    let results = run(model, inputs).unwrap();
    assert_eq!(results.len(), 1);
    results[0].1.clone()
}

fn codes(tensor: &Tensor) -> &[u8] {
    match &tensor.data {
        Data::Codes(codes) => codes,
        _ => panic!("text"),
    }
}

fn texts(tensor: &Tensor) -> Vec<String> {
    match &tensor.data {
        Data::Texts(texts) => texts.iter().map(|t| String::from_utf8(t.to_vec()).unwrap()).collect(),
        _ => panic!("codes"),
    }
}

#[track_caller]
fn refused(model: &[u8], words: &[&str]) {
    let error = built(model).expect_err("refused");
    for word in words {
        assert!(error.contains(word), "no {word:?} in: {error}");
    }
}

fn xy(nodes: &[Vec<u8>], y: i64) -> Vec<u8> {
    graph(nodes, &[], [input(value("x", FLOAT, &[2])), output(value("y", y, &[2]))].concat())
}

// ---- operators ----

#[test]
fn chains_and_outputs() {
    // 1 and 465 through E4M3FN (448) to FLOAT16. The intermediate is an output too.
    let nodes = [cast("x", "h", E4M3FN), node("Identity", &["h"], &["i"], &[]), cast("i", "y", FLOAT16)];
    let outputs = [output(value("y", FLOAT16, &[2])), output(value("h", E4M3FN, &[2]))].concat();
    let model = model(28, graph(&nodes, &[], [input(value("x", FLOAT, &[2])), outputs].concat()), &[]);
    let results = run(&model, &[("x", floats(&[1.0, 465.0]))]).unwrap();
    let of = |name: &str| results.iter().find(|(n, _)| n == name).unwrap().1.clone();
    assert_eq!(codes(&of("h")), [0x38, 0x7e]);
    assert_eq!(codes(&of("y")), [0x00, 0x3c, 0x00, 0x5f]);
}

/// §1.4: the type is taken from the second input, which may be empty. `round_mode` is applied.
#[test]
fn cast_like() {
    for (mode, code) in [("up", 0x80), ("down", 0x7f)] {
        let nodes = [node("CastLike", &["x", "t"], &["y"], &[string("round_mode", mode)])];
        let empty = tensor("t", E8M0, &[0]);
        let others = [input(value("x", FLOAT, &[1])), output(value("y", E8M0, &[1]))].concat();
        let model = model(25, graph(&nodes, &[empty], others), &[]);
        assert_eq!(codes(&one(&model, &[("x", floats(&[1.5]))])), [code], "{mode}");
    }
}

#[test]
fn constants() {
    let strings = |all: &[&str]| all.iter().flat_map(|t| bytes(9, t)).collect::<Vec<_>>();
    type Row<'a> = (Vec<u8>, i64, &'a [u64], Result<&'a [u8], &'a [&'a str]>);
    let half = raw("", FLOAT16, &[2], &[0, 0x3c, 0, 0xc0]);
    let rows: Vec<Row> = vec![
        (attribute("value", 4, bytes(5, half)), FLOAT16, &[2], Ok(&[0, 0x3c, 0, 0xc0])),
        (attribute("value_float", 1, fixed32(2, 1.5f32.to_le_bytes())), FLOAT, &[], Ok(&[0, 0, 0xc0, 0x3f])),
        (attribute("value_floats", 6, bytes(7, 1f32.to_le_bytes())), FLOAT, &[1], Ok(&[0, 0, 0x80, 0x3f])),
        (number("value_int", -1), INT64, &[], Ok(&[0xff; 8])),
        (attribute("value_ints", 7, proto::packed(8, &[])), INT64, &[0], Ok(&[])),
        (string("value_string", "1e3"), STRING, &[], Err(&["1e3"])),
        (attribute("value_strings", 8, strings(&["", "a"])), STRING, &[2], Err(&["", "a"])),
    ];
    for (attribute, dtype, shape, expected) in rows {
        let info = [bytes(1, "y"), bytes(2, bytes(1, int(1, dtype)))].concat();
        let model = model(28, graph(&[node("Constant", &[], &["y"], &[attribute])], &[], output(info)), &[]);
        let result = one(&model, &[]);
        assert_eq!(result.shape, shape);
        match expected {
            Ok(expected) => assert_eq!(codes(&result), expected),
            Err(expected) => assert_eq!(texts(&result), expected),
        }
    }
    let constant = |attributes: &[Vec<u8>]| graph(&[node("Constant", &[], &["c"], attributes)], &[], vec![]);
    refused(&model(28, constant(&[]), &[]), &["Constant", "exactly one"]);
    refused(&model(28, constant(&[number("value_int", 1), number("value_int", 1)]), &[]), &["exactly one"]);
    refused(&model(11, constant(&[number("value_int", 1)]), &[]), &["value_int", "opset 12"]);
    refused(&model(28, constant(&[number("value_float", 1)]), &[]), &["value_float", "INT"]);
    refused(&model(28, constant(&[number("axis", 1)]), &[]), &["axis"]);
}

#[test]
fn text() {
    // 0.1 prints as the shortest text of FLOAT. This text reads as the nearest FLOAT16, 2E66 (§6.3).
    let nodes = [cast("x", "s", STRING), cast("s", "y", FLOAT16)];
    let outputs = [output(value("s", STRING, &[1])), output(value("y", FLOAT16, &[1]))].concat();
    let model_ = model(28, graph(&nodes, &[], [input(value("x", FLOAT, &[1])), outputs].concat()), &[]);
    let results = run(&model_, &[("x", floats(&[0.1]))]).unwrap();
    assert_eq!(texts(&results[0].1), ["0.1"]);
    assert_eq!(codes(&results[1].1), [0x66, 0x2e]);
    // 4-bit elements are packed, to and from text.
    let bad = model(
        28,
        graph(&[cast("c", "y", 22)], &[text_tensor("c", &["-8", "7", "1"])], output(value("y", 22, &[3]))),
        &[],
    );
    assert_eq!(codes(&one(&bad, &[])), [0x78, 0x01]);
    let bad = model(
        28,
        graph(&[cast("c", "y", FLOAT)], &[text_tensor("c", &["1", "x"])], output(value("y", FLOAT, &[2]))),
        &[],
    );
    let error = run(&bad, &[]).unwrap_err();
    assert!(error.contains("\"y\"") && error.contains("element 1"), "{error}");
}

/// Texts have open results under U8 and U10 of §4.11. Numbers always have open results under U9.
#[test]
fn open_texts_are_counted() {
    const INT8: i64 = 3;
    const BOOL: i64 = 9;
    let nodes = [
        cast("s", "i", INT8),
        cast("s", "n", 22),
        cast("s", "b", BOOL),
        cast("s", "f", FLOAT),
        cast("s", "t", STRING),
        cast("x", "p", STRING),
    ];
    let outputs = ["i", "n", "b", "f", "t", "p"].map(|name| output(bytes(1, name))).concat();
    let others = [input(value("x", FLOAT, &[2])), outputs].concat();
    let whole = model(28, graph(&nodes, &[text_tensor("s", &["300", "2.5", "-1"])], others), &[]);
    let graph = build(&open(&whole), TextStyle::default()).unwrap();
    let provide = |_: &truecast_models::Input| Ok(Some(floats(&[1.0, 2.0])));
    let open = evaluate::<Error>(&graph, &CastOptions::default(), provide, |_, _| Ok(())).unwrap();
    let found: Vec<_> = open.iter().map(|o| (o.conversion.as_str(), o.elements, o.undefined)).collect();
    let node = |name: &str| format!("node that produces \"{name}\" (Cast)");
    let names = ["i", "n", "b", "p"].map(node);
    assert_eq!(found, [(&*names[0], 3, 2), (&*names[1], 3, 2), (&*names[2], 3, 3), (&*names[3], 2, 2)]);
}

fn text_tensor(name: &str, texts: &[&str]) -> Vec<u8> {
    let texts_: Vec<u8> = texts.iter().flat_map(|t| bytes(6, t)).collect();
    [tensor(name, STRING, &[texts.len() as i64]), texts_].concat()
}

#[test]
fn inputs_with_defaults_and_symbols() {
    let default = raw("x", FLOAT, &[1], &2f32.to_le_bytes());
    let others = [input(value("x", FLOAT, &[1])), output(value("y", FLOAT16, &[1]))].concat();
    let model_ = model(28, graph(&[cast("x", "y", FLOAT16)], &[default], others), &[]);
    assert_eq!(codes(&one(&model_, &[])), [0, 0x40]);
    assert_eq!(codes(&one(&model_, &[("x", floats(&[1.0]))])), [0, 0x3c]);

    let symbol = |name: &str, elem: i64| {
        let shape = bytes(2, bytes(1, bytes(2, "N")));
        [bytes(1, name), bytes(2, bytes(1, [int(1, elem), shape].concat()))].concat()
    };
    let others = [input(symbol("a", FLOAT)), input(symbol("b", FLOAT)), output(symbol("y", FLOAT16))].concat();
    let model_ = model(28, graph(&[cast("a", "y", FLOAT16)], &[], others), &[]);
    let feed = |b: &[f32]| run(&model_, &[("a", floats(&[1.0, 2.0])), ("b", floats(b))]);
    assert!(feed(&[0.0, 0.0]).is_ok());
    let error = feed(&[0.0]).unwrap_err();
    assert!(error.contains("\"b\"") && error.contains("[1]") && error.contains("N"), "{error}");
    let missing = run(&model_, &[("b", floats(&[1.0]))]).unwrap_err();
    assert!(missing.contains("input \"a\" (f32 [\"N\"]) has no value"), "{missing}");
    let wrong = Tensor { dtype: DType::I32, ..floats(&[1.0]) };
    let error = run(&model_, &[("a", wrong)]).unwrap_err();
    assert!(error.contains("i32") && error.contains("f32"), "{error}");
}

// ---- functions ----

#[test]
fn functions_are_expanded() {
    // Twice(x) = Once(Once(x)). Once casts to the type in its attribute and back to FLOAT.
    let once = function(
        "Once",
        &["x"],
        &["y"],
        &[
            node("Cast", &["x"], &["h"], &[reference("to", 2, "type"), reference("saturate", 2, "sat")]),
            cast("h", "y", FLOAT),
        ],
        [bytes(6, "type"), bytes(6, "sat")].concat(),
    );
    let call = |from: &str, to: &str, attributes: &[Vec<u8>]| in_domain(node("Once", &[from], &[to], attributes), "f");
    let twice = function(
        "Twice",
        &["x"],
        &["y"],
        &[call("x", "h", &[number("type", E4M3FN)]), call("h", "y", &[number("type", E4M3FN)])],
        vec![],
    );
    let functions = [once.clone(), twice];
    let nodes = [in_domain(node("Twice", &["x"], &["y"], &[]), "f")];
    let model_ = model(25, xy(&nodes, FLOAT), &functions);
    let result = one(&model_, &[("x", floats(&[465.0, 1.0625]))]);
    assert_eq!(result, floats(&[448.0, 1.0])); // "sat" is not given: as if it were not there, and the default is 1
    // The call gives the attribute, through two references.
    let through = function(
        "Through",
        &["x"],
        &["y"],
        &[call("x", "y", &[number("type", E4M3FN), reference("sat", 2, "saturation")])],
        bytes(11, number("saturation", 0)),
    );
    let functions = [once.clone(), through];
    let of = |attributes: &[Vec<u8>]| {
        let nodes = [in_domain(node("Through", &["x"], &["y"], attributes), "f")];
        one(&model(25, xy(&nodes, FLOAT), &functions), &[("x", floats(&[465.0, 1.0]))])
    };
    assert!(f32::from_le_bytes(codes(&of(&[]))[..4].try_into().unwrap()).is_nan()); // the default of Through
    assert_eq!(of(&[number("saturation", 1)]), floats(&[448.0, 1.0]));
    // `to` is required, and an attribute that the function lacks is an error.
    let nodes = [call("x", "y", &[])];
    refused(&model(25, xy(&nodes, FLOAT), std::slice::from_ref(&once)), &["attribute to", "is missing"]);
    let nodes = [call("x", "y", &[number("axis", 1)])];
    refused(&model(25, xy(&nodes, FLOAT), &[once]), &["axis", "Once"]);
}

#[test]
fn overloads_and_inputs_that_are_left_out() {
    let overload = |name: &str, to: i64| {
        function("F", &["x"], &["y"], &[cast("x", "h", to), cast("h", "y", FLOAT)], bytes(13, name))
    };
    let functions = [overload("half", FLOAT16), overload("eight", E4M3FN)];
    for (name, expected) in [("half", 465.0), ("eight", 448.0)] {
        let call = [in_domain(node("F", &["x"], &["y"], &[]), "f"), bytes(8, name)].concat();
        let result = one(&model(25, xy(&[call], FLOAT), &functions), &[("x", floats(&[465.0, 0.0]))]);
        assert_eq!(result, floats(&[expected, 0.0]));
    }
    let second = |body: &[Vec<u8>]| function("G", &["x", "z"], &["y"], body, vec![]);
    let call = |inputs: &[&str]| in_domain(node("G", inputs, &["y"], &[]), "f");
    let unused = second(&[cast("x", "y", FLOAT16)]);
    for inputs in [&["x"][..], &["x", ""], &["x", "x"]] {
        assert!(built(&model(25, xy(&[call(inputs)], FLOAT16), std::slice::from_ref(&unused))).is_ok(), "{inputs:?}");
    }
    let used = second(&[cast("z", "y", FLOAT16)]);
    refused(&model(25, xy(&[call(&["x"])], FLOAT16), &[used]), &["input 0 is missing"]);
    refused(&model(25, xy(&[call(&["x", "x", "x"])], FLOAT16), &[unused]), &["3 inputs"]);
}

#[test]
fn recursion_and_explosions_are_refused() {
    let call = |name: &str, from: &str, to: &str| in_domain(node(name, &[from], &[to], &[]), "f");
    let own = function("A", &["x"], &["y"], &[call("B", "x", "y")], vec![]);
    let other = function("B", &["x"], &["y"], &[call("A", "x", "y")], vec![]);
    refused(&model(25, xy(&[call("A", "x", "y")], FLOAT), &[own, other]), &["calls itself"]);
    // Each function calls its predecessor twice: 2^40 nodes.
    let mut functions = vec![function("F0", &["x"], &["y"], &[cast("x", "y", FLOAT)], vec![])];
    for i in 1..=40 {
        let inner = format!("F{}", i - 1);
        let nodes = [call(&inner, "x", "h"), call(&inner, "h", "y")];
        functions.push(function(&format!("F{i}"), &["x"], &["y"], &nodes, vec![]));
    }
    refused(&model(25, xy(&[call("F40", "x", "y")], FLOAT), &functions), &["more than 1048576 nodes"]);
    let mut functions = vec![function("F0", &["x"], &["y"], &[cast("x", "y", FLOAT)], vec![])];
    for i in 1..=5000 {
        functions.push(function(&format!("F{i}"), &["x"], &["y"], &[call(&format!("F{}", i - 1), "x", "y")], vec![]));
    }
    assert!(built(&model(25, xy(&[call("F100", "x", "y")], FLOAT), &functions)).is_ok());
    refused(&model(25, xy(&[call("F5000", "x", "y")], FLOAT), &functions), &["deep"]);
}

/// A function's constant exists once, even if there are many calls. It is in the node, or is a tensor of the file.
#[test]
fn constants_of_functions_are_shared() {
    const CALLS: usize = 1000;
    let ints = attribute("value_ints", 7, proto::packed(8, &(0..10_000).collect::<Vec<_>>()));
    let stored = bytes(5, raw("", FLOAT, &[10_000], &[0; 40_000]));
    for attribute in [ints, attribute("value", 4, stored)] {
        let body = [node("Constant", &[], &["y"], &[attribute])];
        let functions = [function("F", &[], &["y"], &body, vec![])];
        // Every value is used early, and again at the end.
        let call = |i| in_domain(node("F", &[], &[&format!("c{i}")], &[]), "f");
        let casts = |to: &str| (0..CALLS).map(|i| cast(&format!("c{i}"), &format!("{to}{i}"), 9)).collect();
        let nodes: [Vec<Vec<u8>>; 3] = [(0..CALLS).map(call).collect(), casts("early"), casts("late")];
        let outputs =
            (0..CALLS).flat_map(|i| [output(bytes(1, format!("early{i}"))), output(bytes(1, format!("late{i}")))]);
        let whole = model(28, graph(&nodes.concat(), &[], outputs.flatten().collect()), &functions);
        let file = open(&whole);
        memory::begin();
        let graph = build(&file, TextStyle::default()).unwrap();
        let mut delivered = 0;
        let exec = CastOptions { threads: std::num::NonZeroUsize::MIN, ..CastOptions::default() };
        let deliver = |_: &truecast_models::Output, _: &Tensor| {
            delivered += 1;
            Ok(())
        };
        evaluate::<Error>(&graph, &exec, |_| Ok(None), deliver).unwrap();
        assert_eq!(delivered, 2 * CALLS);
        assert!(memory::peak() < 8 << 20, "{}", memory::peak());
    }
}

/// The cost of a call is bounded, even with omitted parameters and unused defaults.
#[test]
fn wide_functions_are_bounded() {
    let names: Vec<String> = (0..5000).map(|i| format!("p{i}")).collect();
    let parameters: Vec<&str> = names.iter().map(String::as_str).collect();
    let body = [node("Cast", &["p0"], &["y"], &[reference("to", 2, "p4999")])];
    let calls = |n: usize| -> Vec<Vec<u8>> {
        (0..n).map(|i| in_domain(node("F", &["x"], &[&format!("y{i}")], &[]), "f")).collect()
    };
    let graph_of = |n| graph(&calls(n), &[], [input(value("x", FLOAT, &[2])), output(bytes(1, "y0"))].concat());
    let others = names.iter().flat_map(|name| bytes(11, number(name, FLOAT16))).collect::<Vec<_>>();
    let narrow = function("F", &["p0"], &["y"], &body, others.clone());
    assert!(built(&model(25, graph_of(5000), &[narrow])).is_ok());
    let wide = function("F", &parameters, &["y"], &body, others);
    assert!(built(&model(25, graph_of(10), std::slice::from_ref(&wide))).is_ok());
    refused(&model(25, graph_of(5000), &[wide]), &["more than 8388608 inputs"]);
}

// ---- refusals ----

#[test]
fn models_that_are_not_conversions() {
    let y = |nodes: &[Vec<u8>]| model(28, xy(nodes, FLOAT16), &[]);
    refused(&y(&[node("Relu", &["x"], &["y"], &[])]), &["\"y\"", "Relu", "not a conversion"]);
    refused(&y(&[in_domain(node("Cast", &["x"], &["y"], &[number("to", 10)]), "com.example")]), &["com.example.Cast"]);
    let named = [node("Relu", &["x"], &["y"], &[]), bytes(3, "a\nname")].concat();
    let error = built(&y(&[named])).unwrap_err();
    assert!(error.contains(r#""a\nname""#) && !error.contains('\n'), "{error}");
    refused(&y(&[cast("z", "y", FLOAT16)]), &["\"z\"", "not defined"]);
    refused(&y(&[cast("h", "y", FLOAT16), cast("x", "h", FLOAT16)]), &["\"h\"", "not defined before"]);
    refused(&y(&[cast("x", "y", FLOAT16), cast("x", "y", FLOAT16)]), &["\"y\"", "twice"]);
    refused(&y(&[]), &["output \"y\"", "no node"]);
    let twice = [input(value("x", FLOAT, &[2])), output(value("x", FLOAT, &[2])), output(value("x", FLOAT, &[2]))];
    refused(&model(28, graph(&[], &[], twice.concat()), &[]), &["output \"x\"", "twice"]);
    refused(&y(&[cast("x", "y", FLOAT)]), &["output \"y\"", "f32", "f16"]);
    refused(&y(&[cast("", "y", FLOAT16)]), &["input 0 is missing"]);
    refused(&y(&[node("Cast", &["x", "x"], &["y"], &[number("to", 10)])]), &["2 inputs, but 1"]);
    refused(&y(&[node("Cast", &["x"], &["y", "z"], &[number("to", 10)])]), &["2 outputs, but 1"]);
    refused(&y(&[node("CastLike", &["x"], &["y"], &[])]), &["1 inputs, but 2"]);
    refused(&y(&[node("Identity", &["x"], &["y"], &[number("a", 1)])]), &["Identity has no attributes"]);
    refused(&y(&[node("Cast", &["x"], &["y"], &[reference("to", 2, "t")])]), &["attribute to", "is missing"]);
    // Legality by the model's own opset (§1.2).
    refused(&model(18, xy(&[cast("x", "y", E4M3FN)], E4M3FN), &[]), &["opset 18", "f8e4m3fn", "opset 19"]);
    refused(&model(29, xy(&[cast("x", "y", FLOAT16)], FLOAT16), &[]), &["29"]);
    let no_opset = [int(1, 13), bytes(7, xy(&[cast("x", "y", FLOAT16)], FLOAT16))].concat();
    refused(&no_opset, &["no version of the default domain"]);
}

/// §1.3: `to` of Cast-1 is a type's name.
#[test]
fn cast_1() {
    let graph = xy(&[node("Cast", &["x"], &["y"], &[string("to", "FLOAT16")])], FLOAT16);
    assert_eq!(codes(&one(&model(5, graph.clone(), &[]), &[("x", floats(&[1.0, 2.0]))])), [0, 0x3c, 0, 0x40]);
    refused(&model(6, graph, &[]), &["DataType number"]);
}

// ---- checking ----

fn judged(model: &[u8], opset: Option<u32>) -> LegalityReport<NodeError> {
    check(open(model).model(), opset)
}

#[test]
fn conversions_are_judged_wherever_they_are() {
    let inner = graph(&[cast("x", "z", 24), cast("z", "w", FLOAT)], &[], vec![]);
    let nodes = [
        cast("x", "a", E4M3FN),
        node("MatMul", &["a", "a"], &["b"], &[]),
        node("Cast", &["b"], &["c"], &[number("to", FLOAT), number("saturate", 2)]),
        choice("c", "d", inner),
    ];
    let body = function("F", &["x"], &["y"], &[node("CastLike", &["x", "x"], &["y"], &[number("to", 1)])], vec![]);
    let model_ = model(28, xy(&nodes, FLOAT), &[body]);
    let all = judged(&model_, None);
    assert_eq!((all.conversions, all.of_unknown_type, all.illegal.len()), (5, 1, 2));
    assert_eq!((all.legal, all.unknown), (3, 0));
    assert!(all.illegal[0].0.contains("\"c\"") && all.illegal[0].1.to_string().contains("saturate"));
    assert!(all.illegal[1].0.starts_with("function \"F\"") && all.illegal[1].1.to_string().contains("\"to\""));
    // Each expected row is (place, source type, destination type, whether it is legal). Rows have the order of the
    // file.
    let file = open(&model_);
    let listed = conversions(file.model());
    let is_legal = |legality: &Option<Legality>| !matches!(legality, Some(Legality::Illegal(_)));
    let rows = listed.iter().map(|c| (c.place.as_str(), c.from.as_str(), c.to.as_str(), is_legal(&c.legality)));
    let expected = [
        ("node that produces \"a\" (Cast)", "f32", "f8e4m3fn", true),
        ("node that produces \"c\" (Cast)", "f8e4m3fn", "f32", false),
        ("node that produces \"z\" (Cast)", "f32", "f8e8m0", true),
        ("node that produces \"w\" (Cast)", "f8e8m0", "f32", true),
        ("function \"F\": node that produces \"y\" (CastLike)", "?", "?", false),
    ];
    assert_eq!(rows.collect::<Vec<_>>(), expected);
    assert_eq!(listed[1].operation, "Cast saturate=2");
    // An older opset lacks E8M0 too, as source and as destination.
    assert_eq!(judged(&model_, Some(23)).illegal.len(), 4);
    assert_eq!(judged(&model_, Some(18)).illegal.len(), 5);
    assert_eq!(judged(&model(28, xy(&[cast("x", "y", FLOAT16)], FLOAT16), &[]), Some(1)).illegal.len(), 1); // INT `to`
}

/// A conversion refused by a run is illegal, with the same message.
#[test]
fn what_a_run_refuses_is_illegal() {
    let to = || number("to", FLOAT16);
    let rows = [
        (node("Cast", &[], &["y"], &[to()]), "0 inputs, but 1"),
        (node("Cast", &["x", "x"], &["y"], &[to()]), "2 inputs, but 1"),
        (node("Cast", &["x", ""], &["y"], &[to()]), "2 inputs, but 1"),
        (node("Cast", &[""], &["y"], &[to()]), "required input 0 is missing"),
        (node("Cast", &["x"], &[], &[to()]), "0 outputs, but 1"),
        (node("Cast", &["x"], &["y", "z"], &[to()]), "2 outputs, but 1"),
        (node("Cast", &["x"], &[""], &[to()]), "required output 0 is missing"),
        (node("CastLike", &["x"], &["y"], &[]), "1 inputs, but 2"),
        (node("CastLike", &["x", ""], &["y"], &[]), "required input 1 is missing"),
        (node("CastLike", &["x", "x", "x"], &["y"], &[]), "3 inputs, but 2"),
        (cast("nothing", "y", FLOAT16), "\"nothing\" is not defined before"),
        (cast("y", "y", FLOAT16), "\"y\" is not defined before"),
        (cast("x", "x", FLOAT16), "\"x\" is defined twice"),
    ];
    for (node, why) in rows {
        let model = model(28, xy(&[node], FLOAT16), &[]);
        let refusal = built(&model).unwrap_err();
        assert!(refusal.contains(why), "{refusal}");
        let all = judged(&model, None);
        assert_eq!((all.conversions, all.illegal.len()), (1, 1), "{why}: {:?}", all.illegal);
        assert_eq!(all.of_unknown_type, usize::from(why.starts_with("\"nothing\"")), "{why}");
        assert_eq!(format!("{}: {}", all.illegal[0].0, all.illegal[0].1), refusal);
    }
}

/// §1.1: "Complex types are never allowed"; §1.7 numbers them.
#[test]
fn every_type_that_files_can_name_is_judged() {
    const COMPLEX64: i64 = 14;
    const COMPLEX128: i64 = 15;
    let from = |code: i64, nodes: &[Vec<u8>]| {
        let infos = [input(value("c", code, &[2])), input(value("x", FLOAT, &[2])), output(bytes(1, "y"))];
        judged(&model(28, graph(nodes, &[], infos.concat()), &[]), None)
    };
    for code in 1..=28 {
        let is_complex = [COMPLEX64, COMPLEX128].contains(&code);
        for (node, is_illegal) in [
            (cast("c", "y", FLOAT), is_complex),
            (cast("x", "y", code), is_complex),
            (node("CastLike", &["c", "x"], &["y"], &[]), is_complex || code > 26),
            (node("CastLike", &["x", "c"], &["y"], &[]), is_complex || code > 26),
        ] {
            let all = from(code, &[node]);
            assert_eq!((all.of_unknown_type, all.illegal.len()), (0, usize::from(is_illegal)), "{code}: {all:?}");
        }
    }
    let said = from(COMPLEX128, &[cast("c", "y", FLOAT)]).illegal[0].1.to_string();
    assert!(said.contains("COMPLEX128") && said.contains("§1.2"), "{said}");
    let said = from(99, &[cast("c", "y", FLOAT)]).illegal[0].1.to_string();
    assert!(said.contains("99"), "{said}");
    let nodes = [constant("k", tensor("", COMPLEX128, &[0])), cast("k", "y", FLOAT)];
    assert!(from(FLOAT, &nodes).illegal[0].1.to_string().contains("COMPLEX128"));
    let sequence = [bytes(1, "s"), bytes(2, bytes(4, vec![]))].concat();
    let graph = graph(&[cast("s", "y", FLOAT)], &[], [input(sequence), output(bytes(1, "y"))].concat());
    assert!(judged(&model(28, graph, &[]), None).illegal[0].1.to_string().contains("sequence"));
}

/// A declared type must equal the value's type.
#[test]
fn declarations_are_compared_with_what_is_given() {
    let graph_of = |infos: &[Vec<u8>]| model(28, graph(&[cast("x", "y", FLOAT16)], &[], infos.concat()), &[]);
    let x = || input(value("x", FLOAT, &[2]));
    let y = |code| output(value("y", code, &[2]));
    let info = |code| bytes(13, value("y", code, &[2]));
    for (infos, what) in [
        (vec![x(), y(FLOAT)], "output \"y\": elements are f16, declared as f32"),
        (vec![x(), info(INT64), y(FLOAT16)], "value_info \"y\": elements are f16, declared as i64"),
        (
            vec![x(), bytes(5, [tensor("x", INT64, &[0])].concat()), y(FLOAT16)],
            "\"x\": elements are i64, declared as f32",
        ),
    ] {
        let model = graph_of(&infos);
        let all = judged(&model, None);
        let said: Vec<_> = all.illegal.iter().map(|(place, cause)| format!("{place}: {cause}")).collect();
        assert!(said.len() == 1 && said[0].ends_with(what), "{said:?}");
        assert!(built(&model).unwrap_err().ends_with(what));
    }
    let right = graph_of(&[x(), info(FLOAT16), y(FLOAT16)]);
    assert_eq!(judged(&right, None).illegal, []);
    assert!(built(&right).is_ok());
}

/// A name one letter away from a conversion's is reported, unless it is another operator or a function of the model.
#[test]
fn misspelled_conversions() {
    let of = |operator: &str, domain: &str, functions: &[Vec<u8>]| {
        let node = in_domain(node(operator, &["x"], &["y"], &[number("to", FLOAT16)]), domain);
        judged(&model(28, xy(&[node], FLOAT16), functions), None)
    };
    for (operator, meant) in [("cast", "Cast"), ("Csat", "Cast"), ("Caste", "Cast"), ("Castlike", "CastLike")] {
        let all = of(operator, "", &[]);
        assert_eq!((all.conversions, all.illegal.len()), (0, 1), "{operator}");
        assert!(all.illegal[0].1.to_string().ends_with(&format!("did you mean {meant}?")));
    }
    for operator in ["Cos", "Cosh", "BitCast", "Concat", "Acos"] {
        assert_eq!(of(operator, "", &[]), LegalityReport::default(), "{operator}");
    }
    assert_eq!(of("cast", "com.example", &[]), LegalityReport::default());
    let named = |name: &str| {
        let body = [node("Identity", &["x"], &["y"], &[])];
        let nodes: Vec<u8> = body.iter().flat_map(|n| bytes(7, n)).collect();
        [bytes(1, name), bytes(4, "x"), bytes(5, "y"), nodes, bytes(9, int(2, 25))].concat()
    };
    // A function of this name takes precedence over the operator. Its body is not a conversion.
    for name in ["cast", "Cast"] {
        assert_eq!(of(name, "", &[named(name)]), LegalityReport::default(), "{name}");
    }
}

/// A reference to a function's attribute is checked by its name only.
#[test]
fn attributes_of_calls_are_judged_as_far_as_they_are_known() {
    let of = |attributes: &[Vec<u8>]| {
        let body = [node("Cast", &["x"], &["y"], attributes)];
        let given = [bytes(6, "t"), bytes(11, number("s", 1))].concat();
        judged(&model(25, xy(&[], FLOAT), &[function("F", &["x"], &["y"], &body, given)]), None).illegal
    };
    let to = || reference("to", 2, "t");
    assert_eq!(of(&[to()]), []);
    assert_eq!(of(&[to(), reference("saturate", 2, "s"), string("round_mode", "down")]), []);
    for (attributes, why) in [
        (vec![to(), number("sat", 1)], "unknown attribute \"sat\""),
        (vec![to(), number("saturate", 2)], "2 is neither 0 nor 1"),
        (vec![to(), reference("rounding", 3, "s")], "unknown attribute \"rounding\""),
        (vec![reference("to", 2, "no_such_attribute")], "is missing"),
        (vec![to(), number("to", FLOAT)], "occurs twice"),
    ] {
        let illegal = of(&attributes);
        assert!(illegal.len() == 1 && illegal[0].1.to_string().contains(why), "{why}: {illegal:?}");
    }
}

/// The models are functions with many converted inputs, calls with all of these inputs, and graphs with many values.
#[test]
fn models_take_time_as_they_are_long() {
    let make = |n: usize| {
        let (inner, outer): (Vec<_>, Vec<_>) = (0..n).map(|i| (format!("i{i}"), format!("c{i}"))).unzip();
        let (inner, outer): (Vec<&str>, Vec<&str>) =
            (inner.iter().map(String::as_str).collect(), outer.iter().map(String::as_str).collect());
        let casts = |of: &[&str], to: char| {
            of.iter().map(|name| cast(name, &format!("{to}{name}"), FLOAT16)).collect::<Vec<_>>()
        };
        let function = function("F", &inner, &["oi0"], &casts(&inner, 'o'), vec![]);
        let first = outer.iter().map(|name| cast("x", name, FLOAT16));
        let call = in_domain(node("F", &outer, &["y"], &[]), "f");
        let nodes: Vec<_> = first.chain(casts(&outer, 'd')).chain([call]).collect();
        open(&model(25, xy(&nodes, FLOAT16), &[function]))
    };
    let file = make(50_000);
    timing::assert_linear(|| {
        assert_eq!(check(file.model(), None).illegal, []);
        assert_eq!(build(&file, TextStyle::default()).unwrap().outputs().len(), 1);
    });
}

/// §6.2: the style changes written text, and does not affect reading.
#[test]
fn styles_of_text() {
    let nodes = [cast("x", "t", STRING), cast("t", "y", FLOAT)];
    let outputs = [output(value("t", STRING, &[3])), output(value("y", FLOAT, &[3]))].concat();
    let model = model(28, graph(&nodes, &[], [input(value("x", FLOAT, &[3])), outputs].concat()), &[]);
    let x = floats(&[1e-5, 1e20, 0.5]);
    for (style, written) in [
        (TextStyle::Reference, ["1e-05", "1e+20", "0.5"]),
        (TextStyle::Plain, ["0.00001", "100000000000000000000.0", "0.5"]),
    ] {
        let graph = build(&open(&model), style).unwrap();
        let mut results = Vec::new();
        let fed = |_: &truecast_models::Input| Ok(Some(x.clone()));
        evaluate::<Error>(&graph, &CastOptions::default(), fed, |_, tensor| {
            results.push(tensor.clone());
            Ok(())
        })
        .unwrap();
        assert_eq!((texts(&results[0]), codes(&results[1])), (written.map(String::from).to_vec(), codes(&x)));
    }
}
