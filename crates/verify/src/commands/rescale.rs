//! `verify rescale`: TOSA RESCALE for every type pair and mode at every level, compared with `docs/spec/tosa.md §4.4`
//! and §4.5 in 128-bit arithmetic.

use super::over;
use crate::random::Random;
use crate::report::{Answer, Report, Tally, Witness};
use crate::session::Session;
use std::num::NonZeroUsize;
use truecast_core::spec::tosa::rescale::{Channel, RescaleSpec, RoundingMode};
use truecast_core::{CastPolicy, DType, IntFormat};
use truecast_kernel::{CastOptions, Elements, ElementsMut, Level, RescaleError, Rescaler};

#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Random RESCALEs of each type pair, signedness and mode
    #[arg(long, default_value_t = 2000, value_name = "N")]
    pub cases: u64,
}

/// Sizes of the last dimension: no channels, few, and several loop iterations.
const CHANNELS: [usize; 5] = [1, 2, 3, 64, 700];

#[derive(Clone, Copy, Debug)]
struct Kind {
    input: IntFormat,
    output: IntFormat,
    scale32: bool,
    rounding: RoundingMode,
}

/// All legal combinations (`docs/spec/tosa.md §4.2`). INEXACT_ROUND is computed as SINGLE_ROUND.
fn kinds() -> Vec<Kind> {
    let mut all = Vec::new();
    for (scale32, rounding) in
        [(true, RoundingMode::Single), (true, RoundingMode::Double), (false, RoundingMode::Single)]
    {
        for (from, to) in [8, 16, 32, 48].into_iter().flat_map(|from| [8, 16, 32].map(|to| (from, to))) {
            for (signed_input, signed_output) in [(true, true), (false, true), (true, false)] {
                let plain = signed_input && signed_output;
                if (plain || (from <= 16 && to <= 16)) && !(from == 48 && scale32) {
                    let input = IntFormat { bits: from, signed: signed_input };
                    let output = IntFormat { bits: to, signed: signed_output };
                    all.push(Kind { input, output, scale32, rounding });
                }
            }
        }
    }
    all
}

pub fn run(session: &Session, options: &Options) -> Report {
    let kinds = kinds();
    let covers = format!(
        "rescale: {} kinds of RESCALE, {} random ones of each, channels {CHANNELS:?}, 1 and 3 threads, seed {}, levels {}",
        kinds.len(),
        options.cases,
        session.seed,
        session.level_names()
    );
    let units: Vec<(usize, Kind)> = kinds.into_iter().enumerate().collect();
    over(session, covers, "rescale", &units, |&(index, kind), sheet| {
        for &level in &session.levels {
            let mut random = Random::new(session.seed, &[index as u64, 7]);
            let tally = Tally::timed(|tally| (0..options.cases).for_each(|_| case(kind, level, &mut random, tally)));
            sheet.add(level.name(), tally);
        }
    })
}

/// Random number of at most `bits` bits; every width has the same probability.
fn number(random: &mut Random, bits: u32) -> u64 {
    let width = 1 + random.below(bits.into());
    random.bits() >> (64 - width)
}

fn case(kind: Kind, level: Level, random: &mut Random, tally: &mut Tally) {
    let Kind { input, output, scale32, rounding } = kind;
    let channels = random.pick(&CHANNELS);
    // In half of the cases, no input breaks a requirement.
    let lowest = match (random.below(2), scale32) {
        (0, _) => 2,
        (_, true) => u64::from(input.bits) + 2,
        (_, false) => u64::from(input.bits.saturating_sub(14).max(2)),
    };
    let width = if scale32 { 31 } else { 15 };
    let channel = |random: &mut Random| Channel {
        multiplier: if random.below(4) == 0 { 1 << (width - 1) } else { number(random, width) as i32 },
        shift: (lowest + random.below(63 - lowest)) as i8,
    };
    let zero_point = |f: IntFormat, random: &mut Random| match (f.bits, f.signed) {
        (8, _) => f.value(random.bits()) as i64,
        (16, false) => 32768 * random.below(2) as i64,
        _ => 0,
    };
    let spec = RescaleSpec {
        input,
        output,
        scale32,
        rounding,
        channels: (0..channels).map(|_| channel(random)).collect(),
        input_zp: zero_point(input, random),
        output_zp: zero_point(output, random),
    };
    let rows = if random.below(8) == 0 { 2000 } else { 1 + random.below(40) as usize };
    let values: Vec<u64> = (0..channels * rows)
        .map(|_| {
            let code = number(random, input.bits.into());
            (if random.below(2) == 0 { code } else { code.wrapping_neg() }) & input.mask()
        })
        .collect();
    let threads = NonZeroUsize::new(1 + 2 * random.below(2) as usize).expect("not 0");
    compare(&spec, &values, &CastOptions { level, threads, ..CastOptions::default() }, tally);
}

fn dtype(f: IntFormat) -> DType {
    match f.bits {
        8 => DType::I8,
        16 => DType::I16,
        32 => DType::I32,
        _ => DType::I48,
    }
}

fn compare(spec: &RescaleSpec, values: &[u64], exec: &CastOptions, tally: &mut Tally) {
    let (from, to) = (usize::from(spec.input.bits / 8), usize::from(spec.output.bits / 8));
    let src: Vec<u8> = values.iter().flat_map(|code| code.to_le_bytes()[..from].to_vec()).collect();
    let mut dst = vec![0xa5; values.len() * to];
    let codes = Elements::new(dtype(spec.input), values.len(), &src).expect("the bytes are as many");
    let room = ElementsMut::new(dtype(spec.output), values.len(), &mut dst).expect("the bytes are as many");
    let ran = Rescaler::new(spec, exec).rescale(codes, room);
    let (mut saturated, mut wrong) = (0, None);
    let mut failed = None;
    for (i, (&code, got)) in values.iter().zip(dst.chunks_exact(to)).enumerate() {
        tally.checks += 1;
        match expected_value(spec, spec.channels[i % spec.channels.len()], code) {
            None => {
                failed = Some(i as u64);
                break;
            }
            Some(value) => {
                let clamped = value.clamp(spec.output.min(), spec.output.max());
                saturated += (value != clamped) as u64;
                let want = spec.output.code(clamped);
                if got != &want.to_le_bytes()[..to] {
                    let found = got.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
                    wrong = wrong.or(Some((code, Answer::Code(found), Answer::Code(want))));
                }
            }
        }
    }
    let text = |text: String| Answer::Text(text);
    let mismatch = match (failed, ran) {
        (Some(index), Err(RescaleError::Unpredictable { index: found, .. })) if index == found => None,
        (Some(index), other) => {
            Some((None, text(format!("{other:?}")), text(format!("unpredictable at element {index}"))))
        }
        (None, Ok(counts)) if counts.saturated == saturated => wrong.map(|(code, got, want)| (Some(code), got, want)),
        (None, other) => Some((None, text(format!("{other:?}")), text(format!("{saturated} saturated")))),
    };
    if let Some((code, got, want)) = mismatch {
        let scales = &spec.channels[..spec.channels.len().min(4)];
        let who =
            format!("{}, {:?} {scales:?} zero points {} {}", exec.level, spec.rounding, spec.input_zp, spec.output_zp);
        let (src, dst) = (dtype(spec.input), dtype(spec.output));
        tally.fail(Witness { src, dst, policy: CastPolicy::IEEE, who, code, got, want });
    }
}

/// Returns the value before it is clamped; `None` if a requirement does not hold.
fn expected_value(spec: &RescaleSpec, Channel { multiplier, shift }: Channel, code: u64) -> Option<i128> {
    let int32 = i128::from(i32::MIN)..=i128::from(i32::MAX);
    let v = spec.input.value(code) - i128::from(spec.input_zp);
    let range = 1i128 << (shift - 1);
    if spec.scale32 && !(-range <= v && v < range) {
        return None;
    }
    let mut numerator = v * i128::from(multiplier) + range;
    if spec.rounding == RoundingMode::Double && shift > 31 {
        numerator += if v >= 0 { 1 << 30 } else { -(1 << 30) };
    }
    let q = numerator.div_euclid(1i128 << shift);
    let offset = q + i128::from(spec.output_zp);
    (int32.contains(&q) && int32.contains(&offset)).then_some(offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Progress;

    #[test]
    fn nothing_is_found_and_everything_is_looked_at() {
        let session = Session { seed: 3, ..Session::new(Progress::Hidden) };
        let report = run(&session, &Options { cases: 2 });
        assert_eq!((report.mismatches(), report.sheet.rows.len()), (0, session.levels.len()), "{report}");
        assert_eq!(kinds().len(), 17 + 17 + 20);
    }

    /// The oracle gives the results of `docs/spec/tosa.md §4.8`, and a wrong kernel is found.
    #[test]
    fn the_oracle_is_the_page() {
        let int = |bits| IntFormat { bits, signed: true };
        let spec = |multiplier, shift, rounding| RescaleSpec {
            input: int(32),
            output: int(32),
            scale32: true,
            rounding,
            channels: vec![Channel { multiplier, shift }],
            input_zp: 0,
            output_zp: 0,
        };
        let row = |spec: &RescaleSpec| -> Vec<i128> {
            (-6i32..=6).map(|v| expected_value(spec, spec.channels[0], v as u32 as u64).unwrap()).collect()
        };
        let double = spec(1 << 30, 32, RoundingMode::Double);
        assert_eq!(row(&double), [-2, -1, -1, -1, -1, 0, 0, 1, 1, 1, 1, 2, 2]);
        assert_eq!(row(&spec(1 << 30, 32, RoundingMode::Single)), [-1, -1, -1, -1, 0, 0, 0, 0, 1, 1, 1, 1, 2]);
        let mut tally = Tally::default();
        compare(&double, &[6, 1], &CastOptions::default(), &mut tally);
        assert_eq!((tally.checks, tally.mismatches), (2, 0));
    }
}
