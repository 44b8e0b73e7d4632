//! Mapping between two layouts of a tensor (`docs/spec/checkpoints.md §8`), and the conditions under which the values
//! stay equal.

use crate::files::convert::quantize::flat::lies_in_rows;
use crate::files::convert::relayout::index::Index;
use truecast_core::DType;
use truecast_core::scaled::{Change, Code, Form, GlobalRule, Group, Layout, Packing, Plane, Planes, Repacking, Zero};

#[derive(Clone, Copy, Debug)]
pub(crate) struct PlaneMap {
    pub codes: PlaneMapping,
    pub scales: PlaneMapping,
    /// Zero points, if both layouts have them.
    pub zeros: Option<PlaneMapping>,
    /// Zero points that the target lacks, minus the expected zero point; all differences must be 0.
    pub midpoint: Option<PlaneMapping>,
    /// Rules of the global scales in both layouts.
    pub globals: Option<[GlobalRule; 2]>,
    /// Group index of rows or columns; must equal division by the group size.
    pub index: Option<Index>,
}

pub(crate) struct LayoutSide<'a> {
    pub layout: &'a Layout,
    pub planes: &'a Planes,
}

/// A plane of the source, and the plane of the result to which it corresponds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlaneMapping {
    pub how: Repacking,
    pub matrices: u64,
    /// True if every entry has a code in the result.
    pub is_total: bool,
}

impl PlaneMapping {
    /// True if both planes have the same bytes.
    pub fn is_same(&self) -> bool {
        let Repacking { from, from_shape, to, to_shape, kept, transposed, change } = self.how;
        let cols = [1, from_shape[1]];
        let are_rows = |a, b| matches!((a, b), (Packing::Rows { .. }, Packing::Rows { .. }));
        let is_packed_alike =
            from.packing == to.packing || are_rows(from.packing, to.packing) && from.bytes(cols) == to.bytes(cols);
        !transposed && change == Change::None && from_shape == to_shape && kept == to_shape && is_packed_alike
    }
}

pub(crate) type Why = &'static str;

fn require(holds: bool, why: Why) -> Result<(), Why> {
    if holds { Ok(()) } else { Err(why) }
}

/// Maps each part to a part of the other layout. All values stay equal.
pub(crate) fn matching(from: &Layout, to: &Layout) -> Result<PlaneMap, Why> {
    let (Some(old), Some(new)) = (from.planes(), to.planes()) else {
        return Err("its codes and scales are in blocks of one tensor");
    };
    let sides = [LayoutSide { layout: from, planes: old }, LayoutSide { layout: to, planes: new }];
    let cols = from.out()[1];
    let rows_of = |layout: &Layout| layout.matrices * layout.out()[0];
    require(cols == to.out()[1] && rows_of(from) == rows_of(to), "it has other rows in the target")?;
    let add = codes(old, new)?;
    require(old.refused == new.refused, "one of its codes has a value in only one of the two schemes")?;
    let is_alike = old.form == new.form && new.form != Form::Affine;
    require(is_alike, "the target computes values from codes and scales differently")?;
    require(sides[0].blocks() == sides[1].blocks(), "its scales cover other blocks in the target")?;
    require(new.group == Group::Grid, "the target's groups have an index")?;
    let change = match old.codes.code {
        Code::Int(_) if add != 0 || old.codes.code != new.codes.code => Change::Integer { add, plus: [0, 0] },
        _ => Change::None,
    };
    let unit = [[1, 1]; 2];
    let of_codes = of_plane(&sides, [old.codes, new.codes], unit, PlaneChange { change, is_total: true })?;
    let blocks = [old.scales.block, new.scales.block];
    let planes = [old.scales.plane, new.scales.plane];
    let of_scales = of_plane(&sides, planes, blocks, scales(planes)?)?;
    let partial = |change| PlaneChange { change, is_total: false };
    let is_float = |zero| matches!(zero, Zero::Grid { plane: Plane { code: Code::Float(_), .. }, .. });
    require(![old.zero, new.zero].into_iter().any(is_float), "its zero points are not integers")?;
    let (mut zeros, mut midpoint) = (None, None);
    match (old.zero, new.zero) {
        (Zero::Grid { plane, plus }, Zero::Grid { plane: other, plus: then }) => {
            let change = match (add, plus == then, plane.code == other.code) {
                (0, true, true) => Change::None,
                _ => Change::Integer { add, plus: [plus, then] },
            };
            zeros = Some(of_plane(&sides, [plane, other], blocks, partial(change))?);
        }
        (Zero::Grid { plane, plus }, zero) => {
            // Every zero point must equal the expected zero point.
            let expected = constant(zero) - i64::from(add);
            let difference = Plane { code: Code::signed(8), packing: Packing::BYTES };
            let change = Change::Integer { add: -expected as i32, plus: [plus, 0] };
            let one = LayoutSide { layout: from, planes: old };
            let same = [LayoutSide { layout: from, planes: old }, one];
            midpoint = Some(of_plane(&same, [plane, difference], [blocks[0]; 2], partial(change))?);
        }
        (_, Zero::Grid { .. }) => return Err("it has no zero points, but the target has; give symmetric=true"),
        _ => {}
    }
    let index = match old.group {
        Group::Grid => None,
        Group::OfRow => Some(Index { len: from.rows, group: old.scales.block[0] }),
        Group::OfColumn => Some(Index { len: from.cols, group: old.scales.block[1] }),
    };
    let is_one = |side: &LayoutSide<'_>| match side.planes.global {
        Some(global) => side.layout.matrices * side.layout.grid(global.block).iter().product::<u64>() == 1,
        None => true,
    };
    require(old.global.is_some() == new.global.is_some(), "only one of the two schemes has a global scale")?;
    require(sides.iter().all(is_one), "it has a global scale for each matrix")?;
    let globals = old.global.zip(new.global).map(|(old, new)| [old.rule, new.rule]);
    Ok(PlaneMap { codes: of_codes, scales: of_scales, zeros, midpoint, globals, index })
}

/// Offset that converts integer codes; an error if a code has no counterpart.
fn codes(old: &Planes, new: &Planes) -> Result<i32, Why> {
    let other = "its codes have another type in the target";
    let (Code::Int(from), Code::Int(to)) = (old.codes.code, new.codes.code) else {
        return if old.codes.code == new.codes.code { Ok(0) } else { Err(other) };
    };
    let middle = |f: truecast_core::IntFormat| if f.signed { 0 } else { 1i64 << (f.bits - 1) };
    let are_constant = !matches!(old.zero, Zero::Grid { .. }) && !matches!(new.zero, Zero::Grid { .. });
    let add = if are_constant { constant(new.zero) - constant(old.zero) } else { middle(to) - middle(from) };
    let add = i32::try_from(add).map_err(|_| other)?;
    let change = Change::Integer { add, plus: [0, 0] };
    require((0..1 << from.bits).all(|code| change.code([old.codes, new.codes], code).is_some()), other)?;
    Ok(add)
}

fn constant(zero: Zero) -> i64 {
    match zero {
        Zero::Constant(zero) => zero.into(),
        _ => 0,
    }
}

#[derive(Clone, Copy)]
struct PlaneChange {
    change: Change,
    /// True if every code has an equal counterpart.
    is_total: bool,
}

fn scales([old, new]: [Plane; 2]) -> Result<PlaneChange, Why> {
    let (Code::Float(from), Code::Float(to)) = (old.code, new.code) else {
        return Err("its scales have another type in the target");
    };
    let is_wider = matches!((from, to), (_, DType::F32) | (DType::F8E8M0, DType::Bf16));
    let change = if from == to { Change::None } else { Change::Float };
    Ok(PlaneChange { change, is_total: from == to || is_wider })
}

impl LayoutSide<'_> {
    /// Rows per scale, columns per scale, and rows of the matrix if several rows share a scale.
    fn blocks(&self) -> [u64; 3] {
        let Layout { matrices, transposed, .. } = *self.layout;
        let [mut block, mut grid] = [self.planes.scales.block, self.grid(self.planes.scales.block)];
        if transposed {
            block.reverse();
            grid.reverse();
        }
        let [rows, cols] = self.layout.out();
        match matrices * grid[0] * grid[1] {
            1 => [u64::MAX; 3],
            _ if block[0] == 1 => [1, block[1].min(cols), 1],
            _ => [block[0].min(rows), block[1].min(cols), rows],
        }
    }

    /// Size `[rows, cols]` of the stored block grid. Padding does not count.
    fn grid(&self, block: [u64; 2]) -> [u64; 2] {
        let [rows, cols] = self.layout.kept;
        [rows.div_ceil(block[0]), cols.div_ceil(block[1])]
    }
}

/// Maps a plane. `blocks` has the size of its blocks in each of the two layouts.
fn of_plane(
    [from, to]: &[LayoutSide<'_>; 2],
    [old, new]: [Plane; 2],
    blocks: [[u64; 2]; 2],
    PlaneChange { change, is_total }: PlaneChange,
) -> Result<PlaneMapping, Why> {
    let (from_shape, to_shape) = (from.layout.grid(blocks[0]), to.layout.grid(blocks[1]));
    let transposed = from.layout.transposed != to.layout.transposed;
    let mut how = Repacking { from: old, from_shape, to: new, to_shape, kept: to.grid(blocks[1]), transposed, change };
    let of_rows = |side: &LayoutSide<'_>, plane: &Plane, shape: [u64; 2], block| {
        let rows = [shape[0] * side.layout.matrices, shape[1]];
        (lies_in_rows(plane, shape) && side.grid(block) == shape).then_some(rows)
    };
    let flat = of_rows(from, &old, from_shape, blocks[0]).zip(of_rows(to, &new, to_shape, blocks[1]));
    let mut matrices = from.layout.matrices;
    match flat {
        // The rows of all matrices are treated as rows of one matrix.
        Some((from_rows, to_rows)) if !transposed && from_rows == to_rows => {
            (how.from_shape, how.to_shape, how.kept, matrices) = (from_rows, to_rows, to_rows, 1);
        }
        _ => require(matrices == to.layout.matrices, "the target stores its matrices as one, in another order")?,
    }
    Ok(PlaneMapping { how, matrices, is_total })
}
