//! What a plain cast of elements to the type of the codes would lose: sums of squares, beside those of what was quantized.
//! Nothing of what it makes is kept.
//!
//! Of 16-bit types the squared error of every code is known before, and an element costs one look-up. The sums are those of
//! `docs/spec/checkpoints.md §10`, to the last bit.

use super::counts::Counts;
use super::{BLOCK, tree};
use crate::buf::{Elements, ElementsMut};
use crate::caster::Caster;
use crate::options::CastOptions;
use crate::pipeline::room;
use std::cell::RefCell;
use std::sync::OnceLock;
use truecast_core::{CastSpec, DType, Layout};

const CODES: usize = 1 << 16;
const SIGN: u16 = 1 << 15;

/// A plain cast that is only measured: what it would lose of elements that are quantized.
#[derive(Debug)]
pub struct CastBaseline {
    caster: Caster,
    exec: CastOptions,
    /// Of a 16-bit type; `None` if the cast refuses a code.
    errors: OnceLock<Option<Errors>>,
}

/// What the cast loses of each code.
#[derive(Debug)]
struct Errors {
    /// `(y - x)^2`: 0 where `x` is not finite, NaN where only `y` is not.
    squares: Box<[f64; CODES]>,
    /// Where no magnitude of a part, as a code, is larger, all of it is lost: the noise is the signal.
    lost: u16,
}

thread_local! {
    /// What the cast makes.
    static MADE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl CastBaseline {
    /// Measures this cast.
    #[must_use]
    pub fn new(caster: Caster, exec: CastOptions) -> CastBaseline {
        CastBaseline { caster, exec, errors: OnceLock::new() }
    }

    /// Elements, finite pairs, signal and noise of these elements, in parts that are to be added in order; nothing if an
    /// element is refused. `counts` are those of the same elements as they were quantized, by
    /// [`Measure::compare`](super::Measure::compare).
    ///
    /// Result: where `counts` leave out a finite element, the signal leaves it out, too.
    #[must_use]
    pub fn counts(&self, src: &[u8], counts: &[Counts]) -> Vec<Counts> {
        self.by_code(src, counts).unwrap_or_else(|| self.by_casting(src))
    }

    /// By the error of each code. `None` if there is a code whose error says nothing.
    fn by_code(&self, src: &[u8], counts: &[Counts]) -> Option<Vec<Counts>> {
        let is_narrow = self.caster.spec().src.storage_bits() == Some(16);
        let errors = if is_narrow { self.errors.get_or_init(|| self.errors()).as_ref()? } else { return None };
        let parts = src.as_chunks::<2>().0.chunks(BLOCK).zip(counts);
        let part = |(codes, counts): (&[[u8; 2]], &Counts)| {
            let &Counts { elements, nan_in, inf_in, signal, .. } = counts;
            let noise = if largest(codes) <= errors.lost { signal } else { sum_of(&errors.squares, codes) };
            let finite_pairs = elements - nan_in - inf_in;
            (!noise.is_nan()).then(|| Counts { elements, finite_pairs, signal, noise, ..Counts::default() })
        };
        parts.map(part).collect()
    }

    fn errors(&self) -> Option<Errors> {
        let &CastSpec { src: from, dst: to, .. } = self.caster.spec();
        let codes: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
        let mut made = vec![0; to.bytes_in(Layout::Packed, CODES as u64)? as usize];
        let src = Elements::new(from, CODES, &codes).ok()?;
        self.caster.cast(src, ElementsMut::new(to, CODES, &mut made).ok()?).ok()?;
        let values = |dtype: DType, codes: &[u8]| {
            let widen = Caster::new(&CastSpec { src: dtype, ..CastSpec::copy(DType::F64) }, &self.exec).ok()?;
            let mut values = vec![0; CODES * 8];
            let dst = ElementsMut::new(DType::F64, CODES, &mut values).ok()?;
            widen.cast(Elements::new(dtype, CODES, codes).ok()?, dst).ok()?;
            Some(values.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect::<Vec<f64>>())
        };
        let (x, y) = (values(from, &codes)?, values(to, &made)?);
        let square = |(x, y): (&f64, &f64)| match (x.is_finite(), y.is_finite()) {
            (true, true) => (y - x) * (y - x),
            (true, false) => f64::NAN,
            (false, _) => 0.0,
        };
        let squares: Box<[f64; CODES]> = x.iter().zip(&y).map(square).collect::<Vec<f64>>().try_into().ok()?;
        let is_lost = |magnitude: &u16| {
            [*magnitude, magnitude | SIGN].into_iter().all(|code| squares[code as usize] == x[code as usize].powi(2))
        };
        // Zero is, except in a format without one.
        let lost = (0..SIGN).take_while(is_lost).last()?;
        Some(Errors { squares, lost })
    }

    /// By the cast itself.
    fn by_casting(&self, src: &[u8]) -> Vec<Counts> {
        let &CastSpec { src: from, dst: to, .. } = self.caster.spec();
        let cast = |made: &mut Vec<u8>| {
            let n = src.len() * 8 / from.storage_bits()? as usize;
            let dst = room(made, to.bytes_in(Layout::Packed, n as u64)? as usize);
            let (x, y) = (Elements::new(from, n, src).ok()?, ElementsMut::new(to, n, dst).ok()?);
            self.caster.cast_parts(x, y).ok()
        };
        MADE.with_borrow_mut(cast).unwrap_or_default()
    }
}

/// The largest code without its sign.
fn largest(codes: &[[u8; 2]]) -> u16 {
    // Signed numbers have a maximum in every instruction set.
    let magnitude = |code: &[u8; 2]| (u16::from_le_bytes(*code) & !SIGN) as i16;
    codes.iter().map(magnitude).fold(0, i16::max) as u16
}

/// The errors of a part.
fn sum_of(squares: &[f64; CODES], codes: &[[u8; 2]]) -> f64 {
    let error = |code: &[u8; 2]| squares[u16::from_le_bytes(*code) as usize];
    let mut lanes = [0.0; 16];
    let (rows, rest) = codes.as_chunks::<16>();
    for row in rows {
        for (lane, code) in lanes.iter_mut().zip(row) {
            *lane += error(code);
        }
    }
    for (lane, code) in lanes.iter_mut().zip(rest) {
        *lane += error(code);
    }
    tree(lanes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Measure;
    use crate::options::Counting;
    use truecast_core::spec::{ieee, onnx};

    /// Looking errors up gives what the cast itself gives, to the last bit.
    #[test]
    fn errors_of_codes_add_up_to_those_of_the_cast() {
        let mut state = 7u32;
        let mut next = |limit: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) as u16 & limit as u16
        };
        let (mut by_code, mut refused) = (0, 0);
        for from in [DType::Bf16, DType::F16] {
            for to in [DType::F8E4M3Fn, DType::F8E5M2, DType::F4E2M1] {
                for spec in [onnx::Cast::to(to).resolve(from), ieee::Cast::to(to).resolve(from)] {
                    let Ok(spec) = spec else { continue };
                    let exec = CastOptions { counting: Counting::Full, ..CastOptions::default() };
                    let plain = CastBaseline::new(Caster::new(&spec, &exec).unwrap(), exec);
                    // All codes; finite ones; small ones; of both signs.
                    for limit in [0xffff, 0xbfff, 0xb0ff, 0x80ff] {
                        let src: Vec<u8> = (0..BLOCK * 2 + 41).flat_map(|_| next(limit).to_le_bytes()).collect();
                        let expected = plain.by_casting(&src);
                        // What is known of the elements without the cast, as when they were quantized.
                        let n = src.len() / 2;
                        let (x, mut wide) = (Elements::new(from, n, &src).unwrap(), vec![0; n * 4]);
                        let widen = CastSpec { src: from, ..CastSpec::copy(DType::F32) };
                        let widen = Caster::new(&widen, &exec).unwrap();
                        widen.cast(x, ElementsMut::new(DType::F32, n, &mut wide).unwrap()).unwrap();
                        let known = Measure::between(from, DType::F32, &exec);
                        let known = known.compare(x, Elements::new(DType::F32, n, &wide).unwrap());
                        let Some(found) = plain.by_code(&src, &known) else {
                            refused += 1;
                            continue;
                        };
                        by_code += 1;
                        assert_eq!((found.len(), expected.len()), (3, 3));
                        for (found, expected) in found.iter().zip(&expected) {
                            let of = |c: &Counts| (c.elements, c.finite_pairs, c.signal.to_bits(), c.noise.to_bits());
                            assert_eq!(of(found), of(expected), "{from} to {to}, codes below {limit:x}");
                        }
                    }
                }
            }
        }
        // Some finite codes become NaN or infinite by IEEE 754.
        assert!(by_code > 20 && refused > 0, "{by_code} {refused}");
    }
}
