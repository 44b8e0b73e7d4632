//! What names and grids of scales suggest where nothing declares a scheme: for messages, never for values.

use truecast_core::DType;

use crate::checkpoint::Index;
use crate::scheme::Family;

/// Sides of blocks that are in use.
const SIDES: [u64; 7] = [16, 32, 64, 128, 256, 512, 1024];

/// The scheme that FP8 codes and scales beside them look like, as it is typed; `None` if several do, or none.
///
/// Every pair of this name counts: a small tensor fits many blocks, all tensors together seldom more than one.
pub(super) fn fp8(index: &Index<'_>, beside: &str) -> Option<String> {
    let numbers = 0..index.len();
    let pairs = numbers.filter_map(|number| {
        let scales = index.tensor(number);
        let codes = index.tensor(index.find(scales.name.strip_suffix(beside)?)?);
        (codes.dtype == DType::F8E4M3Fn).then_some((&*codes.shape, scales))
    });
    let pairs: Vec<_> = pairs.collect();
    let [.., (_, first)] = pairs.as_slice() else { return None };
    let all = |fits: &dyn Fn(&[u64], &[u64]) -> bool| pairs.iter().all(|(codes, scales)| fits(codes, &scales.shape));
    if matches!(first.dtype, DType::U8 | DType::F8E8M0) && all(&|codes, scales| grid(codes, scales) == Some([1, 32])) {
        return Some(Family::Mxfp8.name().to_owned());
    }
    if all(&|_, scales| scales.iter().product::<u64>() == 1) {
        return Some(Family::Fp8Tensor.name().to_owned());
    }
    if all(&|codes, scales| matches!((codes, scales), ([rows, _], [n] | [n, 1]) if n == rows)) {
        return Some(Family::Fp8Channel.name().to_owned());
    }
    let fits = |[rows, cols]: [u64; 2]| {
        all(&|codes, scales| match (codes, scales) {
            ([lead @ .., m, k], [of @ .., a, b]) => lead == of && [m.div_ceil(rows), k.div_ceil(cols)] == [*a, *b],
            _ => false,
        })
    };
    let sides = || [1].into_iter().chain(SIDES);
    let blocks = sides().flat_map(|rows| SIDES.map(|cols| [rows, cols])).filter(|block| fits(*block));
    match blocks.collect::<Vec<_>>().as_slice() {
        [[rows, cols]] => Some(format!("{}:{rows}x{cols}", Family::Fp8Block.name())),
        _ => None,
    }
}

/// The block of a grid that divides its matrix.
fn grid(codes: &[u64], scales: &[u64]) -> Option<[u64; 2]> {
    let ([.., m, k], [.., a, b]) = (codes, scales) else { return None };
    Some([m.checked_div(*a)?, k.checked_div(*b)?])
}
