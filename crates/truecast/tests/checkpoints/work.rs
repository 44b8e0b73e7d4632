//! Temporary folder with checkpoints, and conversions in it.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use tempfile::TempDir;
use truecast::compare::{Comparison, compare};
use truecast::convert::{Options, Verification, recorded};
use truecast::io::{Existing, OpenOptions};
use truecast::report::Report;
use truecast::select::quantize_options::{mx_scale, nonfinite, relayout};
use truecast::select::{QuantizeOptions, Rule};
use truecast::verify::{Coverage, VerifyReport};
use truecast::{CastOptions, Convert, DType, scaled};
use truecast_testkit::safetensors::{Found, Parsed, Tensor, index_of, safetensors};

/// File name of a checkpoint with one shard.
pub const FILE: &str = "model.safetensors";

pub struct Work {
    folder: TempDir,
}

impl Work {
    pub fn new() -> Work {
        Work { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    #[track_caller]
    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    #[track_caller]
    pub fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&self.read(name)).unwrap()
    }

    /// Writes a checkpoint with one shard.
    pub fn model(&self, dir: &str, tensors: &[Tensor], config: &str) {
        self.write(&format!("{dir}/{FILE}"), &safetensors(tensors, &[("format", "pt")]));
        self.write(&format!("{dir}/config.json"), config.as_bytes());
    }

    /// Writes the files of a checkpoint, and an index with `metadata`.
    pub fn write_shards(&self, dir: &str, metadata: &Value, files: &[(&str, Vec<u8>)]) {
        files.iter().for_each(|(name, file)| self.write(&format!("{dir}/{name}"), file));
        self.write(&format!("{dir}/model.safetensors.index.json"), &index_of(metadata, files));
    }

    #[track_caller]
    pub fn parsed(&self, name: &str) -> Parsed {
        Parsed::new(&self.read(name))
    }

    /// All tensors of a checkpoint with one shard.
    #[track_caller]
    pub fn tensors(&self, dir: &str) -> Vec<Found> {
        self.parsed(&format!("{dir}/{FILE}")).tensors()
    }

    /// Files of a folder without subfolders.
    pub fn files(&self, dir: &str) -> BTreeMap<String, Vec<u8>> {
        let entries = std::fs::read_dir(self.path(dir)).unwrap().map(|entry| entry.unwrap());
        let file =
            |entry: std::fs::DirEntry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap());
        entries.map(file).collect()
    }

    pub fn remove(&self, dirs: &[&str]) {
        dirs.iter().for_each(|dir| drop(std::fs::remove_dir_all(self.path(dir))));
    }

    /// Converts with these [`options`].
    #[track_caller]
    pub fn convert(&self, src: &str, dst: &str, words: &str) -> Report {
        self.try_convert(src, dst, words).unwrap_or_else(|error| panic!("{src} to {dst}, {words}: {error}"))
    }

    fn try_convert(&self, src: &str, dst: &str, words: &str) -> Result<Report, truecast::files::Error> {
        let mut options = options(words);
        let ranges = options.quantize.as_mut().and_then(|writing| writing.activation_ranges.as_mut());
        if let Some(ranges) = ranges {
            *ranges = self.path("").join(&*ranges);
        }
        Convert::new(self.path(src), self.path(dst)).with(options).run()
    }

    #[track_caller]
    pub fn error(&self, src: &str, dst: &str, words: &str) -> truecast::files::Error {
        self.try_convert(src, dst, words).expect_err(words)
    }

    /// Expects an error with this code, whose text has all of the given parts, and no written file.
    #[track_caller]
    pub fn refused(&self, src: &str, dst: &str, words: &str, code: &str, names: &[&str]) {
        let existed = self.path(dst).exists();
        let error = self.error(src, dst, words);
        assert_eq!(error.error_code().name(), code, "{words}: {error}");
        let text = error.to_string();
        names.iter().for_each(|name| assert!(text.contains(name), "{words}: no {name:?} in {text}"));
        assert_eq!(self.path(dst).exists(), existed, "{words}");
    }

    /// Verifies every element; the default [`options`] are those in the manifest.
    #[track_caller]
    pub fn checked(&self, src: &str, dst: &str, words: &str) -> VerifyReport {
        let recorded = || recorded(&self.path(dst)).unwrap().expect("a manifest").options();
        let options = if words.is_empty() { recorded() } else { options(words) };
        let verification = Verification::new(&self.path(src), &self.path(dst), &options, Coverage::Full, 0).unwrap();
        verification.run(&AtomicBool::new(false), |_| ()).unwrap()
    }

    #[track_caller]
    pub fn verify(&self, src: &str, dst: &str, words: &str) {
        assert_eq!(self.checked(src, dst, words).differences, []);
    }

    #[track_caller]
    pub fn compared(&self, a: &str, b: &str) -> Comparison {
        let readings = (OpenOptions::default(), OpenOptions::default());
        let (exec, stop) = (CastOptions::default(), AtomicBool::new(false));
        compare(&self.path(a), &self.path(b), readings, false, &exec, &stop, &mut |_| ()).unwrap()
    }

    /// Flips bits of a byte, expects a difference in the tensor, restores the byte.
    #[track_caller]
    pub fn flipped(&self, file: &str, at: usize, bits: u8, tensor: &str, check: impl Fn() -> VerifyReport) {
        let right = self.read(file);
        let mut wrong = right.clone();
        wrong[at] ^= bits;
        self.write(file, &wrong);
        let found = format!("{:?}", check().differences);
        self.write(file, &right);
        assert!(found != "[]" && found.contains(tensor), "{tensor} at {at}: {found}");
    }
}

/// Parses options such as `to=bf16 scheme=fp8-block relayout=exact replace`.
#[track_caller]
pub fn options(words: &str) -> Options {
    let mut options = Options::default();
    for word in words.split_whitespace() {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let dtype = |name: &str| DType::parse(name).unwrap();
        let writing = options.quantize.as_mut();
        match name {
            "to" => options.selection.to = Some(dtype(value)),
            "scheme" => options.quantize = Some(QuantizeOptions::of(scaled::scheme(value).unwrap())),
            "from_scheme" => options.source_scheme.from_scheme = Some(value.parse().unwrap()),
            "relayout" => writing.unwrap().relayout = Some(relayout(value).unwrap()),
            "mx_scale" => writing.unwrap().how.mx = mx_scale(value).unwrap(),
            "nonfinite" => writing.unwrap().how.nonfinite = nonfinite(value).unwrap(),
            "activation_ranges" => writing.unwrap().activation_ranges = Some(value.into()),
            "share_global" => {
                let shared = truecast::select::quantize_options::SharedGlobalScale::new(value).unwrap();
                writing.unwrap().share.push(shared);
            }
            "keep" => options.selection.rules.push(Rule::new(value, None).unwrap()),
            "quantize" => options.selection.rules.push(Rule::quantize(value).unwrap()),
            "rule" => {
                let (glob, to) = value.rsplit_once('=').unwrap();
                options.selection.rules.push(Rule::new(glob, Some(dtype(to))).unwrap());
            }
            "keep_preset" => options.selection.keep = value.split(',').map(|one| one.parse().unwrap()).collect(),
            "threads" => options.exec.threads = value.parse().unwrap(),
            "mebibytes" => options.max_memory = value.parse::<u64>().unwrap() << 20,
            "part" => options.scope = truecast::convert::RunScope::Part(value.parse().unwrap()),
            "resume" => options.resume = true,
            "merge" => options.scope = truecast::convert::RunScope::Merge,
            "keep_names" => options.source_scheme.keep_names = true,
            "trust_scales" => options.source_scheme.trust_scales = true,
            "replace" => options.existing = Existing::Replace,
            other => panic!("{other}"),
        }
    }
    options
}
