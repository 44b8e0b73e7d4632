//! Codes and scales that are carried over to another scheme as they are (`docs/spec/checkpoints.md §8`): which tensor of the
//! source becomes which of the result, or why none does. Nothing is quantised anew.

use super::dense::Quantised;
use super::marks::to_f32;
use super::shard::{Origin, Work};
use super::stored::Stored;
use crate::convert::planned::Planned;
use crate::error::Error;
use crate::select::writing::Relayout;
use truecast_core::DType;
use truecast_core::scaled::{GlobalRule, Group, Layout, Part, Planes};
use truecast_io::folder::Folder;
use truecast_schemes::{Content, Scheme, Target};

/// A quantised tensor that has the same values in the result.
#[derive(Clone, Debug)]
pub(super) struct Relaid {
    /// In the source.
    pub quantised: Quantised,
    /// In the result, with the names of its tensors and the file that holds them.
    pub layout: Layout,
    pub parts: Vec<(Part, String)>,
    pub shard: usize,
    /// Its second scale is the nearest f32, and its values are not quite the same.
    pub is_rounded: bool,
}

/// What becomes of a quantised tensor that is carried over.
///
/// # Errors
/// What the other scheme cannot hold; reading of the second scale.
pub(super) fn relaid(
    folder: &Folder,
    (quantised, from): (Quantised, Scheme),
    (target, to): (Target, Scheme),
    how: Relayout,
) -> Result<(Vec<Work>, Relaid), Error> {
    let refused = |why| {
        let (tensor, from, to) = (quantised.name.clone(), Box::new(from), Box::new(to));
        Error::scheme(folder.path(), truecast_schemes::Error::NoRelayout { tensor, from, to, why })
    };
    let planes = check(&quantised.layout, &target.layout).map_err(refused)?;
    let (mut works, mut parts, mut is_rounded) = (Vec::new(), Vec::new(), false);
    for output in &target.tensors {
        let copied =
            |stored: Stored| (folder.shards()[stored.shard].source.tensors()[stored.tensor].name.clone(), stored);
        let (name, origin) = match &output.content {
            Content::Bytes(bytes) => (output.tensor.name.clone(), Origin::Bytes(bytes.clone())),
            Content::Part(part) => {
                parts.push((*part, output.tensor.name.clone()));
                let (name, stored) = copied(quantised.stored(*part));
                let rules = planes.map(|planes| planes.global.map(|global| global.rule));
                match (part, rules) {
                    (Part::Global, [Some(rule), Some(other)]) if rule != other => {
                        let mut bytes = [0; 4];
                        folder.shards()[stored.shard].source.read_at(stored.tensor, 0, &mut bytes)?;
                        let (inverse, is_exact) = inverse(rule, f32::from_le_bytes(bytes)).map_err(refused)?;
                        is_rounded = !is_exact;
                        (name, Origin::Bytes(inverse.to_le_bytes().to_vec()))
                    }
                    _ => (name, Origin::Stored(stored)),
                }
            }
        };
        let (from, src_layout) = (output.tensor.dtype, output.tensor.layout);
        let planned = Planned { name, target: output.tensor.clone(), from, src_layout, cast: None, kept_by: None };
        works.push(Work { planned, origin });
    }
    if is_rounded && how == Relayout::Exact {
        return Err(refused(
            "its second scale is divided by there, and no f32 gives the same values; --relayout lossy takes the nearest",
        ));
    }
    let shard = quantised.stored(Part::Codes).shard;
    Ok((works, Relaid { layout: target.layout, quantised, parts, shard, is_rounded }))
}

/// Whether codes and scales may be carried over byte for byte, the second scale aside.
fn check<'a>(from: &'a Layout, to: &'a Layout) -> Result<[&'a Planes; 2], &'static str> {
    let (Some(old), Some(new)) = (from.planes(), to.planes()) else {
        return Err("its codes and scales lie in blocks of one tensor");
    };
    let require = |holds: bool, why| if holds { Ok(()) } else { Err(why) };
    require(!from.transposed && !to.transposed, "its rows are columns of what is stored")?;
    let is_whole = |layout: &Layout| layout.kept == [layout.rows, layout.cols];
    require(is_whole(from) && is_whole(to), "one of them is filled up with zeros")?;
    require(old.codes.code == new.codes.code, "its codes are of another type there")?;
    require(old.codes.packing == new.codes.packing, "its codes are packed in another order there")?;
    require(old.zero == new.zero, "its zero points are others there, or stored otherwise")?;
    let is_alike = old.form == new.form && [old.group, new.group] == [Group::Grid; 2] && old.refused == new.refused;
    require(is_alike, "its values are made of codes and scales in another way there")?;
    require(old.scales.plane.code == new.scales.plane.code, "its scales are of another type there")?;
    require(old.scales.plane.packing == new.scales.plane.packing, "its scales lie in another order there")?;
    // Rows of a stack may be those of one matrix: their bytes are the same.
    let rows = |layout: &Layout| layout.matrices * layout.rows;
    require(from.cols == to.cols && rows(from) == rows(to), "it has other rows there")?;
    let block = |layout: &Layout, planes: &Planes| {
        let [rows, cols] = planes.scales.block;
        let [down, across] = layout.grid(planes.scales.block);
        match layout.matrices * down * across {
            1 => [u64::MAX; 3],
            _ if rows == 1 => [1, cols.min(layout.cols), 1],
            _ => [rows.min(layout.rows), cols.min(layout.cols), layout.rows],
        }
    };
    require(block(from, old) == block(to, new), "its scales are of other blocks there")?;
    let is_one = |layout: &Layout, planes: &Planes| match planes.global {
        Some(global) => layout.matrices * layout.grid(global.block).iter().product::<u64>() == 1,
        None => true,
    };
    require(old.global.is_some() == new.global.is_some(), "only one of them has a second scale")?;
    require(is_one(from, old) && is_one(to, new), "it has a second scale for each matrix")?;
    Ok([old, new])
}

/// The second scale of the other rule, and whether every block scale gives the same product or quotient with it.
fn inverse(rule: GlobalRule, scale: f32) -> Result<(f32, bool), &'static str> {
    let inverse = 1.0 / scale;
    if rule == GlobalRule::Amax || !scale.is_normal() || !inverse.is_normal() {
        return Err("its second scale has no inverse, or another meaning");
    }
    let is_same = |code: u64| {
        let value = to_f32(DType::F8E4M3Fn, code);
        let (scale, other) = match rule {
            GlobalRule::Times => (value * scale, value / inverse),
            _ => (value / scale, value * inverse),
        };
        scale.to_bits() == other.to_bits()
    };
    // Without sign; 7F is NaN.
    Ok((inverse, 1.0 / inverse == scale && (0..0x7f).all(is_same)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Powers of two have an inverse that gives the same products; few others do.
    #[test]
    fn second_scales_are_inverted() {
        for scale in [1.0, 0.25, 2f32.powi(-20), 2f32.powi(40)] {
            assert_eq!(inverse(GlobalRule::Times, scale), Ok((1.0 / scale, true)));
            assert_eq!(inverse(GlobalRule::Divide, scale), Ok((1.0 / scale, true)));
        }
        assert_eq!(inverse(GlobalRule::Times, 0.1), Ok((1.0 / 0.1, false)));
        assert_eq!(inverse(GlobalRule::Divide, 3.0), Ok((1.0 / 3.0, false)));
        for scale in [0.0, f32::INFINITY, f32::NAN, 1e-42] {
            assert!(inverse(GlobalRule::Times, scale).is_err());
        }
        assert!(inverse(GlobalRule::Amax, 2.0).is_err());
    }
}
