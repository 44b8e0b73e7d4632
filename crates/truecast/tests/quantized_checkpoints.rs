//! Every writable scheme: the output is detected as this scheme, and its values equal those of the reference definition
//! (`docs/spec/checkpoints.md §5.6`, §7).

use std::path::Path;
use std::sync::atomic::AtomicBool;
use truecast::convert::{Measuring, Options, Plan, Verification};
use truecast::report::Report;
use truecast::select::quantize_options::{MxScale, Quantization, Scheme, Search};
use truecast::select::{QuantizeOptions, Rule, Selection};
use truecast::verify::Coverage;
use truecast::{CastOptions, DType, DenseTensor, Layout, cast_one, spec::ieee};
use truecast_core::scaled::{Code, Planes, Terms, Zero, amax, value_of};
use truecast_core::{Exact, exact, format};
use truecast_io::{OpenOptions, Tensor};
use truecast_schemes::{ActivationScale, Family, Need, target};
use truecast_testkit::safetensors::safetensors;

const NAME: &str = "model.layers.0.mlp.up_proj.weight";

/// Numbers of many magnitudes with some zeros; the first block has small numbers.
fn values(n: usize) -> Vec<f32> {
    let mut state = 7u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f32::from(i16::from_ne_bytes([(state >> 16) as u8, (state >> 24) as u8])) / 32768.0
    };
    let value = |i: usize| match (i / 64 % 7, i % 41) {
        (3, _) => 0.0,
        (_, 5) => -0.0,
        (5, _) => next() * 1e-4,
        _ => next() * next(),
    };
    (0..n).map(value).collect()
}

fn stored(values: &[f32], dtype: DType) -> Vec<u8> {
    let spec = ieee::Cast::to(dtype).resolve(DType::F32).unwrap();
    let size = dtype.storage_bits().unwrap() as usize / 8;
    let code = |x: &f32| cast_one(&spec, x.to_bits().into()).code().unwrap().to_le_bytes();
    values.iter().flat_map(|x| code(x)[..size].to_vec()).collect()
}

/// f32 bits that the reference definition gives for stored elements.
fn widened(bytes: &[u8], dtype: DType) -> Vec<u32> {
    let spec = ieee::Cast::to(DType::F32).resolve(dtype).unwrap();
    let size = dtype.storage_bits().unwrap() as usize / 8;
    let code = |b: &[u8]| b.iter().rev().fold(0u64, |code, byte| code << 8 | u64::from(*byte));
    bytes.chunks(size).map(|b| cast_one(&spec, code(b)).code().unwrap() as u32).collect()
}

/// Values after quantization by the reference definition: f32 bits, row-major.
fn defined(values: &[u32], layout: &truecast_core::scaled::Layout, how: &Quantization) -> Vec<u32> {
    let planes: Planes = *layout.planes().unwrap();
    let [kept_rows, kept_cols] = layout.kept;
    let [block_rows, block_cols] = planes.scales.block;
    let mut result = vec![0; values.len()];
    let global = planes
        .global
        .map_or(1f32.to_bits(), |global| global.rule.of_amax(amax(how.nonfinite, values).unwrap()).unwrap());
    let scale_format = match planes.scales.plane.code {
        Code::Float(DType::F32) => format::F32,
        code => code.format().unwrap(),
    };
    for matrix in 0..layout.matrices {
        for first_row in (0..layout.rows).step_by(block_rows as usize) {
            for first_col in (0..layout.cols).step_by(block_cols as usize) {
                let rows = first_row..(first_row + block_rows).min(layout.rows);
                let cols = first_col..(first_col + block_cols).min(layout.cols);
                let places: Vec<Option<usize>> = rows
                    .flat_map(|row| cols.clone().map(move |col| (row, col)))
                    .map(|(row, col)| {
                        let is_kept = row < kept_rows && col < kept_cols;
                        is_kept.then_some(((matrix * kept_rows + row) * kept_cols + col) as usize)
                    })
                    .collect();
                let block: Vec<u32> = places.iter().map(|at| at.map_or(0, |at| values[at])).collect();
                let made = planes.quantize(how, global, &block).unwrap();
                let zero = match (planes.zero, planes.codes.code) {
                    (Zero::Constant(zero), _) => i128::from(zero),
                    (Zero::Grid { .. }, Code::Int(f)) => f.value(made.zero),
                    _ => 0,
                };
                for (at, code) in places.iter().zip(&made.codes) {
                    let Some(at) = at else { continue };
                    let code = match planes.codes.code {
                        Code::Float(dtype) => exact::decode(dtype, *code),
                        Code::Book(_) => planes.codes.code.value(*code),
                        Code::Int(f) => {
                            let q = f.value(*code) - zero;
                            Exact::Finite { neg: q < 0, sig: q.unsigned_abs() as u64, exp: 0, sticky: false }
                        }
                    };
                    let scale = exact::decode_float(&scale_format, made.scale);
                    let global = planes.global.map(|of| (of.rule, exact::decode_float(&format::F32, global.into())));
                    let terms = Terms { code, scale, global, bias: None };
                    result[*at] = value_of(planes.form, &format::F32, &terms);
                }
            }
        }
    }
    result
}

fn convert(src: &Path, dst: &Path, options: &Options) -> Result<truecast::report::Report, truecast::files::Error> {
    truecast::Convert::new(src, dst).with(options.clone()).run()
}

fn options(quantize: QuantizeOptions) -> Options {
    Options { quantize: Some(quantize), ..Options::default() }
}

fn dense() -> Options {
    let selection = Selection { to: Some(DType::F32), ..Selection::default() };
    Options { selection, ..Options::default() }
}

fn verify(src: &Path, out: &Path, options: &Options) {
    let verification = Verification::new(src, out, options, Coverage::Full, 0).unwrap();
    let verdict = verification.run(&AtomicBool::new(false), |_| ()).unwrap();
    assert_eq!(verdict.differences, []);
}

fn read(path: &Path, name: &str) -> Vec<u8> {
    DenseTensor::read(path, name, OpenOptions::default()).unwrap().into_bytes()
}

/// The report's measures (§10) equal those of the reference definition. Only the order of additions may differ.
fn measured(scheme: &str, source: &[u32], result: &[u32], report: &Report) {
    let counts = &report.tensors.iter().find(|row| &*row.name == NAME).unwrap().counts;
    let value = |bits: &u32| f64::from(f32::from_bits(*bits));
    let pairs: Vec<(f64, f64)> = source.iter().map(value).zip(result.iter().map(value)).collect();
    let sum = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>();
    let (signal, noise) = (sum(|(x, _)| x * x), sum(|(x, y)| (y - x) * (y - x)));
    for (measure, given, right) in [
        ("SQNR", counts.sqnr_db(), 10.0 * (signal / noise).log10()),
        ("RMSE", counts.rmse(), (noise / pairs.len() as f64).sqrt()),
        ("cosine", counts.cosine(), sum(|(x, y)| x * y) / (signal * sum(|(_, y)| y * y)).sqrt()),
    ] {
        assert!(
            given == right || (given - right).abs() <= 1e-12 * right.abs(),
            "{scheme}: {measure} {given}, {right} is right"
        );
    }
    let is_larger = |largest: f64, (x, y): &(f64, f64)| largest.max((y - x).abs());
    assert_eq!(counts.max_abs_error, pairs.iter().fold(0.0, is_larger), "{scheme}: largest error");
}

fn check(scheme: &str, dtype: DType, shape: &[u64], how: Quantization) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let [src, out, back] = ["src", "out", "back"].map(|name| folder.path().join(name));
    std::fs::create_dir(&src).unwrap();
    std::fs::write(src.join("config.json"), r#"{"model_type": "x", "torch_dtype": "bfloat16"}"#).unwrap();
    let bytes = stored(&values(shape.iter().product::<u64>() as usize), dtype);
    let norm = stored(&values(8), dtype);
    let stored_as = dtype.name().to_uppercase(); // as safetensors calls it
    let tensors = [(NAME, &*stored_as, shape, bytes.clone()), ("model.norm.weight", &stored_as, &[8], norm.clone())];
    std::fs::write(src.join("model.safetensors"), safetensors(&tensors, &[])).unwrap();
    let writing = QuantizeOptions { how, ..QuantizeOptions::of(scheme.parse().unwrap()) };
    let rules = vec![Rule::quantize(NAME).unwrap()];
    let selection = Selection { rules, ..Selection::default() };
    let options = Options { selection, ..options(writing) };
    let report = convert(&src, &out, &options).unwrap_or_else(|error| panic!("{scheme}: {error}"));
    verify(&src, &out, &options);
    assert_eq!(read(&out, "model.norm.weight"), norm);

    let again = convert(&out, &back, &dense()).unwrap_or_else(|error| panic!("{scheme}: {error}"));
    let row = again.tensors.iter().find(|row| &*row.name == NAME).unwrap();
    let family = |name: &str| match name.parse::<Scheme>().unwrap().family {
        // Both schemes have the same declaration (§5.6).
        Family::Fp8Channel => Family::CtFloatQuantized,
        family => family,
    };
    assert_eq!(family(row.scheme.as_deref().unwrap_or("plain")), family(scheme));
    let logical = Tensor { name: NAME.into(), dtype, layout: Layout::Packed, shape: shape.into() };
    // Scales have the type of the model.
    let stored = scheme.parse::<Scheme>().unwrap().with_scales_of(DType::Bf16);
    let layout = target(&logical, stored).unwrap().layout;
    let source = widened(&bytes, dtype);
    let expected = defined(&source, &layout, &how);
    measured(scheme, &source, &expected, &report);
    let got = read(&back, NAME);
    assert_eq!(got, read(&out, NAME), "{scheme}: one tensor of the folder");
    let got: Vec<u32> = got.as_chunks::<4>().0.iter().map(|b| u32::from_le_bytes(*b)).collect();
    // Files of ComfyUI do not record padding.
    let read_cols = row.shape[row.shape.len() - 1] as usize;
    let cols = shape[shape.len() - 1] as usize;
    for (i, expected) in expected.iter().enumerate() {
        assert_eq!(got[i / cols * read_cols + i % cols], *expected, "{scheme} {dtype} {shape:?}: element {i}");
    }
    report
}

#[test]
fn every_scheme_that_is_written() {
    for family in Family::all().filter(|family| family.writing() == truecast_schemes::Writing::Yes) {
        let needs_ranges = matches!(ActivationScale::of_target(family), Some((_, Need::Required)));
        if !needs_ranges && ![Family::Plain, Family::GptOss].contains(&family) {
            check(family.name(), DType::Bf16, &[192, 256], Quantization::default());
        }
    }
}

#[test]
fn parameters_and_source_types() {
    for (scheme, dtype) in [
        ("fp8-block:64x32", DType::F32),
        ("fp8-block,scale=ue8m0", DType::F16),
        ("fp8-channel,scale=bf16", DType::F64),
        ("ct:float-quantized,strategy=tensor", DType::F32),
        ("ct:float-quantized,block=64x64", DType::Bf16),
        ("ct:int-quantized,symmetric=false", DType::F32),
        ("ct:int-quantized,group=64", DType::F16),
        ("ct:pack-quantized,bits=3,group=32", DType::F32),
        ("ct:pack-quantized,bits=8,strategy=channel,scale=bf16", DType::Bf16),
        ("ct:pack-quantized,bits=4,group=32,symmetric=false", DType::F32),
    ] {
        check(scheme, dtype, &[192, 256], Quantization::default());
    }
}

#[test]
fn awkward_shapes() {
    for scheme in [
        "fp8-block", "fp8-tensor", "fp8-channel", "ct:int-quantized", "modelopt:FP8_PER_CHANNEL_PER_TOKEN",
        "comfy:float8_e5m2",
    ] {
        for shape in [[576, 300], [129, 127], [1, 1], [3, 5]] {
            check(scheme, DType::F32, &shape, Quantization::default());
        }
    }
    for scheme in ["comfy:nvfp4", "comfy:mxfp8"] {
        for shape in [[13, 33], [129, 127], [300, 96]] {
            check(scheme, DType::Bf16, &shape, Quantization::default());
        }
    }
    for scheme in ["fp8-block", "modelopt:W4A16_NVFP4", "ct:pack-quantized,group=32", "ct:mxfp4-pack-quantized"] {
        check(scheme, DType::Bf16, &[3, 200, 64], Quantization::default());
    }
}

/// Matrices smaller than a piece, alone and in a stack; and larger matrices.
#[test]
fn stacks() {
    for (scheme, shape) in [
        ("fp8-block", [300, 3, 3]),
        ("fp8-block", [3, 150, 500]),
        ("fp8-block", [700, 2, 130]),
        ("fp8-block:300x300", [2, 300, 300]),
        ("fp8-channel", [90, 7, 5]),
        ("ct:int-quantized", [70_001, 1, 1]),
        ("ct:int-quantized,symmetric=false", [50, 3, 4]),
        ("ct:pack-quantized,strategy=channel", [40, 5, 9]),
        ("ct:pack-quantized,strategy=channel,symmetric=false", [9000, 3, 9]),
        ("ct:mxfp4-pack-quantized", [300, 2, 32]),
    ] {
        check(scheme, DType::F32, &shape, Quantization::default());
    }
    let mse = Quantization { search: Search::Mse, ..Quantization::default() };
    check("fp8-block", DType::F32, &[100, 3, 3], mse);
}

/// The search never has a larger error than the formula.
#[test]
fn scales_are_chosen_as_asked() {
    let mse = Quantization { search: Search::Mse, ..Quantization::default() };
    for scheme in [
        "fp8-block:32x32", "fp8-tensor", "ct:pack-quantized,group=32", "modelopt:W4A16_NVFP4",
        "ct:mxfp4-pack-quantized",
    ] {
        let formula = check(scheme, DType::F32, &[65, 96], Quantization::default());
        let searched = check(scheme, DType::F32, &[65, 96], mse);
        let noise = |report: &Report| report.tensors.iter().find(|row| &*row.name == NAME).unwrap().counts.noise;
        assert!(noise(&searched) < noise(&formula), "{scheme}");
    }
    for (_, mx) in MxScale::ALL {
        check("ct:mxfp4-pack-quantized", DType::F32, &[65, 96], Quantization { mx, ..Quantization::default() });
    }
}

#[test]
fn counts_do_not_depend_on_pieces() {
    let folder = tempfile::tempdir().unwrap();
    let src = folder.path().join("src");
    std::fs::create_dir(&src).unwrap();
    let bytes = stored(&values(700 * 384), DType::F32);
    let whole: &[u64] = &[700, 384];
    for (scheme, shape) in [
        ("fp8-block", whole),
        ("ct:pack-quantized,group=32", whole),
        ("modelopt:W4A16_NVFP4", whole),
        ("fp8-tensor", whole),
        ("fp8-block:1000x1000", whole),
        ("fp8-block", &[67_200, 2, 2]),
        ("fp8-block", &[2_100, 1, 128]),
        ("fp8-block:1x64", &[1_050, 2, 128]),
        ("fp8-block:2x64", &[1_050, 2, 128]),
    ] {
        let file = safetensors(&[("a.weight", "F32", shape, bytes.clone())], &[]);
        std::fs::write(src.join("model.safetensors"), file).unwrap();
        let mut seen = Vec::new();
        for (i, (memory, threads)) in [(256 << 20, 1), (1 << 20, 1), (256 << 20, 3)].into_iter().enumerate() {
            let exec = CastOptions { threads: std::num::NonZeroUsize::new(threads).unwrap(), ..CastOptions::default() };
            let rules = vec![Rule::quantize("a.weight").unwrap()];
            let selection = Selection { rules, ..Selection::default() };
            let max_memory = memory.max(2 << 20);
            let options =
                Options { selection, max_memory, exec, ..options(QuantizeOptions::of(scheme.parse().unwrap())) };
            let out = folder.path().join(format!(
                "{}-{i}-{}",
                scheme.replace([':', ','], "-"),
                shape.len() * shape[0] as usize
            ));
            let report = Plan::new(&src, &out, &options).unwrap().run(&AtomicBool::new(false), |_| ()).unwrap();
            seen.push((*report.tensors[0].counts, std::fs::read(out.join("model.safetensors")).unwrap()));
        }
        assert!(seen.iter().all(|other| *other == seen[0]), "{scheme}");
        assert_eq!(seen[0].0.elements, 700 * 384);
    }
}

/// Every byte is verified, even padding of words, rows and tiles.
#[test]
fn no_byte_may_differ() {
    for scheme in
        ["comfy:mxfp8", "comfy:nvfp4", "modelopt:W4A16_NVFP4", "ct:pack-quantized,bits=4,group=32", "fp8-tensor"]
    {
        let folder = tempfile::tempdir().unwrap();
        let [src, out] = ["src", "out"].map(|name| folder.path().join(name));
        std::fs::create_dir(&src).unwrap();
        std::fs::write(src.join("config.json"), r#"{"model_type": "x"}"#).unwrap();
        let bytes = stored(&values(5 * 64), DType::F32);
        std::fs::write(src.join("model.safetensors"), safetensors(&[(NAME, "F32", &[5, 64], bytes)], &[])).unwrap();
        let options = options(QuantizeOptions::of(scheme.parse().unwrap()));
        convert(&src, &out, &options).unwrap();
        let path = out.join("model.safetensors");
        let right = std::fs::read(&path).unwrap();
        let data = 8 + u64::from_le_bytes(right[..8].try_into().unwrap()) as usize;
        let verification = Verification::new(&src, &out, &options, Coverage::Full, 0).unwrap();
        for at in data..right.len() {
            let mut wrong = right.clone();
            wrong[at] ^= 1 << (at % 8);
            std::fs::write(&path, wrong).unwrap();
            let found = verification.run(&AtomicBool::new(false), |_| ());
            let is_seen = found.map_or(true, |verdict| !verdict.differences.is_empty());
            assert!(is_seen, "{scheme}: byte {} of the data", at - data);
        }
    }
}

#[test]
fn a_sample_counts_every_element() {
    let folder = tempfile::tempdir().unwrap();
    let src = folder.path().join("src");
    std::fs::create_dir(&src).unwrap();
    std::fs::write(src.join("config.json"), r#"{"model_type": "x", "torch_dtype": "bfloat16"}"#).unwrap();
    let shape = [3072u64, 1024];
    let mut numbers = values((shape[0] * shape[1]) as usize);
    numbers[..64 * 1024].fill(0.0);
    numbers[100 * 1024..228 * 1024].fill(1e-41);
    let tensors = [("a.weight", "BF16", &shape[..], stored(&numbers, DType::Bf16))];
    std::fs::write(src.join("model.safetensors"), safetensors(&tensors, &[])).unwrap();
    for scheme in [
        "fp8-block", "ct:pack-quantized,bits=4,group=128", "ct:pack-quantized,bits=4,group=128,symmetric=false",
        "ct:int-quantized", "ct:mxfp4-pack-quantized", "ct:nvfp4-pack-quantized", "ct:mxfp6-pack-quantized",
    ] {
        let made = Measuring::ALL.map(|measure| {
            let rules = vec![Rule::quantize("a.weight").unwrap()];
            let selection = Selection { rules, ..Selection::default() };
            let options = Options { selection, measure, ..options(QuantizeOptions::of(scheme.parse().unwrap())) };
            let out = folder.path().join(format!("{}-{measure}", scheme.replace([':', ','], "-")));
            let report = convert(&src, &out, &options).unwrap();
            (*report.tensors[0].counts, std::fs::read(out.join("model.safetensors")).unwrap())
        });
        let [(sample, of_sample), (full, of_full), (off, of_off)] = made;
        assert!(of_sample == of_full && of_full == of_off, "{scheme}: the result depends on what is measured");
        assert_eq!(sample.unmeasured(), full.unmeasured(), "{scheme}");
        assert_eq!(off, full.unmeasured(), "{scheme}");
        assert!(sample.is_sampled() && sample.measured >= 1 << 20, "{scheme}: {}", sample.measured);
        assert!((sample.sqnr_db() - full.sqnr_db()).abs() < 3.0, "{scheme}: {} {}", sample.sqnr_db(), full.sqnr_db());
        assert!(sample.max_abs_error <= full.max_abs_error, "{scheme}");
    }
}
