//! Protobuf messages, including messages that no library would write. Field numbers: `docs/spec/onnx.md §3.1`.

/// A number in groups of 7 bits, low group first.
pub fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A varint field (wire type 0).
pub fn int(number: u32, value: i64) -> Vec<u8> {
    [varint(u64::from(number) << 3), varint(value as u64)].concat()
}

/// A length-delimited field (wire type 2).
pub fn bytes(number: u32, content: impl AsRef<[u8]>) -> Vec<u8> {
    let content = content.as_ref();
    [&varint(u64::from(number) << 3 | 2), &varint(content.len() as u64), content].concat()
}

/// A field of 4 bytes (wire type 5).
pub fn fixed32(number: u32, value: [u8; 4]) -> Vec<u8> {
    [&varint(u64::from(number) << 3 | 5), &value[..]].concat()
}

/// A field of 8 bytes (wire type 1).
pub fn fixed64(number: u32, value: [u8; 8]) -> Vec<u8> {
    [&varint(u64::from(number) << 3 | 1), &value[..]].concat()
}

/// A packed field of varints.
pub fn packed(number: u32, values: &[i64]) -> Vec<u8> {
    bytes(number, values.iter().flat_map(|&v| varint(v as u64)).collect::<Vec<_>>())
}

/// A TensorProto without data.
pub fn tensor(name: &str, data_type: i64, dims: &[i64]) -> Vec<u8> {
    let dims: Vec<u8> = dims.iter().flat_map(|&d| int(1, d)).collect();
    [dims, int(2, data_type), bytes(8, name)].concat()
}

/// A TensorProto with raw data.
pub fn raw(name: &str, data_type: i64, dims: &[i64], data: &[u8]) -> Vec<u8> {
    [tensor(name, data_type, dims), bytes(9, data)].concat()
}

/// An entry of `external_data`.
pub fn entry(key: &str, value: &str) -> Vec<u8> {
    bytes(13, [bytes(1, key), bytes(2, value)].concat())
}

/// Fields of external data: `external_data` entries and `data_location`.
pub fn external(entries: &[(&str, &str)]) -> Vec<u8> {
    let entries: Vec<u8> = entries.iter().flat_map(|(k, v)| entry(k, v)).collect();
    [entries, int(14, 1)].concat()
}

/// A NodeProto.
pub fn node(op_type: &str, inputs: &[&str], outputs: &[&str], attributes: &[Vec<u8>]) -> Vec<u8> {
    let inputs: Vec<u8> = inputs.iter().flat_map(|name| bytes(1, name)).collect();
    let outputs: Vec<u8> = outputs.iter().flat_map(|name| bytes(2, name)).collect();
    let attributes: Vec<u8> = attributes.iter().flat_map(|a| bytes(5, a)).collect();
    [inputs, outputs, bytes(4, op_type), attributes].concat()
}

/// An AttributeProto; `value` is the complete field of the value.
pub fn attribute(name: &str, kind: i64, value: Vec<u8>) -> Vec<u8> {
    [bytes(1, name), value, int(20, kind)].concat()
}

/// A Constant node.
pub fn constant(output: &str, tensor: impl AsRef<[u8]>) -> Vec<u8> {
    node("Constant", &[], &[output], &[attribute("value", 4, bytes(5, tensor))])
}

/// An If node with one branch.
pub fn choice(condition: &str, output: &str, branch: impl AsRef<[u8]>) -> Vec<u8> {
    node("If", &[condition], &[output], &[attribute("then_branch", 5, bytes(6, branch))])
}

/// Fields of a GraphProto.
pub fn graph(nodes: &[Vec<u8>], initializers: &[Vec<u8>], others: Vec<u8>) -> Vec<u8> {
    let nodes: Vec<u8> = nodes.iter().flat_map(|n| bytes(1, n)).collect();
    let initializers: Vec<u8> = initializers.iter().flat_map(|i| bytes(5, i)).collect();
    [nodes, bytes(2, "g"), initializers, others].concat()
}

/// A ValueInfoProto of a tensor.
pub fn value(name: &str, elem_type: i64, shape: &[i64]) -> Vec<u8> {
    let dims: Vec<u8> = shape.iter().flat_map(|&d| bytes(1, int(1, d))).collect();
    let tensor = [int(1, elem_type), bytes(2, dims)].concat();
    [bytes(1, name), bytes(2, bytes(1, tensor))].concat()
}

/// A ModelProto.
pub fn model(ir_version: i64, opset: i64, graph: &[u8]) -> Vec<u8> {
    [int(1, ir_version), bytes(7, graph), bytes(8, int(2, opset))].concat()
}
