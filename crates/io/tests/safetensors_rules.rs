//! Rules V1 to V22 of `docs/spec/checkpoints.md §1.6`, each with the smallest files that break it.

mod disk;

use truecast_core::DType;
use truecast_io::safetensors::{Header, HeaderError, MAX_HEADER_BYTES};
use truecast_io::{Error, ErrorKind, Source};
use truecast_testkit::safetensors::container as safetensors;

const PLAIN: &str = r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;

fn container(header: &[u8], data_bytes: usize) -> Vec<u8> {
    safetensors(header, &vec![0; data_bytes])
}

fn open(header: impl AsRef<[u8]>, data_bytes: usize) -> Result<Source, Error> {
    disk::file("a.safetensors", &container(header.as_ref(), data_bytes)).open()
}

#[track_caller]
fn broken(header: impl AsRef<[u8]>, data_bytes: usize) -> HeaderError {
    cause(open(header, data_bytes))
}

#[track_caller]
fn cause(result: Result<Source, Error>) -> HeaderError {
    let error = result.expect_err("accepted");
    assert_eq!(error.kind(), ErrorKind::Input);
    let text = error.to_string();
    assert!(text.contains("a.safetensors: ") && !text.chars().any(char::is_control) && !text.ends_with('.'), "{text}");
    let Error::Safetensors { cause, .. } = error else { panic!("{error}") };
    cause
}

fn one(fields: &str) -> String {
    format!(r#"{{"a":{{{fields}}}}}"#)
}

fn a() -> String {
    "a".to_string()
}

#[test]
fn the_plain_file_is_accepted() {
    let source = open(PLAIN, 8).unwrap();
    assert_eq!(source.tensors().len(), 1);
    assert_eq!(source.data_offset(0), Some(8 + PLAIN.len() as u64));
    assert!(source.metadata().is_empty());
}

#[test]
fn v1_eight_bytes() {
    for length in 0..8 {
        let result = disk::file("a.safetensors", &vec![0; length]).open();
        assert_eq!(cause(result), HeaderError::TooShort { file_bytes: length as u64 });
    }
}

#[test]
fn v2_header_length_limit() {
    for bytes in [MAX_HEADER_BYTES + 1, u64::MAX - 8, u64::MAX] {
        let mut file = bytes.to_le_bytes().to_vec();
        file.extend_from_slice(b"{}");
        let result = disk::file("a.safetensors", &file).open();
        assert_eq!(cause(result), HeaderError::HeaderTooLong { bytes });
    }
}

#[test]
fn v3_header_inside_the_file() {
    for bytes in [3, MAX_HEADER_BYTES] {
        let mut file = bytes.to_le_bytes().to_vec();
        file.extend_from_slice(b"{}");
        let result = disk::file("a.safetensors", &file).open();
        assert_eq!(cause(result), HeaderError::HeaderPastEnd { bytes, file_bytes: 10 });
    }
}

#[test]
fn v4_utf8() {
    assert_eq!(broken(b"{\"\xff\":1}", 0), HeaderError::NotUtf8 { offset: 10 });
    let surrogate = r#"{"\ud800":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}"#;
    assert!(matches!(broken(surrogate, 4), HeaderError::Json { .. }));
    let surrogate = r#"{"__metadata__":{"a":"\udc00"}}"#;
    assert!(matches!(broken(surrogate, 0), HeaderError::Json { .. }));
    let pair = r#"{"\ud83d\ude00":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}"#;
    assert_eq!(open(pair, 4).unwrap().tensors()[0].name, "\u{1f600}".into());
}

#[test]
fn v5_begins_with_a_brace() {
    for header in ["", " {}", "\n{}", "[]", "null", "\u{feff}{}"] {
        assert_eq!(broken(header, 0), HeaderError::NotAnObject, "{header:?}");
    }
}

#[test]
fn v6_only_blanks_after_the_object() {
    assert!(open("{} \t\r\n ", 0).is_ok());
    assert_eq!(broken("{}  x", 0), HeaderError::AfterObject { offset: 12 });
    assert_eq!(broken("{}\0", 0), HeaderError::AfterObject { offset: 10 });
    assert_eq!(broken("{}{}", 0), HeaderError::AfterObject { offset: 10 });
    assert_eq!(broken("{}\n\n\u{a0}", 0), HeaderError::AfterObject { offset: 12 });
}

#[test]
fn v7_tensor_names_are_unique() {
    let field = r#"{"dtype":"F32","shape":[0],"data_offsets":[0,0]}"#;
    assert_eq!(broken(format!(r#"{{"a":{field},"a":{field}}}"#), 0), HeaderError::DuplicateTensor { tensor: a() });
    let escaped = format!(r#"{{"a":{field},"\u0061":{field}}}"#);
    assert_eq!(broken(escaped, 0), HeaderError::DuplicateTensor { tensor: a() });
}

#[test]
fn v8_fields_and_metadata_are_unique() {
    let rows = [
        (r#""dtype":"F32","dtype":"F32","shape":[],"data_offsets":[0,4]"#, "dtype"),
        (r#""dtype":"F32","shape":[],"shape":[],"data_offsets":[0,4]"#, "shape"),
        (r#""dtype":"F32","shape":[],"data_offsets":[0,4],"data_offsets":[0,4]"#, "data_offsets"),
    ];
    for (fields, field) in rows {
        assert_eq!(broken(one(fields), 4), HeaderError::DuplicateField { tensor: a(), field });
    }
    assert_eq!(broken(r#"{"__metadata__":{},"__metadata__":{}}"#, 0), HeaderError::DuplicateMetadata);
    assert_eq!(broken(r#"{"__metadata__":null,"__metadata__":{}}"#, 0), HeaderError::DuplicateMetadata);
}

#[test]
fn v9_metadata_keys_are_unique() {
    let header = r#"{"__metadata__":{"k":"1","k":"2"}}"#;
    assert_eq!(broken(header, 0), HeaderError::DuplicateMetadataKey { key: "k".into() });
}

#[test]
fn v10_exactly_three_fields() {
    let rows = [
        (r#""shape":[],"data_offsets":[0,4]"#, "dtype"),
        (r#""dtype":"F32","data_offsets":[0,4]"#, "shape"),
        (r#""dtype":"F32","shape":[]"#, "data_offsets"),
        ("", "dtype"),
    ];
    for (fields, field) in rows {
        assert_eq!(broken(one(fields), 4), HeaderError::MissingField { tensor: a(), field });
    }
    for field in ["strides", "", "Dtype", "dtype "] {
        let fields = format!(r#""dtype":"F32","shape":[],"data_offsets":[0,4],"{field}":[[[[1]]]]"#);
        assert_eq!(broken(one(&fields), 4), HeaderError::UnknownField { tensor: a(), field: field.into() });
    }
}

#[test]
fn v11_known_dtypes() {
    for dtype in ["F7", "f32", "", "I4", "U4", "F8_E3M4", "C128", "f8e4m3"] {
        let fields = format!(r#""dtype":"{dtype}","shape":[],"data_offsets":[0,4]"#);
        assert_eq!(broken(one(&fields), 4), HeaderError::UnknownDtype { tensor: a(), dtype: dtype.into() });
    }
    for dtype in ["1", "null", "[]", "{}"] {
        let fields = format!(r#""dtype":{dtype},"shape":[],"data_offsets":[0,4]"#);
        assert!(matches!(broken(one(&fields), 4), HeaderError::Json { tensor: Some(_), .. }));
    }
}

#[test]
fn v12_plain_integers() {
    for number in "2.0 -1 2e0 8e0 -0 0.5 1E2 18446744073709551616 99999999999999999999 -9223372036854775809".split(' ')
    {
        let shape = format!(r#""dtype":"F32","shape":[{number}],"data_offsets":[0,8]"#);
        assert!(matches!(broken(one(&shape), 8), HeaderError::NotAnInteger { field: "shape", .. }), "{number}");
        let offsets = format!(r#""dtype":"F32","shape":[2],"data_offsets":[0,{number}]"#);
        assert!(
            matches!(broken(one(&offsets), 8), HeaderError::NotAnInteger { field: "data_offsets", .. }),
            "{number}"
        );
    }
    for other in ["\"2\"", "null", "true", "[2]", "{}", "02", "+2", "0x2", "2 2", "NaN", ""] {
        for fields in [
            format!(r#""dtype":"F32","shape":[2,{other}],"data_offsets":[0,8]"#),
            format!(r#""dtype":"F32","shape":[2],"data_offsets":[0,{other}]"#),
        ] {
            assert!(matches!(broken(one(&fields), 8), HeaderError::Json { tensor: Some(_), .. }), "{fields}");
        }
    }
    for offsets in ["[]", "[0]", "[0,8,8]", "[0,8,8,8]"] {
        let fields = format!(r#""dtype":"F32","shape":[2],"data_offsets":{offsets}"#);
        assert_eq!(broken(one(&fields), 8), HeaderError::OffsetCount { tensor: a() });
    }
    for offsets in ["8", "\"0,8\"", "{\"0\":8}", "null"] {
        let fields = format!(r#""dtype":"F32","shape":[2],"data_offsets":{offsets}"#);
        assert!(matches!(broken(one(&fields), 8), HeaderError::Json { .. }));
    }
}

#[test]
fn v13_product_of_the_nonzero_dimensions() {
    let shapes = [
        "1099511627776,1099511627776", "0,9223372036854775808,9223372036854775808",
        "9223372036854775808,9223372036854775808,0", "9223372036854775808",
        "3037000500,3037000500", // just above 2^63
    ];
    for shape in shapes {
        let fields = format!(r#""dtype":"U8","shape":[{shape}],"data_offsets":[0,0]"#);
        assert_eq!(broken(one(&fields), 0), HeaderError::ShapeTooBig { tensor: a() }, "{shape}");
    }
    let fields = r#""dtype":"U8","shape":[0,3037000499,3037000499],"data_offsets":[0,0]"#;
    assert!(open(one(fields), 0).is_ok());
}

#[test]
fn v14_rank() {
    for (rank, is_accepted) in [(0, true), (1, true), (64, true), (65, false), (10_000, false)] {
        let shape = vec!["1"; rank].join(",");
        let fields = format!(r#""dtype":"F32","shape":[{shape}],"data_offsets":[0,4]"#);
        match is_accepted {
            true => assert_eq!(*open(one(&fields), 4).unwrap().tensors()[0].shape, *vec![1; rank]),
            false => assert_eq!(broken(one(&fields), 4), HeaderError::RankTooHigh { tensor: a() }),
        }
    }
}

#[test]
fn v15_whole_bytes() {
    let rows = [("F4", "3", 12), ("F4", "", 4), ("F6_E2M3", "2", 12), ("F6_E3M2", "3", 18)];
    for (dtype, shape, bits) in rows {
        for bytes in [bits / 8, bits / 8 + 1] {
            let fields = format!(r#""shape":[{shape}],"dtype":"{dtype}","data_offsets":[0,{bytes}]"#);
            assert!(matches!(broken(one(&fields), bytes), HeaderError::NotWholeBytes { .. }), "{fields}");
        }
    }
    // 2^62 elements are allowed; their 2^68 bits are not.
    let fields = r#""dtype":"F64","shape":[4611686018427387904],"data_offsets":[0,0]"#;
    assert!(matches!(broken(one(fields), 0), HeaderError::NotWholeBytes { .. }));
    // An odd last dimension is read if the total is even (§1.4).
    let source = open(one(r#""dtype":"F4","shape":[2,3],"data_offsets":[0,3]"#), 3).unwrap();
    assert_eq!((source.tensors()[0].dtype, source.tensors()[0].bytes()), (DType::F4E2M1, 3));
}

#[test]
fn v16_length_of_a_tensor() {
    let rows = [("F32", "2", 0, 4), ("F32", "2", 8, 0), ("F32", "0", 0, 4), ("F64", "", 0, 4), ("F6_E2M3", "4", 0, 4)];
    for (dtype, shape, begin, end) in rows {
        let fields = format!(r#""dtype":"{dtype}","shape":[{shape}],"data_offsets":[{begin},{end}]"#);
        let cause = broken(one(&fields), 8);
        assert!(
            matches!(cause, HeaderError::WrongLength { begin: b, end: e, .. } if (b, e) == (begin, end)),
            "{cause}"
        );
    }
    let fields = r#""dtype":"U8","shape":[1],"data_offsets":[18446744073709551615,0]"#;
    assert!(matches!(broken(one(fields), 1), HeaderError::WrongLength { .. }));
}

#[test]
fn v17_no_hole_no_overlap() {
    let hole = r#"{"a":{"dtype":"F32","shape":[],"data_offsets":[4,8]}}"#;
    assert_eq!(broken(hole, 8), HeaderError::NotContiguous { tensor: a(), begin: 4, expected: 0 });
    let two = |b: [u64; 2], bytes: u64| {
        let shape = bytes / 4;
        format!(
            r#"{{"a":{{"dtype":"F32","shape":[2],"data_offsets":[0,8]}},"b":{{"dtype":"F32","shape":[{shape}],"data_offsets":[{},{}]}}}}"#,
            b[0], b[1]
        )
    };
    let at = |begin| HeaderError::NotContiguous { tensor: "b".into(), begin, expected: 8 };
    assert_eq!(broken(two([0, 8], 8), 8), at(0), "both at [0,8]");
    assert_eq!(broken(two([4, 12], 8), 12), at(4));
    assert_eq!(broken(two([12, 20], 8), 20), at(12));
    assert_eq!(broken(two([4, 4], 0), 8), at(4), "no elements, inside another tensor");
    assert!(open(two([8, 16], 8), 16).is_ok());
    // Tensors without elements share an offset with others.
    for at in [0, 8] {
        assert!(open(two([at, at], 0), 8).is_ok());
    }
}

#[test]
fn v18_the_buffer_is_covered() {
    for data_bytes in [0, 4, 7, 9, 12] {
        let expected = HeaderError::DataLength { end: 8, data_bytes: data_bytes as u64 };
        assert_eq!(broken(PLAIN, data_bytes), expected);
    }
    assert_eq!(broken("{}", 1), HeaderError::DataLength { end: 0, data_bytes: 1 });
    let far = r#""dtype":"U8","shape":[9223372036854775807],"data_offsets":[0,9223372036854775807]"#;
    assert_eq!(broken(one(far), 8), HeaderError::NotWholeBytes { tensor: a(), len: i64::MAX as u64, dtype: DType::U8 });
    let far = r#""dtype":"U8","shape":[1152921504606846976],"data_offsets":[0,1152921504606846976]"#;
    assert_eq!(broken(one(far), 8), HeaderError::DataLength { end: 1 << 60, data_bytes: 8 });
}

#[test]
fn v19_metadata_maps_strings_to_strings() {
    let source = open(r#"{"__metadata__":{"format":"pt","":"\n"}}"#, 0).unwrap();
    assert_eq!(source.metadata()["format"], "pt");
    assert_eq!(source.metadata()[""], "\n");
    assert!(open(r#"{"__metadata__":null}"#, 0).unwrap().metadata().is_empty());
    for value in ["1", "[]", "\"pt\"", "true", r#"{"a":1}"#, r#"{"a":null}"#, r#"{"a":{}}"#, r#"{"a":["b"]}"#] {
        let cause = broken(format!(r#"{{"__metadata__":{value}}}"#), 0);
        assert!(matches!(cause, HeaderError::Json { .. }), "{value}: {cause}");
    }
}

#[test]
fn v20_nesting() {
    let deep = |open: &str, n: usize| open.repeat(n);
    for n in [1, 8, 100, 1_000_000] {
        for bracket in ["[", "{\"a\":"] {
            let nested = deep(bracket, n);
            for header in [
                format!(r#"{{"a":{nested}"#),
                format!(r#"{{"__metadata__":{{"a":{nested}"#),
                format!(r#"{{"a":{{"shape":[{nested}"#),
                format!(r#"{{"a":{{"dtype":{nested}"#),
            ] {
                // Any error will do, because the parser's stopping point determines the rule.
                broken(header, 0);
            }
        }
    }
}

#[test]
fn v21_names_are_data() {
    for name in ["", "../../etc/passwd", "/", "a\0b", "\u{1b}[31m\n", "__metadata", "\u{202e}x"] {
        let key: String = name.chars().map(|c| format!("\\u{:04x}", c as u32)).collect();
        let header = format!(r#"{{"{key}":{{"dtype":"F32","shape":[],"data_offsets":[0,4]}}}}"#);
        assert_eq!(open(&header, 4).unwrap().tensors()[0].name, name.into());
        // Control characters are escaped when printed; `cause` checks this.
        assert!(matches!(broken(&header, 5), HeaderError::DataLength { .. }));
        let wrong = header.replace("[0,4]", "[0,5]");
        assert!(matches!(broken(&wrong, 5), HeaderError::WrongLength { .. }));
        broken(header.replace("F32", "F\\n32"), 4);
        broken(header.replace("4]", "\"\\u001b\"]"), 4);
    }
}

#[test]
fn v22_a_regular_file() {
    let disk = disk::empty("a.safetensors");
    std::fs::create_dir(&disk.path).unwrap();
    assert!(matches!(disk.open(), Err(Error::NotRegular { .. })));
    let disk = disk::empty("b.safetensors");
    std::os::unix::fs::symlink("/dev/null", &disk.path).unwrap();
    assert!(matches!(disk.open(), Err(Error::NotRegular { .. })));
    let disk = disk::file("c.safetensors", &container(b"{}", 0));
    let link = disk.folder.path().join("link.safetensors");
    std::os::unix::fs::symlink(&disk.path, &link).unwrap();
    let source = Source::open(&link, None).unwrap();
    assert!(source.same_file(&disk.path).unwrap());
    assert!(!source.same_file(&disk.folder.path().join("absent")).unwrap());
    let error = Source::open(&disk.folder.path().join("absent.safetensors"), None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::System);
}

#[test]
fn text_that_is_not_json() {
    for header in
        ["{", "{\"a\"", "{\"a\":", "{'a':1}", "{\"a\":1}", "{,}", "{\"a\":{},}", "{\"\n\":1}", "{// x\n}", &PLAIN[..30]]
    {
        broken(header, 0);
    }
    let Err(HeaderError::Json { offset, .. }) = Header::parse(b"{\n\n\"a\" 1}", 0) else { panic!() };
    assert_eq!(offset, 8 + 7);
}

#[test]
fn a_type_is_not_imposed_on_a_header() {
    let disk = disk::file("a.safetensors", &container(PLAIN.as_bytes(), 8));
    let error = disk.open_as(DType::I32).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
}

#[test]
fn data_order_is_the_order_of_offsets() {
    let header = r#"{"z":{"dtype":"U8","shape":[1],"data_offsets":[2,3]},"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"e":{"dtype":"U8","shape":[0],"data_offsets":[2,2]},"b":{"dtype":"U8","shape":[0],"data_offsets":[2,2]}}"#;
    let source = open(header, 3).unwrap();
    let names: Vec<&str> = source.tensors().iter().map(|t| &*t.name).collect();
    assert_eq!(names, ["a", "e", "b", "z"]);
}
