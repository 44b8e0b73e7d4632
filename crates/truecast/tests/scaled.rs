//! Scaled tensors in memory against the reference definition (`truecast_core::scaled`). The tests cover all names of
//! schemes, stacks of matrices, divided work, and errors.

use std::num::NonZeroUsize;
use truecast::files::Error;
use truecast::scaled::{self, Dequantizer, Form, NonFinite, Part, Plane, Quantization, Quantizer, Search, scheme};
use truecast::{CastOptions, CastSpec, DType, ErrorKind, cast_one, spec::onnx};
use truecast_core::scaled::{Coding, Layout, Parts, Zero};

const SCHEMES: [&str; 22] = [
    "mxfp4", "mxfp6", "mxfp8", "nvfp4", "ct:nvfp4-pack-quantized", "fp8-block", "fp8-block:24x40",
    "fp8-block,scale=ue8m0", "fp8-tensor", "fp8-channel", "fp8-channel,scale=bf16", "int4-group,group=32",
    "int4-group,group=32,symmetric=false", "int4-channel", "int8-group,group=32", "int8-channel",
    "int8-channel,symmetric=false", "int8-tensor", "ct:float-quantized,strategy=group,group=64", "modelopt:FP8",
    "modelopt:MXFP8", "ct:pack-quantized,bits=3,group=32",
];

/// f32 of many magnitudes; each matrix has a block of zeros.
fn weights(elements: u64) -> Vec<f32> {
    let mut state = 0x9e37_79b9u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 8
    };
    let one = |i: u64| {
        let x = (next() as f32 / 8_388_608.0 - 1.0) * (-((i / 64 % 9) as f32)).exp2();
        if i % 6144 < 64 || i.is_multiple_of(97) { x * 0.0 } else { x }
    };
    (0..elements).map(one).collect()
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn exec(threads: usize) -> CastOptions {
    CastOptions { threads: NonZeroUsize::new(threads).unwrap(), ..CastOptions::default() }
}

fn quantize(form: &Form, how: &Quantization, src: &[u8], threads: usize) -> Result<Vec<Vec<u8>>, Error> {
    let mut arrays: Vec<Vec<u8>> = form.arrays().iter().map(|array| vec![0x5a; array.bytes()]).collect();
    let mut rooms: Vec<&mut [u8]> = arrays.iter_mut().map(Vec::as_mut_slice).collect();
    Quantizer::new(form, DType::F32, how, &exec(threads))?.run(src, &mut rooms)?;
    Ok(arrays)
}

/// Arrays of the reference definition, block after block.
fn expected(form: &Form, how: &Quantization, values: &[f32]) -> Vec<Vec<u8>> {
    let layout = form.layout();
    let Coding::Planes(planes) = layout.coding else { unreachable!() };
    let bits: Vec<u32> = values.iter().map(|x| x.to_bits()).collect();
    let amax = values.iter().fold(0f32, |most, x| most.max(x.abs()));
    let global = planes.global.map(|global| global.rule.of_amax(amax.to_bits()).unwrap());
    let mut arrays: Vec<Vec<u8>> = form.arrays().iter().map(|array| vec![0; array.bytes()]).collect();
    let Layout { matrices, rows, cols, .. } = *layout;
    let [bm, bk] = planes.scales.block;
    let grid = layout.grid(planes.scales.block);
    let mut set = |part: Part, plane: Plane, matrix: u64, shape: [u64; 2], at, code| {
        let array = form.arrays().iter().position(|array| array.part == part).unwrap();
        let size = plane.bytes(shape).unwrap() as usize;
        let room = &mut arrays[array][matrix as usize * size..][..size];
        plane.packing.set(plane.code.bits(), shape, at, room, code);
    };
    for matrix in 0..matrices {
        for at in (0..grid[0]).flat_map(|i| (0..grid[1]).map(move |j| [i, j])) {
            let of_rows = at[0] * bm..(at[0] + 1).saturating_mul(bm).min(rows);
            let of_cols = at[1] * bk..(at[1] + 1).saturating_mul(bk).min(cols);
            let places: Vec<[u64; 2]> = of_rows.flat_map(|r| of_cols.clone().map(move |c| [r, c])).collect();
            let x: Vec<u32> = places.iter().map(|[r, c]| bits[((matrix * rows + r) * cols + c) as usize]).collect();
            let block = planes.quantize(how, global.unwrap_or(1f32.to_bits()), &x).unwrap();
            for (place, code) in places.iter().zip(block.codes) {
                set(Part::Codes, planes.codes, matrix, [rows, cols], *place, code);
            }
            set(Part::Scales, planes.scales.plane, matrix, grid, at, block.scale);
            if let Zero::Grid { plane, .. } = planes.zero {
                set(Part::Zeros, plane, matrix, grid, at, block.zero);
            }
        }
    }
    if let Some(global) = global {
        let array = form.arrays().iter().position(|array| array.part == Part::Global).unwrap();
        arrays[array] = global.to_le_bytes().into();
    }
    arrays
}

fn parts<'a>(form: &Form, arrays: &'a [Vec<u8>]) -> Parts<'a> {
    Parts::of(|part| form.arrays().iter().position(|array| array.part == part).map_or(&[], |at| &arrays[at]))
}

#[test]
fn every_scheme_is_what_the_definition_says() {
    let how = Quantization::default();
    for name in SCHEMES {
        for shape in [&[48u64, 128][..], &[2, 3, 16, 64]] {
            let values = weights(shape.iter().product());
            let form = Form::new(scheme(name).unwrap(), shape).unwrap();
            let arrays = quantize(&form, &how, &bytes(&values), 2).unwrap();
            assert!(arrays == expected(&form, &how, &values), "{name} {shape:?}");
            // The reference definition dequantizes to f32, and one rounding to bf16 follows.
            let of = parts(&form, &arrays);
            let dense: Vec<u32> = (0..values.len() as u64).map(|i| form.layout().value(&of, i).unwrap()).collect();
            let to_bf16 = onnx::Cast::to(DType::Bf16).resolve(DType::F32).unwrap();
            for spec in [CastSpec::copy(DType::F32), to_bf16] {
                let width = spec.dst.storage_bits().unwrap() as usize / 8;
                let mut dst = vec![0; values.len() * width];
                let arrays: Vec<&[u8]> = arrays.iter().map(Vec::as_slice).collect();
                Dequantizer::new(&form, &spec, &exec(2)).unwrap().run(&arrays, &mut dst).unwrap();
                let right = dense.iter().flat_map(|x| {
                    let code = cast_one(&spec, u64::from(*x)).code().unwrap();
                    code.to_le_bytes()[..width].to_vec()
                });
                assert!(dst.iter().copied().eq(right), "{name} {shape:?} to {}", spec.dst);
            }
        }
    }
}

/// Several pieces of 1 MiB, some of which write the same scale.
#[test]
fn pieces_and_threads_change_no_bit() {
    let shape = [130 * 5, 1024];
    let values = weights(shape.iter().product());
    let src = bytes(&values);
    for name in ["nvfp4", "fp8-block", "fp8-tensor", "int8-tensor", "int4-group,group=32,symmetric=false", "mxfp8"] {
        let form = Form::new(scheme(name).unwrap(), &shape).unwrap();
        let how = Quantization::default();
        let one = quantize(&form, &how, &src, 1).unwrap();
        assert!(one == quantize(&form, &how, &src, 4).unwrap(), "{name}");
        assert!(one == expected(&form, &how, &values), "{name}");
        let dense = |threads| {
            let mut dst = vec![0; src.len()];
            let arrays: Vec<&[u8]> = one.iter().map(Vec::as_slice).collect();
            Dequantizer::new(&form, &CastSpec::copy(DType::F32), &exec(threads))
                .unwrap()
                .run(&arrays, &mut dst)
                .unwrap();
            dst
        };
        assert!(dense(1) == dense(4), "{name}");
    }
}

#[test]
fn options_reach_the_definition() {
    let values = weights(64 * 64);
    let search = Quantization { search: Search::Mse, ..Quantization::default() };
    let floor = Quantization { mx: truecast::scaled::MxScale::Floor, ..Quantization::default() };
    for (name, how) in [("nvfp4", search), ("fp8-block", search), ("mxfp4", floor), ("mxfp4", search)] {
        let form = Form::new(scheme(name).unwrap(), &[64, 64]).unwrap();
        let found = quantize(&form, &how, &bytes(&values), 1).unwrap();
        assert!(found == expected(&form, &how, &values), "{name}");
        assert!(found != quantize(&form, &Quantization::default(), &bytes(&values), 1).unwrap(), "{name}");
    }
}

#[test]
fn the_first_element_that_is_not_finite_is_named() {
    let shape = [1024, 512];
    let mut values = weights(shape.iter().product());
    (values[400_000], values[300_001]) = (f32::NAN, f32::INFINITY);
    for name in ["mxfp4", "nvfp4", "fp8-tensor", "int8-channel"] {
        let form = Form::new(scheme(name).unwrap(), &shape).unwrap();
        let error = quantize(&form, &Quantization::default(), &bytes(&values), 4).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(error.to_string().starts_with("element 300001 is NaN or infinite"), "{name}: {error}");
        let how = Quantization { nonfinite: NonFinite::Saturate, ..Quantization::default() };
        quantize(&form, &how, &bytes(&values), 4).unwrap();
    }
}

#[test]
fn what_no_scheme_can_hold_is_refused() {
    let refused = |name: &str, shape: &[u64]| Form::new(scheme(name).unwrap(), shape).unwrap_err();
    for (name, shape, why) in [
        ("mxfp4", &[8, 40][..], "not a whole number of groups of 32"),
        ("mxfp4", &[64], "fewer than two dimensions"),
        ("mxfp4", &[0, 64], "no elements"),
        ("awq", &[64, 64], "read, not written"),
    ] {
        let error = refused(name, shape);
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().contains(why), "{error}");
    }
    assert!(scheme("mxfp5").is_err() && scheme("nvfp4,group=3").is_err());
    let form = Form::new(scheme("mxfp8").unwrap(), &[2, 32]).unwrap();
    let short = quantize(&form, &Quantization::default(), &[0; 12], 1).unwrap_err();
    assert!(short.to_string().contains("256 bytes"), "{short}");
    let (whole, how) = ([0; 256], Quantization::default());
    let few = Quantizer::new(&form, DType::F32, &how, &exec(1)).unwrap().run(&whole, &mut [&mut [0; 64]]).unwrap_err();
    assert_eq!((few.kind(), few.to_string()), (ErrorKind::Usage, "the tensor needs 2 arrays, got 1".into()));
    let dense = Dequantizer::new(&form, &CastSpec::copy(DType::F32), &exec(1)).unwrap();
    let many = dense.run(&[&[0; 64], &[0; 2], &[]], &mut [0; 256]).unwrap_err();
    assert_eq!(many.to_string(), "the tensor needs 2 arrays, got 3");
    assert!(Quantizer::new(&form, DType::I8, &Quantization::default(), &exec(1)).is_err());
}

#[test]
fn a_wrong_number_of_arrays_is_an_error() {
    let form = Form::new(scheme("mxfp4").unwrap(), &[1, 32]).unwrap();
    let exec = CastOptions::default();
    let quantizer = Quantizer::new(&form, DType::F32, &Quantization::default(), &exec).unwrap();
    let dequantizer = Dequantizer::new(&form, &CastSpec::copy(DType::F32), &exec).unwrap();
    for n in [0, 1, 3] {
        let mut arrays = vec![vec![0; 16]; n];
        let quantized = quantizer.run(&[0; 128], &mut arrays.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>());
        let values = dequantizer.run(&arrays.iter().map(Vec::as_slice).collect::<Vec<_>>(), &mut [0; 128]);
        for result in [quantized, values] {
            let Err(Error::Scaled(scaled::ScaledError::Arrays { expected: 2, got })) = result else {
                panic!("{result:?}")
            };
            assert_eq!(got, n);
        }
    }
}

#[test]
fn slices_become_scaled_tensors() {
    let values = weights(3 * 64);
    let q = scaled::quantize(&values, [3, 64], "mxfp4").unwrap();
    assert_eq!((q.codes().len(), q.scales().len(), q.part(Part::Zeros).len()), (96, 6, 0));
    let back = q.dequantize().unwrap();
    let again = scaled::quantize(&back, [3, 64], "mxfp4").unwrap();
    assert_eq!(again.dequantize().unwrap(), back, "values of codes are kept");
    let of = |error: Error| (error.kind(), error.to_string());
    assert_eq!(of(scaled::quantize(&values, [3, 64], "mxfp5").unwrap_err()).0, ErrorKind::Usage);
    assert!(of(scaled::quantize(&values, [3, 63], "mxfp4").unwrap_err()).1.contains("mxfp4"));
    let wrong = scaled::quantize(&values[1..], [3, 64], "mxfp4");
    assert!(matches!(wrong, Err(Error::Scaled(scaled::ScaledError::Results { expected: 768, got: 764 }))), "{wrong:?}");
    assert!(matches!(
        scaled::quantize(&[1i8; 64], [1, 64], "mxfp4"),
        Err(Error::Scaled(scaled::ScaledError::Source { .. }))
    ));
}
