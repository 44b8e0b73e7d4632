//! Runs the command in a folder of its own, and checks the results.

use serde_json::{Value, json};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use truecast::{ErrorCode, ErrorKind};
use truecast_testkit::safetensors::index_of;

/// Path of the tested command: `TRUECAST_BIN` if set, for a binary of another CPU (`tests/platforms/run`). The file
/// must be called `truecast`.
pub fn binary() -> &'static str {
    static BINARY: LazyLock<String> =
        LazyLock::new(|| std::env::var("TRUECAST_BIN").unwrap_or_else(|_| env!("CARGO_BIN_EXE_truecast").to_string()));
    &BINARY
}

pub fn commands() -> Vec<String> {
    let overview = Folder::new().run("--help").succeeds().out;
    let (_, list) = overview.split_once("\nCommands:\n").unwrap();
    let rows = list.lines().take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("   "));
    let names = rows.map(|line| line.split_whitespace().next().unwrap().to_string());
    names.filter(|name| name != "help").collect()
}

pub struct Folder {
    folder: TempDir,
}

impl Folder {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file and creates its folders.
    pub fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    /// Writes the files of a checkpoint, and an index with `metadata`.
    pub fn write_shards(&self, dir: &str, metadata: &Value, files: &[(&str, Vec<u8>)]) {
        files.iter().for_each(|(name, file)| self.write(&format!("{dir}/{name}"), file));
        self.write(&format!("{dir}/model.safetensors.index.json"), &index_of(metadata, files));
    }

    /// Flips bits of a byte in a file, expects exit code 1, restores the byte, and returns the output.
    #[track_caller]
    pub fn run_with_flipped(&self, name: &str, at: usize, bits: u8, line: &str) -> Ran {
        let right = self.read(name);
        let mut wrong = right.clone();
        wrong[at] ^= bits;
        self.write(name, &wrong);
        let ran = self.run(line).exits(1);
        self.write(name, &right);
        ran
    }

    pub fn with(name: &str, bytes: &[u8]) -> Self {
        let folder = Self::new();
        folder.write(name, bytes);
        folder
    }

    #[track_caller]
    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    #[track_caller]
    pub fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&self.read(name)).unwrap()
    }

    /// All entries of the folder, hidden ones too.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(binary());
        command.current_dir(self.folder.path()).env_remove("RUST_BACKTRACE").stdin(Stdio::null());
        command
    }

    pub fn run(&self, line: &str) -> Ran {
        self.run_args(line.split_whitespace())
    }

    pub fn run_args<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Ran {
        let args: Vec<_> = args.into_iter().map(|a| a.as_ref().to_owned()).collect();
        let output = self.command().args(&args).output().unwrap();
        Ran::new(format!("{args:?}"), output)
    }

    /// Expects an error with this code, whose text has all of `names`.
    #[track_caller]
    pub fn refused<S: AsRef<str>>(&self, line: &str, code: &str, names: &[S]) -> Refused {
        self.refused_args(line.split_whitespace(), code, names)
    }

    #[track_caller]
    pub fn refused_args<A: AsRef<OsStr>, S: AsRef<str>>(
        &self,
        args: impl IntoIterator<Item = A>,
        code: &str,
        names: &[S],
    ) -> Refused {
        let args = args.into_iter().map(|arg| arg.as_ref().to_owned());
        let ran = self.run_args([OsString::from("--json")].into_iter().chain(args));
        // `run` also prints to standard output if a model has no result.
        assert!(ran.out.is_empty() || ran.object("run")["status"] != "valid", "{}: {}", ran.line, ran.out);
        assert_eq!(ran.err.lines().count(), 1, "{}: {}", ran.line, ran.err);
        let object: Value = serde_json::from_str(&ran.err).unwrap_or_else(|e| panic!("{}: {e}: {}", ran.line, ran.err));
        let text = object["error"].as_str().unwrap_or_else(|| panic!("{}: {object}", ran.line)).to_string();
        let found = object["code"].as_str().unwrap_or_default();
        assert_eq!(found, code, "{}: {text}", ran.line);
        let exit = exit_code(code);
        assert_eq!((ran.code, &object["exit_code"]), (Some(exit), &json!(exit)), "{}", ran.line);
        Refused { line: ran.line, text }.names(names)
    }

    /// Runs the line in a shell after another command, such as `ulimit -v 250000`.
    pub fn run_after(&self, first: &str, line: &str) -> Ran {
        let script = format!("{first}; exec \"$0\" {line}");
        let output = Command::new("bash").args(["-c", &script, binary()]).current_dir(self.path("")).output().unwrap();
        Ran::new(script, output)
    }

    /// Like [`run`](Folder::run), but fails after `seconds`.
    #[track_caller]
    pub fn run_within(&self, seconds: u64, line: &str) -> Ran {
        let mut command = self.command();
        command.args(line.split_whitespace()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let begin = Instant::now();
        while child.try_wait().unwrap().is_none() {
            if begin.elapsed() > Duration::from_secs(seconds) {
                child.kill().unwrap();
                panic!("{line}: no end after {seconds} s");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ran::new(line.into(), child.wait_with_output().unwrap())
    }
}

#[track_caller]
pub fn exit_code(code: &str) -> i32 {
    if code == "fail-on" {
        return 1;
    }
    let known = ErrorCode::ALL.iter().find(|known| known.name() == code);
    match known.unwrap_or_else(|| panic!("no code {code:?}")).kind() {
        ErrorKind::Usage => 2,
        ErrorKind::Input => 3,
        _ => 4,
    }
}

pub struct Refused {
    line: String,
    pub text: String,
}

impl Refused {
    #[track_caller]
    pub fn names<S: AsRef<str>>(self, names: &[S]) -> Self {
        for name in names.iter().map(AsRef::as_ref) {
            assert!(self.text.contains(name), "{}: no {name:?} in\n{}", self.line, self.text);
        }
        self
    }

    #[track_caller]
    pub fn lacks<S: AsRef<str>>(self, names: &[S]) -> Self {
        for name in names.iter().map(AsRef::as_ref) {
            assert!(!self.text.contains(name), "{}: {name:?} in\n{}", self.line, self.text);
        }
        self
    }
}

pub struct Ran {
    line: String,
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn new(line: String, output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
        Self { line, code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert!(!self.err.contains("panicked"), "{}: {}", self.line, self.err);
        assert_eq!(self.code, Some(code), "{}\nstdout: {}\nstderr: {}", self.line, self.out, self.err);
        self
    }

    /// Expects exit code 0 and an empty standard error.
    #[track_caller]
    pub fn succeeds(self) -> Self {
        let ran = self.exits(0);
        assert_eq!(ran.err, "", "{}", ran.line);
        ran
    }

    /// Expects an error as in `docs/interfaces.md §5`: no standard output, and one line on standard error with all of
    /// `needles`.
    #[track_caller]
    pub fn fails<S: AsRef<str>>(self, code: i32, needles: &[S]) -> Self {
        let ran = self.exits(code);
        assert_eq!(ran.out, "", "{}", ran.line);
        let body = ran.err.strip_suffix('\n').unwrap_or_else(|| panic!("{}: no line: {:?}", ran.line, ran.err));
        assert!(!body.is_empty() && !body.chars().any(char::is_control), "{}: not one line: {body:?}", ran.line);
        ran.warns(needles)
    }

    /// Standard output has all of `needles`.
    #[track_caller]
    pub fn says<S: AsRef<str>>(self, needles: &[S]) -> Self {
        for needle in needles.iter().map(AsRef::as_ref) {
            assert!(self.out.contains(needle), "{}: no {needle:?} in\n{}", self.line, self.out);
        }
        self
    }

    /// Standard error has all of `needles`.
    #[track_caller]
    pub fn warns<S: AsRef<str>>(self, needles: &[S]) -> Self {
        for needle in needles.iter().map(AsRef::as_ref) {
            assert!(self.err.contains(needle), "{}: no {needle:?} in\n{}", self.line, self.err);
        }
        self
    }

    /// Neither stream has any of `needles`.
    #[track_caller]
    pub fn lacks<S: AsRef<str>>(self, needles: &[S]) -> Self {
        for needle in needles.iter().map(AsRef::as_ref) {
            let is_there = self.out.contains(needle) || self.err.contains(needle);
            assert!(!is_there, "{}: {needle:?} in\n{}{}", self.line, self.out, self.err);
        }
        self
    }

    /// The JSON object on standard output (`docs/interfaces.md §6`).
    #[track_caller]
    pub fn object(&self, command: &str) -> Value {
        let value: Value =
            serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{}: {e}: {}", self.line, self.out));
        assert_eq!(value["truecast"], env!("CARGO_PKG_VERSION"), "{}", self.line);
        assert_eq!(value["command"], command, "{}", self.line);
        value
    }
}
