//! Verifies GGUF blocks against their source without code of the writer. Simple f32 arithmetic accepts most blocks; the
//! reference definition (`truecast_core::scaled`) decides the other blocks. Blocks are compared whole, because every
//! element affects the scale.

use crate::files::convert::quantize::scaled::Scaled;
use crate::files::convert::recompute::job_check::JobCheck;
use crate::files::convert::recompute::source::{INFINITE, SourceValues, largest};
use crate::files::error::Error;
use crate::files::verify::method::definition;
use crate::files::verify::seen::{Findings, Seen, compare_pieces};
use std::ops::Range;
use truecast_core::scaled::{BlockType, ScaledError, ggml};
use truecast_core::{CastSpec, DType};

const PIECE: u64 = 1 << 16;

pub(crate) fn compare(scaled: &Scaled, block: BlockType, check: JobCheck<'_>) -> Result<Findings, Error> {
    let JobCheck { written, progress, .. } = check;
    let (layout, importance) = (&scaled.layout, scaled.importance.as_deref());
    // Weights need whole rows.
    let len = if importance.is_some() { layout.cols } else { block.elements() };
    let bytes = len / block.elements() * block.bytes();
    let source = SourceValues::new(written.folder, scaled);
    let make = |at: u64, values: &[u32], made: &mut [u8]| match importance {
        Some(all) => {
            let part = at * all.len() as u64 / (layout.rows * len);
            let importance = &all[(part * len) as usize..][..len as usize];
            ggml::quantize_row(block, scaled.how.nonfinite, values, importance, made)
        }
        None => block.quantize(scaled.how.nonfinite, values, made),
    };
    let compare = |units: Range<u64>| {
        let values = source.read(units.start * len..units.end * len)?;
        let actual = written.read(0, units.start * bytes..units.end * bytes)?;
        let (mut seen, mut expected) = (Seen::new(), vec![0; bytes as usize]);
        let each = values.chunks(len as usize).zip(actual.chunks(bytes as usize));
        for (at, (values, actual)) in units.zip(each) {
            if holds(block, values, actual) {
                seen.by.arithmetic += len;
                continue;
            }
            seen.by.definition += len;
            match make(at, values, &mut expected) {
                Ok(()) => seen.wrong_bytes(at * bytes, &expected, actual),
                Err(ScaledError::NotFinite { index }) => seen.elements.refuse(at * len + index),
                Err(cause) => return Err(written.failed(cause)),
            }
        }
        Ok(seen)
    };
    // Rows are whole numbers of blocks, so blocks are contiguous. Stretches may share a row.
    let mut done = 0;
    let pieces = written.stretches.iter().flat_map(|stretch| {
        let (first, end) = ((stretch.first / len).max(done), (stretch.first + stretch.len).div_ceil(len));
        done = end.max(done);
        let step = (PIECE / len).max(1);
        (first..end).step_by(step as usize).map(move |at| at..(at + step).min(end))
    });
    let seen = compare_pieces(pieces, compare, source.bytes_per_element(), progress)?;
    let target = &written.planned.target;
    Ok(seen.findings([&target.name; 3], (scaled.dtype, target.dtype)))
}

/// True if a block is certainly right (`docs/spec/checkpoints.md §9.3`, §9.4).
fn holds(block: BlockType, values: &[u32], bytes: &[u8]) -> bool {
    let amax = largest(values);
    if amax >= INFINITE {
        return false;
    }
    match block {
        BlockType::Q8_0 => {
            const TO_HALF: CastSpec = CastSpec { dst: DType::F16, ..CastSpec::copy(DType::F32) };
            let d = f32::from_bits(amax) / 127.0;
            let id = if d == 0.0 { 0.0 } else { 1.0 / d };
            let half = u16::from_le_bytes([bytes[0], bytes[1]]);
            id.is_finite()
                && definition(&TO_HALF, d.to_bits().into()) == Some(half.into())
                && values.iter().zip(&bytes[2..]).map(|(x, code)| to_i8(f32::from_bits(*x) * id) ^ *code).fold(0, or)
                    == 0
        }
        BlockType::MXFP4 => {
            // The scale is 2^(floor(log2(amax)) - 2). Values divided by half the scale are compared with doubled values
            // of E2M1. Small scales go to the reference definition.
            let exponent = amax >> 23;
            let byte = exponent.saturating_sub(2);
            if u32::from(bytes[0]) != byte || byte < 2 {
                return false;
            }
            let scale = f32::from_bits((byte - 1) << 23);
            let (low, high) = values.split_at(16);
            let code = |x: &u32| doubled(f32::from_bits(*x) / scale);
            let both = low.iter().zip(high).zip(&bytes[1..]);
            both.map(|((low, high), byte)| (code(low) | code(high) << 4) ^ *byte).fold(0, or) == 0
        }
        _ => false,
    }
}

fn or(a: u8, b: u8) -> u8 {
    a | b
}

/// Rounds to the nearest i8, ties away from zero.
fn to_i8(x: f32) -> u8 {
    let whole = x as i32;
    let rest = x - whole as f32;
    let nearest = whole + i32::from(rest >= 0.5) - i32::from(rest <= -0.5);
    nearest.clamp(-128, 127) as u8
}

/// E2M1 code whose doubled value is nearest. Ties go to the smaller code. A value that rounds to zero gets code 0.
fn doubled(x: f32) -> u8 {
    let above = [0.5, 1.5, 2.5, 3.5, 5.0, 7.0, 10.0].iter().fold(0, |code, limit| code + u8::from(x.abs() > *limit));
    if x < 0.0 && above > 0 { above | 8 } else { above }
}

#[cfg(test)]
mod tests {
    use super::*;
    use truecast_core::scaled::NonFinite;
    use truecast_testkit::random::Random;

    #[test]
    fn blocks_are_those_of_the_definition() {
        let mut random = Random::seeded(9);
        let mut next = || (random.next() >> 33) as u32;
        for (block, kind) in [BlockType::Q8_0, BlockType::MXFP4].into_iter().flat_map(|b| (0..7).map(move |k| (b, k))) {
            let (mut accepted, mut all) = (0, 0);
            for _ in 0..300 {
                let value = |r: u32, sign: u32| match kind {
                    0 => sign << 31 | (0x3c00_0000 + (r & 0x01ff_ffff)),
                    1 => ((r % 255) as f32 / 2.0 - 63.5).to_bits(),
                    2 => ((r % 49) as f32 / 4.0 - 6.0).to_bits(),
                    3 => sign << 31 | r & 0x00ff_ffff,
                    4 => sign << 31 | 0x7e00_0000 | r & 0x01ff_ffff,
                    5 => sign << 31 | r,
                    _ => [0, 0x8000_0000, 0x7f80_0000, 1, 0x7fc0_0000, 0x3f80_0000][(r % 6) as usize],
                };
                let values: Vec<u32> = (0..32).map(|_| value(next(), next())).collect();
                let mut bytes = vec![0; block.bytes() as usize];
                let made = block.quantize(NonFinite::Error, &values, &mut bytes);
                let is_held = holds(block, &values, &bytes);
                assert!(made.is_ok() || !is_held);
                all += 1;
                accepted += u32::from(is_held);
                for at in 0..bytes.len() {
                    let mut wrong = bytes.clone();
                    wrong[at] ^= 1 << (next() % 8);
                    assert!(made.is_err() || !holds(block, &values, &wrong), "{block:?} {kind} {values:x?} {at}");
                }
            }
            assert!(kind > 2 || accepted == all, "{block:?} {kind}: {accepted} of {all}");
        }
    }
}
