//! Scales that are powers of two, of blocks of another size or with codes of another type there (`docs/spec/checkpoints.md
//! §8`): whether every block of a tensor has its scale, and which second scale goes with them.

use super::matching::{Side, of_codes};
use crate::checkpoint::dense::Quantised;
use crate::checkpoint::regrouped::Regrouped;
use crate::checkpoint::regrouper::{Alike, Blocks, Regrouper, Strip};
use crate::checkpoint::repacked::OfPlane;
use crate::error::Error;
use truecast_core::scaled::{
    BlockExponent, BlockScale, Code, Form, GlobalRule, Group, Layout, NoExponent, Packing, Part, Planes, Regrouping,
    Zero,
};
use truecast_io::folder::Folder;

/// How a tensor is made, as far as its layouts tell.
#[derive(Clone, Copy, Debug)]
pub(super) struct OfLayouts {
    how: Regrouping,
    blocks: Blocks,
    /// Codes that stay what they are.
    codes: Option<OfPlane>,
}

/// What a block has of the second scale, and where it begins.
type Seen = (i32, [u64; 3]);

/// `None` of layouts that are none of this kind: codes are integers, scales in tiles, blocks that overlap.
pub(super) fn of_layouts(from: &Layout, to: &Layout) -> Option<OfLayouts> {
    let (old, new) = (from.planes()?, to.planes()?);
    let (Code::Float(code), Code::Float(made), Code::Float(scales)) =
        (old.codes.code, new.codes.code, new.scales.plane.code)
    else {
        return None;
    };
    let is_plain = |layout: &Layout, planes: &Planes| {
        let Planes { form: Form::Times, group: Group::Grid, zero: Zero::None, refused: None, global, .. } = planes
        else {
            return false;
        };
        let of_all = |block: [u64; 2]| layout.matrices * layout.grid(block).iter().product::<u64>() == 1;
        !layout.transposed && global.is_none_or(|global| of_all(global.block))
    };
    let in_rows = new.scales.plane.packing == Packing::BYTES && to.kept == [to.rows, to.cols];
    let [rows, cols] = from.kept;
    let is_same_shape = cols == to.cols && from.matrices * rows == to.matrices * to.rows;
    let (a, b) = (old.scales.block, new.scales.block);
    let are_nested = (0..2).all(|i| a[i].is_multiple_of(b[i]) || b[i].is_multiple_of(a[i]));
    // Rows of all matrices are those of one where no block has two.
    let are_same_matrices = from.matrices == to.matrices || (a[0], b[0]) == (1, 1);
    let how = Regrouping { codes: [code, made], scales, global: new.global.map(|global| global.rule) };
    let is_one =
        is_plain(from, old) && is_plain(to, new) && in_rows && is_same_shape && are_nested && are_same_matrices;
    if !is_one || how.shifts().is_none() {
        return None;
    }
    let codes = match code == made {
        true => {
            let sides = [Side { layout: from, planes: old }, Side { layout: to, planes: new }];
            Some(of_codes(&sides, [old.codes, new.codes]).ok()?)
        }
        false if new.codes.packing == Packing::BYTES && new.codes.code.bits() == 8 => None,
        false => return None,
    };
    let blocks = Blocks { matrices: from.matrices, rows, cols, old: a, new: b };
    Some(OfLayouts { how, blocks, codes })
}

/// How a part of a tensor is made.
pub(super) enum OfPart {
    /// Of a plane of the source.
    Plane(OfPlane),
    Regrouped(Box<Regrouped>),
    /// The second scale.
    Known([u8; 4]),
}

/// A tensor whose every block has its scale.
pub(super) struct Settled {
    of: OfLayouts,
    regrouped: Regrouped,
}

impl Settled {
    /// The second scale, if readers take it for one of the other convention (§4.5.1).
    pub fn unlikely(&self) -> Option<f32> {
        let Alike { how, second, .. } = self.regrouped.alike;
        let scale = f32::from_bits(how.global(second)?);
        let is_likely = if how.global == Some(GlobalRule::Divide) { scale >= 1.0 } else { scale < 1.0 };
        (!is_likely).then_some(scale)
    }

    pub fn part(&self, part: Part) -> OfPart {
        let Regrouped { source, alike } = &self.regrouped;
        match (part, self.of.codes) {
            (Part::Global, _) => OfPart::Known(alike.how.global(alike.second).unwrap_or(0).to_le_bytes()),
            (Part::Codes, Some(of)) => OfPart::Plane(of),
            (part, _) => {
                OfPart::Regrouped(Box::new(Regrouped { source: source.clone(), alike: Alike { part, ..*alike } }))
            }
        }
    }
}

/// Reads the second scale, every scale and every code.
///
/// # Errors
/// Reading; what a block would need, as words.
pub(super) fn settled(folder: &Folder, source: &Quantised, of: OfLayouts) -> Result<Result<Settled, String>, Error> {
    let is_gone = source.parts.iter().any(|(_, stored)| folder.shards()[stored.shard].is_gone);
    let mut global = None;
    if let Some(of) = source.layout.planes().and_then(|planes| planes.global) {
        let stored = source.stored(Part::Global);
        let mut bytes = [0; 4];
        folder.shards()[stored.shard].source.read_at(stored.tensor, 0, &mut bytes)?;
        global = Some((of.rule, u32::from_le_bytes(bytes)));
    }
    let OfLayouts { how, blocks, .. } = of;
    let alike = Alike { part: Part::Codes, layout: source.layout, how, global, second: 0, blocks };
    let mut regrouped = Regrouped { source: source.clone(), alike };
    // Of a file that is gone that was known before.
    if is_gone {
        return Ok(Ok(Settled { of, regrouped }));
    }
    let (mut largest, mut smallest): (Option<Seen>, Option<Seen>) = (None, None);
    let mut wrong = None;
    regrouped.look(folder, |[matrix, first], regrouper, strip| {
        let [_, cols] = blocks.grid(blocks.new, strip.rows);
        for (at, found) in (0..).zip(regrouper.exponents_of(strip)) {
            let (row, col): (u64, u64) = (at / cols, at % cols);
            let place = [matrix, first + row * blocks.new[0], col * blocks.new[1]];
            match found {
                Err(why) => {
                    wrong = Some(refusal(regrouper, strip, (place, [row, col]), why));
                    return false;
                }
                Ok(BlockExponent { exponent: Some(e), is_zero: false }) => {
                    largest = largest.filter(|of| of.0 >= e).or(Some((e, place)));
                    smallest = smallest.filter(|of| of.0 <= e).or(Some((e, place)));
                }
                Ok(_) => {}
            }
        }
        true
    })?;
    if let Some(why) = wrong {
        return Ok(Err(why));
    }
    regrouped.alike.second = how.second(largest.map_or(0, |(e, _)| e));
    let (exponents, second) = (how.exponents(), regrouped.alike.second);
    if let (Some((top, above)), Some((low, below))) = (largest, smallest) {
        if low - second < *exponents.start() {
            return Ok(Err(format!(
                "{} needs the scale 2^{low}, and that at {} 2^{top}; they are {} binary orders apart, and scales of {} with \
                 one second scale span {}",
                Place(below, blocks),
                At(above, blocks),
                top - low,
                how.scales,
                exponents.end() - exponents.start(),
            )));
        }
        if top - second > *exponents.end() {
            return Ok(Err(format!(
                "{} needs the scale 2^{top}, beyond what scales of {} and a second one of f32 make",
                Place(above, blocks),
                how.scales
            )));
        }
    }
    Ok(Ok(Settled { of, regrouped }))
}

/// Why a block of the result has no scale. It is at a place, the one of that number in the strip.
fn refusal(regrouper: &Regrouper, strip: &Strip<'_>, (place, at): ([u64; 3], [u64; 2]), why: NoExponent) -> String {
    let Alike { blocks, how, .. } = regrouper.alike();
    let (shifts, exponents) = (regrouper.shifts(), how.exponents());
    match why {
        NoExponent::NoPower => {
            let is_wrong = |at: &[u64; 2]| match strip.of(blocks, *at) {
                (BlockScale::Power(_), _) => false,
                (BlockScale::Number, is_zero) => !is_zero,
                (BlockScale::Other, _) => true,
            };
            // The first block of the source that is wrong.
            let found = blocks.sources(at, strip.rows).find(is_wrong).unwrap_or(at);
            let first = place[1] - at[0] * blocks.new[0];
            let place = [place[0], first + found[0] * blocks.old[0], found[1] * blocks.old[1]];
            format!("the scale of {} is no power of two", Place(place, blocks))
        }
        NoExponent::Apart { smallest, largest } => {
            let (apart, most) = (largest - smallest, shifts.end() - shifts.start());
            let [rows, cols] = blocks.new;
            if apart > most {
                let than = if most == 0 { "equal ones".to_string() } else { format!("{most} at most") };
                return format!(
                    "{}, of {rows} x {cols} elements, has the scales 2^{smallest} and 2^{largest}, {apart} binary orders \
                     apart; one scale there serves {than}",
                    Place(place, blocks)
                );
            }
            format!(
                "{} has scales of 2^{smallest} to 2^{largest}, and those of {} there are 2^{} to 2^{}",
                Place(place, blocks),
                how.scales,
                exponents.start(),
                exponents.end()
            )
        }
    }
}

/// An element of the tensor.
struct At([u64; 3], Blocks);

impl std::fmt::Display for At {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let At([matrix, row, col], blocks) = self;
        match blocks.matrices {
            1 => write!(f, "[{row}, {col}]"),
            _ => write!(f, "[{matrix}, {row}, {col}]"),
        }
    }
}

/// The block that begins with an element.
struct Place([u64; 3], Blocks);

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the block at {}", At(self.0, self.1))
    }
}
