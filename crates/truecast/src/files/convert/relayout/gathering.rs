//! Codes and scales of NVFP4 in blocks of a GGUF file (`docs/spec/checkpoints.md §8`, §9.5): whether every scale and every
//! value has its equal there, and the factors beside them.

use crate::files::convert::dequantize::dequantizer::Quantized;
use crate::files::convert::job::{InBlocks, Job, Known, TensorJob, Transcode};
use crate::files::convert::relayout::code_histogram::{self, BLOCK, CodeHistogram};
use crate::files::convert::relayout::lossiness::Loss;
use crate::files::convert::relayout::plane_map::{PlaneMap, PlaneMapping, Why, matching};
use crate::files::convert::relayout::{Relaid, together, transcode};
use crate::files::error::Error;
use crate::files::select::quantize_options::Relayout;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use truecast_core::DType::{F4E2M1, F8E4M3Fn};
use truecast_core::scaled::{Change, Coding, Gathering, Layout, Part, Plane, Planes, Repacking, ValueChange};
use truecast_io::folder::Folder;
use truecast_kernel::Counts;
use truecast_schemes::Target;

/// What becomes of a tensor, or why it stays.
type Gathered = Result<(Vec<TensorJob>, Relaid), Cow<'static, str>>;
/// What blocks of a matrix are made of, and its elements.
type Matrix<'a> = (&'a Gathering, Range<u64>);

/// Settles what becomes of a tensor.
///
/// # Errors
/// Reading.
pub(crate) fn relaid(folder: &Folder, quantized: Quantized, target: Target, how: Relayout) -> Result<Gathered, Error> {
    let planes = match in_rows(&quantized.layout) {
        Ok(planes) => planes,
        Err(why) => return Ok(Err(why.into())),
    };
    let [codes, scales] = Gathering::in_blocks(planes.map(|of| of.how));
    let transcode = |scales| transcode(folder, &quantized, &[(Part::Codes, codes), (Part::Scales, scales)], 1);
    let gatherings = gatherings(folder, &quantized, target.layout.matrices)?;
    // Their scales have their signs still.
    let signed = Signed { layout: &quantized.layout, blocks: transcode(Repacking { change: Change::None, ..scales })? };
    let (counts, loss) = match signed.seen(folder, &gatherings, how)? {
        Ok(seen) => seen,
        Err(why) => return Ok(Err(why.into())),
    };
    let mut codes = transcode(scales)?;
    codes.blocks = Some(InBlocks { source: quantized.clone(), counts });
    let codes: Arc<dyn Job> = Arc::new(codes);
    let factors: Vec<u8> = gatherings.iter().filter_map(Gathering::factor).flat_map(u32::to_le_bytes).collect();
    let made = |part| match part {
        Part::Codes => Ok(codes.clone()),
        _ => Ok(Arc::new(Known(factors.clone())) as Arc<dyn Job>),
    };
    let (works, relaid) = together(folder, quantized.clone(), target, made)?;
    Ok(Ok((works, Relaid { loss, ..relaid })))
}

/// Codes and scales as rows of nibbles and of bytes, or why there are no such.
fn in_rows(from: &Layout) -> Result<[PlaneMapping; 2], Why> {
    let Some(planes) = from.planes() else { return Err("its codes and scales are in blocks of one tensor") };
    let plain = Planes::times(Plane::of(F4E2M1), Plane::of(F8E4M3Fn), [1, Gathering::GROUP]);
    let rows = Layout::new(from.matrices, from.out(), Coding::Planes(plain));
    // What becomes of the global scale is no matter of planes.
    let bare = Layout { coding: Coding::Planes(Planes { global: None, ..*planes }), ..*from };
    match matching(&bare, &rows)? {
        PlaneMap { codes, scales, zeros: None, midpoint: None, index: None, .. }
            if !from.transposed && codes.matrices == 1 && scales.matrices == 1 =>
        {
            Ok([codes, scales])
        }
        _ => Err("the target computes values from codes and scales differently"),
    }
}

/// What blocks are made of, for each of so many matrices.
fn gatherings(folder: &Folder, quantized: &Quantized, matrices: u64) -> Result<Vec<Gathering>, Error> {
    let Some(global) = quantized.layout.planes().and_then(|planes| planes.global) else {
        return Ok(vec![Gathering { global: None }]);
    };
    let bytes = quantized.stored(Part::Global).read(folder, 0..matrices * 4)?;
    let one = |bytes: &[u8; 4]| Gathering { global: Some((global.rule, u32::from_le_bytes(*bytes))) };
    Ok(bytes.as_chunks().0.iter().map(one).collect())
}

/// Codes and scales in blocks, whose scales have signs.
struct Signed<'a> {
    layout: &'a Layout,
    blocks: Transcode,
}

impl Signed<'_> {
    /// What became of the values, and what is lost of them, or why they are others there. Every code and every scale is read.
    fn seen(
        &self,
        folder: &Folder,
        gatherings: &[Gathering],
        how: Relayout,
    ) -> Result<Result<(Counts, Loss), String>, Error> {
        let of_matrix = self.layout.elements() / gatherings.len() as u64;
        let (mut counts, mut loss) = (Counts::default(), Loss::default());
        // The first matrix that lost something, and that with the largest error.
        let (mut first, mut worst): (Option<Matrix<'_>>, Option<Matrix<'_>>) = (None, None);
        let mut census = CodeHistogram::new();
        for (gathering, at) in gatherings.iter().zip((0..).step_by(of_matrix.max(1) as usize)) {
            let elements = at..at + of_matrix;
            census.clear();
            self.blocks.look(folder, elements.clone(), |_, blocks| {
                census.add(blocks);
                true
            })?;
            let (before, error) = (loss, counts.max_abs_error);
            let mut is_lost = false;
            for (scale, codes) in census.scales() {
                for (change, n) in gathering.changes(scale).into_iter().zip(codes) {
                    match change {
                        ValueChange::Same => {}
                        ValueChange::Unsigned => loss.unsigned += n,
                        ValueChange::Rounded => loss.rounded += n,
                        ValueChange::Lost => is_lost |= n > 0,
                    }
                }
                counts.add(&code_histogram::counts(&gathering.values(scale), &codes));
            }
            if is_lost {
                let is_lost = |scale: u8| gathering.changes(scale).map(|change| change == ValueChange::Lost);
                let (element, scale) = self.first_of(folder, elements, is_lost)?;
                return Ok(Err(lost(&self.place(element), scale)));
            }
            if loss != before {
                first.get_or_insert((gathering, elements.clone()));
            }
            if counts.max_abs_error > error {
                worst = Some((gathering, elements));
            }
        }
        if let (Relayout::Exact, Some((gathering, elements))) = (how, first) {
            let is_other = |scale: u8| gathering.changes(scale).map(|change| change != ValueChange::Same);
            let (element, _) = self.first_of(folder, elements, is_other)?;
            return Ok(Err(format!("{loss}, the first at {}; --relayout lossy accepts this", self.place(element))));
        }
        if let Some((gathering, elements)) = worst {
            let is_worst = |scale: u8| {
                let [before, after] = gathering.values(scale).map(|of| of.map(|bits| f64::from(f32::from_bits(bits))));
                std::array::from_fn(|code| (after[code] - before[code]).abs() == counts.max_abs_error)
            };
            counts.index_max_abs = self.first_of(folder, elements, is_worst)?.0;
        }
        Ok(Ok((counts, loss)))
    }

    /// The first of some elements whose code, under its scale, is one of those that are told; and that scale.
    fn first_of(
        &self,
        folder: &Folder,
        elements: Range<u64>,
        of_scale: impl FnMut(u8) -> [bool; 16],
    ) -> Result<(u64, u8), Error> {
        let of_scale: Vec<[bool; 16]> = (0..=0xff).map(of_scale).collect();
        let mut found = (0, 0);
        self.blocks.look(folder, elements, |first, blocks| {
            let groups = blocks.as_chunks::<BLOCK>().0.iter().flat_map(code_histogram::groups);
            for (group, (scale, pairs)) in (0..).zip(groups) {
                let is_such = &of_scale[usize::from(scale)];
                let mut codes = pairs.iter().map(|pair| pair & 15).chain(pairs.iter().map(|pair| pair >> 4));
                if let Some(at) = codes.position(|code| is_such[usize::from(code)]) {
                    found = (first + group * Gathering::GROUP + at as u64, scale);
                    return false;
                }
            }
            true
        })?;
        Ok(found)
    }

    /// An element of the tensor.
    fn place(&self, element: u64) -> String {
        let [rows, cols] = self.layout.out();
        let (row, col) = (element / cols, element % cols);
        match self.layout.matrices {
            1 => format!("[{row}, {col}]"),
            _ => format!("[{}, {}, {col}]", row / rows, row % rows),
        }
    }
}

/// Why a value is another there, by its scale.
fn lost(place: &str, scale: u8) -> String {
    let why = match scale {
        0x7f | 0xff => "is NaN, which a block cannot have".to_string(),
        _ if Gathering::scale(scale).is_none() => "is negative, and block scales have no sign".to_string(),
        _ => {
            return format!(
                "the global scale gives another value at {place}, because the target multiplies by it last"
            );
        }
    };
    format!("the scale of {place} {why}; --rule dequantizes the tensor")
}
