//! `.npz` archives. Another zip implementation reads what this crate writes, and writes what this crate reads.

mod disk;

use std::io::{Cursor, Read};

use disk::archive;
use truecast_core::{DType, Layout};
use truecast_io::npz::ArchiveError;
use truecast_io::{DeniedTensor, Error, ErrorKind, FileFormat, Source, Tensor};
use truecast_testkit::npy::array as npy_array;
use zip::{CompressionMethod, ZipArchive};

fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    npy_array(descr, "False", shape, data)
}

fn open(bytes: &[u8], from: Option<DType>) -> Result<Source, Error> {
    Source::open(&disk::file("a.npz", bytes).path, from)
}

fn read_all(bytes: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
    let source = open(bytes, None)?;
    (0..source.tensors().len()).map(|i| disk::bytes_of(&source, i)).collect()
}

#[track_caller]
fn cause<T>(result: Result<T, Error>) -> ArchiveError {
    let error = result.err().expect("accepted");
    let text = error.to_string();
    assert!(!text.chars().any(char::is_control) && !text.ends_with('.'), "{text}");
    let Error::Npz { cause, .. } = error else { panic!("{error}") };
    cause
}

/// Archives of NumPy 2.4.6 for `w=np.array([1, 2], '<f4'), e=np.zeros((0, 2), '<i8')`: `savez`, `savez_compressed`.
const NUMPY: [&str; 2] = [
    "504b03042d0000000000000021009acaabe7ffffffffffffffff05001400772e6e70790100100088000000000000008800000000000000\
     934e554d5059010076007b276465736372273a20273c6634272c2027666f727472616e5f6f72646572273a2046616c73652c2027736861\
     7065273a2028322c292c207d20202020202020202020202020202020202020202020202020202020202020202020202020202020202020\
     20202020202020202020202020202020200a0000803f00000040504b03042d0000000000000021003b0b69ccffffffffffffffff050014\
     00652e6e70790100100080000000000000008000000000000000934e554d5059010076007b276465736372273a20273c6938272c202766\
     6f727472616e5f6f72646572273a2046616c73652c20277368617065273a2028302c2032292c207d202020202020202020202020202020\
     202020202020202020202020202020202020202020202020202020202020202020202020202020202020200a504b01022d032d00000000\
     00000021009acaabe78800000088000000050000000000000000000000800100000000772e6e7079504b01022d032d0000000000000021\
     003b0b69cc80000000800000000500000000000000000000008001bf000000652e6e7079504b0506000000000200020066000000760100\
     000000",
    "504b03042d0000000800000021009acaabe7ffffffffffffffff05001400772e6e70790100100088000000000000004c00000000000000\
     9bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9366a2aea3a09e965f54529498179f5f94920a12774bcc294e058a17672416a402\
     f91a463a9a3a0ab50a14002e0686067b0606060700504b03042d0000000800000021003b0b69ccffffffffffffffff05001400652e6e70\
     7901001000800000000000000046000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9369a1aea3a09e965f545294\
     98179f5f94920a12774bcc294e058a17672416a402f91a063a0a469a3a0ab50a64032e00504b01022d032d0000000800000021009acaab\
     e74c00000088000000050000000000000000000000800100000000772e6e7079504b01022d032d0000000800000021003b0b69cc460000\
     0080000000050000000000000000000000800183000000652e6e7079504b0506000000000200020066000000000100000000",
];

#[test]
fn archives_of_numpy_are_read() {
    for text in NUMPY {
        let bytes: Vec<u8> =
            (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect();
        let source = open(&bytes, None).unwrap();
        let tensor = |name: &str, dtype, shape: &[u64]| Tensor {
            name: name.into(),
            dtype,
            layout: Layout::Bytes,
            shape: shape.into(),
        };
        assert_eq!(source.tensors(), [tensor("w", DType::F32, &[2]), tensor("e", DType::I64, &[0, 2])]);
        assert_eq!(read_all(&bytes).unwrap(), [vec![0, 0, 128, 63, 0, 0, 0, 64], vec![]]);
    }
}

#[test]
fn stored_and_deflated_members_are_read() {
    let long: Vec<u8> = (0..400_000u32).map(|i| (i / 1000) as u8).collect();
    let members = [
        ("w.npy", npy("<f4", "(2,)", &[0, 0, 128, 63, 0, 0, 0, 64])),
        ("dir/x y.npy", npy(">i2", "(2,)", &[1, 2, 3, 4])),
        ("é.npy", npy("|u1", "(400000,)", &long)),
        ("none.npy", npy("<f8", "(0, 3)", &[])),
        (".npy", npy("|b1", "()", &[1])),
    ];
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        let bytes = archive(&members, method);
        let source = open(&bytes, None).unwrap();
        let names: Vec<&str> = source.tensors().iter().map(|t| &*t.name).collect();
        assert_eq!(names, ["w", "dir/x y", "é", "none", ""]);
        let types: Vec<DType> = source.tensors().iter().map(|t| t.dtype).collect();
        assert_eq!(types, [DType::F32, DType::I16, DType::U8, DType::F64, DType::Bool]);
        let data = [vec![0, 0, 128, 63, 0, 0, 0, 64], vec![2, 1, 4, 3], long.clone(), vec![], vec![1]];
        assert_eq!(read_all(&bytes).unwrap(), data);
        for index in 0..5 {
            assert_eq!(source.data_offset(index).is_some(), method == CompressionMethod::Stored);
        }
        // Readers of one source are independent.
        let mut readers: Vec<_> = (0..5).map(|i| source.reader(i).unwrap()).collect();
        let mut found = vec![Vec::new(); 5];
        while readers.iter().any(|r| r.remaining() > 0) {
            for (reader, found) in readers.iter_mut().zip(&mut found) {
                let mut buf = vec![0; reader.remaining().min(777) as usize];
                reader.read(&mut buf).unwrap();
                found.extend(buf);
            }
        }
        assert_eq!(found, data);
    }
    assert!(open(&archive(&[], CompressionMethod::Stored), None).unwrap().tensors().is_empty());
}

#[test]
fn from_applies_to_members_of_its_size() {
    let bytes = archive(
        &[("w.npy", npy("<V1", "(2,)", &[1, 2])), ("scale.npy", npy("<f4", "()", &[0; 4]))],
        CompressionMethod::Stored,
    );
    let error = open(&bytes, None).unwrap_err();
    assert!(error.to_string().contains("member \"w.npy\"") && error.kind() == ErrorKind::Usage, "{error}");
    let types = |from| open(&bytes, Some(from)).unwrap().tensors().iter().map(|t| t.dtype).collect::<Vec<_>>();
    assert_eq!(types(DType::F8E4M3Fn), [DType::F8E4M3Fn, DType::F32]);
    assert_eq!(types(DType::I4), [DType::I4, DType::F32]);
    // A member with a type keeps the type, unless all members have one.
    for (w, expected) in [("<V1", DType::F8E4M3Fn), ("|u1", DType::U8), ("|i1", DType::I8), ("<f1", DType::F8E5M2)] {
        let members = [("v.npy", npy("|V1", "(1,)", &[1])), ("w.npy", npy(w, "(1,)", &[1]))];
        let types = |members: &[(&str, Vec<u8>)]| {
            let opened = open(&archive(members, CompressionMethod::Stored), Some(DType::F8E4M3Fn)).unwrap();
            opened.tensors().iter().map(|t| t.dtype).collect::<Vec<_>>()
        };
        assert_eq!((types(&members), types(&members[1..])), (vec![DType::F8E4M3Fn, expected], vec![DType::F8E4M3Fn]));
    }
    // `w` has no type of its own.
    assert_eq!(open(&bytes, Some(DType::I32)).unwrap_err().kind(), ErrorKind::Usage);
    let typed = archive(&[("a.npy", npy("<f4", "()", &[0; 4]))], CompressionMethod::Stored);
    let error = open(&typed, Some(DType::Bf16)).unwrap_err();
    assert!(matches!(error, Error::Npz { cause: ArchiveError::FromUnused { from: DType::Bf16 }, .. }));
    assert_eq!(error.kind(), ErrorKind::Usage);
}

#[test]
fn what_is_written_is_read_by_another_implementation() {
    let tensor = |name: &str, dtype, shape: &[u64]| disk::tensor(FileFormat::Npz, name, dtype, shape);
    let names = ["w", "dir/é", "../up", "", "a\0b", "x.npy"];
    let tensors: Vec<Tensor> = names.iter().map(|n| tensor(n, DType::I4, &[3])).collect();
    let tensors = [tensors, vec![tensor("e1", DType::F32, &[0]), tensor("e2", DType::F32, &[0, 2])]].concat();
    let data: Vec<Vec<u8>> = tensors.iter().enumerate().map(|(i, t)| vec![i as u8; t.bytes() as usize]).collect();
    let disk = disk::empty("a.npz");
    let bytes = disk::write(&disk, &tensors, &data, &[]).unwrap();
    let file = std::fs::read(&disk.path).unwrap();
    assert_eq!(bytes, file.len() as u64);

    let mut zip = ZipArchive::new(Cursor::new(&file)).unwrap();
    zip.validate_header_consistency().unwrap();
    assert_eq!(zip.len(), tensors.len());
    for (i, tensor) in tensors.iter().enumerate() {
        let mut member = zip.by_index(i).unwrap();
        assert_eq!(member.name().unwrap(), format!("{}.npy", tensor.name));
        assert_eq!(member.compression(), CompressionMethod::Stored);
        assert_eq!(member.last_modified().unwrap().to_string(), "1980-01-01 00:00:00");
        let mut stream = Vec::new();
        member.read_to_end(&mut stream).unwrap(); // with its checksum
        assert_eq!(stream[stream.len() - data[i].len()..], data[i]);
    }

    let source = disk.open_as(DType::I4).unwrap();
    assert_eq!(source.tensors(), tensors);
    for (i, data) in data.iter().enumerate() {
        assert_eq!(&disk::bytes_of(&source, i).unwrap(), data);
    }

    let again = disk::empty("a.npz");
    disk::write(&again, &tensors, &data, &[]).unwrap();
    assert_eq!(std::fs::read(&again.path).unwrap(), file);
    assert_eq!(again.names(), ["a.npz"]);
    let none = disk::empty("a.npz");
    disk::write(&none, &[], &[], &[]).unwrap();
    assert!(none.open().unwrap().tensors().is_empty());
}

#[test]
fn every_type_comes_back() {
    let tensors: Vec<Tensor> = DType::ALL
        .into_iter()
        // Text has its own tests, because its width comes from the longest element.
        .filter(|d| *d != DType::String && truecast_io::layout_for(FileFormat::Npz, *d).is_ok())
        .map(|d| disk::tensor(FileFormat::Npz, d.name(), d, &[2, 3]))
        .collect();
    assert_eq!(tensors.len(), DType::ALL.len() - 2); // i48 and string
    let data: Vec<Vec<u8>> = tensors.iter().map(|t| vec![1; t.bytes() as usize]).collect();
    let disk = disk::empty("a.npz");
    disk::write(&disk, &tensors, &data, &[]).unwrap();
    let source = disk.open_as(DType::F8E4M3Fn).unwrap();
    for (i, tensor) in tensors.iter().enumerate() {
        let found = &source.tensors()[i];
        assert_eq!((&found.name, &found.shape, found.layout), (&tensor.name, &tensor.shape, Layout::Bytes));
        assert_eq!(disk::bytes_of(&source, i).unwrap(), data[i]);
    }
}

#[test]
fn names_that_cannot_be_written() {
    let tensor = |name: &str| disk::tensor(FileFormat::Npz, name, DType::U8, &[1]);
    let refusal = |tensors: &[Tensor]| match disk::write(&disk::empty("a.npz"), tensors, &[], &[]) {
        Err(Error::Refused { cause, .. }) => cause,
        other => panic!("{other:?}"),
    };
    assert_eq!(refusal(&[tensor("a"), tensor("a")]), DeniedTensor::DuplicateName);
    assert_eq!(refusal(&[tensor(&"x".repeat(65_532))]), DeniedTensor::NameTooLong { bytes: 65_532 });
    let longest = disk::empty("a.npz");
    disk::write(&longest, &[tensor(&"x".repeat(65_531))], &[vec![1]], &[]).unwrap();
    assert_eq!(longest.open().unwrap().tensors()[0].name.len(), 65_531);
}

#[test]
fn members_that_are_refused() {
    let stored = |members: &[(&str, Vec<u8>)]| archive(members, CompressionMethod::Stored);
    let one = npy("|u1", "(1,)", &[7]);
    for name in ["a.txt", "a.NPY", "dir/", "npy"] {
        let found = cause(open(&stored(&[("w.npy", one.clone()), (name, vec![])]), None));
        assert_eq!(found, ArchiveError::NotNpy { member: name.into() });
    }
    // One name twice: `b.npy` becomes `a.npy` everywhere.
    let mut twice = stored(&[("a.npy", one.clone()), ("b.npy", one.clone())]);
    for at in 0..twice.len() - 5 {
        if twice[at..].starts_with(b"b.npy") {
            twice[at] = b'a';
        }
    }
    assert_eq!(cause(open(&twice, None)), ArchiveError::DuplicateMembers);
    // Changes flags, method and checksum of the only member (directory offsets 8, 10 and 16).
    let plain = stored(&[("a.npy", one)]);
    let directory = plain.windows(4).position(|w| w == b"PK\x01\x02").unwrap();
    let with = |at: usize, value: u8| {
        let mut bytes = plain.clone();
        bytes[directory + at] = value;
        bytes
    };
    assert_eq!(cause(open(&with(8, 1), None)), ArchiveError::Encrypted { member: "a.npy".into() });
    for method in [1, 9, 12, 14, 93, 99] {
        let found = cause(open(&with(10, method), None));
        assert!(matches!(found, ArchiveError::Method { .. }), "{method}: {found}");
    }
    let found = cause(read_all(&with(16, plain[directory + 16] ^ 1)));
    assert!(matches!(found, ArchiveError::Checksum { .. }));
    // A false size, at directory offsets 20 and 24.
    let size = plain[directory + 20];
    assert!(matches!(cause(open(&with(20, size - 1), None)), ArchiveError::Place { .. }));
    assert!(matches!(cause(open(&with(24, size + 1), None)), ArchiveError::Place { .. }));
    assert!(matches!(cause(open(&with(23, 0x70), None)), ArchiveError::Place { .. }));
}

#[test]
fn members_in_fortran_order() {
    let data: Vec<u8> = (0..6).collect();
    let member = npy_array("|u1", "True", "(2, 3)", &data);
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        let bytes = archive(&[("a.npy", member.clone()), ("b.npy", npy("|u1", "(2, 3)", &data))], method);
        assert_eq!(read_all(&bytes).unwrap(), [vec![0, 2, 4, 1, 3, 5], data.clone()]);
        let mut damaged = bytes.clone();
        let directory = damaged.windows(4).position(|w| w == b"PK\x01\x02").unwrap();
        damaged[directory + 16] ^= 1;
        let found = cause(read_all(&damaged));
        assert!(matches!(found, ArchiveError::Checksum { .. }), "{found}");
    }
    // A member that would be inflated too often is refused at opening.
    let long = npy_array("|u1", "True", "(2, 1073741825)", &data);
    let size = (long.len() as u64 - 6 + 2 * 1_073_741_825) as u32;
    let mut lying = archive(&[("a.npy", long)], CompressionMethod::Deflated);
    let directory = lying.windows(4).position(|w| w == b"PK\x01\x02").unwrap();
    lying[directory + 24..directory + 28].copy_from_slice(&size.to_le_bytes());
    let found = cause(open(&lying, None));
    assert!(matches!(&found, ArchiveError::Fortran { member, .. } if member == "a.npy"), "{found}");
}

#[test]
fn damage_is_found() {
    let data: Vec<u8> = (0..5000u32).map(|i| ((i * i) >> 3) as u8).collect();
    let member = npy("|u1", "(5000,)", &data);
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        let bytes = archive(&[("a.npy", member.clone())], method);
        let end = bytes.windows(4).position(|w| w == b"PK\x01\x02").unwrap();
        for at in (30 + 5 + 100..end).step_by(97) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            // Damage to a compressed member may also show in its header.
            let error = read_all(&damaged).unwrap_err();
            let is_found = matches!(
                &error,
                Error::Npz { cause: ArchiveError::Checksum { .. } | ArchiveError::Inflate { .. }, .. }
                    | Error::Npy { .. }
            );
            assert!(is_found, "{at}: {error}");
        }
        for length in (0..bytes.len()).step_by(13) {
            read_all(&bytes[..length]).unwrap_err();
        }
    }
    // A compressed member of another length than stated.
    for length in [4999, 5001] {
        let shape = format!("({length},)");
        let mut lying = archive(&[("a.npy", npy("|u1", &shape, &data))], CompressionMethod::Deflated);
        let directory = lying.windows(4).position(|w| w == b"PK\x01\x02").unwrap();
        let size = npy("|u1", &shape, &vec![0; length]).len() as u32;
        lying[directory + 24..directory + 28].copy_from_slice(&size.to_le_bytes());
        let found = cause(read_all(&lying));
        assert!(matches!(found, ArchiveError::Inflate { .. }), "{found}");
    }
}

#[test]
fn not_an_archive() {
    for bytes in [&b""[..], b"PK", b"PK\x03\x04", &[0; 100]] {
        assert!(matches!(cause(open(bytes, None)), ArchiveError::Directory { .. }));
    }
    let error = open(b"\x93NUMPY\x01\x00", None).unwrap_err();
    assert!(matches!(error, Error::Replaced { .. }), "{error}");
    let bytes = archive(&[("a.npy", b"hello".to_vec())], CompressionMethod::Stored);
    let error = open(&bytes, None).unwrap_err();
    assert!(matches!(&error, Error::Npy { member: Some(m), .. } if m == "a.npy"), "{error}");
}

/// Two directory entries for one stored member.
#[test]
fn members_that_overlap() {
    let member = npy("|u1", "(1,)", &[7]);
    let mut bytes = archive(&[("a.npy", member.clone()), ("b.npy", member)], CompressionMethod::Stored);
    let second = bytes.windows(4).rposition(|w| w == b"PK\x01\x02").unwrap();
    bytes[second + 42..second + 46].copy_from_slice(&[0; 4]);
    assert_eq!(cause(open(&bytes, None)), ArchiveError::Overlap);
}
