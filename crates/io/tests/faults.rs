//! Each change to the file system fails in turn, or the process dies at that change. Afterwards the output is complete,
//! or everything is unchanged.

mod disk;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use truecast_core::DType;
use truecast_io::change::{Fault, failing, named_only};
use truecast_io::onnx::{Changes, NewModel, unused_location};
use truecast_io::{Error, ErrorKind, Existing, FileFormat, Finished, OutputFile, Source, Writer};
use truecast_testkit::proto::*;

type Files = BTreeMap<String, Vec<u8>>;

fn files(folder: &Path) -> Files {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.map(|e| (e.file_name().into_string().unwrap(), fs::read(e.path()).unwrap())).collect()
}

fn visible(files: &Files) -> Files {
    files.clone().into_iter().filter(|(name, _)| !name.ends_with(".truecast-tmp")).collect()
}

/// Writes into a folder with `old` and makes each change fail in turn. `is_whole` checks that all new or all old
/// files are there.
fn each_change(old: &Files, write: impl Fn(&Path) -> Result<u64, Error>, is_whole: impl Fn(&Files, &Files) -> bool) {
    let prepared = || {
        let folder = tempfile::tempdir().unwrap();
        old.iter().for_each(|(name, bytes)| fs::write(folder.path().join(name), bytes).unwrap());
        folder
    };
    let new = {
        let folder = prepared();
        write(folder.path()).unwrap();
        files(folder.path())
    };
    assert_ne!(&new, old);
    assert_eq!(new, visible(&new));
    for has_names_only in [false, true] {
        for fault in [Fault::One, Fault::Rest] {
            for n in 0.. {
                let folder = prepared();
                let work = || failing(n, fault, || write(folder.path()));
                let (result, has_failed) = if has_names_only { named_only(work) } else { work() };
                let found = files(folder.path());
                let place = format!("{fault:?} after {n} changes: {result:?}, {:?}", found.keys());
                match &result {
                    // The failed call was optional, or removed an obsolete file.
                    Ok(_) => assert!(new.iter().all(|(name, bytes)| found.get(name) == Some(bytes)), "{place}"),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::System, "{place}"),
                }
                if fault == Fault::One && result.is_err() {
                    assert_eq!(found, visible(&found), "{place}");
                }
                let is_whole = visible(&found) == *old || is_whole(&visible(&found), &new);
                assert!(is_whole, "{place}");
                if !has_failed {
                    assert_eq!((result.is_ok(), &found), (true, &new), "{place}");
                    break;
                }
                assert!(n < 200, "no end");
            }
        }
    }
}

fn old(names: &[&str]) -> Files {
    names.iter().map(|name| (name.to_string(), b"what was there".to_vec())).collect()
}

#[test]
fn one_file() {
    let kinds = [(FileFormat::Safetensors, "a.safetensors"), (FileFormat::Npy, "a.npy"), (FileFormat::Npz, "a.npz")];
    for (kind, name) in kinds.into_iter().chain([(FileFormat::TensorProto, "a.pb")]) {
        let write = |existing| {
            move |folder: &Path| {
                let tensors = vec![disk::tensor(kind, "w", DType::U8, &[200_000])];
                let mut writer = Writer::create(&folder.join(name), kind, tensors, &Default::default(), existing)?;
                (0..4).try_for_each(|_| writer.write(&[7; 50_000]))?;
                writer.finish()
            }
        };
        each_change(&old(&["other"]), write(Existing::Refuse), |found, new| found == new);
        each_change(&old(&["other"]), write(Existing::Replace), |found, new| found == new);
        each_change(&old(&["other", name]), write(Existing::Replace), |found, new| found == new);
    }
}

#[test]
fn several_files() {
    let write = |existing| {
        move |folder: &Path| {
            let mut all = Finished::default();
            for name in ["a", "b", "c"] {
                let mut file = OutputFile::create(&folder.join(name), existing)?;
                let written = file.write_all(name.as_bytes());
                written.map_err(|source| Error::Io { path: name.into(), action: "writing", source })?;
                all = all.and(file);
            }
            all.commit()
        }
    };
    // A process that dies between two changes leaves each file old or new.
    let each_is_whole = |old: Files| {
        move |found: &Files, new: &Files| {
            let is_whole = |(name, bytes): (&String, &Vec<u8>)| old.get(name) == Some(bytes) || new[name] == *bytes;
            found.iter().all(is_whole) && old.keys().all(|name| found.contains_key(name))
        }
    };
    for names in [&[][..], &["a"], &["b", "c"], &["a", "b", "c"]] {
        each_change(&old(names), write(Existing::Replace), each_is_whole(old(names)));
    }
    each_change(&old(&[]), write(Existing::Refuse), each_is_whole(old(&[])));
}

/// Holds only while the process lives.
#[test]
fn several_files_are_all_or_none() {
    for names in [&[][..], &["a"], &["c"], &["a", "b", "c"]] {
        for n in 0.. {
            let folder = tempfile::tempdir().unwrap();
            names.iter().for_each(|name| fs::write(folder.path().join(name), "old").unwrap());
            let before = files(folder.path());
            let (result, has_failed) = failing(n, Fault::One, || {
                let create = |name| OutputFile::create(&folder.path().join(name), Existing::Replace);
                Finished::from(create("a")?).and(create("b")?).and(create("c")?).commit()
            });
            let after = files(folder.path());
            let all: Files = ["a", "b", "c"].map(|name| (name.to_string(), Vec::new())).into();
            let is_all = visible(&after) == all && (result.is_ok() || after == all);
            assert!(is_all || (result.is_err() && after == before), "{n}: {result:?} {after:?}");
            if !has_failed {
                break;
            }
        }
    }
}

fn model_with_data(folder: &Path) -> Source {
    let weights = external(&[("location", "w"), ("offset", "0"), ("length", "4096")]);
    let tensor = [tensor("w", 1, &[1024]), weights].concat();
    let graph = graph(&[node("Identity", &["w"], &["y"], &[])], &[tensor], bytes(12, value("y", 1, &[1024])));
    let path = folder.join("source.onnx");
    fs::write(folder.join("w"), [7; 4096]).unwrap();
    fs::write(&path, model(8, 17, &graph)).unwrap();
    Source::open(&path, None).unwrap()
}

fn write_model(source: &Source, path: &Path, existing: Existing) -> Result<u64, Error> {
    let changes = Changes { dtypes: vec![DType::Bf16], opset: None, ir_version: None };
    let new = NewModel::new(source.model().unwrap(), &changes, &unused_location(path)?)?;
    assert!(new.data_path(path).is_some());
    let mut writer = Writer::create_model(path, &new, existing)?;
    writer.write(&[1; 2048])?;
    writer.finish()
}

/// After a fault, the folder has two new files, two earlier files, or no file.
#[test]
fn a_model_and_its_data() {
    let elsewhere = tempfile::tempdir().unwrap();
    let source = model_with_data(elsewhere.path());
    let earlier = {
        let folder = tempfile::tempdir().unwrap();
        write_model(&source, &folder.path().join("m.onnx"), Existing::Refuse).unwrap();
        files(folder.path())
    };
    assert_eq!(earlier.keys().collect::<Vec<_>>(), ["m.onnx", "m.onnx.data"]);
    // A dead process leaves a model with its data, and perhaps another data file.
    let has_its_data = |found: &Files, earlier: &Files, new: &Files| {
        let has = |result: &Files| result.iter().all(|(name, bytes)| found.get(name) == Some(bytes));
        has(earlier) || has(new)
    };
    let nothing = Files::new();
    each_change(
        &nothing,
        |folder| write_model(&source, &folder.join("m.onnx"), Existing::Refuse),
        |found, new| has_its_data(found, &nothing, new),
    );
    each_change(
        &earlier,
        |folder| write_model(&source, &folder.join("m.onnx"), Existing::Replace),
        |found, new| has_its_data(found, &earlier, new),
    );
    // A process that survives a failed run leaves no unreferenced data, except between the last steps.
    for n in 0.. {
        let folder = tempfile::tempdir().unwrap();
        earlier.iter().for_each(|(name, bytes)| fs::write(folder.path().join(name), bytes).unwrap());
        let path = folder.path().join("m.onnx");
        let (result, has_failed) = failing(n, Fault::One, || write_model(&source, &path, Existing::Replace));
        let opened = Source::open(&path, None).unwrap();
        let is_new = opened.tensors()[0].dtype == DType::Bf16 && files(folder.path())["m.onnx"] != earlier["m.onnx"];
        match &result {
            Err(error) if error.to_string().contains("in its place") => assert!(is_new, "{error}"),
            Err(error) => assert_eq!(files(folder.path()), earlier, "{error}"),
            Ok(_) => assert!(is_new),
        }
        if !has_failed {
            break;
        }
    }
}

#[test]
fn leftovers() {
    use truecast_io::atomic::leftover;
    let disk = disk::empty("a.npy");
    let work = || {
        failing(5, Fault::Rest, || {
            let mut file = OutputFile::create(&disk.path, Existing::Refuse).unwrap();
            file.write_all(&[1; 200_000]).unwrap();
            file.commit().unwrap_err();
        })
    };
    named_only(work);
    let alive = named_only(|| OutputFile::create(&disk.path, Existing::Refuse)).unwrap();
    assert_eq!(disk.names().len(), 2);
    let found = leftover::beside(&disk.path);
    assert_eq!((found.len(), found[0].bytes), (1, 200_000));
    assert_eq!(leftover::in_folder(disk.folder.path()), found);
    assert!(leftover::beside(&disk.path.with_file_name("b.npy")).is_empty());
    found[0].remove().unwrap();
    assert_eq!(disk.names().len(), 1);
    drop(alive);
    assert!(disk.names().is_empty());
    // Names of maximum length.
    let disk = disk::empty(&"\u{20ac}".repeat(84));
    let file = named_only(|| OutputFile::create(&disk.path, Existing::Replace)).unwrap();
    assert_eq!(disk.names().len(), 1);
    file.commit().unwrap();
    assert_eq!(disk.names(), ["\u{20ac}".repeat(84)]);
}
