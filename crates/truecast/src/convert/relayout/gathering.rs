//! Codes and scales of NVFP4 in blocks of a GGUF file (`docs/spec/checkpoints.md §8`, §9.5): whether every scale and every
//! value has its equal there, and the factors beside them.

use crate::convert::dequantize::dequantizer::Quantized;
use crate::convert::job::{Gathered, Job, Known, PlaneMapping, TensorJob};
use crate::convert::relayout::code_histogram::{self, CodeHistogram, OF_SCALE};
use crate::convert::relayout::gatherer::Rows;
use crate::convert::relayout::lossiness::Loss;
use crate::convert::relayout::plane_map::{PlaneMap, Why, matching};
use crate::convert::relayout::{Relaid, together};
use crate::error::Error;
use crate::select::quantize_options::Relayout;
use crate::stream::zeros;
use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;
use truecast_core::DType::{F4E2M1, F8E4M3Fn};
use truecast_core::scaled::{Coding, Fate, Gathering, Layout, Part, Plane, Planes};
use truecast_io::folder::Folder;
use truecast_kernel::Counts;
use truecast_schemes::Target;

/// What becomes of a tensor, or why it stays.
type Made = Result<(Vec<TensorJob>, Relaid), Cow<'static, str>>;
/// What blocks of a matrix are made of, and its rows.
type Matrix<'a> = (&'a Gathering, Rows);

/// Settles what becomes of a tensor.
///
/// # Errors
/// Reading.
pub(crate) fn relaid(folder: &Folder, quantized: Quantized, target: Target, how: Relayout) -> Result<Made, Error> {
    let planes = match in_rows(&quantized.layout) {
        Ok(planes) => planes,
        Err(why) => return Ok(Err(why.into())),
    };
    let mut gathered = Gathered::new(quantized.clone(), &planes);
    let gatherings = gatherings(folder, &quantized, target.layout.matrices)?;
    let loss = match seen(folder, &gathered, &gatherings, how)? {
        Ok(Seen { counts, loss }) => {
            gathered.counts = counts;
            loss
        }
        Err(why) => return Ok(Err(why.into())),
    };
    let factors: Vec<u8> = gatherings.iter().filter_map(Gathering::factor).flat_map(u32::to_le_bytes).collect();
    let made = |part| match part {
        Part::Codes => Ok(Arc::new(gathered.clone()) as Arc<dyn Job>),
        _ => Ok(Arc::new(Known(factors.clone())) as Arc<dyn Job>),
    };
    let (works, relaid) = together(folder, quantized.clone(), target, made)?;
    Ok(Ok((works, Relaid { loss, ..relaid })))
}

/// Codes and scales as rows of nibbles and of bytes, or why there are no such.
fn in_rows(from: &Layout) -> Result<[PlaneMapping; 2], Why> {
    let Some(planes) = from.planes() else { return Err("its codes and scales lie in blocks of one tensor") };
    let plain = Planes::times(Plane::of(F4E2M1), Plane::of(F8E4M3Fn), [1, Gathering::GROUP]);
    let rows = Layout::new(from.matrices, from.out(), Coding::Planes(plain));
    // What becomes of the second scale is no matter of planes.
    let bare = Layout { coding: Coding::Planes(Planes { global: None, ..*planes }), ..*from };
    match matching(&bare, &rows)? {
        PlaneMap { codes, scales, zeros: None, midpoint: None, index: None, .. }
            if !from.transposed && codes.matrices == 1 && scales.matrices == 1 =>
        {
            Ok([codes, scales])
        }
        _ => Err("its values are made of codes and scales in another way there"),
    }
}

/// What blocks are made of, for each of so many matrices.
fn gatherings(folder: &Folder, quantized: &Quantized, matrices: u64) -> Result<Vec<Gathering>, Error> {
    let Some(global) = quantized.layout.planes().and_then(|planes| planes.global) else {
        return Ok(vec![Gathering { global: None }]);
    };
    let stored = quantized.stored(Part::Global);
    let mut bytes = zeros(matrices * 4)?;
    folder.shards()[stored.shard].source.read_at(stored.tensor, 0, &mut bytes)?;
    let one = |bytes: &[u8; 4]| Gathering { global: Some((global.rule, u32::from_le_bytes(*bytes))) };
    Ok(bytes.as_chunks().0.iter().map(one).collect())
}

/// What became of the values.
struct Seen {
    counts: Counts,
    loss: Loss,
}

/// What is lost of the values, or why they are others there. Every code and every scale is read.
fn seen(
    folder: &Folder,
    gathered: &Gathered,
    gatherings: &[Gathering],
    how: Relayout,
) -> Result<Result<Seen, String>, Error> {
    let of_matrix = gathered.rows / gatherings.len() as u64;
    let (mut counts, mut loss) = (Counts::default(), Loss::default());
    // The first matrix that lost something, and that with the largest error.
    let (mut first, mut worst): (Option<Matrix<'_>>, Option<Matrix<'_>>) = (None, None);
    let mut census = CodeHistogram::new();
    for (gathering, row) in gatherings.iter().zip((0..).step_by(of_matrix.max(1) as usize)) {
        let rows = row..row + of_matrix;
        census.clear();
        gathered.look(folder, rows.clone(), |_, codes, scales| {
            census.add(codes, scales);
            ControlFlow::Continue(())
        })?;
        let (before, error) = (loss, counts.max_abs_error);
        let mut is_lost = false;
        for (scale, codes) in census.scales() {
            for (fate, n) in gathering.fates(scale).into_iter().zip(codes) {
                match fate {
                    Fate::Same => {}
                    Fate::Unsigned => loss.unsigned += n,
                    Fate::Rounded => loss.rounded += n,
                    Fate::Lost => is_lost |= n > 0,
                }
            }
            counts.add(&code_histogram::counts(&gathering.values(scale), &codes));
        }
        if is_lost {
            let is_lost = |scale: u8| gathering.fates(scale).map(|fate| fate == Fate::Lost);
            let (element, scale) = first_of(folder, gathered, rows, is_lost)?;
            return Ok(Err(lost(&place(gathered, element), scale)));
        }
        if loss != before {
            first.get_or_insert((gathering, rows.clone()));
        }
        if counts.max_abs_error > error {
            worst = Some((gathering, rows));
        }
    }
    if let (Relayout::Exact, Some((gathering, rows))) = (how, first) {
        let is_other = |scale: u8| gathering.fates(scale).map(|fate| fate != Fate::Same);
        let (element, _) = first_of(folder, gathered, rows, is_other)?;
        let place = place(gathered, element);
        return Ok(Err(format!("{loss}, the first at {place}; --relayout lossy takes that")));
    }
    if let Some((gathering, rows)) = worst {
        let is_worst = |scale: u8| {
            let [before, after] = gathering.values(scale).map(|of| of.map(|bits| f64::from(f32::from_bits(bits))));
            std::array::from_fn(|code| (after[code] - before[code]).abs() == counts.max_abs_error)
        };
        counts.index_max_abs = first_of(folder, gathered, rows, is_worst)?.0;
    }
    Ok(Ok(Seen { counts, loss }))
}

/// The first element among some rows whose code, under its scale, is one of those that are told; and that scale.
fn first_of(
    folder: &Folder,
    gathered: &Gathered,
    rows: Rows,
    of_scale: impl FnMut(u8) -> [bool; 16],
) -> Result<(u64, u8), Error> {
    let of_scale: Vec<[bool; 16]> = (0..=0xff).map(of_scale).collect();
    let mut found = (0, 0);
    gathered.look(folder, rows, |row, codes, scales| {
        let first = row * gathered.cols;
        for (group, (codes, scale)) in (0..).zip(codes.as_chunks::<OF_SCALE>().0.iter().zip(scales)) {
            let is_such = &of_scale[usize::from(*scale)];
            let mut nibbles = codes.iter().flat_map(|byte| [byte & 15, byte >> 4]);
            if let Some(at) = nibbles.position(|code| is_such[usize::from(code)]) {
                found = (first + group * Gathering::GROUP + at as u64, *scale);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

/// An element of the tensor.
fn place(gathered: &Gathered, element: u64) -> String {
    let [rows, cols] = gathered.source.layout.out();
    let (row, col) = (element / cols, element % cols);
    match gathered.source.layout.matrices {
        1 => format!("[{row}, {col}]"),
        _ => format!("[{}, {}, {col}]", row / rows, row % rows),
    }
}

/// Why a value is another there, by its scale.
fn lost(place: &str, scale: u8) -> String {
    let why = match scale {
        0x7f | 0xff => "is NaN, which no block has".to_string(),
        _ if !Gathering::has_scale(scale) => "is negative, and those of blocks have no sign".to_string(),
        _ => {
            return format!(
                "the second scale gives another value at {place} if it is multiplied by last, as it is there"
            );
        }
    };
    format!("the scale of {place} {why}; --rule makes the tensor dense")
}
