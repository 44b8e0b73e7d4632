//! Access to single elements of buffers, against bit-by-bit shifts. Every type, layout and position occurs.

use truecast_core::{DType, Layout};
use truecast_kernel::{CastError, Elements, ElementsMut};

/// `bits` bits from bit `first`.
fn bits_of(bytes: &[u8], first: usize, bits: usize) -> u64 {
    (0..bits).map(|b| u64::from(bytes[(first + b) / 8] >> ((first + b) % 8) & 1) << b).sum()
}

#[test]
fn elements_are_read_and_written_at_any_bit() {
    for dtype in DType::ALL.into_iter().filter(|dtype| *dtype != DType::String) {
        for layout in [Layout::Packed, Layout::Bytes] {
            let bits = dtype.bits_in(layout).unwrap() as usize;
            let n = 19;
            let mut bytes: Vec<u8> = (0..(n * bits).div_ceil(8)).map(|i| (i * 151 + 43) as u8).collect();
            let storage = |bytes: &[u8]| -> Vec<u64> { (0..n).map(|i| bits_of(bytes, i * bits, bits)).collect() };
            let expected = storage(&bytes);
            let codes = Elements::with_layout(dtype, layout, n, &bytes[..]).unwrap();
            assert_eq!((0..n).map(|i| codes.storage(i)).collect::<Vec<_>>(), expected, "{dtype} {layout:?}");
            assert_eq!(
                (0..n).map(|i| codes.get(i)).collect::<Vec<_>>(),
                expected.iter().map(|s| dtype.code_of_storage(*s)).collect::<Vec<_>>(),
                "{dtype} {layout:?}"
            );
            for i in 0..n {
                let mut wanted = storage(&bytes);
                let code = dtype.code_of_storage(!wanted[i]);
                wanted[i] = dtype.storage_of_code(code);
                ElementsMut::with_layout(dtype, layout, n, &mut bytes[..]).unwrap().set(i, code);
                assert_eq!(storage(&bytes), wanted, "{dtype} {layout:?} element {i}");
            }
        }
    }
}

#[test]
#[should_panic(expected = "element 3 of 3")]
fn an_element_beyond_the_end_is_a_panic() {
    Elements::new(DType::I4, 3, &[0, 0][..]).unwrap().get(3);
}

#[test]
fn more_elements_than_any_buffer_has() {
    for len in [usize::MAX, usize::MAX / 4 + 1] {
        let error = Elements::new(DType::F32, len, &[]).unwrap_err();
        assert!(matches!(error, CastError::Length { got: 0, .. }), "{error}");
    }
    assert_eq!(Elements::new(DType::String, 1, &[]).unwrap_err(), CastError::Text);
}
