//! Signals and Ctrl-C: requests to end the process.
//!
//! The first request asks the work to stop. After [`GRACE`], or at a second request, this module ends the process.
//! Before the end, `truecast::io::atomic::abandon_all` undoes unfinished changes of files.

#[cfg(not(any(unix, windows)))]
mod none;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(not(any(unix, windows)))]
use none as system;
use truecast::ErrorCode;
#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

pub use system::make_size_limit_an_error;

use crate::failure::Failure;
use crate::progress;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

/// Time in which the work must stop and print its last line.
const GRACE: Duration = Duration::from_millis(500);

/// Flag that the first request sets; the work must check the flag. A process has only one flag.
pub fn stop_flag(json: bool) -> Arc<AtomicBool> {
    watch(GRACE, json)
}

/// Lets the first request end the process at once, for work that does not check the flag.
pub fn stop_at_once(json: bool) {
    watch(Duration::ZERO, json);
}

fn watch(grace: Duration, json: bool) -> Arc<AtomicBool> {
    static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    let watched = || {
        let requests = Requests { stop: Arc::default(), grace, json };
        let stop = requests.stop.clone();
        system::watch(stop.clone(), move || requests.add());
        stop
    };
    STOP.get_or_init(watched).clone()
}

struct Requests {
    stop: Arc<AtomicBool>,
    grace: Duration,
    json: bool,
}

impl Requests {
    /// Counts a request. Not for signal handlers, because this method starts a thread.
    fn add(&self) {
        let is_first = !self.stop.swap(true, Ordering::Relaxed);
        let grace = if is_first { self.grace } else { Duration::ZERO };
        let json = self.json;
        let ending = move || {
            thread::sleep(grace);
            end(json)
        };
        if thread::Builder::new().spawn(ending).is_err() {
            end(json)
        }
    }
}

/// State of the work: `AT_WORK`; `SETTLED` (only the result remains to be printed); `ENDING` (a request ends the
/// process).
static STATE: AtomicU8 = AtomicU8::new(AT_WORK);
const AT_WORK: u8 = 0;
const SETTLED: u8 = 1;
const ENDING: u8 = 2;

fn leave_work(to: u8) -> Result<u8, u8> {
    STATE.compare_exchange(AT_WORK, to, Ordering::AcqRel, Ordering::Acquire)
}

type Hint = Box<dyn Fn() -> Option<&'static str> + Send + Sync>;

/// Function that returns a hint about remaining files. The hint follows the word `interrupted`, after unfinished
/// changes are undone.
static HINT: Mutex<Option<Hint>> = Mutex::new(None);

pub fn set_hint(hint: impl Fn() -> Option<&'static str> + Send + Sync + 'static) {
    *HINT.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(hint));
}

/// Marks the work as finished: only its result remains to be printed. Blocks if a request is already ending the
/// process.
pub fn settle() {
    if leave_work(SETTLED) == Err(ENDING) {
        park()
    }
}

fn park() -> ! {
    loop {
        thread::park();
    }
}

/// Undoes unfinished changes, prints the interruption, and ends the process. A blocked standard error delays the end by
/// at most [`GRACE`].
fn end(json: bool) -> ! {
    let failure = match leave_work(ENDING) {
        Ok(_) => {
            let has_written = truecast::io::atomic::abandon_all();
            let failure = Failure::new(
                ErrorCode::Interrupted,
                if has_written { "interrupted" } else { "interrupted; nothing was written" },
            );
            let hint = HINT.lock().unwrap_or_else(PoisonError::into_inner);
            Some(match hint.as_ref().and_then(|hint| hint()) {
                Some(hint) => failure.with_hint(hint),
                None => failure,
            })
        }
        Err(ENDING) => park(),
        // The result is being printed. A blocked pipe could delay the message without limit.
        Err(_) => None,
    };
    let code = failure!(Interrupted, "").exit_code();
    let telling = failure.map(|failure| {
        thread::Builder::new().spawn(move || {
            progress::take_away();
            failure.report(json);
            system::exit(code)
        })
    });
    if !matches!(telling, Some(Err(_))) {
        thread::sleep(GRACE);
    }
    system::exit(code)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::io::Write;
    use std::path::Path;
    use std::process::{Child, Command, Output, Stdio};
    use std::time::Instant;
    use tempfile::TempDir;
    use truecast::io::{Existing, NewFolder, OutputFile, change::named_only};

    /// Longer than any step of these tests.
    const LONG: Duration = Duration::from_secs(60);

    /// Starts one of the ignored tests in a process of its own.
    fn at_work(test: &str, folder: &TempDir) -> Child {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", &format!("signals::tests::{test}")]).current_dir(folder.path());
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        wait_for(|| names(&folder.path().join("made")).len() == 1);
        child
    }

    fn wait_for(mut is_there: impl FnMut() -> bool) {
        let begin = Instant::now();
        while !is_there() {
            assert!(begin.elapsed() < LONG);
            thread::sleep(Duration::from_millis(2));
        }
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    fn send(child: &Child, signal: &str) {
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
    }

    /// Signals that are not ignored. Tests under `nohup` or a shell's `&` pass ignored signals on to child processes.
    fn taken<const N: usize>(signals: [&str; N]) -> impl Iterator<Item = &str> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let number = |name: &str| match name {
            "-INT" => SIGINT,
            "-HUP" => SIGHUP,
            _ => SIGTERM,
        };
        signals.into_iter().filter(move |name| !system::is_ignored(number(name)))
    }

    fn ended(mut child: Child) -> Output {
        wait_for(|| child.try_wait().unwrap().is_some());
        child.wait_with_output().unwrap()
    }

    #[track_caller]
    fn is_interrupted(output: Output, folder: &TempDir) {
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), err.as_str()), (Some(4), "truecast: interrupted; nothing was written\n"));
        assert!(names(folder.path()).is_empty());
    }

    /// Work that never checks the flag, with an unfinished file in a new folder.
    fn work_for_ever() -> ! {
        let folder = Path::new("made");
        let _made = NewFolder::make(folder).unwrap();
        let mut file = named_only(|| OutputFile::create(&folder.join("a"), Existing::Refuse)).unwrap();
        file.write_all(&[1; 100_000]).unwrap();
        // Limits the time of a process whose test failed.
        let begin = Instant::now();
        while begin.elapsed() < 2 * LONG {
            std::hint::spin_loop();
        }
        std::process::exit(99)
    }

    #[test]
    #[ignore = "runs in a process of its own"]
    fn work_without_progress() {
        stop_flag(false);
        work_for_ever()
    }

    #[test]
    #[ignore = "runs in a process of its own"]
    fn work_with_much_time() {
        watch(10 * LONG, false);
        work_for_ever()
    }

    #[test]
    fn a_request_ends_work_that_makes_no_progress() {
        const { assert!(GRACE.as_millis() < 1000) };
        for signal in taken(["-INT", "-TERM", "-HUP"]) {
            let folder = tempfile::tempdir().unwrap();
            let child = at_work("work_without_progress", &folder);
            send(&child, signal);
            is_interrupted(ended(child), &folder);
        }
    }

    #[test]
    fn a_second_request_does_not_wait() {
        for (first, second) in [("-INT", "-INT"), ("-HUP", "-TERM")] {
            if taken([first, second]).count() < 2 {
                continue;
            }
            let folder = tempfile::tempdir().unwrap();
            let mut child = at_work("work_with_much_time", &folder);
            send(&child, first);
            thread::sleep(Duration::from_millis(100));
            assert!(child.try_wait().unwrap().is_none());
            send(&child, second);
            is_interrupted(ended(child), &folder);
        }
    }
}
