//! Arbitrary bytes: never a panic, never more memory than the file justifies, always termination.

mod deadline;
mod disk;

use std::path::Path;

use proptest::prelude::*;
use truecast_core::DType;
use truecast_io::folder::Folder;
use truecast_io::onnx::{Changes, NewModel};
use truecast_io::{Error, FileFormat, Source};
use truecast_testkit::{gguf, npy::array as npy_array, safetensors::container as safetensors};
use truecast_testkit::{memory, proto::*};
use zip::CompressionMethod;

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

/// Opens the file in every way, reads all tensors in small pieces, and checks the memory used.
fn exercise(disk: &disk::Disk, bytes: &[u8]) {
    let _ends = deadline::of(bytes);
    std::fs::write(&disk.path, bytes).unwrap();
    std::fs::write(disk.path.with_file_name("w"), [7; 4]).unwrap();
    let mut buf = vec![0; 1000];
    for from in [None, Some(DType::I4), Some(DType::Bf16)] {
        memory::begin();
        if let Ok(opened) = Opened::of(&disk.path, from) {
            let source = opened.source();
            for index in 0..source.tensors().len() {
                let Ok(mut reader) = source.reader(index) else { continue };
                let mut pieces = 0;
                while reader.remaining() > 0 && pieces < 2000 {
                    let now = buf.len().min(reader.remaining() as usize);
                    match reader.read(&mut buf[..now]) {
                        Ok(()) => pieces += 1,
                        Err(error) => {
                            assert!(!error.to_string().chars().any(char::is_control));
                            assert_eq!(reader.remaining(), 0, "{error}");
                            assert!(reader.read(&mut buf[..1]).is_err());
                        }
                    }
                }
            }
        }
        // Measured before the rewrite, which takes the same amount again.
        let peak = memory::peak();
        if let Ok(opened) = Opened::of(&disk.path, from)
            && let source = opened.source()
            && let Some(model) = source.model()
        {
            let dtypes = vec![DType::Bf16; source.tensors().len()];
            NewModel::new(model, &Changes { dtypes, opset: Some(13), ir_version: Some(7) }, "w").ok();
        }
        // Fixed buffers (inflater, file), and structures made from the header's text.
        let bound = 200_000 + 64 * bytes.len();
        assert!(peak <= bound, "{peak} bytes for a file of {}", bytes.len());
    }
}

enum Opened {
    Source(Box<Source>),
    Folder(Box<Folder>),
}

impl Opened {
    fn of(path: &Path, from: Option<DType>) -> Result<Opened, Error> {
        match truecast_io::gguf::is_named(path) {
            true => Folder::of_file(path).map(|folder| Opened::Folder(Box::new(folder))),
            false => Source::open(path, from).map(|source| Opened::Source(Box::new(source))),
        }
    }

    fn source(&self) -> &Source {
        match self {
            Opened::Source(source) => source,
            Opened::Folder(folder) => &folder.shards()[0].source,
        }
    }
}

fn seeds(kind: FileFormat) -> Vec<Vec<u8>> {
    let npy = |descr: &str, shape: &str, data: &[u8]| npy_array(descr, "False", shape, data);
    match kind {
        FileFormat::Safetensors => {
            let headers = [
                (
                    r#"{"__metadata__":{"format":"pt","k":"v"},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},"b":{"dtype":"F4","shape":[2],"data_offsets":[8,9]}}"#,
                    9,
                ),
                (r#"{"":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}   "#, 0),
            ];
            headers.into_iter().map(|(text, data)| safetensors(text, &vec![0; data])).collect()
        }
        FileFormat::Npy => {
            vec![npy("<f4", "(2, 3)", &[1; 24]), npy(">f8", "(2,)", &[1; 16]), npy("<V1", "(3,)", &[1; 3])]
        }
        FileFormat::Npz => [CompressionMethod::Stored, CompressionMethod::Deflated]
            .map(|method| {
                let members = [("a.npy", npy("|u1", "(300,)", &[1; 300])), ("b.npy", npy("<f4", "(2,)", &[0; 8]))];
                disk::archive(&members, method)
            })
            .into(),
        FileFormat::TensorProto => tensors(),
        FileFormat::Onnx => {
            let tensors = tensors();
            let nodes: Vec<_> = tensors.iter().map(|tensor| constant("c", tensor)).collect();
            let branch = graph(&nodes, &tensors, bytes(12, value("c", 1, &[2])));
            let graph = graph(&[choice("w", "y", branch)], &tensors, bytes(11, value("x", 1, &[2])));
            let function = [bytes(1, "f"), nodes.iter().flat_map(|n| bytes(7, n)).collect(), bytes(10, "d")].concat();
            vec![model(8, 17, &graph), [model(10, 21, &graph), bytes(25, function)].concat()]
        }
        FileFormat::Gguf => vec![gguf_file()],
    }
}

/// A file with two kinds of values that have a length, a tensor of blocks, and a tensor of elements.
fn gguf_file() -> Vec<u8> {
    let array = [&8u32.to_le_bytes()[..], &2u64.to_le_bytes(), &gguf::text("a"), &gguf::text("b")].concat();
    let keys = [gguf::key("k", 8, &gguf::text("v")), gguf::key("l", 9, &array)];
    gguf::file(&keys, &[gguf::tensor("a", &[32, 2], 8, 0), gguf::tensor("b", &[3], 0, 96)], &[1; 108])
}

fn tensors() -> Vec<Vec<u8>> {
    let forms = [
        (1, [2, 1], bytes(9, [0; 8])),
        (1, [2, 1], [fixed32(4, [0; 4]), bytes(4, [0; 4])].concat()),
        (22, [1, 3], packed(5, &[143, 7])),
        (27, [3, 1], packed(5, &[8, 4, 8])),
        (28, [6, 1], [packed(5, &[1, 2, 3, 4]), packed(5, &[5, 6])].concat()),
        (11, [1, 1], fixed64(10, [0; 8])),
        (14, [1, 1], bytes(4, [0; 8])),
        (7, [1, 2], [int(7, -1), packed(7, &[5])].concat()),
        (8, [1, 1], bytes(6, "text")),
        (2, [1, 1], external(&[("location", "w"), ("offset", "0"), ("length", "1")])),
    ];
    forms.into_iter().map(|(data_type, dims, data)| [tensor("w", data_type, &dims), data].concat()).collect()
}

#[derive(Clone, Debug)]
enum Change {
    Set(prop::sample::Index, u8),
    Flip(prop::sample::Index, u8),
    Insert(prop::sample::Index, Vec<u8>),
    Remove(prop::sample::Index, usize),
    Repeat(prop::sample::Index, usize),
    Cut(prop::sample::Index),
}

fn change() -> impl Strategy<Value = Change> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        (at(), prop::sample::select(&b"\0\x01\x7f\xff09-.eE\"'\\{}[](),:L "[..])).prop_map(|(i, b)| Change::Set(i, b)),
        (at(), 0..8u8).prop_map(|(i, b)| Change::Flip(i, b)),
        (at(), prop::collection::vec(any::<u8>(), 1..20)).prop_map(|(i, b)| Change::Insert(i, b)),
        (at(), 1..20usize).prop_map(|(i, n)| Change::Remove(i, n)),
        (at(), 1..60usize).prop_map(|(i, n)| Change::Repeat(i, n)),
        at().prop_map(Change::Cut),
    ]
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    if bytes.is_empty() {
        return;
    }
    let end = |at: usize, n: usize, bytes: &[u8]| (at + n).min(bytes.len());
    match change {
        Change::Set(i, byte) => *i.get_mut(bytes) = *byte,
        Change::Flip(i, bit) => *i.get_mut(bytes) ^= 1 << bit,
        Change::Insert(i, new) => {
            let at = i.index(bytes.len());
            bytes.splice(at..at, new.iter().copied());
        }
        Change::Remove(i, n) => {
            let at = i.index(bytes.len());
            bytes.drain(at..end(at, *n, bytes));
        }
        Change::Repeat(i, n) => {
            let at = i.index(bytes.len());
            let copy = bytes[at..end(at, *n, bytes)].to_vec();
            bytes.splice(at..at, copy);
        }
        Change::Cut(i) => bytes.truncate(i.index(bytes.len())),
    }
}

const KINDS: [(FileFormat, &str); 6] = [
    (FileFormat::Safetensors, "a.safetensors"),
    (FileFormat::Npy, "a.npy"),
    (FileFormat::Npz, "a.npz"),
    (FileFormat::TensorProto, "a.pb"),
    (FileFormat::Onnx, "a.onnx"),
    (FileFormat::Gguf, "a.gguf"),
];

#[test]
fn seeds_are_accepted() {
    for (kind, name) in KINDS {
        for seed in seeds(kind) {
            let disk = disk::file(name, &seed);
            let from = (seed.windows(3).any(|w| w == b"<V1")).then_some(DType::U8);
            exercise(&disk, &seed);
            drop(Opened::of(&disk.path, from).unwrap());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes(kind in 0..KINDS.len(), start in any::<bool>(), bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let (kind, name) = KINDS[kind];
        let magic: &[u8] = match kind {
            FileFormat::Safetensors => b"\x40\0\0\0\0\0\0\0{",
            FileFormat::Npy => b"\x93NUMPY\x01\0",
            FileFormat::Npz => b"PK\x03\x04",
            FileFormat::TensorProto => b"\x08\x02\x10\x02",
            FileFormat::Onnx => b"\x08\x09\x3a\x7f\x0a\x20",
            FileFormat::Gguf => b"GGUF\x03\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0",
        };
        let bytes = if start { [magic, &bytes].concat() } else { bytes };
        exercise(&disk::empty(name), &bytes);
    }

    #[test]
    fn changed_files(
        kind in 0..KINDS.len(),
        seed in any::<prop::sample::Index>(),
        changes in prop::collection::vec(change(), 1..6),
        has_length_mended in any::<bool>(),
    ) {
        let (kind, name) = KINDS[kind];
        let seeds = seeds(kind);
        let mut bytes = seed.get(&seeds).clone();
        changes.iter().for_each(|c| apply(&mut bytes, c));
        // Mends the header's length, so that changes reach the parser.
        if has_length_mended && kind == FileFormat::Safetensors && bytes.len() > 8 {
            let end = bytes.iter().rposition(|&b| b == b'}').map_or(bytes.len(), |p| p + 1).max(8);
            let length = (end - 8) as u64;
            bytes[..8].copy_from_slice(&length.to_le_bytes());
        }
        exercise(&disk::empty(name), &bytes);
    }
}
