//! Converts a shard to a file, in bounded memory.

use crate::files::convert::job::{SourceReader, TensorJob};
use crate::files::convert::operations::Operations;
use crate::files::convert::outline::Outline;
use crate::files::convert::plan::{Plan, ShardPlan};
use crate::files::convert::quantize::amax::Amax;
use crate::files::convert::quantize::error_meter::ErrorSums;
use crate::files::convert::quantize::scaled::Scaled;
use crate::files::convert::run::OnProgress;
use crate::files::convert::shard_file::{ChecksumMode, ShardFile};
use crate::files::digest::Checksum;
use crate::files::error::Error;
use crate::files::progress::Progress;
use crate::files::report::{Counted, Magnitudes, Report, TensorReport};
use crate::files::stream::{Chunk, Limits, stream_chunks};
use crate::flag::Flag;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use truecast_core::scaled::{GlobalRule, Part};
use truecast_io::{Escaped, Existing, NewFolder, counted};
use truecast_kernel::scaled::BlockCounts;
use truecast_kernel::{CastOptions, Counting};
use truecast_schemes::Content;

/// File that gets a shard.
pub(crate) struct ShardTarget<'a> {
    pub path: &'a Path,
    pub existing: Existing,
    /// Folders that this run created.
    pub new_folders: Vec<NewFolder>,
    pub checksum: ChecksumMode,
}

/// Conversion of a checkpoint's shards, one after the other.
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

    /// Converts a shard. Returns length and checksum of its file.
    pub fn write(
        &mut self,
        index: usize,
        target: ShardTarget<'_>,
        progress: OnProgress<'_>,
    ) -> Result<(u64, Option<Checksum>), Error> {
        let (plan, stop) = (self.plan, self.stop);
        let (shard, options) = (&plan.shards[index], &plan.options);
        let Shards { amax, operations, read, .. } = self;
        let limits = Limits { threads: options.exec.threads, max_memory: options.max_memory, stop };
        amax.find(plan, shard, operations, &limits, &mut |tensor| progress(Progress { bytes: *read, tensor }))?;
        let source = plan.folder.shards()[index].source.path();
        plan_jobs(shard, source, operations, stop)?;
        let (writer, data) = plan.writer(target.path, shard, target.existing)?;
        self.data.extend(data);
        let largest =
            |work: &TensorJob| work.job.scaled().map_or_else(Vec::new, |scaled| amax.magnitudes(plan, scaled));
        let outline = Outline::new(shard, shard.works.iter().map(largest).collect(), &writer);
        let sums = shard.works.iter().map(|_| JobSums::default()).collect();
        let file = ShardFile::new(writer, target.path, target.checksum);
        let mut run = ShardRun { plan, source, operations, outline, file, sums };
        self.warnings.extend(run.write_known_outputs()?);
        run.stream(&limits, read, progress)?;
        let ShardRun { sums, file, .. } = run;
        let written = file.finish(target.new_folders, stop)?;
        self.rows.extend(shard.works.iter().zip(sums).map(|(work, sums)| sums.row(plan, work)));
        Ok(written)
    }
}

/// Plans the jobs, so that their errors come before anything is written.
fn plan_jobs(shard: &ShardPlan, source: &Path, operations: &Operations, stop: &AtomicBool) -> Result<(), Error> {
    for work in &shard.works {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let planned = work.job.plan(&work.planned, operations);
        planned.map_err(|cause| Error::tensor(source, &work.planned.name, cause))?;
    }
    Ok(())
}

/// A shard whose file is open.
struct ShardRun<'a> {
    plan: &'a Plan,
    /// Path of the source, for errors.
    source: &'a Path,
    operations: &'a Operations,
    outline: Outline<'a>,
    file: ShardFile,
    /// Sums of each job.
    sums: Vec<JobSums>,
}

impl ShardRun<'_> {
    /// Writes the outputs whose bytes are known before the first piece: global scales, descriptions. Returns warnings.
    fn write_known_outputs(&mut self) -> Result<Vec<String>, Error> {
        let (source, operations) = (self.source, self.operations);
        let ShardRun { outline, file, .. } = self;
        let mut warnings = Vec::new();
        for (index, work) in outline.works.iter().enumerate() {
            let (Some(scaled), name) = (work.job.scaled(), &work.planned.name) else { continue };
            let quantizer = operations.quantize(scaled).map_err(|cause| Error::tensor(source, name, cause))?;
            let global = quantizer.global(outline.amax(index));
            warnings.extend(global.and_then(|global| unlikely_scale(name, scaled, global)));
            for (output, known) in scaled.outputs.iter().enumerate() {
                let offset = outline.offset(index, output);
                match (&known.content, global) {
                    (Content::Part(Part::Global), Some(global)) => file.put(offset, &global.to_le_bytes())?,
                    (Content::Bytes(bytes), _) => file.put(offset, bytes)?,
                    (Content::Part(_), _) => {}
                }
            }
        }
        Ok(warnings)
    }

    /// Converts all pieces. `bytes_read` is the number of finished source bytes.
    fn stream(&mut self, limits: &Limits<'_>, bytes_read: &mut u64, progress: OnProgress<'_>) -> Result<(), Error> {
        let ShardRun { plan, source, operations, .. } = *self;
        let ShardRun { outline, file, sums, .. } = self;
        let index_of = |chunk: Chunk| outline.items[chunk.item].index;
        let mut reader = SourceReader::of(&plan.folder);
        let read = |chunk: Chunk, buffer: &mut Vec<u8>| {
            outline.job(chunk).read(&outline.piece(operations, chunk), &mut reader, buffer)
        };
        let convert = |chunk: Chunk, src: &[u8], dst: &mut Vec<u8>| {
            let piece = outline.piece(operations, chunk);
            let converted = outline.job(chunk).run(&piece, src, dst);
            converted.map_err(|cause| Error::tensor(source, &piece.planned.name, cause))
        };
        let write = |chunk: Chunk, bytes: &[u8]| {
            let mut put =
                |output, offset, bytes: &[u8]| file.put(outline.offset(index_of(chunk), output) + offset, bytes);
            outline.job(chunk).place(&outline.piece(operations, chunk), bytes, &mut put)
        };
        let done = |chunk: Chunk, piece: ErrorSums, bytes: u64| {
            sums[index_of(chunk)].add(&piece);
            *bytes_read += bytes;
            progress(Progress { bytes: *bytes_read, tensor: &outline.works[index_of(chunk)].planned.name });
        };
        stream_chunks(read, write, &outline.items, limits, convert, done)
    }
}

/// Sums over the finished pieces of a job. Boxes, because most of a large checkpoint's tensors have neither.
#[derive(Default)]
struct JobSums {
    counts: Counted,
    blocks: Option<Box<BlockCounts>>,
    magnitudes: Option<Box<Magnitudes>>,
}

impl JobSums {
    fn add(&mut self, piece: &ErrorSums) {
        piece.counts.iter().for_each(|part| self.counts.add(part));
        if let Some(blocks) = &piece.blocks {
            self.blocks.get_or_insert_default().add(blocks);
        }
        if let Some(magnitudes) = &piece.magnitudes {
            self.magnitudes.get_or_insert_default().merge(magnitudes);
        }
    }

    fn row(self, plan: &Plan, work: &TensorJob) -> TensorReport {
        let blocks = self.blocks.unwrap_or_default();
        let blocks = work.job.scaled().map(|scaled| Box::new(scaled.blocks(&blocks)));
        let counts = work.job.counts(&work.planned).unwrap_or(*self.counts);
        // Text has no magnitudes, and blocks of a GGUF file that are copied are not decoded here.
        let is_decoded = work.kept_block(&plan.folder).is_none();
        let magnitudes = self.magnitudes.filter(|all| is_decoded && all.is_counted());
        TensorReport { blocks, magnitudes, ..plan.row(work, counts) }
    }
}

/// Words in the warning about a global scale.
pub const UNLIKELY_SCALE: &str = "looks like a scale of the other convention";

/// Warns about a global scale that fits the opposite convention better (`docs/spec/checkpoints.md §4.5.1`).
fn unlikely_scale(tensor: &str, scaled: &Scaled, value: f32) -> Option<String> {
    let is_likely = match scaled.layout.planes()?.global?.rule {
        GlobalRule::Divide => value >= 1.0,
        _ => value < 1.0,
    };
    (!is_likely).then(|| {
        format!(
            "tensor {}: magnitudes above 2688 give the global scale {value:?}, which {UNLIKELY_SCALE}; option {} reads \
             it, and option {} leaves the tensor unquantized",
            Escaped(tensor),
            Flag::TrustScales.name(),
            Flag::Keep.name()
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
    let OddValues { count, name, why } = odd;
    let mut odd_rows = rows.iter().filter(|row| row.scheme.is_some() && count(row) > 0);
    let first = odd_rows.next()?;
    let others = match odd_rows.count() {
        0 => String::new(),
        others => format!(", and some in {}", counted(others as u64, "other tensor")),
    };
    let (tensor, n, elements) = (Escaped(&first.name), count(first), first.elements);
    Some(format!("tensor {tensor}: {n} of {elements} values are {name} in the source{others}: {why}"))
}
