//! Treats a stack of small matrices as one matrix with the same bytes, to avoid overhead per matrix.

use truecast_core::scaled::{Coding, Group, Layout, Packing, Part, Plane, Planes, Scales};

/// Largest matrix, in elements, that is joined with others.
const SMALL: u64 = 65_536;

/// Parts with an entry per element or per block.
pub(crate) const ON_GRID: [Part; 3] = [Part::Codes, Part::Scales, Part::Zeros];

/// Equivalent layout that has equal bytes. Matrices with one scale become rows. If rows have no common scale, all rows
/// become rows of one matrix.
pub(crate) fn flat(layout: &Layout) -> Layout {
    let Layout { matrices, rows, cols, kept, transposed, coding } = *layout;
    let planes = match coding {
        Coding::Planes(planes) if planes.group == Group::Grid && planes.global.is_none() => planes,
        _ => return *layout,
    };
    if matrices <= 1 || rows * cols > SMALL || kept != [rows, cols] || transposed {
        return *layout;
    }
    let block = planes.scales.block;
    let grid = layout.grid(block);
    let flat = if grid == [1, 1] && is_stream(&planes.codes, rows * cols) {
        let scales = Scales { block: [1, rows * cols], ..planes.scales };
        Layout::new(1, [matrices, rows * cols], Coding::Planes(Planes { scales, ..planes }))
    } else if block[0] == 1 {
        Layout::new(1, [matrices * rows, cols], coding)
    } else {
        return *layout;
    };
    if are_planes_in_rows(layout) && flat.check().is_ok() { flat } else { *layout }
}

/// True if entries fill whole bytes without row padding.
fn is_stream(plane: &Plane, cols: u64) -> bool {
    plane.packing == Packing::BYTES && plane.code.bits() == 8 && plane.bytes([1, cols]) == Some(cols)
}

pub(crate) fn lies_in_rows(plane: &Plane, [rows, cols]: [u64; 2]) -> bool {
    let in_rows = matches!(plane.packing, Packing::Rows { .. } | Packing::HighFirst | Packing::Padded);
    let row = plane.bytes([1, cols]).and_then(|row| row.checked_mul(rows));
    in_rows && row == plane.bytes([rows, cols])
}

/// Smallest number of rows that can be joined to a contiguous range of bytes.
pub(crate) fn rows_together(plane: &Plane, rows: u64) -> u64 {
    match plane.packing {
        Packing::Rows { .. } | Packing::HighFirst | Packing::Padded | Packing::Awq => 1,
        Packing::AwqColumns => 8,
        Packing::PaddedColumns => u64::from(32 / plane.code.bits()),
        Packing::Columns { word } => word.into(),
        Packing::Swizzled => 128,
        _ => rows.max(1),
    }
}

/// True if codes, scales and zero points have contiguous rows.
pub(crate) fn are_planes_in_rows(layout: &Layout) -> bool {
    let mut planes = ON_GRID.into_iter().filter_map(|part| layout.plane(part));
    planes.all(|(plane, block)| lies_in_rows(&plane, layout.grid(block)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use truecast_core::DType;
    use truecast_core::scaled::{Code, Parts, Zero};

    #[test]
    fn rows_follow_each_other() {
        let (mut seen, [rows, cols]) = (0, [384, 24]);
        for (packing, bits) in Packing::ALL.into_iter().flat_map(|packing| (1..=8).map(move |bits| (packing, bits))) {
            let plane = Plane { code: Code::unsigned(bits), packing };
            let Some(all) = plane.bytes([rows, cols]) else { continue };
            let step = rows_together(&plane, rows) as usize;
            for end in (step as u64..=rows).step_by(step).filter(|end| *end < rows) {
                let bytes = plane.bytes([end, cols]).unwrap();
                let bit = |row, col, n| packing.bit(bits.into(), [rows, cols], [row, col], n) / 8;
                let is_before = |row| (0..cols).all(|col| (0..bits.into()).all(|n| bit(row, col, n) < bytes));
                let is_behind = |row| (0..cols).all(|col| (0..bits.into()).all(|n| bit(row, col, n) >= bytes));
                assert!(bytes < all && is_before(end - 1) && is_behind(end), "{plane:?} {end}");
                seen += 1;
            }
        }
        assert!(seen > 1000, "{seen}");
    }

    #[test]
    fn values_stay_the_same() {
        let bytes: Vec<u8> = (0..4096u32).map(|i| (i * 37 % 251) as u8 & 0x77).collect();
        let float = Plane::of(DType::F8E4M3Fn);
        let nibbles = Plane { code: Code::unsigned(4), packing: Packing::WORDS };
        let of = |codes, block| Planes::times(codes, Plane::of(DType::F32), block);
        let zeros = Zero::Grid { plane: Plane { code: Code::signed(8), packing: Packing::BYTES }, plus: 0 };
        let cases = [
            ([7, 3, 5], of(float, [128, 128]), [1, 7, 15]),
            ([7, 3, 5], of(float, [1, 5]), [1, 21, 5]),
            ([7, 1, 1], of(float, [1, 1]), [1, 7, 1]),
            ([7, 3, 5], Planes { zero: zeros, ..of(Plane { code: Code::signed(8), ..float }, [1, 5]) }, [1, 21, 5]),
            ([7, 3, 16], of(nibbles, [1, 8]), [1, 21, 16]),
            ([7, 3, 5], of(nibbles, [128, 128]), [7, 3, 5]),
            ([7, 3, 5], of(float, [2, 5]), [7, 3, 5]),
        ];
        for ([matrices, rows, cols], planes, expected) in cases {
            let layout = Layout::new(matrices, [rows, cols], Coding::Planes(planes));
            let flat = flat(&layout);
            assert_eq!([flat.matrices, flat.rows, flat.cols], expected, "{layout:?}");
            let part = |part| &bytes[..layout.part_bytes(part).unwrap().unwrap_or(0) as usize];
            use truecast_core::scaled::Part;
            for of in Part::ALL {
                assert_eq!(layout.part_bytes(of).unwrap(), flat.part_bytes(of).unwrap());
            }
            let parts = Parts {
                codes: part(Part::Codes),
                scales: part(Part::Scales),
                zeros: part(Part::Zeros),
                ..Parts::default()
            };
            for index in 0..layout.elements() {
                assert_eq!(layout.value(&parts, index), flat.value(&parts, index), "{layout:?}");
            }
        }
    }
}
