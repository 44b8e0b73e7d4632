//! Every storage form of a TensorProto and every rule of `docs/spec/onnx.md §3`.

mod disk;

use truecast_core::{DType, Layout};
use truecast_io::onnx::{ExternalError, Options, ProtoError, TensorError, TensorFile};
use truecast_io::{Error, ErrorKind, Links};
use truecast_testkit::proto::*;

const STRICT: Options = Options { lenient: false, links: Links::Inside };
const LENIENT: Options = Options { lenient: true, links: Links::Inside };

fn open(message: &[u8], options: Options) -> Result<TensorFile, Error> {
    let disk = disk::file("a.pb", message);
    TensorFile::open(&disk.path, options)
}

/// Elements of a tensor. Reading at once and in pieces must agree.
fn read(message: &[u8], options: Options) -> Result<Vec<u8>, Error> {
    let file = open(message, options)?;
    let whole = file.codes()?;
    for piece in [1, 2, 3, 5, 64] {
        let mut reader = file.reader()?;
        let mut all = Vec::new();
        while reader.remaining() > 0 {
            let mut buf = vec![0; piece.min(reader.remaining() as usize)];
            reader.read(&mut buf)?;
            all.extend(buf);
        }
        assert_eq!(all, whole, "in pieces of {piece}");
    }
    Ok(whole)
}

fn codes(message: &[u8]) -> Vec<u8> {
    read(message, STRICT).unwrap()
}

/// Error of a tensor; the message must contain the tensor's name.
fn refusal(message: &[u8], options: Options) -> TensorError {
    let error = read(message, options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    let text = error.to_string();
    assert!(text.contains("a.pb: offset 0: tensor \"t\": ") && !text.contains('\n'), "{text}");
    match error {
        Error::Proto { cause: ProtoError::Tensor { tensor, cause, .. }, .. } if tensor == "t" => cause,
        other => panic!("{other}"),
    }
}

fn t(data_type: i64, dims: &[i64], data: Vec<u8>) -> Vec<u8> {
    [tensor("t", data_type, dims), data].concat()
}

/// Cases: data type, dims, data field, expected packed little-endian bytes (`docs/spec/onnx.md §3.2` to §3.4).
#[test]
fn every_storage_form() {
    let f = |values: &[f32]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>();
    let d = |values: &[f64]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>();
    let floats = f(&[1.0, -2.5, 3.25]);
    type Case = (i64, &'static [i64], Vec<u8>, Vec<u8>);
    let cases: Vec<Case> = vec![
        (1, &[3], bytes(9, &floats), floats.clone()),
        (11, &[1], bytes(9, d(&[0.1])), d(&[0.1])),
        (10, &[2], bytes(9, [0, 0x3c, 0, 0xc0]), vec![0, 0x3c, 0, 0xc0]),
        (17, &[2, 1], bytes(9, [0x7e, 0xff]), vec![0x7e, 0xff]),
        (9, &[3], bytes(9, [0, 1, 7]), vec![0, 1, 1]),
        // §3.4: INT4 (-1, -8, 7), FLOAT4E2M1 (1, 0.5, 1), FLOAT6E2M3 (1, 0.5, 1), INT2 (1, 1, 1), UINT4 (1, 1, 1)
        (22, &[3], bytes(9, [0x8f, 0x07]), vec![0x8f, 0x07]),
        (23, &[3], bytes(9, [0x12, 0x02]), vec![0x12, 0x02]),
        (27, &[3], bytes(9, [0x08, 0x81, 0x00]), vec![0x08, 0x81, 0x00]),
        (26, &[3], bytes(9, [0x15]), vec![0x15]),
        (21, &[3], bytes(9, [0x11, 0xf1]), vec![0x11, 0x01]), // §3.5: tail bits are ignored
        (1, &[3], bytes(4, &floats), floats.clone()),
        (11, &[2], bytes(10, d(&[0.1, -0.2])), d(&[0.1, -0.2])),
        (
            3,
            &[2],
            bytes(5, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x80\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
            vec![0xff, 0x80],
        ),
        (5, &[2], packed(5, &[-2, 300]), vec![0xfe, 0xff, 0x2c, 0x01]),
        (6, &[2], packed(5, &[-2, 70000]), vec![0xfe, 0xff, 0xff, 0xff, 0x70, 0x11, 0x01, 0x00]),
        (4, &[1], packed(5, &[65535]), vec![0xff, 0xff]),
        (2, &[1], packed(5, &[255]), vec![0xff]),
        (9, &[3], packed(5, &[0, 1, 7]), vec![0, 1, 1]),
        (9, &[1], packed(5, &[256]), vec![0]), // §3.3: the low 8 bits
        (10, &[2], packed(5, &[0x3c00, 0xc000]), vec![0, 0x3c, 0, 0xc0]),
        (16, &[1], packed(5, &[0x13f80]), vec![0x80, 0x3f]), // §3.3: the low 16 bits
        (24, &[2], packed(5, &[127, 255]), vec![127, 255]),
        (12, &[2], packed(11, &[1, 0x1_0000_0002]), vec![1, 0, 0, 0, 2, 0, 0, 0]),
        (13, &[1], packed(11, &[-1]), vec![0xff; 8]),
        (7, &[2], packed(7, &[-1, 5]), [[0xff; 8], [5, 0, 0, 0, 0, 0, 0, 0]].concat()),
        // §3.4: INT4 (-1, -8, 7) has the entries 143 and 7, and FLOAT6E2M3 (1, 0.5, 1) has the entries 8, 4 and 8.
        (22, &[3], packed(5, &[143, 7]), vec![0x8f, 0x07]),
        (25, &[5], packed(5, &[0x1b, 0xf2]), vec![0x1b, 0x02]),
        (27, &[3], packed(5, &[8, 4, 8]), vec![0x08, 0x81, 0x00]),
        (28, &[5], packed(5, &[1, 2, 3, 4, 63]), vec![0x81, 0x30, 0x10, 0x3f]),
        (1, &[3], [fixed32(4, 1f32.to_le_bytes()), bytes(4, f(&[-2.5, 3.25]))].concat(), floats.clone()),
        (11, &[2], [fixed64(10, 0.1f64.to_le_bytes()), fixed64(10, 0.2f64.to_le_bytes())].concat(), d(&[0.1, 0.2])),
        (
            6,
            &[4],
            [int(5, 1), packed(5, &[2]), packed(5, &[]), int(5, -1), int(5, 4)].concat(),
            [1i32, 2, -1, 4].map(i32::to_le_bytes).concat(),
        ),
        (14, &[1], bytes(4, f(&[1.0, 2.0])), f(&[1.0, 2.0])),
        (1, &[], bytes(9, f(&[7.0])), f(&[7.0])),
        (1, &[0, 5], vec![], vec![]),
        (1, &[0], bytes(9, []), vec![]),
    ];
    for (data_type, dims, data, elements) in cases {
        let message = t(data_type, dims, data);
        assert_eq!(codes(&message), elements, "data type {data_type} {dims:?}");
        let file = open(&message, STRICT).unwrap();
        let tensor = file.tensor();
        let dtype = tensor.dtype().unwrap();
        assert_eq!(dtype.bytes_in(Layout::Packed, tensor.len()), Some(elements.len() as u64));
    }
}

#[test]
fn dims_may_be_packed() {
    let message = [packed(1, &[2, 3]), int(2, 2), bytes(9, [0; 6])].concat();
    assert_eq!(open(&message, STRICT).unwrap().tensor().dims, [2, 3]);
}

#[test]
fn large_entries_are_streamed() {
    let values: Vec<i64> = (0..200_000).map(|i| i * 7919 % 65536).collect();
    let (first, second) = values.split_at(77_777);
    let message = t(16, &[200_000], [packed(5, first), packed(5, second)].concat());
    let expected: Vec<u8> = values.iter().flat_map(|&v| (v as u16).to_le_bytes()).collect();
    assert!(codes(&message) == expected);
    let floats: Vec<u8> = (0..400_000u32).map(|i| i as u8).collect();
    assert!(codes(&t(1, &[100_000], [bytes(4, &floats[..40]), bytes(4, &floats[40..])].concat())) == floats);
}

#[test]
fn text() {
    let message = t(8, &[3], [bytes(6, "a"), bytes(6, ""), bytes(6, b"\xff")].concat());
    let file = open(&message, STRICT).unwrap();
    let texts: Vec<Vec<u8>> = file.texts().unwrap().map(Result::unwrap).collect();
    assert_eq!(texts, [b"a".to_vec(), vec![], vec![0xff]]);
    assert!(file.codes().is_err()); // not UTF-8
    assert_eq!(refusal(&message, STRICT), TensorError::NotUtf8 { index: 2 });
    let cells = |texts: &[&str]| {
        texts
            .iter()
            .flat_map(|text| format!("{text:\0<3}").chars().collect::<Vec<_>>())
            .flat_map(|c| u32::from(c).to_le_bytes())
            .collect::<Vec<_>>()
    };
    let message = t(8, &[3], [bytes(6, "1.5"), bytes(6, ""), bytes(6, "é")].concat());
    assert_eq!(codes(&message), cells(&["1.5", "", "é"]));
    assert_eq!(codes(&t(8, &[0], vec![])), b"");
    let long = t(8, &[1], bytes(6, "1".repeat(4097)));
    assert!(matches!(refusal(&long, STRICT), TensorError::TextTooLong { index: 0, .. }));
    // In a cell, this element would equal "1".
    let ended = t(8, &[2], [bytes(6, "1"), bytes(6, "1\0")].concat());
    assert_eq!(refusal(&ended, STRICT), TensorError::NulAtEnd { index: 1 });
    assert!(open(&t(2, &[1], bytes(9, [1])), STRICT).unwrap().texts().is_err());
}

/// Rows of `docs/spec/onnx.md §3.5`.
#[test]
fn what_is_wrong_is_refused() {
    use TensorError::*;
    let raw = |n| bytes(9, vec![0; n]);
    let refuse = |data_type, dims: &[i64], data| refusal(&t(data_type, dims, data), STRICT);
    for code in [0, 29, -1, i64::from(i32::MAX)] {
        assert_eq!(refuse(code, &[1], raw(4)), DataType { code });
    }
    assert!(matches!(refuse(1, &[1], [raw(4), bytes(4, [0; 4])].concat()), TwoFields { .. }));
    assert!(matches!(refuse(1, &[1], packed(5, &[1])), WrongField { .. }));
    assert!(matches!(refuse(12, &[1], packed(5, &[1])), WrongField { .. }));
    assert!(matches!(refuse(8, &[1], raw(4)), WrongField { .. }));
    assert_eq!(refuse(1, &[2], raw(7)), RawLength { expected: 8, actual: 7 });
    assert_eq!(refuse(1, &[2], raw(9)), RawLength { expected: 8, actual: 9 });
    assert_eq!(refuse(22, &[3], raw(3)), RawLength { expected: 2, actual: 3 });
    assert_eq!(refuse(1, &[2], vec![]), Entries { field: "float_data", expected: 2, actual: 0 });
    assert_eq!(refuse(1, &[2], bytes(4, [0; 4])), Entries { field: "float_data", expected: 2, actual: 1 });
    assert_eq!(refuse(1, &[2], bytes(4, [0; 12])), Entries { field: "float_data", expected: 2, actual: 3 });
    assert_eq!(refuse(8, &[2], bytes(6, "a")), Entries { field: "string_data", expected: 2, actual: 1 });
    assert_eq!(refuse(27, &[2], packed(5, &[1])), Entries { field: "int32_data", expected: 2, actual: 1 });
    assert_eq!(refuse(22, &[3], packed(5, &[1])), Entries { field: "int32_data", expected: 2, actual: 1 });
    // One number of two bytes has the length of two numbers.
    assert_eq!(refuse(6, &[2], packed(5, &[300])), Entries { field: "int32_data", expected: 2, actual: 1 });
    for (data_type, dims, count) in [(6, 2, 3), (22, 3, 3), (26, 4, 2), (27, 2, 3)] {
        let found = refuse(data_type, &[dims], packed(5, &vec![1; count]));
        assert!(matches!(found, MoreEntries { .. }), "{found}");
    }
    assert!(matches!(refuse(1, &[0], raw(4)), RawLength { expected: 0, .. }));
    assert!(matches!(refuse(6, &[0], packed(5, &[1])), MoreEntries { .. }));
    assert_eq!(refuse(27, &[3], bytes(9, [0x08, 0x81, 0x04])), TailBits);
    assert_eq!(refuse(27, &[2], packed(5, &[1, 64])), EntryTooWide { index: 1, found: 64 });
    assert_eq!(refuse(27, &[2], packed(5, &[-1, 1])), EntryTooWide { index: 0, found: u64::MAX });
    assert_eq!(refuse(1, &[2, -1], raw(4)), NegativeDimension { found: -1 });
    assert_eq!(refuse(1, &[1 << 40, 1 << 40], raw(4)), ShapeTooBig);
    assert_eq!(refuse(1, &[i64::MAX, 0], raw(4)), RawLength { expected: 0, actual: 4 });
    assert_eq!(refuse(1, &[1; 65], raw(4)), RankTooHigh);
    assert_eq!(refuse(1, &[1], [bytes(3, int(1, 0)), raw(4)].concat()), Segment);
    assert_eq!(refuse(15, &[1], raw(16)), Unreadable { data_type: "COMPLEX128" });
}

#[test]
fn lenient_reading() {
    let lenient = |data_type, dims: &[i64], raw: &[u8]| read(&t(data_type, dims, bytes(9, raw)), LENIENT).unwrap();
    assert_eq!(lenient(2, &[2], &[1, 2, 3]), [1, 2]);
    assert_eq!(lenient(27, &[3], &[0x08, 0x81, 0xfc]), [0x08, 0x81, 0x00]);
    assert!(matches!(refusal(&t(2, &[2], bytes(9, [1])), LENIENT), TensorError::RawLength { .. }));
    assert!(matches!(refusal(&t(2, &[0], bytes(9, [1])), LENIENT), TensorError::RawLength { .. }));
}

#[test]
fn broken_messages() {
    use ProtoError::*;
    let cause = |message: &[u8]| match read(message, STRICT).unwrap_err() {
        error @ Error::Proto { .. } => {
            assert_eq!(error.kind(), ErrorKind::Input);
            let Error::Proto { cause, .. } = error else { unreachable!() };
            cause
        }
        other => panic!("{other}"),
    };
    assert_eq!(cause(b"\x08"), Truncated { offset: 1, end: 1 });
    assert_eq!(cause(b"\x08\xff"), Truncated { offset: 1, end: 2 });
    assert_eq!(cause(&[&[0x08], &[0xff; 11][..]].concat()), Varint { offset: 1 });
    assert_eq!(cause(b"\x4a\x05abcd"), Length { offset: 0, len: 5, left: 4 });
    let huge = [b"\x4a".to_vec(), varint(u64::MAX), vec![0]].concat();
    assert_eq!(cause(&huge), Length { offset: 0, len: u64::MAX, left: 1 });
    assert_eq!(cause(b"\x00"), Tag { offset: 0, tag: 0 });
    assert_eq!(cause(b"\x4b"), Tag { offset: 0, tag: 0x4b }); // a group
    assert_eq!(cause(b"\x4f"), Tag { offset: 0, tag: 0x4f });
    assert!(matches!(cause(&int(9, 1)), WireType { offset: 0, field: 9, .. }));
    assert!(matches!(cause(&bytes(2, "")), WireType { offset: 0, field: 2, .. }));
    assert!(matches!(cause(&fixed64(4, [0; 8])), WireType { offset: 0, field: 4, .. }));
    assert!(matches!(cause(&bytes(4, [0; 5])), Truncated { .. }));
    assert_eq!(cause(&bytes(8, b"\xff")), NotUtf8 { offset: 2 });
    let twice = t(2, &[1], [bytes(9, [1]), bytes(9, [2])].concat());
    assert!(matches!(cause(&twice), Repeated { field: 9, .. }));
    // Every prefix of a tensor is another tensor or an error, never a panic.
    let whole = t(1, &[2], bytes(9, [0; 8]));
    for end in 0..whole.len() {
        assert!(read(&whole[..end], STRICT).is_err(), "{end}");
    }
}

#[test]
fn external_data() {
    let disk = disk::file("a.pb", b"");
    let folder = disk.path.parent().unwrap();
    let open = |entries: &[(&str, &str)], options| {
        std::fs::write(&disk.path, t(2, &[3], external(entries))).unwrap();
        TensorFile::open(&disk.path, options).and_then(|file| file.codes())
    };
    let cause = |entries: &[(&str, &str)]| match open(entries, STRICT).unwrap_err() {
        Error::Proto { cause: ProtoError::Tensor { cause: TensorError::External(cause), .. }, .. } => cause,
        other => panic!("{other}"),
    };
    std::fs::create_dir_all(folder.join("d")).unwrap();
    std::fs::write(folder.join("d/w"), b"abcdef").unwrap();
    assert_eq!(open(&[("location", "d/w")], STRICT).unwrap(), b"abc");
    assert_eq!(open(&[("location", "./d/../d/w"), ("offset", "3"), ("length", "3")], STRICT).unwrap(), b"def");
    assert_eq!(open(&[("location", "d/w"), ("checksum", "?"), ("basepath", "/"), ("x", "y")], STRICT).unwrap(), b"abc");
    assert_eq!(open(&[("location", "d/w"), ("length", "4")], LENIENT).unwrap(), b"abc");
    assert_eq!(cause(&[("location", "d/w"), ("length", "4")]), ExternalError::Length { found: 4, needed: 3 });
    assert_eq!(cause(&[("location", "d/w"), ("length", "2")]), ExternalError::Length { found: 2, needed: 3 });
    assert!(matches!(
        cause(&[("location", "d/w"), ("offset", "4")]),
        ExternalError::PastEnd { offset: 4, file_bytes: 6, .. }
    ));
    let most = u64::MAX.to_string();
    assert!(matches!(cause(&[("location", "d/w"), ("offset", &most)]), ExternalError::PastEnd { .. }));
    assert!(matches!(cause(&[("location", "d/w"), ("offset", "-1")]), ExternalError::NotANumber { key: "offset", .. }));
    assert_eq!(cause(&[]), ExternalError::NoLocation);
    assert!(matches!(cause(&[("location", "d/w"), ("location", "d/w")]), ExternalError::RepeatedKey { .. }));
    assert!(matches!(cause(&[("location", "nothing")]), ExternalError::NotFound { .. }));
    assert!(matches!(cause(&[("location", "d/w/x")]), ExternalError::NotFound { .. }));
    assert!(matches!(cause(&[("location", "d")]), ExternalError::NotRegular { .. }));
    assert!(matches!(cause(&[("location", "/etc/passwd")]), ExternalError::Location { .. }));
    assert!(matches!(cause(&[("location", "../w")]), ExternalError::Parent { .. }));

    std::os::unix::fs::symlink("w", folder.join("d/inside")).unwrap();
    assert_eq!(open(&[("location", "d/inside")], STRICT).unwrap(), b"abc");
    let elsewhere = disk::file("w", b"xyz");
    std::os::unix::fs::symlink(&elsewhere.path, folder.join("link")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path.parent().unwrap(), folder.join("folder")).unwrap();
    for location in ["link", "folder/w"] {
        assert!(matches!(cause(&[("location", location)]), ExternalError::Outside { .. }));
        assert_eq!(open(&[("location", location)], Options { links: Links::All, ..STRICT }).unwrap(), b"xyz");
    }

    let both = [external(&[("location", "d/w")]), bytes(9, b"abc")].concat();
    assert!(matches!(refusal(&t(2, &[3], both), STRICT), TensorError::External(ExternalError::AlsoInside { .. })));
    assert_eq!(
        refusal(&t(8, &[3], external(&[("location", "d/w")])), STRICT),
        TensorError::External(ExternalError::Text)
    );
}

/// Layout of a Hugging Face cache: `snapshots/REVISION/model.onnx_data` is a link to `../../blobs/HASH`.
#[test]
fn blobs_of_a_cache_are_inside() {
    let disk = disk::file("a.pb", b"");
    let root = disk.path.parent().unwrap();
    let revision = root.join("snapshots/r");
    std::fs::create_dir_all(&revision).unwrap();
    std::fs::create_dir_all(root.join("blobs")).unwrap();
    std::fs::write(root.join("blobs/h"), b"xyz").unwrap();
    std::fs::write(root.join("secret"), b"xyz").unwrap();
    std::os::unix::fs::symlink("../../blobs/h", revision.join("w")).unwrap();
    std::os::unix::fs::symlink("../../secret", revision.join("s")).unwrap();
    let path = revision.join("a.pb");
    let read = |location| {
        std::fs::write(&path, t(2, &[3], external(&[("location", location)]))).unwrap();
        TensorFile::open(&path, STRICT).and_then(|file| file.codes())
    };
    assert_eq!(read("w").unwrap(), b"xyz");
    assert!(read("s").is_err());
}

#[test]
fn a_tensor_knows_itself() {
    let file = open(&t(27, &[2, 2], bytes(9, [0; 3])), STRICT).unwrap();
    let tensor = file.tensor();
    assert_eq!(
        (tensor.name.as_str(), tensor.dtype(), tensor.len(), tensor.is_empty()),
        ("t", Some(DType::F6E2M3), 4, false)
    );
}
