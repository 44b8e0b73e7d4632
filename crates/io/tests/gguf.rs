//! GGUF headers: accepted files, and one file for each rule of `docs/spec/checkpoints.md §9.1`.

use truecast_core::DType;
use truecast_io::folder::Folder;
use truecast_io::gguf::{Block, Header, HeaderError, Keys, NewFile, NewTensor, Value, differing_keys};
use truecast_io::{Existing, Writer};
use truecast_testkit::gguf::{file, key, tensor, text};

#[derive(Default)]
struct File {
    keys: Vec<Vec<u8>>,
    tensors: Vec<Vec<u8>>,
    data: Vec<u8>,
}

impl File {
    fn bytes(&self) -> Vec<u8> {
        file(&self.keys, &self.tensors, &self.data)
    }

    fn error(&self) -> HeaderError {
        Header::parse(&self.bytes()).unwrap_err()
    }
}

#[test]
fn a_file_is_read() {
    let array = [&8u32.to_le_bytes()[..], &2u64.to_le_bytes(), &text("a"), &text("bc")].concat();
    let file = File {
        keys: vec![
            key("general.architecture", 8, &text("llama")),
            key("general.file_type", 4, &7u32.to_le_bytes()),
            key("tokenizer.tokens", 9, &array),
            key("eps", 6, &0.5f32.to_le_bytes()),
            key("flag", 7, &[1]),
        ],
        tensors: vec![tensor("a", &[64, 3], 8, 0), tensor("b", &[5], 30, 224), tensor("c", &[], 0, 256)],
        data: vec![0; 260],
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.gguf");
    std::fs::write(&path, file.bytes()).unwrap();
    let opened = Folder::of_file(&path).unwrap();
    let header = opened.shards()[0].source.gguf().unwrap();
    assert_eq!(*header, Header::parse(&file.bytes()).unwrap());
    assert_eq!(header.metadata[1].1, Value::Unsigned(7));
    assert_eq!(header.metadata[2].1, Value::Array { entries: 2, few: Vec::new() });
    assert_eq!(header.metadata[3].1, Value::Float(0.5));
    let shown: Vec<_> = header.tensors.iter().map(|t| (t.block.name(), &t.shape[..], t.bytes, t.dtype())).collect();
    assert_eq!(
        shown,
        [
            ("Q8_0", &[3, 64][..], 204, None),
            ("BF16", &[5][..], 10, Some(DType::Bf16)),
            ("F32", &[][..], 4, Some(DType::F32)),
        ]
    );
    assert_eq!(header.tensors[1].offset, header.data_start + 224);
}

#[test]
fn every_rule_has_a_file_that_breaks_it() {
    assert_eq!(Header::parse(b"GGU"), Err(HeaderError::Magic));
    assert_eq!(Header::parse(b"GGML\x03\0\0\0"), Err(HeaderError::Magic));
    assert_eq!(Header::parse(b"GGUF\x01\0\0\0"), Err(HeaderError::Version { version: 1 }));
    assert_eq!(Header::parse(b"GGUF\0\0\0\x03"), Err(HeaderError::BigEndian));
    assert_eq!(Header::parse(b"GGUF\x03\0\0\0"), Err(HeaderError::Truncated { offset: 8 }));
    let mut many = b"GGUF\x03\0\0\0".to_vec();
    many.extend(u64::MAX.to_le_bytes());
    many.extend([0; 8]);
    assert_eq!(Header::parse(&many), Err(HeaderError::Truncated { offset: 8 }));

    let keys = |keys: Vec<Vec<u8>>| File { keys, ..File::default() };
    let endless = [&u64::MAX.to_le_bytes()[..], &[0; 64]].concat();
    assert_eq!(keys(vec![endless]).error(), HeaderError::Truncated { offset: 32 });
    assert_eq!(keys(vec![key("k", 13, &[0; 8])]).error(), HeaderError::ValueType { offset: 37, kind: 13 });
    let one = || key("k", 0, &[1]);
    assert_eq!(keys(vec![one(), one()]).error(), HeaderError::DuplicateKey { key: "k".into() });
    let mut not_text = key("k", 0, &[1]);
    not_text[8] = 0xff;
    assert_eq!(keys(vec![not_text]).error(), HeaderError::NotUtf8 { offset: 24 });
    let array = |kind: u32, count: u64| [&kind.to_le_bytes()[..], &count.to_le_bytes()].concat();
    assert_eq!(keys(vec![key("k", 9, &array(0, 1 << 40))]).error(), HeaderError::Truncated { offset: 41 });
    let nested = [array(9, 1), array(9, 1), array(9, 1), array(9, 1), array(0, 0)].concat();
    assert!(matches!(keys(vec![key("k", 9, &nested)]).error(), HeaderError::TooDeep { .. }));
    let nested = [array(9, 1), array(9, 1), array(9, 1), array(0, 0)].concat();
    assert!(Header::parse(&keys(vec![key("k", 9, &nested)]).bytes()).is_ok());
    for wrong in [3u32, 0, 1 << 21] {
        assert_eq!(keys(vec![key("general.alignment", 4, &wrong.to_le_bytes())]).error(), HeaderError::Alignment);
    }

    let tensors = |tensors: Vec<Vec<u8>>| File { tensors, data: vec![0; 256], ..File::default() };
    let named = || "a".to_string();
    let block = Block::of_id(8).unwrap();
    let one = |dims: &[u64], id, offset| vec![tensor("a", dims, id, offset)];
    for (broken, error) in [
        (one(&[1; 9], 0, 0), HeaderError::Rank { tensor: named(), rank: 9 }),
        (one(&[32], 4, 0), HeaderError::BlockType { tensor: named(), id: 4 }),
        (one(&[33], 8, 0), HeaderError::Columns { tensor: named(), columns: 33, block }),
        (one(&[1 << 40, 1 << 40], 0, 0), HeaderError::ShapeTooBig { tensor: named() }),
        (one(&[1], 0, 4), HeaderError::Unaligned { tensor: named(), offset: 4, alignment: 32 }),
        (
            vec![tensor("b", &[16], 0, 0), tensor("a", &[1], 0, 32)],
            HeaderError::Overlap { tensor: named(), offset: 32, expected: 64 },
        ),
        ([one(&[1], 0, 0), one(&[1], 0, 32)].concat(), HeaderError::DuplicateTensor { tensor: named() }),
    ] {
        assert_eq!(tensors(broken).error(), error);
    }
    // The last data may be padded to the alignment; no other bytes may follow.
    for (elements, bytes) in [(64, None), (57, None), (56, Some(32)), (55, Some(36)), (0, Some(256))] {
        let found = Header::parse(&tensors(vec![tensor("a", &[elements], 0, 0)]).bytes()).err();
        assert_eq!(found, bytes.map(|bytes| HeaderError::Surplus { bytes }), "{elements}");
    }
    for (elements, offset, beyond) in [(65, 0, Some(260)), (1, u64::MAX - 31, None)] {
        let error = tensors(vec![tensor("a", &[elements], 0, offset)]).error();
        let HeaderError::PastEnd { needed, file_bytes, .. } = error else { panic!("{error}") };
        assert_eq!(needed, beyond.map_or(u64::MAX, |beyond| file_bytes - 256 + beyond));
        let said = format!("the header claims {needed} bytes, and the file has {file_bytes}; ");
        assert!(
            error.to_string().contains(&said) && error.to_string().ends_with("download or copy it again"),
            "{error}"
        );
    }
}

#[test]
fn a_cut_file_is_never_read() {
    let file =
        File { keys: vec![key("k", 8, &text("value"))], tensors: vec![tensor("a", &[64], 8, 0)], data: vec![0; 68] };
    let whole = file.bytes();
    assert!(Header::parse(&whole).is_ok());
    for len in 0..whole.len() {
        assert!(Header::parse(&whole[..len]).is_err(), "{len}");
    }
}

#[test]
fn blocks_have_the_bytes_that_the_definition_says() {
    for block in truecast_core::scaled::BlockType::ALL {
        let (id, elements, bytes) = (block.id(), block.elements(), block.bytes());
        let listed = Block::of_id(id).unwrap();
        assert_eq!((listed.elements(), listed.bytes()), (elements, bytes));
    }
    for block in Block::all() {
        let bits = block.dtype().and_then(DType::storage_bits);
        assert!(bits.is_none_or(|bits| u64::from(bits) == block.bytes() * 8), "{block}");
    }
}

/// A small sparse file could otherwise request any amount of memory.
#[test]
fn texts_are_bounded_together() {
    let long = |n: usize| key(&format!("k{n}"), 8, &text(&"\0".repeat(16 << 20)));
    let file = |keys: usize| File { keys: (0..keys).map(long).collect(), ..File::default() }.bytes();
    assert!(Header::parse(&file(3)).is_ok());
    assert!(matches!(Header::parse(&file(4)).unwrap_err(), HeaderError::TooMuchText { .. }));
}

/// Keys of any type, and names with any characters.
#[test]
fn what_was_read_is_written_again() {
    let inner = [&5u32.to_le_bytes()[..], &1u64.to_le_bytes(), &[1, 2, 3, 4]].concat();
    let nested = [&9u32.to_le_bytes()[..], &2u64.to_le_bytes(), &inner, &inner].concat();
    let file = File {
        keys: vec![
            key("general.alignment", 4, &128u32.to_le_bytes()),
            key("a\0\u{1b}[31m\u{202e}", 9, &nested),
            key("", 6, &f32::NAN.to_le_bytes()),
            key("flag", 7, &[7]),
            key("long", 12, &1e300f64.to_le_bytes()),
        ],
        tensors: vec![tensor("b\n", &[32, 2], 39, 0), tensor("", &[3], 0, 128)],
        data: vec![0; 256],
    };
    let folder = tempfile::tempdir().unwrap();
    let (path, again) = (folder.path().join("a.gguf"), folder.path().join("b.gguf"));
    std::fs::write(&path, file.bytes()).unwrap();
    let opened = Folder::of_file(&path).unwrap();
    let source = &opened.shards()[0].source;
    let keys = Keys::of(source).unwrap();
    let tensors = source.gguf().unwrap().tensors.iter();
    let tensors = tensors.map(|t| NewTensor { name: t.name.clone(), block: t.block, shape: t.shape.clone() }).collect();
    let new = NewFile { keys: keys.clone(), tensors };
    let mut writer = Writer::create_gguf(&again, &new, Existing::Refuse).unwrap();
    assert_eq!((writer.order(), writer.offsets(), writer.total_bytes()), (&[0, 1][..], vec![0, 128], 34 + 12));
    assert_eq!((writer.filling(Some(0)).len(), writer.filling(Some(5)).len()), (0, 0));
    writer.write_at(0, &[7; 34]).unwrap();
    assert_eq!((writer.filling(Some(128)).len(), writer.filling(Some(129)).len()), (94, 0));
    writer.write_at(128, &[8; 12]).unwrap();
    writer.finish().unwrap();
    let bytes = std::fs::read(&again).unwrap();
    let header = Header::parse(&bytes).unwrap();
    assert_eq!((header.alignment, header.data_start % 128, bytes.len() % 128), (128, 0, 0));
    let data = &bytes[header.data_start as usize..];
    assert_eq!(data, [&[7; 34][..], &[0; 94], &[8; 12], &[0; 116]].concat());
    assert_eq!(Keys::of(&Folder::of_file(&again).unwrap().shards()[0].source).unwrap(), keys);
    let mut other = keys.clone();
    other.remove("flag");
    other.set("general.file_type", &1u32);
    assert_eq!(differing_keys(&keys, &other), ["flag", "general.file_type"]);
    assert_eq!(differing_keys(&keys, &keys), [""; 0]);
    let writer = Writer::create_gguf(&folder.path().join("c.gguf"), &new, Existing::Refuse).unwrap();
    assert!(writer.finish().is_err() && !folder.path().join("c.gguf").exists());
}
