//! Aborts the test process if work does not end, and prints the input bytes.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

/// Far longer than any test file takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

type Running = Mutex<HashMap<ThreadId, (Instant, Vec<u8>)>>;

static RUNNING: LazyLock<Running> = LazyLock::new(|| {
    thread::spawn(|| {
        loop {
            thread::sleep(Duration::from_secs(1));
            let running = RUNNING.lock().unwrap();
            if let Some((_, bytes)) = running.values().find(|(begin, _)| begin.elapsed() > LIMIT) {
                eprintln!("no end of the work on {bytes:02x?}");
                std::process::abort();
            }
        }
    });
    Mutex::default()
});

pub struct Work;

pub fn of(bytes: &[u8]) -> Work {
    RUNNING.lock().unwrap().insert(thread::current().id(), (Instant::now(), bytes.to_vec()));
    Work
}

impl Drop for Work {
    fn drop(&mut self) {
        RUNNING.lock().unwrap().remove(&thread::current().id());
    }
}
