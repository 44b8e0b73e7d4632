//! `docs/spec/checkpoints.md §2.8`: outputs appear complete or not at all, with the right mode.

mod disk;

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use truecast_core::DType;
use truecast_io::change::named_only;
use truecast_io::{Error, ErrorKind, Existing, FileFormat, OutputFile, Writer};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn nothing_is_visible_before_commit() {
    for is_named in [false, true] {
        let disk = disk::empty("a.bin");
        let create = || OutputFile::create(&disk.path, Existing::Refuse).unwrap();
        let mut file = if is_named { named_only(create) } else { create() };
        file.write_all(&[1; 100_000]).unwrap();
        let names = disk.names();
        assert!(names.iter().all(|name| name.starts_with(".a.bin.") && name.ends_with(".truecast-tmp")), "{names:?}");
        assert!(names.len() == 1 || !is_named);
        assert_eq!(file.commit().unwrap(), 100_000);
        assert_eq!(disk.names(), ["a.bin"]);
        assert_eq!(fs::read(&disk.path).unwrap(), [1; 100_000]);
    }
}

/// The unfinished file's name has at most 255 bytes too.
#[test]
fn the_longest_names() {
    for name in ["x".repeat(255), "\u{1f600}".repeat(63), "\u{4e00}".repeat(85)] {
        let disk = disk::empty(&name);
        for existing in [Existing::Refuse, Existing::Replace] {
            let create = || OutputFile::create(&disk.path, existing).unwrap();
            let mut file = named_only(create);
            file.write_all(b"abc").unwrap();
            assert_eq!(file.commit().unwrap(), 3, "{name}");
        }
        assert_eq!(disk.names(), [name]);
    }
}

/// Unnamed files need Linux and a usual file system.
#[test]
#[cfg(target_os = "linux")]
fn a_file_that_is_written_has_no_name() {
    let disk = disk::empty("a.bin");
    let possible = fs::OpenOptions::new().write(true).custom_flags(0o20200000).open(disk.folder.path()).is_ok();
    for existing in [Existing::Refuse, Existing::Replace] {
        let mut file = OutputFile::create(&disk.path, existing).unwrap();
        file.write_all(&[1; 100_000]).unwrap();
        assert_eq!(disk.names().is_empty(), possible);
        file.commit().unwrap();
        assert_eq!(disk.names(), ["a.bin"]);
        fs::remove_file(&disk.path).unwrap();
    }
}

#[test]
fn reserved_space() {
    let disk = disk::empty("a.bin");
    let mut file = OutputFile::create(&disk.path, Existing::Refuse).unwrap();
    file.reserve(50_000).unwrap();
    file.write_all(&[1; 100_000]).unwrap();
    assert_eq!(file.commit().unwrap(), 100_000);
    assert_eq!(fs::read(&disk.path).unwrap(), [1; 100_000]);
    // More than any file system has. Fails when reserving, or when writing if the file system cannot reserve.
    let disk = disk::empty("b.bin");
    let file = OutputFile::create(&disk.path, Existing::Refuse).unwrap();
    if let Err(error) = file.reserve(1 << 60) {
        assert_eq!(error.kind(), ErrorKind::System);
        assert!(error.to_string().starts_with(disk.path.to_str().unwrap()), "{error}");
    }
    drop(file);
    assert!(disk.names().is_empty());
}

#[test]
fn dropping_leaves_nothing() {
    let disk = disk::empty("a.bin");
    let mut file = OutputFile::create(&disk.path, Existing::Refuse).unwrap();
    file.write_all(b"abc").unwrap();
    drop(file);
    assert!(disk.names().is_empty());
    let disk = disk::file("a.bin", b"old");
    let mut file = OutputFile::create(&disk.path, Existing::Replace).unwrap();
    file.write_all(b"abc").unwrap();
    drop(file);
    assert_eq!((disk.names(), fs::read(&disk.path).unwrap()), (vec!["a.bin".into()], b"old".to_vec()));
}

#[test]
fn existing_files() {
    let disk = disk::file("a.bin", b"old");
    let error = OutputFile::create(&disk.path, Existing::Refuse).unwrap_err();
    assert!(matches!(error, Error::Exists { .. }) && error.kind() == ErrorKind::Usage);
    let mut file = OutputFile::create(&disk.path, Existing::Replace).unwrap();
    file.write_all(b"new").unwrap();
    assert_eq!(fs::read(&disk.path).unwrap(), b"old");
    file.commit().unwrap();
    assert_eq!(fs::read(&disk.path).unwrap(), b"new");
    // A file that appears during writing is not overwritten.
    let disk = disk::empty("b.bin");
    let file = OutputFile::create(&disk.path, Existing::Refuse).unwrap();
    fs::write(&disk.path, b"other").unwrap();
    assert!(matches!(file.commit(), Err(Error::Exists { .. })));
    assert_eq!((disk.names(), fs::read(&disk.path).unwrap()), (vec!["b.bin".into()], b"other".to_vec()));
}

#[test]
fn a_reader_of_the_replaced_file_keeps_it() {
    // safetensors#762: saving over a file must not change bytes that another process still reads.
    let disk = disk::file("a.bin", b"old");
    let open = fs::File::open(&disk.path).unwrap();
    let mut file = OutputFile::create(&disk.path, Existing::Replace).unwrap();
    file.write_all(b"n").unwrap();
    file.commit().unwrap();
    assert_eq!(open.metadata().unwrap().len(), 3);
}

#[test]
fn only_regular_files_are_replaced() {
    for existing in [Existing::Refuse, Existing::Replace] {
        let disk = disk::empty("a.bin");
        let refused = |what: &str| match OutputFile::create(&disk.path, existing) {
            Err(error @ Error::DestinationNotRegular { found, .. }) => {
                assert_eq!((found, error.kind()), (what, ErrorKind::Usage));
            }
            other => panic!("{other:?}"),
        };
        fs::create_dir(&disk.path).unwrap();
        refused("a folder");
        fs::remove_dir(&disk.path).unwrap();
        symlink("/dev/full", &disk.path).unwrap();
        refused("a symbolic link");
        fs::remove_file(&disk.path).unwrap();
        symlink("absent", &disk.path).unwrap();
        refused("a symbolic link");
        fs::remove_file(&disk.path).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(&disk.path).unwrap();
        refused("a device, pipe or socket");
    }
    let error = OutputFile::create(Path::new("/absent/folder/a"), Existing::Refuse).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::System);
    assert!(error.to_string().starts_with("/absent/folder/a: "), "{error}");
}

#[test]
fn a_replaced_file_keeps_its_mode() {
    for bits in [0o600, 0o644, 0o664, 0o755, 0o400, 0o444] {
        let disk = disk::file("a.bin", b"old");
        fs::set_permissions(&disk.path, Permissions::from_mode(bits)).unwrap();
        let file = OutputFile::create(&disk.path, Existing::Replace).unwrap();
        file.commit().unwrap();
        assert_eq!(mode(&disk.path), bits, "{bits:o}");
    }
}

/// Runs an ignored test in a new process, after the shell command `prepare`.
#[track_caller]
fn in_a_process(prepare: &str, test: &str) {
    let command = format!("{prepare}; exec \"$0\" --ignored --exact {test}");
    let result = Command::new("sh").arg("-c").arg(command).arg(std::env::current_exe().unwrap()).output().unwrap();
    let text = String::from_utf8_lossy(&result.stdout);
    assert!(result.status.success() && text.contains("1 passed"), "{text}{}", String::from_utf8_lossy(&result.stderr));
    assert!(result.stderr.is_empty(), "{}", String::from_utf8_lossy(&result.stderr));
}

#[test]
fn a_new_file_has_0666_without_the_umask() {
    // safetensors#782: the mode must not be 0600.
    in_a_process("umask 022", "modes_under_022");
    in_a_process("umask 077", "modes_under_077");
    in_a_process("umask 002", "modes_under_002");
}

fn new_files_have(bits: u32) {
    let disk = disk::empty("a.safetensors");
    disk::write(&disk, &[], &[], &[]).unwrap();
    assert_eq!(mode(&disk.path), bits);
}

#[test]
#[ignore = "runs in a process of its own"]
fn modes_under_022() {
    new_files_have(0o644);
}

#[test]
#[ignore = "runs in a process of its own"]
fn modes_under_077() {
    new_files_have(0o600);
}

#[test]
#[ignore = "runs in a process of its own"]
fn modes_under_002() {
    new_files_have(0o664);
}

#[test]
fn a_full_disk_is_an_error_that_leaves_nothing() {
    // A limit on file sizes imitates a full disk: 8 blocks of 512 bytes.
    in_a_process("trap '' XFSZ; ulimit -f 8", "writing_beyond_a_limit");
}

#[test]
#[ignore = "runs in a process of its own"]
fn writing_beyond_a_limit() {
    for (name, kind) in
        [("a.safetensors", FileFormat::Safetensors), ("a.npy", FileFormat::Npy), ("a.npz", FileFormat::Npz)]
    {
        // Small pieces fit the buffer; large pieces bypass it.
        for piece in [10, 100_000] {
            let disk = disk::file(name, b"old");
            let tensors = vec![disk::tensor(kind, "w", DType::U8, &[200_000])];
            let bytes = vec![7; piece];
            let result = Writer::create(&disk.path, kind, tensors, &Default::default(), Existing::Replace);
            let result = result.and_then(|mut writer| {
                (0..200_000 / piece).try_for_each(|_| writer.write(&bytes))?;
                writer.finish()
            });
            let error = result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::System, "{error}");
            assert!(error.to_string().starts_with(disk.path.to_str().unwrap()), "{error}");
            assert_eq!((disk.names(), fs::read(&disk.path).unwrap()), (vec![name.into()], b"old".to_vec()));
        }
    }
    // Without reserving, the write fails.
    let disk = disk::empty("a.bin");
    let mut file = OutputFile::create(&disk.path, Existing::Refuse).unwrap();
    assert!((0..20).any(|_| file.write_all(&[7; 10_000]).is_err()));
    drop(file);
    assert!(disk.names().is_empty());
    // If everything fits the buffer, the last flush fails.
    let mut file = OutputFile::create(&disk.path, Existing::Refuse).unwrap();
    file.write_all(&[7; 20_000]).unwrap();
    assert_eq!(file.commit().unwrap_err().kind(), ErrorKind::System);
    assert!(disk.names().is_empty());
    let disk = disk::empty("a.npz");
    let tensors = [disk::tensor(FileFormat::Npz, "w", DType::U8, &[20_000])];
    let error = disk::write(&disk, &tensors, &[vec![7; 20_000]], &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::System, "{error}");
    assert!(disk.names().is_empty());
}

#[test]
fn a_bare_name_lies_in_the_current_folder() {
    in_a_process("cd \"$(mktemp -d)\"", "writing_a_bare_name");
}

#[test]
#[ignore = "runs in a process of its own"]
fn writing_a_bare_name() {
    let mut file = OutputFile::create(Path::new("bare.bin"), Existing::Refuse).unwrap();
    file.write_all(b"x").unwrap();
    file.commit().unwrap();
    assert_eq!(fs::read("bare.bin").unwrap(), b"x");
    fs::remove_file("bare.bin").unwrap();
    fs::remove_dir(std::env::current_dir().unwrap()).unwrap();
}
