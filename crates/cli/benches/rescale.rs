//! Throughput of RESCALE per type pair, at every level, compared with memcpy and a plain loop. Run with `cargo bench -p
//! truecast-cli --bench rescale`. Sizes and buffers are as in `truecast bench`.

use divan::Bencher;
use divan::counter::BytesCount;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{LazyLock, Mutex};
use truecast_cli::bench::{Arrays, Size, data, memcpy, pool::Pool};
use truecast_core::rescale::{Channel, RescaleSpec, RoundingMode};
use truecast_core::spec::tosa::signless;
use truecast_core::{DType, IntFormat};
use truecast_kernel::{Caches, CastOptions, Elements, ElementsMut, Level, Rescaler};

fn main() {
    divan::main();
}

#[derive(Clone, Copy)]
enum Contender {
    Memcpy,
    Truecast(Level),
    PlainLoop,
}

#[derive(Clone, Copy)]
struct Row {
    src: DType,
    dst: DType,
    rounding: RoundingMode,
    channels: usize,
    contender: Contender,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { src, dst, rounding, channels, contender } = self;
        write!(f, "{src} -> {dst} {} {channels} ", rounding.name())?;
        match contender {
            Contender::Memcpy => f.write_str("memcpy"),
            Contender::Truecast(level) => write!(f, "{level}"),
            Contender::PlainLoop => f.write_str("plain loop"),
        }
    }
}

fn rows() -> Vec<Row> {
    use DType::{I8, I16, I32, I48, U8};
    use RoundingMode::{Double, Inexact, Single};
    let cases = [
        (I8, I8, Single, 1),
        (U8, I8, Single, 1),
        (I8, I8, Single, 3),
        (I8, I8, Single, 64),
        (I8, I8, Double, 64),
        (I16, I8, Single, 1),
        (I16, I16, Single, 1),
        (I16, I16, Double, 64),
        (I32, I8, Single, 1),
        (I32, I8, Double, 1),
        (I32, I8, Inexact, 1),
        (I32, I8, Single, 3),
        (I32, I8, Single, 64),
        (I32, I32, Single, 1),
        (I48, I16, Single, 1),
        (I48, I16, Single, 3),
        (I48, I32, Single, 64),
    ];
    let contenders = || {
        let ours = Level::available().into_iter().map(Contender::Truecast);
        [Contender::Memcpy, Contender::PlainLoop].into_iter().chain(ours)
    };
    let row = |(src, dst, rounding, channels)| {
        contenders().map(move |contender| Row { src, dst, rounding, channels, contender })
    };
    cases.into_iter().flat_map(row).collect()
}

fn spec(row: &Row) -> RescaleSpec {
    let int = |dtype: DType| IntFormat { bits: dtype.code_bits() as u8, signed: dtype != DType::U8 };
    let (scale32, bytes) = (row.src != DType::I48, matches!(row.src, DType::I8 | DType::U8));
    let channel = |i: usize| match scale32 {
        true => Channel { multiplier: (1 << 30) + (i as i32) * 12345, shift: if bytes { 30 } else { 52 } },
        false => Channel { multiplier: (1 << 14) + i as i32, shift: 40 },
    };
    RescaleSpec {
        input: int(row.src),
        output: int(row.dst),
        scale32,
        rounding: row.rounding,
        channels: (0..row.channels).map(channel).collect(),
        input_zp: if bytes { 3 } else { 0 },
        output_zp: if row.dst == DType::I8 { -5 } else { 0 },
    }
}

fn arrays(row: &Row, size: Size) -> Arrays {
    let all = Arrays::new(row.src, row.dst, size, &Caches::of_this_machine()).expect("no pair has text");
    let len = all.len / row.channels * row.channels;
    let bytes = |dtype: DType| len * dtype.storage_bits().expect("integers have a width") as usize / 8;
    Arrays { len, src_bytes: bytes(row.src), dst_bytes: bytes(row.dst) }
}

/// One source buffer and one destination buffer for all rows.
static POOLS: LazyLock<Mutex<[Pool; 2]>> = LazyLock::new(|| {
    let largest = rows().into_iter().map(|row| arrays(&row, Size::Dram));
    let bytes = largest.map(|a| a.src_bytes.max(a.dst_bytes)).max().expect("there are rows");
    Mutex::new([(); 2].map(|()| Pool::new(bytes).expect("there is memory")))
});

fn run(bencher: Bencher, row: Row, size: Size) {
    let all = arrays(&row, size);
    let Arrays { len, src_bytes, dst_bytes } = all;
    let mut pools = POOLS.lock().expect("no row panics");
    let [src_pool, dst_pool] = &mut *pools;
    data::fill(DType::I32, src_pool.bytes_mut());
    let (from, to) = (src_pool.bytes(), dst_pool.bytes_mut());
    let bencher = bencher.counter(BytesCount::new(src_bytes + dst_bytes));
    let spec = spec(&row);
    match row.contender {
        Contender::Memcpy => {
            let n = all.copied_bytes();
            bencher.bench_local(|| memcpy(&from[..n], &mut to[..n], NonZeroUsize::MIN));
        }
        Contender::PlainLoop => bencher.bench_local(|| plain_loop(&spec, &from[..src_bytes], &mut to[..dst_bytes])),
        Contender::Truecast(level) => {
            let exec = CastOptions { level, threads: NonZeroUsize::MIN, ..CastOptions::default() };
            let rescaler = Rescaler::new(&spec, &exec);
            let codes = Elements::new(signless(row.src), len, &from[..src_bytes]).expect("the length fits");
            bencher.bench_local(|| {
                rescaler
                    .rescale(codes, ElementsMut::new(row.dst, len, &mut to[..dst_bytes]).expect("the length fits"))
                    .expect("shifts leave room for every input")
            });
        }
    }
}

/// Plain loop over the elements. It checks nothing, and the widths are known only at run time.
fn plain_loop(spec: &RescaleSpec, src: &[u8], dst: &mut [u8]) {
    let (width, out) = (usize::from(spec.input.bits / 8), usize::from(spec.output.bits / 8));
    let (min, max) = (spec.output.min() as i64, spec.output.max() as i64);
    let mut channel = 0;
    for (d, s) in dst.chunks_exact_mut(out).zip(src.chunks_exact(width)) {
        let mut bytes = [0; 8];
        bytes[8 - width..].copy_from_slice(s);
        let word = i64::from_le_bytes(bytes);
        let x = if spec.input.signed { word >> (64 - 8 * width) } else { (word as u64 >> (64 - 8 * width)) as i64 };
        let v = x - spec.input_zp;
        let Channel { multiplier, shift } = spec.channels[channel];
        let q = (v * i64::from(multiplier) + (1 << (shift - 1))) >> shift;
        d.copy_from_slice(&(q + spec.output_zp).clamp(min, max).to_le_bytes()[..out]);
        channel = if channel + 1 == spec.channels.len() { 0 } else { channel + 1 };
    }
}

#[divan::bench(args = rows())]
fn l2(bencher: Bencher, row: Row) {
    run(bencher, row, Size::L2);
}

#[divan::bench(args = rows(), sample_count = 5, sample_size = 1)]
fn dram(bencher: Bencher, row: Row) {
    run(bencher, row, Size::Dram);
}
