//! Converts a shard to a file, in bounded memory.

use crate::files::convert::job::{SourceReader, TensorJob};
use crate::files::convert::operations::Operations;
use crate::files::convert::outline::Outline;
use crate::files::convert::plan::Plan;
use crate::files::convert::planned::Planned;
use crate::files::convert::quantize::amax::Amax;
use crate::files::convert::quantize::error_meter::ErrorSums;
use crate::files::convert::quantize::scaled::Scaled;
use crate::files::convert::shard_file::ShardFile;
use crate::files::digest::Checksum;
use crate::files::error::{Cause, Error};
use crate::files::progress::Progress;
use crate::files::report::{Counted, Magnitudes, Report, TensorReport};
use crate::files::stream::{Chunk, Limits, stream_chunks};
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use truecast_core::scaled::{GlobalRule, Part};
use truecast_io::{Escaped, Existing, NewFolder};
use truecast_kernel::scaled::BlockCounts;
use truecast_kernel::{CastOptions, Counting};
use truecast_schemes::Content;

pub(crate) struct Shards<'a> {
    plan: &'a Plan,
    stop: &'a AtomicBool,
    rows: Vec<TensorReport>,
    /// Number of finished source bytes.
    pub read: u64,
    pub data: Vec<PathBuf>,
    warnings: Vec<String>,
    amax: Amax,
    operations: Operations,
}

impl<'a> Shards<'a> {
    pub fn new(plan: &'a Plan, stop: &'a AtomicBool) -> Shards<'a> {
        let options = &plan.options;
        // Pieces run in parallel, each on one thread.
        let exec = CastOptions { counting: Counting::Full, threads: NonZeroUsize::MIN, ..options.exec };
        let operations = Operations::new(options.seed, options.measure, options.magnitudes, exec);
        Shards {
            plan,
            stop,
            rows: Vec::new(),
            read: 0,
            data: Vec::new(),
            warnings: Vec::new(),
            amax: Amax::default(),
            operations,
        }
    }

    pub fn report(self, mut warnings: Vec<String>, outputs: Vec<PathBuf>) -> Report {
        warnings.extend(self.warnings);
        warnings.extend(ODD_VALUES.iter().filter_map(|odd| odd_values(&self.rows, odd)));
        let report = Report::new(self.plan.folder.path(), self.plan.provenance.clone(), self.rows, warnings);
        Report { outputs, dropped: self.plan.dropped.clone(), ..report }
    }

    /// Converts shard number `at` into the file `path`. `made`: folders that this run created. Returns length and
    /// checksum.
    pub fn write(
        &mut self,
        at: usize,
        path: &Path,
        made: Vec<NewFolder>,
        existing: Existing,
        wants_sum: bool,
        progress: &mut (dyn FnMut(Progress<'_>) + Send),
    ) -> Result<(u64, Option<Checksum>), Error> {
        let plan = self.plan;
        let (shard, options) = (&plan.shards[at], &plan.options);
        let source = plan.folder.shards()[at].source.path();
        let failed = |tensor: &Planned, cause: Cause| Error::tensor(source, &tensor.name, cause);
        let limits = Limits { threads: options.exec.threads, max_memory: options.max_memory, stop: self.stop };
        let (read, operations) = (&mut self.read, &self.operations);
        self.amax.find(plan, shard, operations, &limits, &mut |tensor| progress(Progress { bytes: *read, tensor }))?;
        // Planning errors come before anything is written.
        for work in &shard.works {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            work.job.plan(&work.planned, operations).map_err(|cause| failed(&work.planned, cause))?;
        }
        let amax = |(at, work): (usize, &TensorJob)| Some((at, self.amax.magnitudes(plan, work.job.scaled()?)));
        let amax = shard.works.iter().enumerate().filter_map(amax).collect();

        let (writer, data) = plan.writer(path, shard, existing)?;
        self.data.extend(data);
        let outline = Outline::new(shard, amax, &writer);
        let items = &outline.items;
        let mut file = ShardFile::new(writer, path, wants_sum);
        for (at, work) in shard.works.iter().enumerate() {
            if let Some(scaled) = work.job.scaled() {
                let quantizer = operations.quantize(scaled).map_err(|cause| failed(&work.planned, cause))?;
                let global = quantizer.global(outline.amax(at));
                self.warnings.extend(unlikely(&work.planned.name, scaled, global));
                for (output, bytes) in small(scaled, global) {
                    file.put(outline.offset(at, output), &bytes)?;
                }
            }
        }
        let mut all_counts = vec![Counted::default(); shard.works.len()];
        let mut of_scaled: HashMap<usize, BlockCounts> = HashMap::new();
        let mut all_magnitudes: HashMap<usize, Magnitudes> = HashMap::new();
        let work = |chunk: Chunk, src: &[u8], dst: &mut Vec<u8>| {
            let piece = outline.piece(operations, chunk);
            outline.job(chunk).run(&piece, src, dst).map_err(|cause| failed(piece.planned, cause))
        };
        let done = |chunk: Chunk, ErrorSums { counts, blocks, magnitudes }: ErrorSums, bytes: u64| {
            let index = items[chunk.item].index;
            counts.iter().for_each(|part| all_counts[index].add(part));
            if let Some(part) = magnitudes {
                all_magnitudes.entry(index).or_default().merge(&part);
            }
            if shard.works[index].job.scaled().is_some() {
                of_scaled.entry(index).or_default().add(&blocks);
            }
            *read += bytes;
            progress(Progress { bytes: *read, tensor: &shard.works[index].planned.name });
        };
        let mut reading = SourceReader::of(&plan.folder);
        let read = |chunk: Chunk, buffer: &mut Vec<u8>| {
            outline.job(chunk).read(&outline.piece(operations, chunk), &mut reading, buffer)
        };
        let write = |chunk: Chunk, bytes: &[u8]| {
            let index = items[chunk.item].index;
            let mut put = |output, offset, bytes: &[u8]| file.put(outline.offset(index, output) + offset, bytes);
            outline.job(chunk).place(&outline.piece(operations, chunk), bytes, &mut put)
        };
        stream_chunks(read, write, items, &limits, work, done)?;
        let written = file.finish(made, self.stop)?;
        drop(outline);
        for (at, (work, counts)) in shard.works.iter().zip(all_counts).enumerate() {
            let blocks = of_scaled.remove(&at).unwrap_or_default();
            let blocks = work.job.scaled().map(|scaled| Box::new(scaled.blocks(&blocks)));
            let counts = work.job.counts(&work.planned).unwrap_or(*counts);
            // Text has no magnitudes, and blocks of a GGUF file that are copied are not decoded here.
            let is_decoded = work.kept_block(&plan.folder).is_none();
            let magnitudes = all_magnitudes.remove(&at).filter(|all| is_decoded && all.is_counted());
            self.rows.push(TensorReport { blocks, magnitudes: magnitudes.map(Box::new), ..plan.row(work, counts) });
        }
        Ok(written)
    }
}

/// Outputs with bytes that are known before the first piece: global scale, descriptions.
fn small(scaled: &Scaled, global: Option<f32>) -> Vec<(usize, Vec<u8>)> {
    let bytes = |(at, output): (usize, &truecast_schemes::Output)| match &output.content {
        Content::Part(Part::Global) => Some((at, global?.to_le_bytes().to_vec())),
        Content::Part(_) => None,
        Content::Bytes(bytes) => Some((at, bytes.clone())),
    };
    scaled.outputs.iter().enumerate().filter_map(bytes).collect()
}

/// Warns about a global scale that fits the opposite convention better (`docs/spec/checkpoints.md §4.5.1`).
fn unlikely(tensor: &str, scaled: &Scaled, global: Option<f32>) -> Option<String> {
    let (rule, value) = (scaled.layout.planes()?.global?.rule, global?);
    let is_likely = if rule == GlobalRule::Divide { value >= 1.0 } else { value < 1.0 };
    let tensor = Escaped(tensor);
    (!is_likely).then(|| {
        format!(
            "tensor {tensor}: magnitudes above 2688 give the global scale {value:?}, which looks like a scale of the \
             other convention; --trust-scales reads it, --keep {tensor} keeps the tensor unchanged"
        )
    })
}

struct OddValues {
    count: fn(&TensorReport) -> u64,
    name: &'static str,
    why: &'static str,
}

/// Unusual values caused by the scales of a quantized source (§5.7).
const ODD_VALUES: [OddValues; 3] = [
    OddValues { count: |row| row.counts.nan_in, name: "NaN", why: "codes or scales are NaN" },
    OddValues { count: |row| row.counts.inf_in, name: "Inf", why: "scales are Inf or too large" },
    OddValues {
        count: |row| if row.counts.zero_in == row.elements { row.elements } else { 0 },
        name: "0",
        why: "its codes or its scales are all 0",
    },
];

fn odd_values(rows: &[TensorReport], odd: &OddValues) -> Option<String> {
    let OddValues { count, name: what, why } = odd;
    let mut found = rows.iter().filter(|row| row.scheme.is_some() && count(row) > 0);
    let first = found.next()?;
    let others = match found.count() {
        0 => String::new(),
        others => format!(", and some in {others} other tensors"),
    };
    let (name, count, of) = (Escaped(&first.name), count(first), first.elements);
    Some(format!("tensor {name}: {count} of {of} values are {what} in the source{others}: {why}"))
}
