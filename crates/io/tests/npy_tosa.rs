//! The arrays of Arm's tools for TOSA: `docs/spec/tosa.md §7`.

use truecast_core::DType;
use truecast_io::Existing;
use truecast_io::npy::tosa::{Array, read, write};

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
    // An element of more than 48 bits, and elements of another kind.
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
