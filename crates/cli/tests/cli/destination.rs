//! Destinations: replaced files, followed links, refused places (`docs/interfaces.md §3, §5`).

use crate::run::Folder;
use std::fs::{create_dir, hard_link, symlink_metadata};
use std::os::unix::fs::symlink;
use truecast_testkit::safetensors::{Parsed, f32s, one_tensor};

fn folder() -> Folder {
    Folder::with("a.safetensors", &one_tensor(&[1.0, 2.0]))
}

#[track_caller]
fn is_f16(folder: &Folder, name: &str) {
    assert_eq!(Parsed::new(&folder.read(name)).dtype("w"), "F16");
}

#[test]
fn an_existing_file_needs_force() {
    let folder = folder();
    folder.write("b.safetensors", b"old");
    for extra in ["", "--dry-run"] {
        let line = format!("convert a.safetensors b.safetensors --to f16 {extra}");
        folder.refused(&line, "destination-exists", &["b.safetensors", "--force"]);
    }
    folder.run("convert a.safetensors b.safetensors --to f16 --force --dry-run").succeeds();
    assert_eq!((folder.names().len(), folder.read("b.safetensors")), (2, b"old".to_vec()));
}

#[test]
fn the_source_is_no_destination() {
    let folder = folder();
    symlink("a.safetensors", folder.path("soft.safetensors")).unwrap();
    hard_link(folder.path("a.safetensors"), folder.path("hard.safetensors")).unwrap();
    create_dir(folder.path("d")).unwrap();
    symlink("../a.safetensors", folder.path("d/soft.safetensors")).unwrap();
    let (before, content) = (folder.names(), folder.read("a.safetensors"));
    for (src, dst) in [("a", "./a"), ("a", "d/../a"), ("soft", "a"), ("a", "hard"), ("hard", "soft"), ("a", "d/soft")] {
        for force in ["", "--force", "--force --dry-run"] {
            let line = format!("convert {src}.safetensors {dst}.safetensors --to f16 {force}");
            folder.refused(&line, "same-file", &[&format!("{dst}.safetensors"), "same file"]);
            assert_eq!((folder.names(), folder.read("a.safetensors")), (before.clone(), content.clone()), "{line}");
        }
    }
}

/// `*.safetensors` without quotes becomes several paths, of which the last would be the destination.
#[test]
fn a_pattern_of_the_shell_replaces_nothing() {
    let folder = folder();
    let [first, second] = [1, 2].map(|i| format!("m-0000{i}-of-00002.safetensors"));
    for name in ["b.safetensors", &first, &second] {
        folder.write(name, &one_tensor(&[3.0]));
    }
    let before = folder.read(&second);
    for (src, dst) in [("a.safetensors", "b.safetensors"), (&first, &second), (&first, "new.safetensors")] {
        folder.refused(&format!("convert {src} {dst} --to f16 --force"), "unsuitable-destination", &[dst, "another"]);
    }
    assert_eq!((folder.read(&second), folder.read("b.safetensors")), (before.clone(), before));
    for _ in 0..2 {
        folder.run("convert a.safetensors c.safetensors --to f16 --force").succeeds();
    }
}

#[test]
fn folders_and_devices_are_not_replaced() {
    let folder = folder();
    create_dir(folder.path("d.safetensors")).unwrap();
    symlink("d.safetensors", folder.path("to-d.safetensors")).unwrap();
    symlink("/dev/null", folder.path("null.safetensors")).unwrap();
    let before = folder.names();
    for dst in ["d", "to-d", "null"] {
        for force in ["", "--force", "--dry-run", "--force --dry-run"] {
            let line = format!("convert a.safetensors {dst}.safetensors --to f16 {force}");
            folder.refused(&line, "unsuitable-destination", &["regular file"]);
            assert_eq!(folder.names(), before, "{line}");
        }
    }
}

#[test]
fn a_missing_folder_is_a_failure_of_the_system() {
    let folder = folder();
    folder.write("file", b"");
    folder.refused("convert a.safetensors no/b.safetensors --to f16", "not-found", &["no/b.safetensors"]);
    folder.refused("convert a.safetensors file/b.safetensors --to f16", "io-error", &["file/b.safetensors"]);
    assert_eq!(folder.names(), ["a.safetensors", "file"]);
}

/// interfaces.md §3: links on the command line are followed.
#[test]
fn links_are_followed() {
    let folder = folder();
    create_dir(folder.path("store")).unwrap();
    symlink("store/real.safetensors", folder.path("link.safetensors")).unwrap();
    symlink("link.safetensors", folder.path("link2.safetensors")).unwrap();
    let is_link = |name: &str| symlink_metadata(folder.path(name)).unwrap().is_symlink();

    folder.run("convert a.safetensors link2.safetensors --to f16").succeeds();
    is_f16(&folder, "store/real.safetensors");
    assert!(is_link("link.safetensors") && is_link("link2.safetensors"));

    folder.refused("convert a.safetensors link.safetensors --to f64", "destination-exists", &["--force"]);
    folder.run("convert a.safetensors link.safetensors --to f64 --force").succeeds();
    assert_eq!(Parsed::new(&folder.read("store/real.safetensors")).dtype("w"), "F64");
    assert!(is_link("link.safetensors"));

    folder.run("convert link.safetensors back.safetensors --to f32").succeeds();
    assert_eq!(Parsed::new(&folder.read("back.safetensors")).bytes("w"), f32s(&[1.0, 2.0]));
    assert_eq!(std::fs::read_dir(folder.path("store")).unwrap().count(), 1);
}

#[test]
fn a_report_through_a_link() {
    let folder = folder();
    create_dir(folder.path("store")).unwrap();
    symlink("store/r.json", folder.path("r.json")).unwrap();
    folder.run("convert a.safetensors b.safetensors --to f16 --report r.json").succeeds();
    assert_eq!(folder.json("store/r.json")["command"], "convert");
}
