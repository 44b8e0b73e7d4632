//! Models: their structure, every tensor in them, and rewriting, byte for byte (`docs/spec/onnx.md §3.9`, §3.10).

mod disk;

use std::sync::Arc;

use truecast_core::DType;
use truecast_io::onnx::{
    AttributeValue, Changes, Dimension, ModelFile, NewModel, Options, ProtoError, Role, ValueType,
};
use truecast_io::{Error, ErrorKind, Existing, Source, Writer};
use truecast_testkit::{memory, proto::*, timing};

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

const FLOAT: i64 = 1;
const BFLOAT16: i64 = 16;

fn open(disk: &disk::Disk) -> Arc<ModelFile> {
    Arc::new(ModelFile::open(&disk.path, Options::default()).unwrap())
}

fn opened(model: &[u8]) -> Arc<ModelFile> {
    open(&disk::file("a.onnx", model))
}

fn names(file: &ModelFile) -> Vec<&str> {
    file.tensors().iter().map(|listed| listed.name.as_str()).collect()
}

/// Rewrites a model: the tensors `chosen` become bf16, with elements of bytes 0x11, 0x22 and so on.
fn rewritten(source: &[u8], chosen: &[&str], opset: Option<i64>, ir_version: Option<i64>) -> (disk::Disk, Vec<u8>) {
    let disk = disk::file("a.onnx", source);
    let file = open(&disk);
    let dtype = |name: &str, dtype| if chosen.contains(&name) { DType::Bf16 } else { dtype };
    let dtypes = file.tensors().iter().map(|l| dtype(&l.name, l.tensor.dtype().unwrap())).collect();
    let new = NewModel::new(&file, &Changes { dtypes, opset, ir_version }, "b.data").unwrap();
    let path = disk.folder.path().join("b.onnx");
    let mut writer = Writer::create_model(&path, &new, Existing::Refuse).unwrap();
    for (i, index) in writer.order().to_vec().into_iter().enumerate() {
        let elements = vec![0x11 * (i as u8 + 1); new.tensors()[index].bytes() as usize];
        elements.chunks(3).for_each(|chunk| writer.write(chunk).unwrap());
    }
    writer.finish().unwrap();
    assert_eq!(new.structure_differs(&path).unwrap(), None);
    let result = std::fs::read(&path).unwrap();
    (disk, result)
}

fn cast(name: &str, input: &str, output: &str) -> Vec<u8> {
    let to = [bytes(1, "to"), int(3, FLOAT), int(20, 2)].concat();
    [bytes(1, input), bytes(2, output), bytes(3, name), bytes(4, "Cast"), bytes(5, to)].concat()
}

#[test]
fn structure() {
    let attributes = [
        attribute("f", 1, fixed32(2, 1.5f32.to_le_bytes())),
        attribute("i", 2, int(3, -7)),
        attribute("s", 3, bytes(4, b"\xff")),
        attribute("floats", 6, [bytes(7, 1f32.to_le_bytes()), fixed32(7, 2f32.to_le_bytes())].concat()),
        attribute("ints", 7, [packed(8, &[1, -1]), int(8, 5)].concat()),
        attribute("strings", 8, [bytes(9, "a"), bytes(9, "b")].concat()),
        attribute("tensors", 9, bytes(10, raw("t", 2, &[1], &[1]))),
        attribute("graphs", 10, bytes(11, graph(&[], &[], vec![]))),
        attribute("empty", 2, vec![]),
        [bytes(1, "ref"), bytes(21, "alpha"), int(20, 1)].concat(),
        [bytes(1, "old"), int(3, 3)].concat(),
    ];
    let symbol = [bytes(1, int(1, 3)), bytes(1, bytes(2, "n")), bytes(1, "")].concat();
    let kind = bytes(1, [int(1, FLOAT), bytes(2, symbol)].concat());
    let infos =
        [bytes(11, [bytes(1, "x"), bytes(2, kind)].concat()), bytes(12, value("y", 7, &[2])), bytes(13, bytes(1, "z"))];
    let node = [node("Op", &["x", ""], &["y"], &attributes), bytes(3, "n"), bytes(7, "d"), bytes(8, "v")].concat();
    let function = [
        bytes(1, "f"),
        bytes(4, "a"),
        bytes(5, "b"),
        bytes(6, "alpha"),
        bytes(7, &node),
        bytes(9, int(2, 18)),
        bytes(10, "d"),
        bytes(11, attribute("beta", 2, int(3, 1))),
        bytes(13, "o"),
    ];
    let whole =
        [model(8, 17, &graph(&[node], &[], infos.concat())), bytes(25, function.concat()), bytes(20, "")].concat();
    let file = opened(&whole);
    let model = file.model();
    assert_eq!((model.ir_version, model.opset_imports[0].version, model.has_training_info), (8, 17, true));
    let node = &model.graph.nodes[0];
    assert_eq!(
        (node.op_type.as_str(), node.name.as_str(), node.domain.as_str(), node.overload.as_str()),
        ("Op", "n", "d", "v")
    );
    assert_eq!((&node.inputs[..], &node.outputs[..]), (&["x".to_string(), "".to_string()][..], &["y".to_string()][..]));
    use AttributeValue::*;
    assert!(matches!(node.attribute("f"), Some(Float(1.5))));
    assert!(matches!(node.attribute("i"), Some(Int(-7))));
    assert!(matches!(node.attribute("s"), Some(String(bytes)) if bytes == b"\xff"));
    assert!(matches!(node.attribute("floats"), Some(Floats(all)) if all == &[1.0, 2.0]));
    assert!(matches!(node.attribute("ints"), Some(Ints(all)) if all == &[1, -1, 5]));
    assert!(matches!(node.attribute("strings"), Some(Strings(all)) if all == &[b"a", b"b"]));
    assert!(matches!(node.attribute("tensors"), Some(Tensors(all)) if all.len() == 1));
    assert!(matches!(node.attribute("graphs"), Some(Graphs(all)) if all[0].name == "g"));
    assert!(matches!(node.attribute("empty"), Some(Int(0))));
    assert!(matches!(node.attribute("ref"), Some(Reference(name)) if name == "alpha"));
    assert!(matches!(node.attribute("old"), Some(Int(3))));
    let shape = vec![Dimension::Value(3), Dimension::Named("n".into()), Dimension::Unknown];
    assert_eq!(model.graph.inputs[0].kind, ValueType::Tensor { elem_type: FLOAT, shape: Some(shape) });
    assert_eq!((model.graph.outputs[0].name.as_str(), &model.graph.value_infos[0].kind), ("y", &ValueType::Unknown));
    let function = &model.functions[0];
    assert_eq!((function.name.as_str(), function.domain.as_str(), function.overload.as_str()), ("f", "d", "o"));
    assert_eq!((&function.inputs[0][..], &function.outputs[0][..], &function.attributes[0][..]), ("a", "b", "alpha"));
    assert_eq!(
        (function.attribute_defaults[0].name.as_str(), function.nodes.len(), function.opset_imports[0].version),
        ("beta", 1, 18)
    );
}

/// Source: §3.9.
#[test]
fn every_tensor_is_listed() {
    let t = |name: &str| raw(name, FLOAT, &[1], &[0; 4]);
    let inner = |output: &str| constant(output, t("inner"));
    let branch = |name: &str| graph(&[inner(name)], &[t("w")], vec![]);
    let both = [attribute("then_branch", 5, bytes(6, branch("c"))), attribute("else_branch", 5, bytes(6, branch("c")))];
    let named = |node: Vec<u8>, name: &str| [node, bytes(3, name)].concat();
    let sparse = [bytes(1, t("s")), bytes(2, raw("", 7, &[1], &[0; 8])), int(3, 1)].concat();
    let nodes = [
        named(node("If", &["w"], &["y"], &both), "choice"),
        node("ConstantOfShape", &["x"], &["z"], &[attribute("value", 4, bytes(5, t("")))]),
        node("Add", &["w", "k"], &["o"], &[]),
        inner("k"),
        constant("text", [tensor("", 8, &[1]), bytes(6, "a")].concat()),
    ];
    let others = [bytes(15, sparse), bytes(11, value("w", FLOAT, &[1]))].concat();
    let function = [bytes(1, "f"), bytes(10, "d"), bytes(7, inner("k"))].concat();
    let whole = [model(8, 17, &graph(&nodes, &[t("w")], others)), bytes(25, function)].concat();
    let file = opened(&whole);
    assert_eq!(
        names(&file),
        [
            "w", "s/values", "s/indices", "choice/then_branch/w", "choice/then_branch/c", "choice/else_branch/w",
            "choice/else_branch/c", "ConstantOfShape0/value", "k", "d:f/k"
        ]
    );
    assert_eq!(file.tensors()[0].role, Role::Value { is_input: true, is_constant: false });
    assert_eq!(file.tensors()[8].role, Role::Value { is_input: false, is_constant: true });
    let fed = |operator| (0..10).filter(|&i| file.feeding(&[operator])[i]).collect::<Vec<_>>();
    // In a subgraph, `w` may be the outer graph's value.
    assert_eq!((fed("Add"), fed("If"), fed("Mul")), (vec![0, 3, 5, 8], vec![0, 3, 5], vec![]));
    assert_eq!(file.tensors()[7].role, Role::Part);
    let texts: Vec<_> = file.text_tensors().iter().map(|l| (l.name.as_str(), &l.tensor.dims[..])).collect();
    assert_eq!(texts, [("text", &[1][..])]);
    assert_eq!(file.operators()["Constant"], 5);
}

#[test]
fn names_are_unique() {
    let t = || raw("w", FLOAT, &[], &[0; 4]);
    let file = opened(&model(8, 17, &graph(&[], &[t(), t(), raw("w.2", FLOAT, &[], &[0; 4]), t()], vec![])));
    let mut unique = names(&file);
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), 4);
}

/// Unknown fields, odd encodings and all unchanged parts are kept. A Cast precedes the first use of its result.
#[test]
fn only_what_changes_is_rewritten() {
    let unknown = [int(99, 5), fixed64(100, [1; 8]), bytes(101, "kept")].concat();
    let data: Vec<u8> = (0..16).collect();
    let odd =
        [bytes(9, &data), packed(1, &[2, 2]), bytes(8, "w"), bytes(12, "doc"), int(2, FLOAT), unknown.clone()].concat();
    let typed = [tensor("v", FLOAT, &[2]), bytes(4, &data[..4]), fixed32(4, [9; 4])].concat();
    let kept = raw("k", FLOAT, &[1], &data[..4]);
    let first = node("Abs", &["x"], &["a"], &[]);
    let uses = node("Mul", &["a", "w"], &["b"], &[]);
    let last = node("Add", &["b", "v"], &["y"], &[]);
    let whole = |nodes: &[Vec<u8>], initializers: &[Vec<u8>]| {
        let graph = [graph(nodes, initializers, bytes(12, value("y", FLOAT, &[2, 2]))), unknown.clone()].concat();
        // Encodes the graph's length in more bytes than necessary.
        let mut long = varint(graph.len() as u64);
        *long.last_mut().unwrap() |= 0x80;
        long.push(0);
        let imports =
            [bytes(8, [bytes(1, "other"), int(2, 3)].concat()), bytes(8, [int(2, 11), unknown.clone()].concat())]
                .concat();
        ([int(1, 6), unknown.clone(), vec![0x3a], long, graph.clone(), imports].concat(), graph)
    };
    let (source, _) = whole(&[first.clone(), uses.clone(), last.clone()], &[odd, kept.clone(), typed]);
    let (disk, result) = rewritten(&source, &["w", "v"], Some(13), Some(7));

    let odd = [
        bytes(9, [0x11; 8]),
        packed(1, &[2, 2]),
        bytes(8, "w.bf16"),
        bytes(12, "doc"),
        int(2, BFLOAT16),
        unknown.clone(),
    ]
    .concat();
    let typed = [int(1, 2), int(2, BFLOAT16), bytes(8, "v.bf16"), bytes(9, [0x22; 4])].concat();
    let nodes = [first, cast("w.cast", "w.bf16", "w"), uses, cast("v.cast", "v.bf16", "v"), last];
    let (_, graph) = whole(&nodes, &[odd, kept, typed]);
    let imports =
        [bytes(8, [bytes(1, "other"), int(2, 3)].concat()), bytes(8, [int(2, 13), unknown.clone()].concat())].concat();
    assert_eq!(result, [int(1, 7), unknown, bytes(7, graph), imports].concat());
    assert_eq!(disk.names(), ["a.onnx", "b.onnx"]);
}

#[test]
fn nothing_changes_nothing() {
    let source =
        model(8, 17, &graph(&[node("Abs", &["w"], &["y"], &[])], &[raw("w", FLOAT, &[1], &[1; 4])], int(99, 1)));
    assert_eq!(rewritten(&source, &[], None, None).1, source);
}

/// Constants, subgraphs and functions; some names are taken.
#[test]
fn casts_stand_where_their_values_are() {
    let t = |name: &str, data_type, data: &[u8]| raw(name, data_type, &[2], data);
    let cast_of = |value: &str| cast(&format!("{value}.cast"), &format!("{value}.bf16"), value);
    let whole = |stored: bool| {
        let (data_type, size) = if stored { (BFLOAT16, 4) } else { (FLOAT, 8) };
        let data = |i: u8| if stored { vec![0x11 * i; size] } else { vec![7; size] };
        let name = |plain: &str, new: &str| if stored { new.to_string() } else { plain.to_string() };
        let written = |c: Vec<u8>| if stored { vec![c] } else { vec![] };
        let mut inner = vec![constant(&name("c", "c.bf16"), t("", data_type, &data(1)))];
        inner.extend(written(cast_of("c")));
        inner.push(node("Add", &["c", "outer"], &["y"], &[]));
        let branch = graph(&inner, &[], bytes(12, value("y", FLOAT, &[2])));
        let mut nodes = vec![node("Abs", &["outer.bf16"], &["outer.cast"], &[])];
        nodes.extend(written(cast("outer.cast.2", "outer.bf16.2", "outer")));
        nodes.push(choice("b", "z", branch));
        let mut unused = written(cast_of("idle"));
        let initializers = [
            t(&name("outer", "outer.bf16.2"), data_type, &data(2)),
            t(&name("idle", "idle.bf16"), data_type, &data(3)),
        ];
        let others =
            [bytes(12, value("z", FLOAT, &[2])), unused.pop().map(|c| bytes(1, c)).unwrap_or_default()].concat();
        let mut body = vec![bytes(1, "f"), bytes(7, constant(&name("k", "k.bf16"), t("", data_type, &data(4))))];
        body.extend([bytes(9, int(2, 17)), bytes(10, "d")]);
        // Fields after the last node move to the message's end.
        body.extend(written(cast_of("k")).into_iter().map(|c| bytes(7, c)));
        [model(8, 17, &graph(&nodes, &initializers, others)), bytes(25, body.concat())].concat()
    };
    let chosen = ["outer", "idle", "If1/then_branch/c", "d:f/k"];
    let (disk, result) = rewritten(&whole(false), &chosen, None, None);
    assert_eq!(result, whole(true));
    // The new model lists the original values.
    let file = ModelFile::open(&disk.folder.path().join("b.onnx"), Options::default()).unwrap();
    assert_eq!(file.value_names(), ["outer", "idle", "If1/then_branch/c", "d:f/k"]);
}

/// Before IR version 4 every initializer is an input too.
#[test]
fn inputs_follow_their_defaults() {
    let whole = |name: &str, code, data: &[u8], nodes: &[Vec<u8>]| {
        let inputs = [bytes(11, value("x", FLOAT, &[2])), bytes(11, value(name, code, &[2]))].concat();
        model(3, 8, &graph(nodes, &[raw(name, code, &[2], data)], inputs))
    };
    let add = node("Add", &["x", "w"], &["y"], &[]);
    let source = whole("w", FLOAT, &[0; 8], std::slice::from_ref(&add));
    let result = rewritten(&source, &["w"], None, None).1;
    assert_eq!(result, whole("w.bf16", BFLOAT16, &[0x11; 4], &[cast("w.cast", "w.bf16", "w"), add]));
}

#[test]
fn the_first_cast_takes_a_name() {
    let add = node("Add", &["x", "w"], &["y"], &[]);
    let source = model(3, 5, &graph(&[add], &[raw("w", FLOAT, &[2], &[0; 8])], vec![]));
    let result = rewritten(&source, &["w"], None, None).1;
    let named = [bytes(1, "to"), bytes(4, "FLOAT"), int(20, 3)].concat();
    assert!(result.windows(named.len()).any(|window| window == named));
}

#[test]
fn external_data_stays_external() {
    let outside = |name: &str, dims: i64, offset: &str| {
        let entries = [("location", "w"), ("offset", offset), ("checksum", "0")];
        [tensor(name, FLOAT, &[dims]), external(&entries)].concat()
    };
    let initializers = [outside("a", 3, "0"), raw("in", FLOAT, &[1], &[5; 4]), outside("k", 2, "12")];
    let source = model(8, 17, &graph(&[node("Sum", &["a", "in", "k"], &["y"], &[])], &initializers, vec![]));
    let disk = disk::file("a.onnx", &source);
    let data: Vec<u8> = (0..20).collect();
    std::fs::write(disk.folder.path().join("w"), &data).unwrap();
    let file = open(&disk);
    let dtypes = vec![DType::Bf16, DType::F32, DType::F32];
    let new = NewModel::new(&file, &Changes { dtypes, ..Changes::default() }, "b.onnx.data").unwrap();
    let path = disk.folder.path().join("b.onnx");
    let mut writer = Writer::create_model(&path, &new, Existing::Refuse).unwrap();
    assert_eq!(writer.order(), [1, 0, 2]);
    writer.write(&[&[5; 4][..], &[0x11; 6], &data[12..20]].concat()).unwrap();
    writer.finish().unwrap();
    let written = std::fs::read(disk.folder.path().join("b.onnx.data")).unwrap();
    assert_eq!(written.len(), 4096 + 8);
    assert!(written[..6] == [0x11; 6] && written[6..4096].iter().all(|&b| b == 0) && written[4096..] == data[12..20]);
    let result = Source::open(&path, None).unwrap();
    assert_eq!(disk::bytes_of(&result, 0).unwrap(), [0x11; 6]);
    assert_eq!(disk::bytes_of(&result, 1).unwrap(), [5; 4]);
    assert_eq!(disk::bytes_of(&result, 2).unwrap(), data[12..20]);
    assert_eq!(result.model().unwrap().external_location(), Some("b.onnx.data"));
    assert!(result.same_file(&disk.folder.path().join("b.onnx.data")).unwrap());
}

/// A sparse file of 3 GiB, too long for protobuf.
#[test]
fn a_long_model_goes_outside() {
    let elements: u64 = 3 << 28;
    let head = tensor("w", FLOAT, &[elements as i64]);
    let length = varint(4 * elements);
    let message_bytes = head.len() as u64 + 1 + length.len() as u64 + 4 * elements;
    let graph_head = [vec![0x2a], varint(message_bytes), head, vec![0x4a], length].concat();
    let small = bytes(5, raw("small", FLOAT, &[1], &[1; 4]));
    let graph_bytes = graph_head.len() as u64 + 4 * elements + small.len() as u64;
    let begin = [int(1, 8), bytes(8, int(2, 17)), vec![0x3a], varint(graph_bytes), graph_head].concat();
    let disk = disk::file("a.onnx", &begin);
    let mut options = std::fs::OpenOptions::new();
    let at = begin.len() as u64 + 4 * elements;
    let file = options.write(true).open(&disk.path).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &small, at).unwrap();
    let file = open(&disk);
    assert_eq!(names(&file), ["w", "small"]);
    let layout =
        |dtype| NewModel::new(&file, &Changes { dtypes: vec![dtype, DType::F32], ..Changes::default() }, "d").unwrap();
    assert_eq!(layout(DType::F32).external_bytes(), 4 * elements);
    assert_eq!(layout(DType::F64).external_bytes(), 8 * elements);
    assert_eq!(layout(DType::Bf16).external_bytes(), 0);
}

#[track_caller]
fn cause(whole: &[u8]) -> ProtoError {
    match ModelFile::open(&disk::file("a.onnx", whole).path, Options::default()).unwrap_err() {
        error @ Error::Proto { .. } => {
            assert_eq!(error.kind(), ErrorKind::Input);
            let Error::Proto { cause, .. } = error else { unreachable!() };
            cause
        }
        other => panic!("{other}"),
    }
}

#[test]
fn broken_models() {
    assert!(matches!(cause(b""), ProtoError::Missing { field: "graph", .. }));
    assert!(matches!(cause(&int(1, 8)), ProtoError::Missing { field: "graph", .. }));
    assert!(matches!(cause(&[bytes(7, ""), bytes(7, "")].concat()), ProtoError::Repeated { field: 7, .. }));
    assert!(matches!(cause(&int(7, 1)), ProtoError::WireType { field: 7, .. }));
    assert!(matches!(cause(&bytes(7, bytes(1, bytes(1, "x")))), ProtoError::Missing { field: "op_type", .. }));
    let with = |attribute: Vec<u8>| bytes(7, bytes(1, node("Op", &[], &[], &[attribute])));
    assert!(matches!(cause(&with(bytes(1, "a"))), ProtoError::Attribute { .. }));
    assert!(matches!(cause(&with(attribute("a", 4, vec![]))), ProtoError::Attribute { .. }));
    assert!(matches!(cause(&with(attribute("a", 99, vec![]))), ProtoError::Attribute { .. }));
    assert!(
        matches!(cause(&bytes(7, bytes(5, tensor("w", 99, &[])))), ProtoError::Tensor { tensor, .. } if tensor == "w")
    );
    let mut deep = graph(&[], &[], vec![]);
    for _ in 0..50 {
        deep = graph(&[choice("b", "y", deep)], &[], vec![]);
    }
    assert!(matches!(cause(&bytes(7, deep)), ProtoError::TooDeep { limit: 100, .. }));
    // Every prefix of a model is an error or a shorter model, never a panic.
    let tensor = raw("w", FLOAT, &[2], &[0; 8]);
    let whole = model(8, 17, &graph(&[node("Abs", &["w"], &["y"], &[])], &[tensor], vec![]));
    for end in 0..whole.len() {
        let opened = ModelFile::open(&disk::file("a.onnx", &whole[..end]).path, Options::default());
        assert_eq!(opened.is_ok(), end == whole.len() - 4, "{end}"); // the import is the last field
    }
}

/// Protobuf merges two occurrences of a singular message; a rewrite that kept one would change the model.
#[test]
fn messages_that_occur_twice_are_refused() {
    let w = || raw("w", FLOAT, &[1], &[0; 4]);
    let repeated = |content: Vec<u8>, name: &str, number: u32| {
        let found = cause(&bytes(7, content));
        let expected = format!("field {number} of {name} occurs twice");
        assert!(found.to_string().ends_with(&expected), "{found}, not {expected}");
    };
    let with = |value: Vec<u8>| bytes(1, node("Op", &[], &[], &[attribute("a", 4, value)]));
    repeated(with([bytes(5, w()), bytes(5, w())].concat()), "AttributeProto", 5);
    repeated(with([bytes(6, ""), bytes(6, "")].concat()), "AttributeProto", 6);
    let sparse = || [bytes(1, w()), bytes(2, raw("", 7, &[1], &[0; 8]))].concat();
    repeated(with([bytes(22, sparse()), bytes(22, sparse())].concat()), "AttributeProto", 22);
    repeated(bytes(15, [sparse(), bytes(1, w())].concat()), "SparseTensorProto", 1);
    repeated(bytes(15, [sparse(), bytes(2, w())].concat()), "SparseTensorProto", 2);
    let kind = |tensor: Vec<u8>| bytes(2, bytes(1, tensor));
    repeated(bytes(11, [kind(int(1, 1)), kind(int(1, 1))].concat()), "ValueInfoProto", 2);
    repeated(bytes(11, bytes(2, [bytes(1, ""), bytes(1, "")].concat())), "TypeProto", 1);
    repeated(bytes(11, kind([bytes(2, ""), bytes(2, "")].concat())), "TypeProto.Tensor", 2);
}

/// Fields of a oneof replace each other; the last number counts.
#[test]
fn the_last_of_what_excludes_each_other_counts() {
    let kind = |fields: &[Vec<u8>]| {
        let whole = bytes(7, bytes(11, bytes(2, fields.concat())));
        opened(&whole).model().graph.inputs[0].kind.clone()
    };
    let tensor = |code| ValueType::Tensor { elem_type: code, shape: None };
    assert_eq!(kind(&[bytes(1, int(1, 1)), bytes(4, "")]), ValueType::NoTensor);
    assert_eq!(kind(&[bytes(1, int(1, 1)), bytes(4, ""), bytes(1, int(1, 6))]), tensor(6));
    assert_eq!(kind(&[bytes(1, [int(1, 1), int(1, 7)].concat())]), tensor(7));
    let dims = [bytes(1, [bytes(2, "n"), int(1, 3)].concat()), bytes(1, bytes(2, ""))].concat();
    let shape = Some(vec![Dimension::Value(3), Dimension::Unknown]);
    assert_eq!(kind(&[bytes(1, bytes(2, dims))]), ValueType::Tensor { elem_type: 0, shape });
}

#[test]
fn known_fields_have_their_wire_type() {
    let graph = || bytes(7, "");
    assert!(matches!(cause(&[graph(), int(20, 1)].concat()), ProtoError::WireType { field: 20, .. }));
    for number in [4, 5, 7, 8, 9] {
        let whole = bytes(7, bytes(11, bytes(2, int(number, 1))));
        assert!(matches!(cause(&whole), ProtoError::WireType { field, .. } if field == number));
    }
    for number in [14, 15] {
        let whole = bytes(7, bytes(1, node("Op", &[], &[], &[attribute("a", 13, int(number, 1))])));
        assert!(matches!(cause(&whole), ProtoError::WireType { field, .. } if field == number));
    }
    let segment = bytes(7, bytes(5, [tensor("w", FLOAT, &[0]), int(3, 1)].concat()));
    assert!(matches!(cause(&segment), ProtoError::WireType { field: 3, .. }));
}

/// Duplicates that readers cannot distinguish. Identical duplicates are allowed.
#[test]
fn functions_and_versions_are_said_once() {
    let import = |domain: &str, version| bytes(8, [bytes(1, domain), int(2, version)].concat());
    let imports = |all: &[Vec<u8>]| [bytes(7, ""), all.concat()].concat();
    let twice = cause(&imports(&[import("", 13), import("ai.onnx", 28)]));
    assert!(matches!(twice, ProtoError::TwoVersions { first: 13, second: 28, .. }), "{twice}");
    assert!(matches!(cause(&imports(&[import("d", 1), import("d", 2)])), ProtoError::TwoVersions { .. }));
    let alike =
        disk::file("a.onnx", &imports(&[import("", 13), import("ai.onnx", 13), import("d", 1), import("d", 1)]));
    assert_eq!(open(&alike).model().opset_imports.len(), 4);

    let function = |domain: &str, overload: &str| [bytes(1, "F"), bytes(10, domain), bytes(13, overload)].concat();
    let functions = |all: &[Vec<u8>]| [bytes(7, ""), all.iter().flat_map(|f| bytes(25, f)).collect()].concat();
    let twice = cause(&functions(&[function("d", "o"), function("d", "o")]));
    assert!(matches!(&twice, ProtoError::TwoFunctions { name, .. } if name == "F"), "{twice}");
    assert!(matches!(cause(&functions(&[function("", ""), function("ai.onnx", "")])), ProtoError::TwoFunctions { .. }));
    let apart = functions(&[function("d", "o"), function("d", ""), function("e", "o")]);
    assert_eq!(opened(&apart).model().functions.len(), 3);
    let own = [bytes(1, "F"), bytes(9, int(2, 13)), bytes(9, int(2, 14))].concat();
    assert!(matches!(cause(&functions(&[own])), ProtoError::TwoVersions { .. }));
}

/// Names in a subgraph begin with the node's name. A long name would be copied for every tensor.
#[test]
fn names_take_memory_only_as_the_file_does() {
    let t = |i: usize| raw(&format!("i{i}"), FLOAT, &[], &[0; 4]);
    let branch = graph(&[], &(0..2000).map(t).collect::<Vec<_>>(), vec![]);
    let chosen = |name: &str| bytes(7, graph(&[[choice("c", "r", &branch), bytes(3, name)].concat()], &[], vec![]));
    let named = |bytes: usize| cause(&chosen(&"n".repeat(bytes)));
    assert!(matches!(named(1 << 20), ProtoError::TooMuch { .. }));
    memory::begin();
    assert!(matches!(named(100_000), ProtoError::TooMuch { .. }));
    assert!(memory::peak() < 600 << 20, "{}", memory::peak());
    assert_eq!(opened(&chosen(&"n".repeat(1000))).tensors().len(), 2000);
}

/// Operators of a value are not copied for each tensor of the same name.
#[test]
fn operators_take_memory_only_as_the_file_does() {
    let long = "z".repeat(1000);
    let nodes: Vec<_> = (0..2000).map(|i| node(&format!("{long}{i}"), &["w"], &["o"], &[])).collect();
    let weights: Vec<_> = (0..2000).map(|_| raw("w", FLOAT, &[], &[0; 4])).collect();
    let disk = disk::file("a.onnx", &bytes(7, graph(&nodes, &weights, vec![])));
    memory::begin();
    let file = open(&disk);
    assert_eq!(file.feeding(&["Op"]), vec![false; 2000]);
    assert_eq!(file.feeding(&[&format!("{long}7")]), vec![true; 2000]);
    assert!(memory::peak() < 20 << 20, "{}", memory::peak());
}

#[test]
fn operators_are_found_through_functions() {
    let in_domain = |node: Vec<u8>| [node, bytes(7, "d")].concat();
    let function = |name: &str, inputs: &[&str], nodes: &[Vec<u8>]| {
        let inputs: Vec<u8> = inputs.iter().flat_map(|i| bytes(4, i)).collect();
        let nodes: Vec<u8> = nodes.iter().flat_map(|n| bytes(7, n)).collect();
        bytes(25, [bytes(1, name), inputs, nodes, bytes(10, "d")].concat())
    };
    let scale = node("DequantizeLinear", &["x", "s"], &["y"], &[]);
    let in_branch = choice("c", "y", graph(&[scale], &[], vec![]));
    let inner = function("Inner", &["x", "s", "unused"], &[in_branch]);
    // The caller comes first in the file, and also calls itself.
    let call = |operator: &str, inputs: &[&str]| in_domain(node(operator, inputs, &["y"], &[]));
    let outer = function("Outer", &["a", "b", "c"], &[call("Inner", &["a", "c", "b"]), call("Outer", &["b", "", "b"])]);
    let names = ["p", "q", "r", "far"];
    let weights = names.map(|name| raw(name, FLOAT, &[], &[0; 4]));
    let graph = graph(&[call("Outer", &["p", "q", "r"]), node("Add", &["far"], &["z"], &[])], &weights, vec![]);
    let file = opened(&[model(8, 17, &graph), outer, inner].concat());
    assert_eq!(file.feeding(&["DequantizeLinear"]), [true, true, true, false]);
    assert_eq!(file.feeding(&["Add"]), [false, false, false, true]);
    assert_eq!(file.feeding(&["d.Outer"]), [true, true, true, false]);
    assert_eq!(file.feeding(&["Outer", "d.Other"]), [false; 4]);
}

/// A graph or function that gets a Cast imports the default domain. A missing version is 0 and is raised.
#[test]
fn casts_are_imported() {
    let function = |name: &str, fields: &[Vec<u8>]| bytes(25, [bytes(1, name), fields.concat()].concat());
    let (body, domain) = (bytes(7, constant("k", raw("", FLOAT, &[1], &[0; 4]))), bytes(10, "d"));
    let untouched = function("g", std::slice::from_ref(&domain));
    let source = [bytes(7, ""), function("f", &[body, domain.clone()]), untouched.clone()].concat();
    let body = bytes(7, constant("k.bf16", raw("", BFLOAT16, &[1], &[0x11; 2])));
    let rest = [bytes(7, cast("k.cast", "k.bf16", "k")), bytes(9, int(2, 13))].concat();
    let expected = [bytes(7, ""), function("f", &[body, domain, rest]), untouched].concat();
    assert_eq!(rewritten(&source, &["d:f/k"], Some(13), None).1, expected);

    let graph = bytes(7, bytes(5, raw("w", FLOAT, &[1], &[0; 4])));
    let (_, result) = rewritten(&[graph, bytes(8, bytes(1, ""))].concat(), &["w"], Some(13), None);
    assert!(result.ends_with(&bytes(8, [bytes(1, ""), int(2, 13)].concat())));
}

/// A node may have each attribute only once. If a Constant has two values, neither value is used.
#[test]
fn a_constant_has_one_attribute() {
    let value = || attribute("value", 4, bytes(5, raw("", FLOAT, &[1], &[0; 4])));
    let constant = node("Constant", &[], &["k"], &[value(), value()]);
    let file = opened(&bytes(7, graph(&[constant], &[], vec![])));
    assert!(file.tensors().iter().all(|listed| listed.role == Role::Part));
}

/// Inserted Casts (§3.10) do not rename unnamed nodes.
#[test]
fn nodes_without_a_name_are_called_as_before() {
    let branch = |name: &str| graph(&[], &[raw(name, FLOAT, &[2], &[0; 8])], bytes(12, bytes(1, name)));
    let unnamed = |output: &str| choice("w", output, branch(&format!("in_{output}")));
    let named = [unnamed("b"), bytes(3, "n")].concat();
    let nodes = [node("Relu", &["v"], &["r"], &[]), unnamed("a"), named, unnamed("c")];
    let constants = ["w", "v"].map(|name| raw(name, FLOAT, &[2], &[0; 8]));
    let source = model(13, 25, &graph(&nodes, &constants, bytes(12, bytes(1, "a"))));
    let before = opened(&source).value_names();
    let all: Vec<&str> = before.iter().map(String::as_str).collect();
    assert_eq!(all, ["w", "v", "If1/then_branch/in_a", "n/then_branch/in_b", "If2/then_branch/in_c"]);
    let (_, result) = rewritten(&source, &all, None, None);
    assert_eq!(opened(&result).value_names(), before);
}

#[test]
fn wide_functions_take_time_as_they_are_wide() {
    let make = |n: usize| {
        let (inputs, given): (Vec<_>, Vec<_>) = (0..n).map(|i| (format!("i{i}"), format!("w{i}"))).unzip();
        let names = |all: &[String], number| all.iter().flat_map(|name| bytes(number, name)).collect::<Vec<_>>();
        let body = [names(&inputs, 1), bytes(2, "c"), bytes(4, "Resize")].concat();
        let function = [bytes(1, "F"), names(&inputs, 4), bytes(5, "c"), bytes(7, body), bytes(10, "d")].concat();
        let call = [names(&given, 1), bytes(2, "y"), bytes(4, "F"), bytes(7, "d")].concat();
        let constants: Vec<_> = given.iter().map(|name| raw(name, FLOAT, &[1], &[0; 4])).collect();
        let source = [model(13, 25, &graph(&[call], &constants, vec![])), bytes(25, function)].concat();
        opened(&source)
    };
    let file = make(200_000);
    timing::assert_linear(|| assert!(file.feeding(&["Resize"]).iter().all(|feeds| *feeds)));
}
