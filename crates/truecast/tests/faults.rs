//! Failed system calls: a run leaves all or none of its results, and a conversion the old or the new file.
#![cfg(feature = "models")]

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use truecast::convert::Options;
use truecast::io::change::{Fault, failing, named_only};
use truecast::io::{Existing, FileFormat};
use truecast::run::{Model, RunOptions};
use truecast::select::Selection;
use truecast::{CastOptions, DType, ErrorKind};
use truecast_testkit::proto::*;

type Files = BTreeMap<String, Vec<u8>>;

fn files(folder: &Path) -> Option<Files> {
    let entries = fs::read_dir(folder).ok()?.map(|entry| entry.unwrap());
    Some(entries.map(|e| (e.file_name().into_string().unwrap(), fs::read(e.path()).unwrap())).collect())
}

/// Runs on one thread, because faults are injected per thread.
fn convert(src: &Path, dst: &Path, options: &Options) -> Result<truecast::report::Report, truecast::files::Error> {
    truecast::Convert::new(src, dst).with(options.clone()).run()
}

fn exec() -> CastOptions {
    CastOptions { threads: NonZeroUsize::MIN, ..CastOptions::default() }
}

fn model_of_casts(path: &Path) -> Model {
    let outputs = [("half", 10), ("wide", 11), ("whole", 6)];
    let cast = |(name, to): (&str, i64)| node("Cast", &["x"], &[name], &[attribute("to", 2, int(3, to))]);
    let nodes = outputs.map(cast);
    let declared = outputs.map(|(name, to)| bytes(12, value(name, to, &[2]))).concat();
    let graph = graph(&nodes, &[], [bytes(11, value("x", 1, &[2])), declared].concat());
    fs::write(path, model(8, 17, &graph)).unwrap();
    Model::open(path).unwrap()
}

#[test]
fn results_of_a_run_are_all_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("x.pb");
    fs::write(&input, [tensor("x", 1, &[2]), bytes(9, [0, 0, 128, 63, 0, 0, 0, 64])].concat()).unwrap();
    let model = model_of_casts(&folder.path().join("m.onnx"));
    let inputs = [format!("x={}", input.display())];
    let run = |folder: &Path| {
        let (format, existing) = (FileFormat::Npy, Existing::Replace);
        model.run(&RunOptions { inputs: &inputs, folder, format, existing, exec: exec() })
    };
    let out = folder.path().join("results").join("of it");
    run(&out).unwrap();
    let new = files(&out).unwrap();
    assert_eq!(new.keys().collect::<Vec<_>>(), ["half.npy", "whole.npy", "wide.npy"]);
    let some: Files = [("half.npy".to_string(), b"old".to_vec()), ("mine".to_string(), b"mine".to_vec())].into();
    for old in [None, Some(some)] {
        for is_named in [false, true] {
            for n in 0.. {
                fs::remove_dir_all(folder.path().join("results")).ok();
                for (name, bytes) in old.iter().flatten() {
                    fs::create_dir_all(&out).unwrap();
                    fs::write(out.join(name), bytes).unwrap();
                }
                let work = || failing(n, Fault::One, || run(&out));
                let (result, has_failed) = if is_named { named_only(work) } else { work() };
                let after = files(&out);
                let is_new =
                    after.as_ref().is_some_and(|after| new.iter().all(|(n, bytes)| after.get(n) == Some(bytes)));
                match &result {
                    Ok(_) => assert!(is_new, "{n}: {after:?}"),
                    Err(error) => {
                        assert_eq!(error.error_code().kind(), ErrorKind::System, "{error}");
                        assert!(is_new || after == old, "{n}: {error}: {after:?}");
                        assert!(is_new || old.is_some() || !folder.path().join("results").exists());
                    }
                }
                if !has_failed {
                    assert!(result.is_ok());
                    break;
                }
            }
        }
    }
}

/// The weights are in another file, next to an earlier result.
#[test]
fn a_converted_model_has_its_data() {
    let folder = tempfile::tempdir().unwrap();
    let weights = external(&[("location", "w"), ("offset", "0"), ("length", "8192")]);
    let weights = [tensor("w", 1, &[32, 64]), weights].concat();
    let graph = graph(&[node("Identity", &["w"], &["y"], &[])], &[weights], bytes(12, value("y", 1, &[32, 64])));
    let source = folder.path().join("source.onnx");
    fs::write(folder.path().join("w"), [7; 8192]).unwrap();
    fs::write(&source, model(8, 17, &graph)).unwrap();
    let options = |to| Options {
        selection: Selection { to: Some(to), ..Selection::default() },
        existing: Existing::Replace,
        exec: exec(),
        ..Options::default()
    };
    let reads = |path: &Path| {
        let read = path.with_file_name("read.safetensors");
        let everything = Options { selection: Selection::default(), ..options(DType::F32) };
        convert(path, &read, &everything).map(|_| fs::read(&read).unwrap())
    };
    for n in 0.. {
        let out = tempfile::tempdir().unwrap();
        let path = out.path().join("m.onnx");
        convert(&source, &path, &options(DType::F16)).unwrap();
        let old = reads(&path).unwrap();
        let (result, has_failed) = failing(n, Fault::One, || convert(&source, &path, &options(DType::Bf16)));
        let found = reads(&path).unwrap_or_else(|error| panic!("{n}: {result:?}: {error}"));
        match &result {
            Ok(_) => assert!(found != old),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::System);
                assert!(found == old || error.to_string().contains("in its place"), "{error}");
            }
        }
        if !has_failed {
            break;
        }
    }
}

fn tree(folder: &Path) -> Files {
    fn walk(folder: &Path, below: &str, all: &mut Files) {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
            let name = format!("{below}{}", entry.file_name().to_str().unwrap());
            match entry.path().is_dir() {
                true => walk(&entry.path(), &format!("{name}/"), all),
                false => drop(all.insert(name, fs::read(entry.path()).unwrap())),
            }
        }
    }
    let mut all = Files::new();
    walk(folder, "", &mut all);
    all
}

fn checkpoint(folder: &Path) {
    fs::create_dir_all(folder.join("code")).unwrap();
    for (shard, tensor) in [("a.safetensors", "w"), ("b.safetensors", "v")] {
        let header = format!(r#"{{"{tensor}":{{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}}}"#);
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.bytes());
        bytes.extend([1.5f32, -2.0, 0.25, 3.0].iter().flat_map(|value| value.to_le_bytes()));
        fs::write(folder.join(shard), bytes).unwrap();
    }
    let map = r#"{"weight_map": {"w": "a.safetensors", "v": "b.safetensors"}}"#;
    fs::write(folder.join("model.safetensors.index.json"), map).unwrap();
    fs::write(folder.join("config.json"), r#"{"torch_dtype": "float32"}"#).unwrap();
    fs::write(folder.join("tokenizer.json"), "{}").unwrap();
    fs::write(folder.join("code").join("run.py"), "1").unwrap();
}

#[test]
fn a_folder_is_old_or_new_or_goes_on() {
    use truecast::convert::{Options, Plan, is_begun};
    // A folder in memory, because thousands of files would be flushed to the disk.
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
    let (src, dst) = (folder.path().join("src"), folder.path().join("dst"));
    checkpoint(&src);
    let source = tree(&src);
    let convert = |to, existing, resume| {
        let selection = Selection { to: Some(to), ..Selection::default() };
        let options = Options { selection, existing, exec: exec(), resume, ..Options::default() };
        Plan::new(&src, &dst, &options)?.run(&false.into(), |_| {})
    };
    let [old, new] = [DType::F16, DType::Bf16].map(|to| {
        fs::remove_dir_all(&dst).ok();
        convert(to, Existing::Refuse, false).unwrap();
        tree(&dst)
    });
    assert!(new.len() == 7 && new["config.json"] != old["config.json"] && new["config.json"] != source["config.json"]);
    let mut went_on = 0;
    for has_old in [false, true] {
        let existing = if has_old { Existing::Replace } else { Existing::Refuse };
        for (fault, is_named) in [(Fault::One, false), (Fault::One, true), (Fault::Rest, false), (Fault::Rest, true)] {
            for n in 0.. {
                fs::remove_dir_all(&dst).ok();
                for (name, bytes) in old.iter().filter(|_| has_old) {
                    fs::create_dir_all(dst.join(name).parent().unwrap()).unwrap();
                    fs::write(dst.join(name), bytes).unwrap();
                }
                let work = || failing(n, fault, || convert(DType::Bf16, existing, false));
                let (result, has_failed) = if is_named { named_only(work) } else { work() };
                let at = || format!("{n}, {fault:?}, named {is_named}, old {has_old}: {result:?}");
                assert!(tree(&src) == source, "{}", at());
                let found = if dst.exists() { tree(&dst) } else { Files::new() };
                let shown: Files = found.clone().into_iter().filter(|(name, _)| !name.starts_with('.')).collect();
                let is_old = shown == if has_old { old.clone() } else { Files::new() };
                match &result {
                    Ok(_) => assert!(shown == new && (fault == Fault::Rest || found == new), "{}", at()),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::System, "{}", at()),
                }
                if result.is_err() && !is_old && shown != new {
                    let mixed = !found.contains_key(".truecast-new/truecast-manifest.json")
                        && shown.contains_key("config.json")
                        && shown.get("config.json") != new.get("config.json");
                    assert!(is_begun(&dst).unwrap() && !mixed, "{}: {:?}", at(), found.keys());
                }
                // The next run completes the folder, and resumes if the failed run had started to write.
                let resume = is_begun(&dst).unwrap();
                went_on += usize::from(resume);
                let existing = if is_old && !has_old { Existing::Refuse } else { Existing::Replace };
                convert(DType::Bf16, existing, resume).unwrap_or_else(|error| panic!("{}: then {error}", at()));
                assert_eq!(tree(&dst).keys().collect::<Vec<_>>(), new.keys().collect::<Vec<_>>(), "{}", at());
                assert!(tree(&dst) == new, "{}", at());
                if !has_failed {
                    assert!(result.is_ok());
                    break;
                }
            }
        }
    }
    assert!(went_on > 50, "{went_on}");
}
