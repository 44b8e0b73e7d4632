//! Throughput of text, in bytes of text: `cargo bench -p truecast-kernel`.

use divan::{Bencher, counter::BytesCount};
use truecast_core::DType::{self, F8E4M3Fn, F16, F32, F64, I64};
use truecast_core::spec::onnx::Cast;
use truecast_kernel::text::{TextCaster, Texts};

fn main() {
    divan::main();
}

const ELEMENTS: usize = 1 << 18;
const TYPES: [DType; 5] = [F32, F64, I64, F8E4M3Fn, F16];

/// Floats from a standard normal distribution, like weights; integers of every length.
fn elements(dtype: DType) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(1);
    let mut normal = || (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
    let values: Vec<f64> = (0..ELEMENTS).map(|_| normal()).collect();
    match dtype {
        F32 => values.iter().flat_map(|v| (*v as f32).to_le_bytes()).collect(),
        F64 => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        I64 => (0..ELEMENTS).flat_map(|_| (random.i64(..) >> random.u32(0..63)).to_le_bytes()).collect(),
        narrow => {
            let texts: Vec<String> = values.iter().map(f64::to_string).collect();
            let mut codes = vec![0; ELEMENTS * narrow.storage_bits().unwrap() as usize / 8];
            parser(narrow).parse(&texts, &mut codes).unwrap();
            codes
        }
    }
}

fn parser(dst: DType) -> TextCaster {
    TextCaster::new(&Cast::to(dst).resolve(DType::String).unwrap()).unwrap()
}

fn printer(src: DType) -> TextCaster {
    TextCaster::new(&Cast::to(DType::String).resolve(src).unwrap()).unwrap()
}

fn printed(dtype: DType) -> Texts {
    let mut texts = Texts::default();
    printer(dtype).print(&elements(dtype), &mut texts).unwrap();
    texts
}

#[divan::bench(args = TYPES)]
fn parse(bencher: Bencher<'_, '_>, dtype: DType) {
    let (texts, mut codes, parser) = (printed(dtype), elements(dtype), parser(dtype));
    bencher.counter(BytesCount::new(texts.bytes())).bench_local(|| parser.parse(texts.iter(), &mut codes).unwrap());
}

#[divan::bench(args = TYPES)]
fn print(bencher: Bencher<'_, '_>, dtype: DType) {
    let (codes, mut texts, printer) = (elements(dtype), printed(dtype), printer(dtype));
    bencher.counter(BytesCount::new(texts.bytes())).bench_local(|| {
        texts.clear();
        printer.print(&codes, &mut texts).unwrap();
    });
}

/// Prints with an empty table of texts.
#[divan::bench(args = [F8E4M3Fn, F16], sample_count = 5)]
fn print_first(bencher: Bencher<'_, '_>, dtype: DType) {
    let (codes, texts) = (elements(dtype), printed(dtype));
    bencher.counter(BytesCount::new(texts.bytes())).bench_local(|| {
        let mut texts = Texts::default();
        printer(dtype).print(&codes, &mut texts).unwrap();
        texts
    });
}
