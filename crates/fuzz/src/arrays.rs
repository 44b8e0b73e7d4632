//! Files with one array of an expected type, as checks and runs of models read them. The first byte selects the type.

use truecast_core::DType;
use truecast_kernel::CastOptions;
use truecast_models::array;

use crate::accepted;
use crate::input_file::InputFile;

/// Types with special notations in `.npy` files.
const TYPES: [DType; 9] = {
    use DType::*;
    [I4, F6E2M3, U8, F8E5M2, Bf16, I48, F32, Bool, String]
};

thread_local! {
    static ARRAY: InputFile = InputFile::new("a.npy");
    static MESSAGE: InputFile = InputFile::new("a.pb");
}

/// A `.npy` file, or a TensorProto message if the first byte is odd.
pub fn npy_array(input: &[u8]) {
    let Some((chosen, bytes)) = input.split_first() else { return };
    let dtype = TYPES[usize::from(chosen >> 1) % TYPES.len()];
    let input = if chosen & 1 == 0 { &ARRAY } else { &MESSAGE };
    input.with(|file| {
        let tensor = accepted(array::read(file.write(bytes), dtype, &CastOptions::default()));
        assert!(tensor.is_none_or(|tensor| tensor.dtype == dtype && tensor.is_consistent()));
    });
}

/// An array in the form that Arm's tools write.
pub fn npy_tosa(input: &[u8]) {
    use truecast_io::npy::tosa;
    let Some((chosen, bytes)) = input.split_first() else { return };
    let dtype = TYPES[usize::from(*chosen) % (TYPES.len() - 1)];
    ARRAY.with(|file| {
        let Some(array) = accepted(tosa::read(file.write(bytes), dtype)) else { return };
        let elements = array.shape.iter().product();
        assert_eq!(dtype.bytes_in(truecast_core::Layout::Packed, elements), Some(array.codes.len() as u64));
    });
}
