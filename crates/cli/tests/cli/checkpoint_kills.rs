//! Conversions of folders that are killed and resumed: `docs/interfaces.md §4.2`.

use crate::checkpoint::tree;
use crate::run::{Folder, Ran};
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use truecast_testkit::random::Random;
use truecast_testkit::safetensors::{f32s, safetensors};

const SHARDS: usize = 10;

/// Shards of 1 MiB. The folder has no index.
fn checkpoint() -> Folder {
    let folder = Folder::new();
    let values: Vec<f32> = (0..1 << 18).map(|i| (i as f32).sin() * 3.0).collect();
    for shard in 0..SHARDS {
        let name = format!("{shard}.weight");
        let tensor = (name.as_str(), "F32", &[512u64, 512][..], f32s(&values));
        folder.write(&format!("model/part-{shard}.safetensors"), &safetensors(&[tensor], &[]));
    }
    folder.write("model/config.json", b"{\"torch_dtype\": \"float32\"}");
    folder
}

fn start(folder: &Folder, line: &str) -> Child {
    let mut command = folder.command();
    command.args(line.split_whitespace()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Options of the conversions: writes from front to back, and writes of codes and scales at their offsets.
const WAYS: [&str; 2] = ["--to f8e4m3fn", "--scheme ct:float-quantized,strategy=tensor"];

#[test]
fn a_killed_conversion_goes_on() {
    WAYS.iter().for_each(|asked| kill_one(asked));
}

fn kill_one(asked: &str) {
    let folder = checkpoint();
    let begin = Instant::now();
    folder.run(&format!("convert model whole {asked} --quiet")).succeeds();
    let mut duration = begin.elapsed();
    let expected = tree(&folder, "whole");
    assert_eq!(expected.len(), SHARDS + 3);
    let mut random = Random::seeded(7);
    let (mut killed, mut round) = (0, 0);
    while round < 8 || killed == 0 {
        let threads = 1 + round % 3;
        let line = format!("convert model out {asked} --quiet --resume --threads {threads} --max-memory 4MiB");
        let mut child = start(&folder, &line);
        std::thread::sleep(duration.mul_f64(0.05 + (random.next() % 900) as f64 / 1000.0));
        child.kill().unwrap();
        match child.wait().unwrap().success() {
            false => killed += 1,
            // The first run may have been slowed down by other processes.
            true => duration /= 2,
        }
        // A file with its final name is complete, and nothing loads before all files exist.
        if folder.path("out").exists() {
            let now = tree(&folder, "out");
            for (name, bytes) in now.iter().filter(|(name, _)| name.ends_with(".safetensors") && !name.starts_with('.'))
            {
                assert!(*bytes == expected[name], "{name} after kill {round}");
            }
            let shards = now.keys().filter(|name| name.ends_with(".safetensors") && !name.starts_with('.')).count();
            assert!(shards == SHARDS || !now.contains_key("config.json"), "{:?}", now.keys());
        }
        if round % 3 == 2 {
            std::fs::remove_dir_all(folder.path("out")).ok();
        }
        round += 1;
        assert!(round < 50, "no run was killed");
    }
    folder.run(&format!("convert model out {asked} --quiet --resume")).succeeds();
    assert_eq!(tree(&folder, "out"), expected);
}

#[test]
fn an_interruption_says_what_stays() {
    let folder = checkpoint();
    let line = "convert model out --to f8e4m3fn --quiet --threads 1 --max-memory 3MiB";
    let begin = Instant::now();
    folder.run(line).succeeds();
    let duration = begin.elapsed();
    for round in 0..30 {
        std::fs::remove_dir_all(folder.path("out")).ok();
        let mut command = folder.command();
        command.args(line.split_whitespace()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        std::thread::sleep(duration.mul_f64(f64::from(round) / 30.0));
        Command::new("kill").args(["-TERM", &child.id().to_string()]).stderr(Stdio::null()).status().unwrap();
        let ran = Ran::new(line.into(), child.wait_with_output().unwrap());
        // Without exit code 4, the signal came too early or too late.
        if ran.code != Some(4) {
            continue;
        }
        let is_begun = folder.path("out/truecast-manifest.json").exists();
        let stays = ran.err.contains("finished shards remain; --resume continues from there");
        assert_eq!((stays, ran.err.lines().count()), (is_begun, 1), "{}", ran.err);
        if is_begun && round % 4 == 0 {
            folder.run(&format!("{line} --resume")).succeeds();
        }
    }
}
