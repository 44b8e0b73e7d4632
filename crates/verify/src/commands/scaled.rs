//! `verify scaled`: quantization and dequantization of random layouts at every level, compared with the reference
//! definition.

use super::over;
use crate::random::Random;
use crate::report::{Answer, Report, Tally, Witness};
use crate::session::Session;
use truecast_core::scaled::{
    BlockType, Code, Coding, Form, Global, GlobalRule, Layout, MxScale, NonFinite, Packing, Part, Parts, Plane, Planes,
    Quantization, ScaledError, Search, Zero, amax,
};
use truecast_core::spec::ieee;
use truecast_core::{CastPolicy, DType, cast_one};
use truecast_kernel::scaled::{Dequantizer, PartsMut, Quantizer};
use truecast_kernel::{CastOptions, Level};

#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Random tensors of each layout
    #[arg(long, default_value_t = 200, value_name = "N")]
    pub cases: u64,
}

const PARTS: usize = Part::ALL.len();
type Stored = [Vec<u8>; PARTS];

fn layouts(rows: u64, cols: u64) -> Vec<(String, Layout)> {
    use DType::{Bf16, F4E2M1, F6E2M3, F6E3M2, F8E4M3Fn, F8E5M2, F8E8M0, F16, F32};
    let mut all = Vec::new();
    let mut add = |name: String, planes| all.push((name, Layout::new(1, [rows, cols], Coding::Planes(planes))));
    for codes in [F8E4M3Fn, F8E5M2] {
        for scales in [F32, Bf16, F16, F8E8M0] {
            for block in [[128, 128], [1, cols], [rows, cols], [1, 32], [3, 24]] {
                let planes = Planes::times(Plane::of(codes), Plane::of(scales), block);
                add(format!("{codes} blocks {block:?} of {scales}"), planes);
            }
        }
    }
    for codes in [F4E2M1, F6E2M3, F6E3M2, F8E4M3Fn] {
        add(format!("mx {codes}"), Planes::times(Plane::of(codes), Plane::of(F8E8M0), [1, 32]));
    }
    for rule in [None, Some(GlobalRule::Times), Some(GlobalRule::Divide), Some(GlobalRule::Amax)] {
        for (codes, scales) in [(Packing::BYTES, Packing::BYTES), (Packing::HighFirst, Packing::Swizzled)] {
            let (codes, scales) = (Plane::of(F4E2M1).packed(codes), Plane::of(F8E4M3Fn).packed(scales));
            let global = rule.map(|rule| Global { rule, block: [rows, cols] });
            add(
                format!("nvfp4 {rule:?} {:?}", codes.packing),
                Planes { global, ..Planes::times(codes, scales, [1, 16]) },
            );
        }
    }
    for bits in 1..=8u8 {
        let codes = Plane { code: Code::unsigned(bits), packing: Packing::WORDS };
        let zeros = Plane { packing: Packing::Columns { word: 32 }, ..codes };
        for zero in [Zero::Constant(1 << (bits - 1)), Zero::Grid { plane: zeros, plus: 0 }] {
            for (block, scales) in [(32, Bf16), (128, F16), (cols, F32)] {
                let name = format!("int{bits} groups {block} of {scales} {zero:?}");
                add(name, Planes { zero, ..Planes::times(codes, Plane::of(scales), [1, block]) });
            }
        }
        for scales in [Bf16, F16, F32] {
            let name = format!("affine{bits} {scales}");
            add(name, Planes { form: Form::Affine, ..Planes::times(codes, Plane::of(scales), [1, 64]) });
        }
    }
    let transposed = |name: &str, planes| {
        (name.to_string(), Layout { transposed: true, ..Layout::new(1, [rows, cols], Coding::Planes(planes)) })
    };
    let awq = Plane { code: Code::unsigned(4), packing: Packing::Awq };
    let gptq = Plane { code: Code::unsigned(4), packing: Packing::Columns { word: 32 } };
    let (of_awq, of_gptq) =
        (Zero::Grid { plane: awq, plus: 0 }, Zero::Grid { plane: Plane { packing: Packing::WORDS, ..gptq }, plus: 1 });
    all.push(transposed("awq", Planes { zero: of_awq, ..Planes::times(awq, Plane::of(F16), [32, 1]) }));
    all.push(transposed("gptq", Planes { zero: of_gptq, ..Planes::times(gptq, Plane::of(F16), [32, 1]) }));
    all.push(transposed("mxfp4 transposed", Planes::times(Plane::of(F4E2M1), Plane::of(F8E8M0), [1, 32])));
    for block in BlockType::ALL {
        for factor in [false, true].into_iter().take(1 + usize::from(block == BlockType::NVFP4)) {
            let coding = Coding::Blocks { block, factor };
            all.push((format!("gguf {}", block.name()), Layout::new(1, [rows, cols], coding)));
        }
    }
    all
}

pub fn run(session: &Session, options: &Options) -> Report {
    let n = layouts(1, 256).len();
    let covers = format!(
        "scaled: {n} layouts, {} random tensors of each, read and written, seed {}, levels {}",
        options.cases,
        session.seed,
        session.level_names()
    );
    let units: Vec<usize> = (0..n).collect();
    over(session, covers, "scaled", &units, |&index, sheet| {
        for &level in &session.levels {
            let mut random = Random::new(session.seed, &[index as u64, 11]);
            let mut case = |tally: &mut Tally| {
                let (rows, cols) = (1 + random.below(140), 256 * (1 + random.below(3)));
                let (name, layout) = &layouts(rows, cols)[index];
                // The same random numbers at every level.
                read(name, layout, level, &mut random, tally);
                written(name, layout, level, &mut random, tally);
            };
            sheet.add(level.name(), Tally::timed(|tally| (0..options.cases).for_each(|_| case(tally))));
        }
    })
}

fn parts(stored: &Stored) -> Parts<'_> {
    let [codes, scales, global, zeros, biases, index, book] = stored;
    Parts { codes, scales, global, zeros, biases, index, book }
}

/// Dequantizes random bytes: all codes, and scales that are NaN, infinite, zero and subnormal.
fn read(name: &str, layout: &Layout, level: Level, random: &mut Random, tally: &mut Tally) {
    let stored: Stored = Part::ALL.map(|part| {
        let n = layout.part_bytes(part).expect("the layout is one").unwrap_or(0);
        (0..n).map(|_| random.bits() as u8).collect()
    });
    let n = layout.elements();
    let dst = random.pick(&[DType::Bf16, DType::Bf16, DType::F16, DType::F32, DType::F8E4M3Fn]);
    let stream_above_bytes = random.pick(&[None, Some(0)]);
    let spec = ieee::Cast::to(dst).resolve(DType::F32).expect("f32 becomes any float");
    let exec = CastOptions { level, stream_above_bytes, ..CastOptions::default() };
    let dequantizer = Dequantizer::new(layout, &spec, &exec).expect("it is read");
    let (a, b) = (random.below(n + 1), random.below(n + 1));
    let size = dst.storage_bits().expect("a float has a width") as usize / 8;
    for range in [0..n, a.min(b)..a.max(b)] {
        for window in dequantizer.windows(range) {
            let mut got: Stored = Default::default();
            for read in dequantizer.reads(&window) {
                let place = Part::ALL.iter().position(|part| *part == read.part).expect("every part is listed");
                for i in 0..read.count {
                    let first = (read.first + i * read.stride) as usize;
                    got[place].extend_from_slice(&stored[place][first..first + read.len as usize]);
                }
            }
            let elements = window.elements();
            let mut results = vec![0xa5; (elements.end - elements.start) as usize * size];
            let ran = dequantizer.run(&window, &parts(&got), &mut results);
            let wanted: Result<Vec<u64>, ScaledError> = elements
                .map(|i| layout.value(&parts(&stored), i))
                .map(|value| value.map(|value| cast_one(&spec, value.into()).code().unwrap_or(0)))
                .collect();
            let witness = |code, got, want| {
                let (policy, who) = (CastPolicy::IEEE, format!("{level}, {name}"));
                Witness { src: DType::F32, dst, policy, who, code, got, want }
            };
            match (ran, wanted) {
                (Ok(()), Ok(wanted)) => {
                    tally.checks += wanted.len() as u64;
                    for (i, (got, want)) in results.chunks_exact(size).zip(&wanted).enumerate() {
                        if got != &want.to_le_bytes()[..size] {
                            let got = got.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
                            let (got, want) = (Answer::Code(got), Answer::Code(*want));
                            tally.fail(witness(Some(i as u64), got, want));
                        }
                    }
                }
                (Err(_), Err(_)) => tally.checks += 1,
                (got, want) => {
                    let (got, want) = (format!("{got:?}"), format!("{:?}", want.map(|all| all.len())));
                    tally.fail(witness(None, Answer::Text(got), Answer::Text(want)));
                }
            }
        }
    }
}

/// Source values. Half of the tensors have few significant bits, so that quotients are ties. The other tensors have all
/// magnitudes.
fn source(src: DType, n: u64, random: &mut Random) -> Vec<u64> {
    let to_src = ieee::Cast::to(src).resolve(DType::F64).expect("f64 becomes any float");
    let (short, spread) = (random.below(2) == 0, 1 + random.below(30));
    let one = |random: &mut Random| {
        let bits = random.bits();
        let significand = if short { f64::from((bits & 31) as u8) / 16.0 } else { (bits & 0xffff_ffff) as f64 / 4e9 };
        let exponent = random.below(spread) as i32 - (spread / 2) as i32;
        let x = significand * f64::powi(2.0, exponent) * if bits >> 63 == 0 { 1.0 } else { -1.0 };
        cast_one(&to_src, x.to_bits()).code().unwrap_or(0)
    };
    (0..n).map(|_| one(random)).collect()
}

fn written(name: &str, layout: &Layout, level: Level, random: &mut Random, tally: &mut Tally) {
    let how = Quantization {
        mx: MxScale::ALL[random.below(MxScale::ALL.len() as u64) as usize].1,
        nonfinite: NonFinite::Error,
        search: if random.below(16) == 0 { Search::Mse } else { Search::Formula },
        power_of_two: random.below(4) == 0,
    };
    let src = random.pick(&[DType::Bf16, DType::Bf16, DType::F16, DType::F32, DType::F64]);
    let exec = CastOptions { level, ..CastOptions::default() };
    let Ok(quantizer) = Quantizer::new(layout, src, &how, &exec) else { return };
    let codes = source(src, layout.elements(), random);
    let size = src.storage_bits().expect("a float has a width") as usize / 8;
    let bytes: Vec<u8> = codes.iter().flat_map(|code| code.to_le_bytes()[..size].to_vec()).collect();
    let to_f32 = ieee::Cast::to(DType::F32).resolve(src).expect("any float becomes f32");
    let values: Vec<u32> = codes.iter().map(|code| cast_one(&to_f32, *code).code().unwrap_or(0) as u32).collect();
    let largest = amax(how.nonfinite, &values).expect("it is finite");
    let global = quantizer.global(f32::from_bits(largest)).unwrap_or(1.0);
    let mut got = [Part::Codes, Part::Scales, Part::Zeros]
        .map(|part| vec![0xa5; layout.part_bytes(part).expect("the layout is one").unwrap_or(0) as usize]);
    let want = definition(layout, &how, global, &values);
    let [codes, scales, zeros] = &mut got;
    let ran = quantizer.run(0, 0..layout.rows, &bytes, f32::from_bits(largest), PartsMut { codes, scales, zeros });
    for (part, (got, want)) in ["codes", "scales", "zeros"].into_iter().zip(got.iter().zip(&want)) {
        tally.checks += got.len() as u64;
        let wrong = got.iter().zip(want).position(|(got, want)| got != want);
        if let (Some(at), _) | (None, Some(at)) = (wrong, ran.is_err().then_some(0)) {
            let who = format!("{level}, {name}, byte {at} of {part}, {how:?}");
            let (got, want) = (Answer::Code(got[at].into()), Answer::Code(want[at].into()));
            tally.fail(Witness { src, dst: DType::F32, policy: CastPolicy::IEEE, who, code: None, got, want });
        }
    }
}

fn definition(layout: &Layout, how: &Quantization, global: f32, values: &[u32]) -> [Vec<u8>; 3] {
    let mut stored = [Part::Codes, Part::Scales, Part::Zeros]
        .map(|part| vec![0; layout.part_bytes(part).expect("the layout is one").unwrap_or(0) as usize]);
    let (cols, shape) = (layout.cols as usize, [layout.rows, layout.cols]);
    let Some(planes) = layout.planes() else {
        let Coding::Blocks { block, .. } = layout.coding else { return stored };
        let blocks = stored[0].chunks_mut(block.bytes() as usize);
        for (values, bytes) in values.chunks(block.elements() as usize).zip(blocks) {
            block.quantize(how.nonfinite, values, bytes).expect("it is written");
        }
        return stored;
    };
    let (block, grid) = (planes.scales.block, layout.grid(planes.scales.block));
    let clip = |i: u64, block: u64, n: u64| (i * block)..((i + 1) * block).min(n);
    for at in (0..grid[0]).flat_map(|i| (0..grid[1]).map(move |j| [i, j])) {
        let (rows, of_cols) = (clip(at[0], block[0], layout.rows), clip(at[1], block[1], layout.cols));
        let places: Vec<[u64; 2]> = rows.flat_map(|r| of_cols.clone().map(move |c| [r, c])).collect();
        let x: Vec<u32> = places.iter().map(|[r, c]| values[*r as usize * cols + *c as usize]).collect();
        let made = planes.quantize(how, global.to_bits(), &x).expect("it is written");
        let set = |plane: Plane, shape, at, bytes: &mut [u8], code| {
            plane.packing.set(plane.code.bits(), shape, at, bytes, code);
        };
        for (place, code) in places.iter().zip(made.codes) {
            set(planes.codes, shape, *place, &mut stored[0], code);
        }
        set(planes.scales.plane, grid, at, &mut stored[1], made.scale);
        if let Zero::Grid { plane, .. } = planes.zero {
            set(plane, grid, at, &mut stored[2], made.zero);
        }
    }
    stored
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Progress;

    #[test]
    fn nothing_is_found_and_everything_is_looked_at() {
        let session = Session { seed: 3, ..Session::new(Progress::Hidden) };
        let report = run(&session, &Options { cases: 1 });
        assert_eq!((report.mismatches(), report.sheet.rows.len()), (0, session.levels.len()), "{report}");
        assert!(report.sheet.rows.iter().all(|row| row.1.checks > 1 << 20), "{report}");
    }
}
