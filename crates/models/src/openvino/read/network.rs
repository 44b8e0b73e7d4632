//! Parses XML into layers and edges. Types and attributes stay text. Source: `docs/spec/openvino.md §11.1`, §11.2,
//! §11.6.

use crate::openvino::error::IrError;
use roxmltree::{Document, Node, ParsingOptions};
use std::collections::{BTreeMap, HashSet};
use std::fmt;

/// A network in the form of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// Release that wrote the file, if stated.
    pub release: Option<Release>,
    /// The layers, in the order of the file.
    pub layers: Vec<Layer>,
    /// Connections.
    pub edges: Vec<Edge>,
}

/// A release of OpenVINO: year and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release(pub u32, pub u32);

/// A layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Number of the layer, unique.
    pub id: u64,
    /// Name of the layer, not necessarily unique.
    pub name: String,
    /// The operator.
    pub operator: String,
    /// The operator set.
    pub version: String,
    /// The attributes of `data`.
    pub data: BTreeMap<String, String>,
    /// Tensor names of a Result.
    pub output_names: Vec<String>,
    /// The input ports.
    pub inputs: Vec<Port>,
    /// The output ports.
    pub outputs: Vec<Port>,
}

impl Layer {
    pub(crate) fn port_id(&self, port: u64) -> PortId {
        PortId { layer: self.id, port }
    }
}

/// A port of a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Number of the port, unique in its layer.
    pub id: u64,
    /// The declared element type, in the file's spelling.
    pub precision: String,
    /// Number of declared dimensions; 0 may also mean an unknown rank.
    pub rank: usize,
    /// Tensor names.
    pub names: Vec<String>,
}

/// A port of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PortId {
    /// Number of the layer.
    pub layer: u64,
    /// Number of the port in the layer.
    pub port: u64,
}

impl fmt::Display for PortId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "port {} of layer {}", self.port, self.layer)
    }
}

/// A connection from an output port to an input port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The producer.
    pub from: PortId,
    /// The consumer.
    pub to: PortId,
}

/// Limit on the numbers of XML elements and attributes; more would take gigabytes.
const MAX_NODES: u32 = 1 << 21;
/// Limit on the attributes of a tag, because the parser compares them pairwise.
const MAX_ATTRIBUTES: usize = 256;

/// Parses a network. A document type is an error, so entities are never expanded.
///
/// # Errors
/// [`IrError`].
pub fn network(text: &str) -> Result<Network, IrError> {
    check_attributes(text)?;
    let options = ParsingOptions { allow_dtd: false, nodes_limit: MAX_NODES, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).map_err(|e| IrError::Xml { reason: e.to_string() })?;
    let root = document.root_element();
    if root.tag_name().name() != "net" {
        return Err(IrError::Root { found: root.tag_name().name().into() });
    }
    let version = root.attribute("version").unwrap_or("");
    if !matches!(version, "10" | "11") {
        return Err(IrError::NetVersion { found: version.into() });
    }
    let mut network = Network { release: release(root), ..Network::default() };
    let mut ids = HashSet::new();
    for layer in children(root, "layers").flat_map(|layers| children(layers, "layer")) {
        let read = read_layer(layer)?;
        if !ids.insert(read.id) {
            return Err(IrError::Duplicate { line: line(layer), what: format!("layer {}", read.id) });
        }
        network.layers.push(read);
    }
    for edge in children(root, "edges").flat_map(|edges| children(edges, "edge")) {
        let end =
            |layer, port| Ok(PortId { layer: number_of(edge, "edge", layer)?, port: number_of(edge, "edge", port)? });
        network.edges.push(Edge { from: end("from-layer", "from-port")?, to: end("to-layer", "to-port")? });
    }
    Ok(network)
}

/// Rejects XML for which the parser would need minutes or gigabytes. Such XML has too many attributes in a tag or in
/// total, or has namespaces, which every element inherits.
///
/// Malformed XML is left to the parser.
fn check_attributes(text: &str) -> Result<(), IrError> {
    let mut rest = text;
    let mut all = 0;
    while let Some(start) = rest.find('<') {
        rest = &rest[start..];
        let skipped =
            [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")].into_iter().find(|(open, _)| rest.starts_with(open));
        if let Some((open, close)) = skipped {
            rest = rest[open.len()..].find(close).map_or("", |end| &rest[open.len() + end + close.len()..]);
            continue;
        }
        let mut values = 0;
        loop {
            let Some(at) = rest.find(['>', '"', '\'']) else { return Ok(()) };
            let (sign, name) = (rest.as_bytes()[at], &rest[..at]);
            rest = &rest[at + 1..];
            let line = || 1 + text[..text.len() - rest.len()].matches('\n').count();
            if name.contains("xmlns") {
                return Err(IrError::Namespace { line: line() });
            }
            if sign == b'>' {
                break;
            }
            (values, all) = (values + 1, all + 1);
            let limit = if values > MAX_ATTRIBUTES { MAX_ATTRIBUTES } else { MAX_NODES as usize };
            if values > MAX_ATTRIBUTES || all > MAX_NODES {
                return Err(IrError::TooManyAttributes { line: line(), limit });
            }
            rest = rest.find(sign as char).map_or("", |end| &rest[end + 1..]);
        }
    }
    Ok(())
}

fn line(node: Node<'_, '_>) -> u32 {
    node.document().text_pos_at(node.range().start).row
}

fn children<'a, 'i: 'a>(node: Node<'a, 'i>, name: &'static str) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children().filter(move |child| child.has_tag_name(name))
}

fn text_of(node: Node<'_, '_>, element: &'static str, attribute: &'static str) -> Result<String, IrError> {
    let missing = || IrError::Missing { line: line(node), element, missing: attribute };
    node.attribute(attribute).map(str::to_string).ok_or_else(missing)
}

fn number_of(node: Node<'_, '_>, element: &'static str, attribute: &'static str) -> Result<u64, IrError> {
    let found = text_of(node, element, attribute)?;
    decimal(&found).ok_or_else(|| IrError::Number { line: line(node), what: attribute, found })
}

/// Parses an unsigned decimal number without a sign or blanks.
pub fn decimal(text: &str) -> Option<u64> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn release(root: Node<'_, '_>) -> Option<Release> {
    let infos = children(root, "rt_info").flat_map(|info| info.children());
    let value = infos
        .filter(|node| node.attribute("name") == Some("OpenVINO Runtime") || node.has_tag_name("Runtime_version"))
        .find_map(|node| node.attribute("value"))?;
    let mut numbers = value.split(['.', '-']).map(str::parse);
    Some(Release(numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn read_layer(layer: Node<'_, '_>) -> Result<Layer, IrError> {
    let data = children(layer, "data").flat_map(|data| data.attributes());
    let ports = |name| children(layer, name).flat_map(|ports| children(ports, "port")).map(read_port);
    let read = Layer {
        id: number_of(layer, "layer", "id")?,
        name: layer.attribute("name").unwrap_or("").into(),
        operator: text_of(layer, "layer", "type")?,
        version: layer.attribute("version").unwrap_or("").into(),
        data: data.map(|a| (a.name().to_string(), a.value().to_string())).collect(),
        output_names: names(layer.attribute("output_names")),
        inputs: ports("input").collect::<Result<_, _>>()?,
        outputs: ports("output").collect::<Result<_, _>>()?,
    };
    let mut ids = HashSet::new();
    match read.inputs.iter().chain(&read.outputs).find(|port| !ids.insert(port.id)) {
        Some(port) => {
            Err(IrError::Duplicate { line: line(layer), what: format!("port {} of layer {}", port.id, read.id) })
        }
        None => Ok(read),
    }
}

fn read_port(port: Node<'_, '_>) -> Result<Port, IrError> {
    Ok(Port {
        id: number_of(port, "port", "id")?,
        precision: port.attribute("precision").unwrap_or("").into(),
        rank: children(port, "dim").count(),
        names: names(port.attribute("names")),
    })
}

/// Splits a list of names at commas; `\,` is a comma in a name.
fn names(list: Option<&str>) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut chars = list.unwrap_or("").chars().peekable();
    while let Some(c) = chars.next() {
        let last = names.last_mut().expect("there is always a name to go on with");
        match c {
            '\\' if chars.next_if_eq(&',').is_some() => last.push(','),
            ',' => names.push(String::new()),
            _ => last.push(c),
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(body: &str) -> String {
        format!(r#"<?xml version="1.0"?><net name="m" version="11">{body}</net>"#)
    }

    #[test]
    fn a_network() {
        let body = r#"<layers>
            <layer id="0" name="x" type="Parameter" version="opset1">
                <data shape="2,3" element_type="f16"/>
                <output><port id="0" precision="FP16" names="b\,c,x"><dim>2</dim><dim>3</dim></port></output>
            </layer>
            <layer id="7" name="r" type="Result" version="opset1" output_names="y"><input><port id="0"/></input></layer>
        </layers>
        <edges><edge from-layer="0" from-port="0" to-layer="7" to-port="0"/></edges>
        <rt_info><info name="OpenVINO Runtime" value="2026.4.1-22982-e213a147257-releases/2026/4"/></rt_info>"#;
        let network = network(&net(body)).unwrap();
        assert_eq!(network.release, Some(Release(2026, 4)));
        assert_eq!(network.edges, [Edge { from: PortId { layer: 0, port: 0 }, to: PortId { layer: 7, port: 0 } }]);
        let [x, r] = network.layers.as_slice() else { panic!("{network:?}") };
        assert_eq!((x.name.as_str(), x.operator.as_str(), x.data["element_type"].as_str()), ("x", "Parameter", "f16"));
        assert_eq!((x.outputs[0].rank, x.outputs[0].names.as_slice()), (2, ["b,c".to_string(), "x".into()].as_slice()));
        assert_eq!(r.output_names, ["y"]);
    }

    #[test]
    fn what_is_no_network() {
        let layer = |attributes: &str| net(&format!("<layers><layer {attributes}/></layers>"));
        let rows: Vec<(String, &str)> = vec![
            (String::new(), "not the XML"),
            ("<net".into(), "not the XML"),
            ("<model version='11'/>".into(), "root element is \"model\""),
            ("<net version='9'/>".into(), "net version \"9\""),
            ("<net/>".into(), "net version"),
            (layer("name='x'"), "layer without id"),
            (layer("id='0'"), "layer without type"),
            (layer("id='0x1' type='Const'"), "not a decimal number"),
            (layer("id='+1' type='Const'"), "not a decimal number"),
            (layer("id='99999999999999999999' type='Const'"), "not a decimal number"),
            (net("<layers><layer id='1' type='a'/><layer id='1' type='b'/></layers>"), "layer 1 occurs twice"),
            (net("<edges><edge from-layer='0'/></edges>"), "edge without from-port"),
            ("<!DOCTYPE net [<!ENTITY a 'aa'><!ENTITY b '&a;&a;'>]><net version='11'>&b;</net>".into(), "not the XML"),
            (net("&lol;"), "not the XML"),
            (format!("<net version='11'>{}", "<a>".repeat(100_000)), "not the XML"),
            (net("<a xmlns:b='c'/>"), "namespaces"),
            (layer(&(0..300).map(|i| format!("a{i}='' ")).collect::<String>()), "256 attributes"),
        ];
        for (text, said) in rows {
            let error = network(&text).unwrap_err().to_string();
            assert!(error.contains(said), "{error}: {said}");
        }
    }

    /// Values, comments and texts may look like tags.
    #[test]
    fn counting_attributes_is_not_fooled() {
        let many = "a=''".repeat(300);
        let harmless = net(&format!("<!-- <b {many}> --><![CDATA[<b {many}>]]><c d=\"> {}\"/>{many}", "'".repeat(600)));
        assert!(network(&harmless).is_ok());
    }
}
