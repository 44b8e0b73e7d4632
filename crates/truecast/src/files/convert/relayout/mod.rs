//! Carries codes and scales over to another scheme without quantizing again (`docs/spec/checkpoints.md §8`). Parts with
//! equal bytes are copied; other parts are repacked (`job::transcode`).

mod index;
mod plane_map;

use crate::files::convert::dequantize::dequantizer::Quantized;
use crate::files::convert::error::of_others;
use crate::files::convert::job::{Job, Known, PlaneOperation, TensorJob, Transcode};
use crate::files::convert::planned::Planned;
use crate::files::convert::quantize::code::{little_endian, to_f32};
use crate::files::error::{Cause, Error};
use crate::files::select::quantize_options::Relayout;
use index::is_trivial;
use plane_map::{PlaneMap, PlaneMapping, matching};
use std::path::Path;
use std::sync::Arc;
use truecast_core::DType;
use truecast_core::scaled::{GlobalRule, Layout, Part};
use truecast_io::Escaped;
use truecast_io::folder::Folder;
use truecast_schemes::{Content, NO_EQUAL_GLOBAL_SCALE, Output, Scheme, Target};

/// A quantized tensor with the same values in source and result.
#[derive(Clone, Debug)]
pub(crate) struct Relaid {
    pub quantized: Quantized,
    /// Layout of the result. `parts` has the names of its tensors, and `shard` is the file that holds them.
    pub layout: Layout,
    pub parts: Vec<(Part, String)>,
    pub shard: usize,
    /// True if the global scale was rounded to f32, which changes values slightly.
    pub is_rounded: bool,
}

/// Maps a quantized tensor to the other scheme.
///
/// # Errors
/// A layout or value that the other scheme does not support; an unreadable part.
pub(crate) fn relaid(
    folder: &Folder,
    quantized: Quantized,
    from: Scheme,
    target: Target,
    to: Scheme,
    how: Relayout,
) -> Result<(Vec<TensorJob>, Relaid), Error> {
    let refused = |why: &'static str| {
        let (tensor, from, to) = (quantized.name.clone(), Box::new(from), Box::new(to));
        Error::scheme(folder.path(), truecast_schemes::Error::NoRelayout { tensor: tensor.to_string(), from, to, why })
    };
    let repacked = |part, of: &PlaneMapping| transcode(folder, &quantized, part, of);
    let matching = matching(&quantized.layout, &target.layout).map_err(refused)?;
    if let Some(index) = &matching.index
        && !is_trivial(folder, quantized.stored(Part::Index), index)?
    {
        return Err(refused("an index assigns its columns to groups, and the target does not store the index"));
    }
    if let Some(of) = &matching.midpoint
        && !repacked(Part::Zeros, of)?.all_results_satisfy(folder, |bytes| bytes.iter().all(|byte| *byte == 0))?
    {
        return Err(refused("one of its zero points is not the midpoint; symmetric=false keeps them"));
    }
    let mut is_rounded = false;
    let made = |part| {
        let PlaneMap { codes, scales, zeros, globals, .. } = &matching;
        let stored = quantized.stored(part);
        if let (Part::Global, Some([rule, other])) = (part, globals)
            && rule != other
        {
            let scale = f32::from_bits(little_endian(&stored.read(folder, 0..4)?) as u32);
            let Second { scale, is_exact } = second([*rule, *other], scale).map_err(refused)?;
            is_rounded = !is_exact;
            return Ok(Arc::new(Known(scale.to_le_bytes().to_vec())) as Arc<dyn Job>);
        }
        let of = match part {
            Part::Codes => Some(codes),
            Part::Scales => Some(scales),
            Part::Zeros => zeros.as_ref(),
            _ => None,
        };
        let Some(of) = of.filter(|of| !of.is_same()) else { return Ok(Arc::new(stored)) };
        let repacked = repacked(part, of)?;
        if !of.is_total && !repacked.all_results_satisfy(folder, |_| true)? {
            return Err(refused(match part {
                Part::Scales => "one of its scales is not exact in the target's scale type",
                _ => "one of its zero points is out of the target's range",
            }));
        }
        Ok(Arc::new(repacked))
    };
    let (works, relaid) = together(folder, quantized.clone(), target, made)?;
    if is_rounded && how == Relayout::Exact {
        return Err(refused(NO_EQUAL_GLOBAL_SCALE));
    }
    Ok((works, Relaid { is_rounded, ..relaid }))
}

fn transcode(folder: &Folder, quantized: &Quantized, part: Part, of: &PlaneMapping) -> Result<Transcode, Error> {
    let plane = PlaneOperation { part, from: quantized.stored(part), how: of.how };
    let made = Transcode::new(plane, of.matrices, plane.from.header(folder).bytes());
    made.map_err(|cause| Error::tensor(folder.path(), &quantized.name, Cause::Scaled(cause)))
}

fn together(
    folder: &Folder,
    quantized: Quantized,
    target: Target,
    mut made: impl FnMut(Part) -> Result<Arc<dyn Job>, Error>,
) -> Result<(Vec<TensorJob>, Relaid), Error> {
    let (mut works, mut parts) = (Vec::new(), Vec::new());
    for output in &target.tensors {
        let (name, job) = match &output.content {
            Content::Bytes(bytes) => (output.tensor.name.clone(), Arc::new(Known(bytes.clone())) as Arc<dyn Job>),
            Content::Part(part) => {
                parts.push((*part, output.tensor.name.to_string()));
                let stored = quantized.parts.iter().find(|(of, _)| of == part).map(|(_, stored)| *stored);
                // A part that the source lacks has the name of the output tensor.
                let name = stored.map_or(&output.tensor.name, |stored| &stored.header(folder).name);
                (name.clone(), made(*part)?)
            }
        };
        works.push(work(output, name, job));
    }
    let shard = quantized.stored(Part::Codes).shard;
    Ok((works, Relaid { layout: target.layout, quantized, parts, shard, is_rounded: false }))
}

/// Job for an output tensor. In reports, the source type is the type of the output, except for scales that change type.
fn work(output: &Output, name: Arc<str>, job: Arc<dyn Job>) -> TensorJob {
    let (from, src_layout) = (job.from().unwrap_or(output.tensor.dtype), output.tensor.layout);
    TensorJob {
        planned: Planned { name, target: output.tensor.clone(), from, src_layout, cast: None, kept_by: None },
        job,
    }
}

/// A global scale of another rule.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Second {
    scale: f32,
    /// True if its products with all block scales are unchanged.
    is_exact: bool,
}

/// Converts a global scale from the first rule to the second.
fn second(rules: [GlobalRule; 2], scale: f32) -> Result<Second, &'static str> {
    match rules {
        // RN32(g / 2688) is the factor of scales (§4.12).
        [GlobalRule::Amax, GlobalRule::Times] => Ok(Second { scale: scale / 2688.0, is_exact: true }),
        [GlobalRule::Amax, GlobalRule::Divide] => inverse(GlobalRule::Times, scale / 2688.0),
        [rule, _] => inverse(rule, scale),
    }
}

fn inverse(rule: GlobalRule, scale: f32) -> Result<Second, &'static str> {
    let inverse = 1.0 / scale;
    if rule == GlobalRule::Amax || !scale.is_normal() || !inverse.is_normal() {
        return Err("its global scale has no inverse, or another meaning");
    }
    let is_same = |code: u64| {
        let value = to_f32(DType::F8E4M3Fn, code);
        let (scale, other) = match rule {
            GlobalRule::Times => (value * scale, value / inverse),
            _ => (value / scale, value * inverse),
        };
        scale.to_bits() == other.to_bits()
    };
    // Codes without sign; 0x7f is NaN.
    Ok(Second { scale: inverse, is_exact: 1.0 / inverse == scale && (0..0x7f).all(is_same) })
}

pub(crate) fn warning(src: &Path, relaid: &[Relaid]) -> Option<String> {
    let mut rounded = relaid.iter().filter(|relaid| relaid.is_rounded);
    let (first, others) = (rounded.next()?, of_others(rounded.count() as u64));
    let (path, name) = (src.display(), Escaped(&first.quantized.name));
    Some(format!("{path}: tensor {name}{others}: the global scale is rounded to f32"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only powers of two and few other scales have an exact inverse.
    #[test]
    fn second_scales_are_inverted() {
        let found = |scale, is_exact| Ok(Second { scale, is_exact });
        for scale in [1.0, 0.25, 2f32.powi(-20), 2f32.powi(40)] {
            assert_eq!(inverse(GlobalRule::Times, scale), found(1.0 / scale, true));
            assert_eq!(inverse(GlobalRule::Divide, scale), found(1.0 / scale, true));
        }
        assert_eq!(inverse(GlobalRule::Times, 0.1), found(1.0 / 0.1, false));
        assert_eq!(inverse(GlobalRule::Divide, 3.0), found(1.0 / 3.0, false));
        for scale in [0.0, f32::INFINITY, f32::NAN, 1e-42] {
            assert!(inverse(GlobalRule::Times, scale).is_err());
        }
        assert!(inverse(GlobalRule::Amax, 2.0).is_err());
        assert_eq!(second([GlobalRule::Amax, GlobalRule::Times], 3.0), found(3.0 / 2688.0, true));
        assert_eq!(second([GlobalRule::Amax, GlobalRule::Divide], 2688.0), found(1.0, true));
    }
}
