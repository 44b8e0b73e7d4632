//! Written safetensors files byte for byte, their order, and round trips: `docs/spec/checkpoints.md §1.3` to §1.5,
//! §1.7, §1.8.

mod disk;

use std::collections::BTreeMap;

use truecast_core::{DType, Ecosystem};
use truecast_io::safetensors::{NAMES, canonical_order};
use truecast_io::{DeniedTensor, Error, ErrorKind, Existing, FileFormat, Tensor, Writer};

fn tensor(name: &str, dtype: DType, shape: &[u64]) -> Tensor {
    disk::tensor(FileFormat::Safetensors, name, dtype, shape)
}

fn written(tensors: &[Tensor], metadata: &[(&str, &str)]) -> Vec<u8> {
    let disk = disk::empty("a.safetensors");
    let data: Vec<Vec<u8>> = tensors.iter().map(|t| vec![0; t.bytes() as usize]).collect();
    let bytes = disk::write(&disk, tensors, &data, metadata).unwrap();
    let file = std::fs::read(&disk.path).unwrap();
    assert_eq!(bytes, file.len() as u64);
    file
}

/// Name, type and bits, in the rank order of §1.3.
const TABLE: [(&str, &str, u32); 22] = [
    ("BOOL", "bool", 8),
    ("F4", "f4e2m1", 4),
    ("F6_E2M3", "f6e2m3", 6),
    ("F6_E3M2", "f6e3m2", 6),
    ("U8", "u8", 8),
    ("I8", "i8", 8),
    ("F8_E5M2", "f8e5m2", 8),
    ("F8_E4M3", "f8e4m3fn", 8),
    ("F8_E8M0", "f8e8m0", 8),
    ("F8_E4M3FNUZ", "f8e4m3fnuz", 8),
    ("F8_E5M2FNUZ", "f8e5m2fnuz", 8),
    ("I16", "i16", 16),
    ("U16", "u16", 16),
    ("F16", "f16", 16),
    ("BF16", "bf16", 16),
    ("I32", "i32", 32),
    ("U32", "u32", 32),
    ("F32", "f32", 32),
    ("C64", "c64", 64),
    ("F64", "f64", 64),
    ("I64", "i64", 64),
    ("U64", "u64", 64),
];

#[test]
fn names_are_those_of_the_table() {
    for ((name, dtype), row) in NAMES.into_iter().zip(TABLE) {
        assert_eq!((name, dtype.name(), dtype.storage_bits()), (row.0, row.1, Some(row.2)));
        assert_eq!(dtype.names_in(Ecosystem::Safetensors).next(), Some(name));
    }
    let named = DType::ALL.into_iter().filter(|d| d.names_in(Ecosystem::Safetensors).next().is_some());
    assert_eq!(named.count(), NAMES.len());
}

/// Output of safetensors 0.8.0 (Python, `serialize`, metadata `{"format": "pt"}`).
#[test]
fn canonical_files_are_those_of_safetensors_0_8() {
    let mut expected = 0x5c8u64.to_le_bytes().to_vec();
    expected.extend_from_slice(
        concat!(
            r#"{"__metadata__":{"format":"pt"},"t.uint64":{"dtype":"U64","shape":[2,4],"data_offsets":[0,64]},"#,
            r#""t.int64":{"dtype":"I64","shape":[2,4],"data_offsets":[64,128]},"#,
            r#""t.float64":{"dtype":"F64","shape":[2,4],"data_offsets":[128,192]},"#,
            r#""t.complex64":{"dtype":"C64","shape":[2,4],"data_offsets":[192,256]},"#,
            r#""a\"\\\n\u0001"#,
            "\u{e9}/\u{7f}",
            r#"":{"dtype":"F32","shape":[0,3],"data_offsets":[256,256]},"#,
            r#""b":{"dtype":"F32","shape":[],"data_offsets":[256,260]},"#,
            r#""t.float32":{"dtype":"F32","shape":[2,4],"data_offsets":[260,292]},"#,
            r#""t.uint32":{"dtype":"U32","shape":[2,4],"data_offsets":[292,324]},"#,
            r#""t.int32":{"dtype":"I32","shape":[2,4],"data_offsets":[324,356]},"#,
            r#""t.bfloat16":{"dtype":"BF16","shape":[2,4],"data_offsets":[356,372]},"#,
            r#""t.float16":{"dtype":"F16","shape":[2,4],"data_offsets":[372,388]},"#,
            r#""t.uint16":{"dtype":"U16","shape":[2,4],"data_offsets":[388,404]},"#,
            r#""t.int16":{"dtype":"I16","shape":[2,4],"data_offsets":[404,420]},"#,
            r#""t.float8_e5m2fnuz":{"dtype":"F8_E5M2FNUZ","shape":[2,4],"data_offsets":[420,428]},"#,
            r#""t.float8_e4m3fnuz":{"dtype":"F8_E4M3FNUZ","shape":[2,4],"data_offsets":[428,436]},"#,
            r#""t.float8_e8m0fnu":{"dtype":"F8_E8M0","shape":[2,4],"data_offsets":[436,444]},"#,
            r#""t.float8_e4m3fn":{"dtype":"F8_E4M3","shape":[2,4],"data_offsets":[444,452]},"#,
            r#""t.float8_e5m2":{"dtype":"F8_E5M2","shape":[2,4],"data_offsets":[452,460]},"#,
            r#""t.int8":{"dtype":"I8","shape":[2,4],"data_offsets":[460,468]},"#,
            r#""t.uint8":{"dtype":"U8","shape":[2,4],"data_offsets":[468,476]},"#,
            r#""t.bool":{"dtype":"BOOL","shape":[2,4],"data_offsets":[476,484]}} "#,
        )
        .as_bytes(),
    );
    expected.resize(expected.len() + 484, 0);

    let of = |name: &str, dtype| tensor(name, dtype, &[2, 4]);
    let mut tensors = vec![
        of("t.bool", DType::Bool),
        of("t.uint8", DType::U8),
        of("t.int8", DType::I8),
        of("t.float16", DType::F16),
        of("t.bfloat16", DType::Bf16),
        of("t.int16", DType::I16),
        of("t.uint16", DType::U16),
        of("t.int32", DType::I32),
        of("t.uint32", DType::U32),
        of("t.float32", DType::F32),
        of("t.float64", DType::F64),
        of("t.int64", DType::I64),
        of("t.uint64", DType::U64),
        of("t.float8_e4m3fn", DType::F8E4M3Fn),
        of("t.float8_e5m2", DType::F8E5M2),
        of("t.complex64", DType::C64),
        of("t.float8_e8m0fnu", DType::F8E8M0),
        of("t.float8_e4m3fnuz", DType::F8E4M3Fnuz),
        of("t.float8_e5m2fnuz", DType::F8E5M2Fnuz),
        tensor("b", DType::F32, &[]),
        tensor("a\"\\\n\u{1}\u{e9}/\u{7f}", DType::F32, &[0, 3]),
    ];
    let order = canonical_order(&tensors);
    tensors = order.into_iter().map(|i| tensors[i].clone()).collect();
    let file = written(&tensors, &[]);
    assert_eq!(
        String::from_utf8_lossy(&file[..expected.len() - 484]),
        String::from_utf8_lossy(&expected[..expected.len() - 484])
    );
    assert_eq!(file, expected);
    assert_eq!(written(&tensors, &[("format", "pt")]), expected);
}

/// §1.8: order of fields and keys, escapes, padding.
#[test]
fn headers_by_hand() {
    let text = r#"{"__metadata__":{"format":"pt"}}"#;
    assert_eq!(written(&[], &[]), [&[32, 0, 0, 0, 0, 0, 0, 0], text.as_bytes()].concat());

    let metadata = [("z", "1"), ("format", "np"), ("\u{8}\u{9}\u{a}\u{c}\u{d}", "\0\u{1f}\u{7f}/\u{e9}"), ("", "\"\\")];
    let text = concat!(
        r#"{"__metadata__":{"":"\"\\","\b\t\n\f\r":"\u0000\u001f"#,
        "\u{7f}/\u{e9}",
        r#"","format":"np","z":"1"},"w":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}"#
    );
    let padding = " ".repeat(text.len().next_multiple_of(8) - text.len());
    let length = (text.len() + padding.len()) as u64;
    let expected = [&length.to_le_bytes()[..], text.as_bytes(), padding.as_bytes(), &[0, 0]].concat();
    assert_eq!(written(&[tensor("w", DType::Bf16, &[1])], &metadata), expected);
}

#[test]
fn order_is_the_given_one_while_it_is_aligned() {
    use DType::*;
    type Row<'a> = (&'a [(&'a str, DType, &'a [u64])], &'a [usize]);
    let rows: [Row; 8] = [
        (&[("b", F32, &[1]), ("a", U64, &[0]), ("c", U8, &[3])], &[1, 0, 2]), // an empty u64 at offset 4
        (&[("b", F32, &[2]), ("a", U64, &[1]), ("c", U8, &[3])], &[0, 1, 2]),
        (&[("c", U8, &[3]), ("b", F32, &[1])], &[1, 0]),
        (&[("c", U8, &[4]), ("b", F32, &[1])], &[0, 1]),
        (&[("c", U8, &[3]), ("b", F4E2M1, &[2]), ("a", F6E2M3, &[4]), ("d", Bool, &[1])], &[0, 1, 2, 3]),
        (&[("c", F16, &[1]), ("b", C64, &[1])], &[1, 0]), // c64 counts as eight bytes
        (&[("x", U8, &[1]), ("b", F16, &[1]), ("a", F16, &[1]), ("c", Bf16, &[1])], &[3, 2, 1, 0]),
        (&[], &[]),
    ];
    for (tensors, order) in rows {
        let tensors: Vec<Tensor> = tensors.iter().map(|(n, d, s)| tensor(n, *d, s)).collect();
        let disk = disk::empty("a.safetensors");
        let metadata = BTreeMap::new();
        let writer = Writer::create(&disk.path, FileFormat::Safetensors, tensors, &metadata, Existing::Refuse).unwrap();
        assert_eq!(writer.order(), order);
    }
}

#[test]
fn every_type_and_rank_comes_back() {
    for (_, dtype) in NAMES {
        let shapes: Vec<Vec<u64>> = vec![vec![], vec![0], vec![8], vec![2, 0, 4], vec![2, 3, 4], vec![1; 64]];
        let is_narrow = dtype.storage_bits().unwrap() < 8;
        let shapes = shapes.into_iter().filter(|s| !is_narrow || (!s.is_empty() && s.iter().product::<u64>() % 4 == 0));
        let tensors: Vec<Tensor> = shapes.enumerate().map(|(i, s)| tensor(&format!("t{i}"), dtype, &s)).collect();
        let data: Vec<Vec<u8>> = tensors
            .iter()
            .enumerate()
            .map(|(i, t)| (0..t.bytes()).map(|b| (b as u8).wrapping_mul(37) ^ i as u8).collect())
            .collect();
        let disk = disk::empty("a.safetensors");
        disk::write(&disk, &tensors, &data, &[("k", "v")]).unwrap();
        let source = disk.open().unwrap();
        assert_eq!(source.tensors(), tensors);
        assert_eq!(source.metadata().len(), 2);
        for (i, expected) in data.iter().enumerate() {
            assert_eq!(&disk::bytes_of(&source, i).unwrap(), expected);
        }
        assert_eq!(disk.names(), ["a.safetensors"]);
    }
}

#[test]
fn reading_and_writing_split_anywhere() {
    let tensors = [tensor("a", DType::F32, &[5]), tensor("e", DType::F32, &[0]), tensor("b", DType::U8, &[3])];
    let data: Vec<u8> = (0..23).collect();
    for step in 1..=23 {
        let disk = disk::empty("a.safetensors");
        let metadata = BTreeMap::new();
        let mut writer =
            Writer::create(&disk.path, FileFormat::Safetensors, tensors.to_vec(), &metadata, Existing::Refuse).unwrap();
        assert_eq!(writer.total_bytes(), 23);
        data.chunks(step).for_each(|chunk| writer.write(chunk).unwrap());
        writer.finish().unwrap();
        let source = disk.open().unwrap();
        let mut found = Vec::new();
        for index in 0..3 {
            let mut reader = source.reader(index).unwrap();
            while reader.remaining() > 0 {
                let mut buf = vec![0; step.min(reader.remaining() as usize)];
                reader.read(&mut buf).unwrap();
                found.extend(buf);
            }
            assert!(matches!(reader.read(&mut [0]), Err(Error::DataLength { expected: 0, actual: 1, .. })));
            reader.read(&mut []).unwrap();
        }
        assert_eq!(found, data);
    }
}

#[test]
fn what_must_not_be_written() {
    let disk = disk::empty("a.safetensors");
    let create = |tensors: &[Tensor]| {
        Writer::create(&disk.path, FileFormat::Safetensors, tensors.to_vec(), &BTreeMap::new(), Existing::Refuse)
    };
    let refusal = |tensors: &[Tensor]| match create(tensors) {
        Err(Error::Refused { cause, .. }) => cause,
        other => panic!("{other:?}"),
    };
    let f32 = |name: &str, shape: &[u64]| tensor(name, DType::F32, shape);
    assert_eq!(refusal(&[f32("a", &[]), f32("a", &[])]), DeniedTensor::DuplicateName);
    assert_eq!(refusal(&[f32("__metadata__", &[])]), DeniedTensor::ReservedName);
    assert_eq!(refusal(&[f32("a", &[1; 65])]), DeniedTensor::RankTooHigh { rank: 65 });
    assert_eq!(refusal(&[f32("a", &[1 << 32, 1 << 32])]), DeniedTensor::ShapeTooBig);
    assert_eq!(refusal(&[f32("a", &[1 << 62])]), DeniedTensor::ShapeTooBig);
    let f4 = |shape: &[u64]| tensor("a", DType::F4E2M1, shape);
    assert_eq!(refusal(&[f4(&[2, 3])]), DeniedTensor::OddLastDimension); // an even total (§1.4)
    assert_eq!(refusal(&[f4(&[])]), DeniedTensor::PartialByte { len: 1, bits: 4 });
    assert_eq!(refusal(&[tensor("a", DType::F6E3M2, &[2])]), DeniedTensor::PartialByte { len: 2, bits: 6 });
    let mut bytes = f4(&[2]);
    bytes.layout = truecast_core::Layout::Bytes;
    assert!(matches!(refusal(&[bytes]), DeniedTensor::Layout { .. }));
    for dtype in DType::ALL {
        let is_named = NAMES.iter().any(|(_, d)| *d == dtype);
        let tensor = Tensor { name: "a".into(), dtype, layout: Default::default(), shape: [8].into() };
        match create(&[tensor]) {
            Ok(_) => assert!(is_named),
            Err(error) => {
                assert!(!is_named && matches!(error, Error::Refused { cause: DeniedTensor::NoForm(_), .. }), "{error}");
                assert_eq!(error.kind(), ErrorKind::Usage);
            }
        }
    }
    let long = "x".repeat(100_000_000);
    assert!(matches!(create(&[f32(&long, &[])]), Err(Error::HeaderTooLong { .. })));
    assert!(disk.names().is_empty());
}

#[test]
fn exactly_the_announced_bytes() {
    let disk = disk::empty("a.safetensors");
    let create = || {
        let tensors = vec![tensor("a", DType::F32, &[2])];
        Writer::create(&disk.path, FileFormat::Safetensors, tensors, &BTreeMap::new(), Existing::Refuse).unwrap()
    };
    let mut writer = create();
    writer.write(&[0; 7]).unwrap();
    assert!(matches!(writer.finish(), Err(Error::DataLength { expected: 8, actual: 7, .. })));
    let mut writer = create();
    writer.write(&[0; 7]).unwrap();
    assert!(matches!(writer.write(&[0; 2]), Err(Error::DataLength { expected: 8, actual: 9, .. })));
    drop(writer);
    assert!(disk.names().is_empty());
}

#[test]
fn a_file_that_shrinks_is_an_error() {
    let disk = disk::empty("a.safetensors");
    disk::write(&disk, &[tensor("a", DType::F32, &[1000])], &[vec![1; 4000]], &[]).unwrap();
    let source = disk.open().unwrap();
    let mut reader = source.reader(0).unwrap();
    reader.read(&mut [0; 1000]).unwrap();
    std::fs::OpenOptions::new().write(true).open(&disk.path).unwrap().set_len(1500).unwrap();
    let error = reader.read(&mut [0; 3000]).unwrap_err();
    let offset = source.data_offset(0).unwrap() + 1000;
    assert!(matches!(&error, Error::ReadTensor { offset: o, .. } if *o == offset), "{error}");
    assert_eq!(error.kind(), ErrorKind::System);
}
