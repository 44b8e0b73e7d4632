//! `.npy` files as literal bytes: descriptors, versions, orders, false headers (`docs/interfaces.md §4`;
//! `numpy.lib.format`).

mod disk;

use truecast_core::{DType, Layout};
use truecast_io::npy::{Header, HeaderError, MAX_HEADER_BYTES};
use truecast_io::{Error, ErrorKind, FileFormat, Tensor};
use truecast_testkit::npy::{array, container as stream};

fn read(file: &[u8], from: Option<DType>) -> Result<(DType, Vec<u8>), Error> {
    let disk = disk::file("a.npy", file);
    let source = truecast_io::Source::open(&disk.path, from)?;
    assert_eq!(source.tensors()[0].name, "data".into());
    let bytes = disk::bytes_of(&source, 0)?;
    Ok((source.tensors()[0].dtype, bytes))
}

#[track_caller]
fn cause(result: Result<(DType, Vec<u8>), Error>) -> HeaderError {
    let error = result.expect_err("accepted");
    let text = error.to_string();
    assert!(text.contains("a.npy: ") && !text.chars().any(char::is_control) && !text.ends_with('.'), "{text}");
    let kind = error.kind();
    let Error::Npy { cause, .. } = error else { panic!("{error}") };
    let is_of_from = matches!(cause, HeaderError::FromNeeded { .. } | HeaderError::FromText { .. });
    assert_eq!(kind, if is_of_from { ErrorKind::Usage } else { ErrorKind::Input }, "{cause}");
    cause
}

/// Headers of `numpy.save` for zeros, from NumPy 2.4 and ml_dtypes 0.6. f8e5m2 uses NumPy's form for opaque bytes,
/// since NumPy cannot load ml_dtypes' own.
#[test]
fn headers_are_those_of_numpy() {
    let rows: [(DType, &[u64], &str, usize); 9] = [
        (DType::F32, &[], "{'descr': '<f4', 'fortran_order': False, 'shape': (), }", 128),
        (DType::I16, &[3], "{'descr': '<i2', 'fortran_order': False, 'shape': (3,), }", 128),
        (DType::Bool, &[2, 3], "{'descr': '|b1', 'fortran_order': False, 'shape': (2, 3), }", 128),
        (DType::C64, &[0, 5], "{'descr': '<c8', 'fortran_order': False, 'shape': (0, 5), }", 128),
        (DType::Bf16, &[2], "{'descr': '<V2', 'fortran_order': False, 'shape': (2,), }", 128),
        (DType::I4, &[4, 1], "{'descr': '<V1', 'fortran_order': False, 'shape': (4, 1), }", 128),
        (DType::F8E5M2, &[2], "{'descr': '|V1', 'fortran_order': False, 'shape': (2,), }", 128),
        (
            DType::F64,
            &[10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 0],
            "{'descr': '<f8', 'fortran_order': False, 'shape': (10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 0), }",
            128,
        ),
        (
            DType::U8,
            &[1; 64],
            &format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({}1), }}", "1, ".repeat(63)),
            320,
        ),
    ];
    for (dtype, shape, text, length) in rows {
        let disk = disk::empty("a.npy");
        let tensor = disk::tensor(FileFormat::Npy, "any", dtype, shape);
        let data = vec![0; tensor.bytes() as usize];
        disk::write(&disk, &[tensor], std::slice::from_ref(&data), &[]).unwrap();
        let mut expected = b"\x93NUMPY\x01\x00".to_vec();
        expected.extend_from_slice(&(length as u16 - 10).to_le_bytes());
        expected.extend_from_slice(text.as_bytes());
        expected.resize(length - 1, b' ');
        expected.push(b'\n');
        expected.extend(data);
        assert_eq!(std::fs::read(&disk.path).unwrap(), expected, "{dtype} {shape:?}");
    }
}

#[test]
fn descriptors() {
    let rows = [
        ("|b1", DType::Bool),
        ("|i1", DType::I8),
        ("|u1", DType::U8),
        ("<u1", DType::U8),
        (">i1", DType::I8),
        ("<i2", DType::I16),
        ("<u2", DType::U16),
        ("<i4", DType::I32),
        ("<u4", DType::U32),
        ("<i8", DType::I64),
        ("<u8", DType::U64),
        ("<f1", DType::F8E5M2),
        ("<f2", DType::F16),
        ("<f4", DType::F32),
        ("<f8", DType::F64),
        ("<c8", DType::C64),
        ("<V2", DType::Bf16),
        ("|V2", DType::Bf16),
    ];
    for (descr, dtype) in rows {
        let data: Vec<u8> = (0..2 * dtype.storage_bits().unwrap() as u8 / 8).collect();
        assert_eq!(read(&array(descr, "False", "(2,)", &data), None).unwrap(), (dtype, data), "{descr}");
    }
}

#[test]
fn big_endian_is_turned_around() {
    let data: Vec<u8> = (0..32).collect();
    for (descr, unit, size) in
        [(">i2", 2, 2), (">f2", 2, 2), (">u4", 4, 4), (">f4", 4, 4), (">i8", 8, 8), (">f8", 8, 8), (">c8", 4, 8)]
    {
        let expected: Vec<u8> = data.chunks(unit).flat_map(|c| c.iter().rev().copied()).collect();
        let file = array(descr, "False", &format!("({},)", 32 / size), &data);
        assert_eq!(read(&file, None).unwrap().1, expected, "{descr}");
        // Pieces end inside elements.
        let disk = disk::file("a.npy", &file);
        let source = disk.open().unwrap();
        for step in 1..=9 {
            let mut reader = source.reader(0).unwrap();
            let mut found = Vec::new();
            while reader.remaining() > 0 {
                let mut buf = vec![0; step.min(reader.remaining() as usize)];
                reader.read(&mut buf).unwrap();
                found.extend(buf);
            }
            assert_eq!(found, expected, "{descr} by {step}");
        }
    }
}

#[test]
fn descriptors_that_are_refused() {
    let rows = [
        ("<U", "does not state the width of the text"),
        ("|S4", "bytes are not text; save with astype('U')"),
        ("|O", "Python objects are not read"),
        ("<M8[ns]", "dates and time spans are not numbers; save them as int64"),
        ("<m8[s]", "dates and time spans are not numbers; save them as int64"),
        ("<c16", "complex128 is not supported; save the parts as float64"),
        ("<f16", "longdouble is not supported; save as float64"),
        ("<f12", "longdouble is not supported; save as float64"),
        ("<c32", "clongdouble is not supported; save the parts as float64"),
        ("|V3", "opaque elements are not supported"),
        ("|V0", "opaque elements are not supported"),
        (">V2", "void has no byte order; save little-endian bf16"),
        ("|f4", "has no byte order"),
        ("f4", "does not begin with one of < > |"),
        ("=f4", "does not begin with one of < > |"),
        ("float32", "does not begin with one of < > |"),
        ("", "does not begin with one of < > |"),
        ("<", "unknown element type"),
        ("<i3", "unknown element type"),
        ("<f3", "unknown element type"),
        ("<F4", "unknown element type"),
        ("<f4 ", "unknown element type"),
        ("<f04", "unknown element type"),
        ("|b2", "unknown element type"),
    ];
    for (descr, why) in rows {
        let found = cause(read(&array(descr, "False", "(2,)", &[0; 8]), None));
        assert_eq!(found, HeaderError::Descr { descr: descr.into(), why });
    }
    let text = "{'descr': [('a', '<f4'), ('b', '<f4')], 'fortran_order': False, 'shape': (1,), }";
    assert_eq!(cause(read(&stream(text, &[0; 8]), None)), HeaderError::Structured);
}

/// `<V1` has no type. Other descriptors accept any type of the same storage size.
#[test]
fn from_reinterprets() {
    let one = array("<V1", "False", "(2,)", &[1, 2]);
    assert_eq!(cause(read(&one, None)), HeaderError::FromNeeded { descr: "<V1".into() });
    let sizes = [
        (1, vec!["<V1", "|V1", "|u1", "|i1"]),
        (2, vec!["<u2", "<V2", "<f2"]),
        (4, vec!["<u4", "<f4"]),
        (8, vec!["<u8", "<f8"]),
    ];
    for dtype in DType::ALL {
        for (size, descrs) in &sizes {
            for descr in descrs {
                let file = array(descr, "False", "(2,)", &vec![1; 2 * size]);
                let is_same_size = dtype.bits_in(Layout::Bytes) == Some(8 * *size as u32);
                match read(&file, Some(dtype)) {
                    Ok((found, _)) => assert!(found == dtype && is_same_size, "{dtype} {descr}"),
                    Err(error) => {
                        assert!(!is_same_size, "{dtype} {descr}: {error}");
                        assert_eq!(error.kind(), ErrorKind::Usage);
                    }
                }
            }
        }
    }
}

#[test]
fn bits_above_a_code_are_an_error() {
    let file = array("|u1", "False", "(2, 3)", &[0, 15, 3, 1, 16, 255]);
    for (dtype, index, byte) in [(DType::I4, 4, 16), (DType::F4E2M1, 4, 16), (DType::U2, 1, 15), (DType::U6, 5, 255)] {
        match read(&file, Some(dtype)) {
            Err(error @ Error::CodeTooWide { index: i, byte: b, .. }) => {
                assert_eq!((i, b, error.kind()), (index, byte, ErrorKind::Input));
            }
            other => panic!("{other:?}"),
        }
    }
    // A nonzero byte of i1 is true.
    assert!(read(&file, Some(DType::I1)).is_ok());
    assert!(read(&file, Some(DType::Bool)).is_ok());
    let disk = disk::file("a.npy", &file);
    let source = disk.open_as(DType::I4).unwrap();
    let mut reader = source.reader(0).unwrap();
    reader.read(&mut [0; 3]).unwrap();
    assert!(matches!(reader.read(&mut [0; 3]), Err(Error::CodeTooWide { index: 4, .. })));
}

#[test]
fn versions() {
    let text = b"{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }\n";
    let with = |start: &[u8]| [start, text, &[7]].concat();
    let n = text.len() as u8;
    assert!(read(&with(&[0x93, b'N', b'U', b'M', b'P', b'Y', 1, 0, n, 0]), None).is_ok());
    for major in [2, 3] {
        assert!(read(&with(&[0x93, b'N', b'U', b'M', b'P', b'Y', major, 0, n, 0, 0, 0]), None).is_ok());
    }
    for (major, minor) in [(0, 0), (1, 1), (4, 0), (255, 255)] {
        let file = with(&[0x93, b'N', b'U', b'M', b'P', b'Y', major, minor, n, 0, 0, 0]);
        assert_eq!(cause(read(&file, None)), HeaderError::Version { major, minor });
    }
    assert_eq!(cause(read(b"\x93NUMPX\x01\x00\x00\x00", None)), HeaderError::Magic);
    for length in 0..10 {
        assert_eq!(cause(read(&b"\x93NUMPY\x01\x00\x00\x00"[..length], None)), HeaderError::Magic);
    }
    for length in [10, 11] {
        assert_eq!(cause(read(&b"\x93NUMPY\x02\x00\x00\x00\x00\x00"[..length], None)), HeaderError::Magic);
    }
    // Long integers of Python 2.
    assert!(read(&array("|u1", "False", "(2L,)", &[1, 2]), None).is_ok());
}

#[test]
fn fortran_order() {
    let data: Vec<u8> = (0..6).collect();
    for shape in ["(6,)", "(1, 6)", "(6, 1)", "(1, 6, 1)"] {
        assert_eq!(read(&array("|u1", "True", shape, &data), None).unwrap().1, data, "{shape}");
    }
    assert!(read(&array("|u1", "True", "()", &[1]), None).is_ok());
    assert!(read(&array("|u1", "True", "(2, 0, 3)", &[]), None).is_ok());
    assert!(read(&array("|u1", "True", "(1, 1)", &[1]), None).is_ok());
    for (shape, expected) in
        [("(2, 3)", [0, 2, 4, 1, 3, 5]), ("(3, 2)", [0, 3, 1, 4, 2, 5]), ("(2, 1, 3)", [0, 2, 4, 1, 3, 5])]
    {
        assert_eq!(read(&array("|u1", "True", shape, &data), None).unwrap().1, expected, "{shape}");
    }
    // Reversing bytes follows reordering.
    let wide: Vec<u8> = (0..12).collect();
    let expected = [1, 0, 5, 4, 9, 8, 3, 2, 7, 6, 11, 10];
    assert_eq!(read(&array(">i2", "True", "(2, 3)", &wide), None).unwrap().1, expected);
    let text: Vec<u8> = "adbecf".chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
    let expected: Vec<u8> = "abcdef".chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
    assert_eq!(read(&array("<U1", "True", "(2, 3)", &text), None).unwrap().1, expected);
    // An error gives the element's position in C order.
    let error = read(&array("|V1", "True", "(2, 3)", &[0, 0, 99, 0, 0, 0]), Some(DType::I4)).unwrap_err();
    assert!(matches!(error, Error::CodeTooWide { index: 1, byte: 99, .. }), "{error}");
    // No window, because the file's order differs from the tensor's.
    let disk = disk::file("a.npy", &array("|u1", "True", "(2, 3)", &data));
    assert!(truecast_io::Source::open(&disk.path, None).unwrap().window(0).is_none());
}

#[test]
fn headers_that_lie() {
    for shape in ["(1099511627776, 1099511627776)", "(0, 9223372036854775808)", "(4611686018427387904,)"] {
        assert_eq!(cause(read(&array("<f8", "False", shape, &[]), None)), HeaderError::ShapeTooBig, "{shape}");
    }
    let huge = cause(read(&array("|u1", "False", "(9223372036854775807,)", &[]), None));
    assert!(matches!(huge, HeaderError::DataLength { expected: 9223372036854775807, actual: 0, .. }));
    for shape in ["(-1,)", "(1180591620717411303424,)", "2"] {
        assert!(matches!(cause(read(&array("|u1", "False", shape, &[]), None)), HeaderError::Syntax { .. }), "{shape}");
    }
    for text in ["{'descr': '<f4', 'shape': (1,)}", "__import__('os')"] {
        cause(read(&stream(text, &[0; 4]), None));
    }
    let rank = |n: usize| array("|u1", "False", &format!("({})", "1, ".repeat(n)), &[1]);
    assert!(read(&rank(64), None).is_ok());
    assert_eq!(cause(read(&rank(65), None)), HeaderError::RankTooHigh);
    assert_eq!(cause(read(&rank(10_000), None)), HeaderError::RankTooHigh);
    for given in [0, 7, 9, 16] {
        let found = cause(read(&array("<f4", "False", "(2,)", &vec![0; given]), None));
        assert!(matches!(found, HeaderError::DataLength { expected: 8, actual, .. } if actual == given as u64));
    }
    let whole = array("<f4", "False", "(2,)", &[0; 8]);
    for end in 0..whole.len() {
        read(&whole[..end], None).unwrap_err();
    }
    let past = [&b"\x93NUMPY\x01\x00\xff\xff"[..], b"{}"].concat();
    assert_eq!(cause(read(&past, None)), HeaderError::HeaderPastEnd { bytes: 65535 });
    let past = [&b"\x93NUMPY\x02\x00\xff\xff\x0f\x00"[..], b"{}"].concat();
    assert_eq!(cause(read(&past, None)), HeaderError::HeaderPastEnd { bytes: 0xfffff });
    let long = [&b"\x93NUMPY\x02\x00\xff\xff\xff\xff"[..], b"{}"].concat();
    assert_eq!(cause(read(&long, None)), HeaderError::HeaderTooLong { bytes: 0xffff_ffff });
    assert_eq!(MAX_HEADER_BYTES, 1 << 20);
}

#[test]
fn the_header_alone() {
    let header = Header::parse(&array("<V1", "False", "(2, 3)", &[0; 6])).unwrap();
    assert_eq!((header.elements(), &header.shape[..], &header.descr[..]), (6, &[2, 3][..], "<V1"));
    assert_eq!(header.dtype(Some(DType::F8E4M3Fn)), Ok(DType::F8E4M3Fn));
}

#[test]
fn every_type_and_rank_comes_back() {
    for dtype in DType::ALL {
        let Ok(layout) = truecast_io::layout_for(FileFormat::Npy, dtype) else {
            assert_eq!(dtype, DType::I48);
            continue;
        };
        let layout = if dtype == DType::String { Layout::Utf32 { width: 7 } } else { layout };
        assert!(dtype == DType::String || layout == Layout::Bytes);
        for shape in [vec![], vec![0], vec![5], vec![2, 0, 3], vec![2, 3, 4], vec![1; 64]] {
            let tensor = Tensor { name: "data".into(), dtype, layout, shape: shape.into() };
            let limit = 1u32 << dtype.bits_in(layout).unwrap().min(8).min(dtype.storage_bits().unwrap_or(8));
            let data: Vec<u8> = (0..tensor.bytes()).map(|i| (i as u32 * 37 % limit) as u8).collect();
            let disk = disk::empty("a.npy");
            disk::write(&disk, std::slice::from_ref(&tensor), std::slice::from_ref(&data), &[]).unwrap();
            let source = disk.open_as(dtype).unwrap();
            assert_eq!(source.tensors(), [tensor]);
            assert_eq!(disk::bytes_of(&source, 0).unwrap(), data);
            assert_eq!(source.data_offset(0).unwrap() % 64, 0);
        }
    }
}

#[test]
fn exactly_one_tensor() {
    let tensor = |name| disk::tensor(FileFormat::Npy, name, DType::U8, &[1]);
    for tensors in [vec![], vec![tensor("a"), tensor("b")]] {
        let disk = disk::empty("a.npy");
        let data = vec![vec![0]; tensors.len()];
        let error = disk::write(&disk, &tensors, &data, &[]).unwrap_err();
        assert!(matches!(error, Error::NotOneTensor { .. }) && error.kind() == ErrorKind::Usage);
        assert!(error.to_string().ends_with("use .npz"));
    }
}

/// The descriptor gives the width. Big-endian code points are swapped.
#[test]
fn text() {
    let units = |points: &[u32], order: &str| -> Vec<u8> {
        let bytes = |p: &u32| if order == ">" { p.to_be_bytes() } else { p.to_le_bytes() };
        points.iter().flat_map(bytes).collect()
    };
    let points = [0x31, 0x2e, 0x35, 0x6e, 0, 0];
    for order in ["<", ">"] {
        let file = array(&format!("{order}U3"), "False", "(2,)", &units(&points, order));
        for from in [None, Some(DType::String)] {
            assert_eq!(read(&file, from).unwrap(), (DType::String, units(&points, "<")), "{order}");
        }
        assert!(matches!(cause(read(&file, Some(DType::F32))), HeaderError::FromText { from: DType::F32, .. }));
        let disk = disk::file("a.npy", &file);
        assert_eq!(disk.open().unwrap().tensors()[0].layout, Layout::Utf32 { width: 3 });
        assert_eq!(disk.open_as(DType::F32).unwrap_err().kind(), ErrorKind::Usage);
    }
    for (descr, shape) in
        [("|U3", "(0,)"), ("<U", "(0,)"), ("<U03", "(0,)"), ("<U+3", "(0,)"), ("<U-1", "(0,)"), ("<U3x", "(0,)")]
    {
        assert!(matches!(cause(read(&array(descr, "False", shape, &[]), None)), HeaderError::Descr { .. }), "{descr}");
    }
    for descr in ["<U67108865", "<U4294967295", "<U99999999999999999999"] {
        assert!(matches!(cause(read(&array(descr, "False", "(0,)", &[]), None)), HeaderError::Descr { .. }), "{descr}");
    }
    // Elements of zero bytes would make an endless file.
    let endless = array("<U0", "False", "(9223372036854775807,)", &[]);
    assert!(matches!(cause(read(&endless, None)), HeaderError::NoWidth { .. }));
    assert_eq!(read(&array("<U0", "False", "(0,)", &[]), None).unwrap().0, DType::String);
    let short = array("<U2", "False", "(1,)", &[0; 7]);
    assert!(matches!(cause(read(&short, None)), HeaderError::DataLength { expected: 8, actual: 7, .. }));
    assert!(matches!(cause(read(&array("|S3", "False", "(0,)", &[]), None)), HeaderError::Descr { .. }));
}

/// Header that NumPy 2.4 writes.
#[test]
fn text_is_written_as_numpy_writes_it() {
    let disk = disk::empty("a.npy");
    let tensor =
        Tensor { name: "any".into(), dtype: DType::String, layout: Layout::Utf32 { width: 5 }, shape: [2, 3].into() };
    let data = vec![0; tensor.bytes() as usize];
    assert_eq!(data.len(), 120);
    disk::write(&disk, &[tensor], std::slice::from_ref(&data), &[]).unwrap();
    let written = std::fs::read(&disk.path).unwrap();
    let text = b"{'descr': '<U5', 'fortran_order': False, 'shape': (2, 3), }";
    assert!(written[10..].starts_with(text));
    assert_eq!(written.len(), 128 + 120);
}
