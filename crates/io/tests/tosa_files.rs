//! `.tosa` files and the arrays of Arm's tools: `docs/spec/tosa.md §7`, §8. Damaged files are errors, never panics.

use truecast_core::DType;
use truecast_io::Existing;
use truecast_io::tosa::array::{Array, read, write};
use truecast_io::tosa::{FileError, RescaleAttribute, op, parse};
use truecast_testkit::flatbuffer::{Graph, Operator, Tensor};

fn rescale() -> Graph<'static> {
    Graph {
        version: 1,
        tensors: &[
            Tensor("x", &[4], 5, &[]),
            Tensor("m", &[1], 5, &[0, 0, 0, 64, 0, 0, 0, 0]), // padded to a multiple of 8
            Tensor("y", &[4], 3, &[]),
        ],
        operators: &[
            Operator(op::CONST, &[], &["m"], None),
            Operator(op::RESCALE, &["x", "m"], &["y"], Some(([true, false, false, true], 3))),
        ],
        inputs: &["x"],
        outputs: &["y"],
    }
}

#[test]
fn a_graph_is_taken_apart() {
    let file = rescale().file();
    let graph = parse(&file).unwrap();
    assert_eq!((graph.version, &graph.inputs[..], &graph.outputs[..]), ((1, 0, 2), &["x"][..], &["y"][..]));
    let [constant, rescale] = &graph.operators[..] else { panic!("{:?}", graph.operators) };
    assert_eq!((constant.op, constant.rescale), (op::CONST, None));
    assert_eq!((rescale.op, &rescale.inputs[..]), (op::RESCALE, &["x", "m"][..]));
    let expected = RescaleAttribute {
        scale32: true,
        rounding_mode: 3,
        per_channel: false,
        input_unsigned: false,
        output_unsigned: true,
    };
    assert_eq!(rescale.rescale, Some(expected));
    let m = &graph.tensors["m"];
    assert_eq!((&m.shape[..], m.dtype, &m.data[..4], m.is_unranked), (&[1][..], 5, &[0, 0, 0, 64][..], false));
}

#[test]
fn other_files_are_refused() {
    assert_eq!(parse(b"").unwrap_err(), FileError::Identifier);
    assert_eq!(parse(b"\x08\0\0\0ONNX").unwrap_err(), FileError::Identifier);
    let old = Graph { version: 0, ..rescale() }.file();
    assert_eq!(parse(&old).unwrap_err(), FileError::Version { major: 0, minor: 0, patch: 2 });
    let twice = Graph { tensors: &[Tensor("x", &[4], 5, &[]), Tensor("x", &[4], 5, &[])], ..rescale() }.file();
    assert_eq!(parse(&twice).unwrap_err(), FileError::Duplicate { name: "x".into() });
    let many = vec!["x"; 65];
    let operators = [Operator(op::CAST, &many, &["y"], None)];
    let wide = Graph { operators: &operators, ..rescale() }.file();
    assert_eq!(parse(&wide).unwrap_err(), FileError::Operands);
}

/// Every prefix, every byte changed in several ways, and every four bytes made huge.
#[test]
fn damage_is_an_error_or_another_graph() {
    let file = rescale().file();
    for end in 0..file.len() {
        assert!(parse(&file[..end]).is_err() || end + 8 > file.len(), "{end}");
    }
    for at in 0..file.len() {
        for change in [1, 0x80, 0xff, 0x55] {
            let mut damaged = file.clone();
            damaged[at] ^= change;
            parse(&damaged).ok();
        }
        let mut huge = file.clone();
        huge[at..].iter_mut().take(4).for_each(|byte| *byte = 0xff);
        parse(&huge).ok();
    }
}

#[test]
fn arrays_in_arms_layouts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    let descr = |dtype: DType, array: &Array| {
        write(&path, dtype, array, Existing::Replace).unwrap();
        assert_eq!(&read(&path, dtype).unwrap(), array, "{dtype}");
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        let at = text.find("'descr': '").unwrap() + 10;
        (text[at..].split('\'').next().unwrap().to_owned(), text.contains("(16,)"), text.contains("(24,)"))
    };
    let bytes = |n: usize| (0..n).map(|i| (i * 37 % 256) as u8).collect::<Vec<_>>();
    let of = |dtype: DType, len: u64| Array {
        shape: vec![len],
        codes: bytes((len * u64::from(dtype.storage_bits().unwrap()) / 8) as usize),
    };
    // §7.1
    let rows = [
        (DType::I8, "|i1"),
        (DType::I16, "<i2"),
        (DType::I32, "<i4"),
        (DType::I48, "<i8"),
        (DType::I64, "<i8"),
        (DType::F32, "<f4"),
        (DType::F16, "<f2"),
        (DType::Bf16, "<V2"),
        (DType::F8E4M3Fn, "<V1"),
        (DType::F8E8M0, "<V1"),
        (DType::F8E5M2, "|u1"),
        (DType::MxInt8, "|u1"),
    ];
    for (dtype, expected) in rows {
        assert_eq!(descr(dtype, &of(dtype, 5)).0, expected, "{dtype}");
    }
    assert_eq!(descr(DType::F4E2M1, &of(DType::F4E2M1, 32)), ("|u1".into(), true, false));
    assert_eq!(descr(DType::F6E3M2, &of(DType::F6E3M2, 32)), ("|u1".into(), false, true));
    let bools = Array { shape: vec![3], codes: vec![0, 1, 1] };
    assert_eq!(descr(DType::Bool, &bools).0, "|b1");
    // An element that 48 bits do not hold, and elements of another kind.
    write(
        &path,
        DType::I64,
        &Array { shape: vec![2], codes: [1i64, 1 << 47].map(i64::to_le_bytes).concat() },
        Existing::Replace,
    )
    .unwrap();
    assert!(read(&path, DType::I48).unwrap_err().to_string().contains("element 1"));
    assert!(read(&path, DType::F32).is_err());
}
