//! Throughput of one pair per route and width, at every level, compared with memcpy and with other crates. Run with
//! `cargo bench -p truecast-cli`. Sizes, data and buffers are as in `truecast bench` (`docs/kernels.md §13`).

use divan::Bencher;
use divan::counter::BytesCount;
use half::slice::HalfFloatSliceExt;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{LazyLock, Mutex};
use truecast::request::Request;
use truecast_cli::bench::{Arrays, Size, data, memcpy, pool::Pool};
use truecast_core::DType;
use truecast_kernel::{Caches, CastOptions, Caster, Elements, ElementsMut, Level};

fn main() {
    divan::main();
}

/// Pairs of types. The comment after each pair names its route.
const PAIRS: [(DType, DType); 8] = [
    (DType::F8E4M3Fn, DType::F32), // Table8, widening
    (DType::I4, DType::I8),        // Table8 after unpacking
    (DType::F32, DType::Bf16),     // Fused
    (DType::F32, DType::F8E4M3Fn), // Fused, narrower
    (DType::F32, DType::F4E2M1),   // Fused, then packing
    (DType::F64, DType::F8E4M3Fn), // through f32
    (DType::F32, DType::I32),      // Direct
    (DType::I64, DType::F32),      // Direct, narrowing
];

#[derive(Clone, Copy)]
enum Contender {
    Memcpy,
    Truecast(Level),
}

#[derive(Clone, Copy)]
struct Row {
    src: DType,
    dst: DType,
    contender: Contender,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { src, dst, contender } = self;
        match contender {
            Contender::Memcpy => write!(f, "{src} -> {dst} memcpy"),
            Contender::Truecast(level) => write!(f, "{src} -> {dst} {level}"),
        }
    }
}

fn rows() -> Vec<Row> {
    let contenders =
        || std::iter::once(Contender::Memcpy).chain(Level::available().into_iter().map(Contender::Truecast));
    PAIRS.into_iter().flat_map(|(src, dst)| contenders().map(move |contender| Row { src, dst, contender })).collect()
}

/// One source buffer and one destination buffer for all rows.
static POOLS: LazyLock<Mutex<[Pool; 2]>> = LazyLock::new(|| {
    let largest = PAIRS.iter().map(|&(src, dst)| arrays(src, dst, Size::Dram));
    let bytes = largest.map(|a| a.src_bytes.max(a.dst_bytes)).max().expect("there are pairs");
    Mutex::new([(); 2].map(|()| Pool::new(bytes).expect("there is memory")))
});

fn arrays(src: DType, dst: DType, size: Size) -> Arrays {
    Arrays::new(src, dst, size, &Caches::of_this_machine()).expect("no pair has text")
}

fn run(bencher: Bencher, Row { src, dst, contender }: Row, size: Size) {
    let Arrays { len, src_bytes, dst_bytes } = arrays(src, dst, size);
    let mut pools = POOLS.lock().expect("no row panics");
    let [src_pool, dst_pool] = &mut *pools;
    data::fill(src, src_pool.bytes_mut());
    let (from, to) = (src_pool.bytes(), dst_pool.bytes_mut());
    let bencher = bencher.counter(BytesCount::new(src_bytes + dst_bytes));
    match contender {
        Contender::Memcpy => {
            let n = arrays(src, dst, size).copied_bytes();
            bencher.bench_local(|| memcpy(&from[..n], &mut to[..n], NonZeroUsize::MIN));
        }
        Contender::Truecast(level) => {
            let spec = Request::default().resolve(src, dst).expect("the default rules allow every pair");
            let exec = CastOptions { level, threads: NonZeroUsize::MIN, ..CastOptions::default() };
            let caster = Caster::new(&spec, &exec).expect("no pair has text");
            let codes = Elements::new(src, len, &from[..src_bytes]).expect("the length fits");
            bencher.bench_local(|| {
                caster.cast(codes, ElementsMut::new(dst, len, &mut to[..dst_bytes]).expect("the length fits"))
            });
        }
    }
}

#[divan::bench(args = rows())]
fn l2(bencher: Bencher, row: Row) {
    run(bencher, row, Size::L2);
}

#[divan::bench(args = rows(), sample_count = 20)]
fn llc(bencher: Bencher, row: Row) {
    run(bencher, row, Size::Llc);
}

#[divan::bench(args = rows(), sample_count = 10, sample_size = 1)]
fn dram(bencher: Bencher, row: Row) {
    run(bencher, row, Size::Dram);
}

/// Other crates, with buffers in the L2 cache.
mod crates {
    use super::*;
    use float8::F8E4M3;
    use half::{bf16, f16};

    fn from_f32<T: Clone>(bencher: Bencher, dst: DType, zero: T, convert: impl Fn(&[f32], &mut [T])) {
        let Arrays { len, src_bytes, dst_bytes } = arrays(DType::F32, dst, Size::L2);
        let mut bytes = vec![0; src_bytes];
        data::fill(DType::F32, &mut bytes);
        let src: Vec<f32> = bytes.as_chunks().0.iter().map(|element| f32::from_le_bytes(*element)).collect();
        let mut dst = vec![zero; len];
        bencher.counter(BytesCount::new(src_bytes + dst_bytes)).bench_local(|| convert(&src, &mut dst));
    }

    #[divan::bench]
    fn half_f32_to_f16(bencher: Bencher) {
        from_f32(bencher, DType::F16, f16::ZERO, |src, dst| dst.convert_from_f32_slice(src));
    }

    #[divan::bench]
    fn half_f32_to_bf16(bencher: Bencher) {
        from_f32(bencher, DType::Bf16, bf16::ZERO, |src, dst| dst.convert_from_f32_slice(src));
    }

    #[divan::bench]
    fn float8_f32_to_f8e4m3fn(bencher: Bencher) {
        let convert = |src: &[f32], dst: &mut [F8E4M3]| {
            dst.iter_mut().zip(src).for_each(|(d, s)| *d = F8E4M3::from_f32(*s));
        };
        from_f32(bencher, DType::F8E4M3Fn, F8E4M3::ZERO, convert);
    }
}
