//! Memory limits. They hold for checkpoints with any shapes and any number of tensors.

use rayon::ThreadPool;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use truecast::convert::{Options, Plan, Verification};
use truecast::select::{QuantizeOptions, Rule, Selection};
use truecast::verify::Coverage;
use truecast::{CastOptions, DType, Layout};
use truecast_io::{Existing, FileFormat, Tensor, Writer};
use truecast_testkit::memory;

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

const MEMORY: u64 = 4 << 20;

/// Peak memory while a conversion is planned and run, and peak memory while its result is verified.
fn peaks(pool: &ThreadPool, folder: &Path, tensors: Vec<Tensor>, scheme: &str) -> [usize; 2] {
    let [src, out] = ["src", "out"].map(|name| folder.join(name));
    std::fs::create_dir(&src).unwrap();
    let path = src.join("model.safetensors");
    let mut writer =
        Writer::create(&path, FileFormat::Safetensors, tensors.clone(), &BTreeMap::new(), Existing::Replace).unwrap();
    for at in writer.order().to_vec() {
        writer.write(&vec![0x3c; tensors[at].bytes() as usize]).unwrap();
    }
    writer.finish().unwrap();
    let exec = CastOptions { threads: NonZeroUsize::MIN, ..CastOptions::default() };
    let selection = Selection { rules: vec![Rule::quantize("*").unwrap()], ..Selection::default() };
    let options = Options {
        selection,
        max_memory: MEMORY,
        exec,
        quantize: Some(QuantizeOptions::of(scheme.parse().unwrap())),
        ..Options::default()
    };
    let stop = AtomicBool::new(false);
    memory::begin();
    Plan::new(&src, &out, &options).unwrap().run(&stop, |_| ()).unwrap();
    let converting = memory::peak();
    let verifying = pool.install(|| {
        memory::begin();
        let verification = Verification::new(&src, &out, &options, Coverage::Full, 0).unwrap();
        assert_eq!(verification.run(&stop, |_| ()).unwrap().differences, []);
        memory::peak()
    });
    [converting, verifying]
}

/// Pool with only the current thread, because memory is counted per thread.
fn pool() -> ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().unwrap()
}

fn tensor(name: String, shape: &[u64]) -> Tensor {
    Tensor { name: name.into(), dtype: DType::F16, layout: Layout::Packed, shape: shape.into() }
}

#[test]
fn stacks_of_small_matrices() {
    let pool = pool();
    for (scheme, shape) in [
        ("ct:int-quantized", [1_000_000, 1, 1]),
        ("fp8-block", [100_000, 3, 3]),
        ("ct:pack-quantized,strategy=channel,symmetric=false", [100_000, 2, 3]),
        ("fp8-block", [4_000, 1, 129]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let peaks = peaks(&pool, folder.path(), vec![tensor("a.weight".into(), &shape)], scheme);
        assert!(peaks[0] < 2 * MEMORY as usize, "{scheme}: {peaks:?}");
        assert!(peaks[1] < 32 << 20, "{scheme}: {peaks:?}");
    }
}

/// A tensor's plan takes far more memory than its entry in the header.
#[test]
fn many_tensors() {
    let tensors = (0..3_000).map(|i| tensor(format!("layer.{i}.weight"), &[4, 32 + i % 3])).collect();
    let folder = tempfile::tempdir().unwrap();
    let peaks = peaks(&pool(), folder.path(), tensors, "fp8-channel");
    assert!(peaks[0] < 2 * MEMORY as usize + 3_000 * 4096, "{peaks:?}");
}
