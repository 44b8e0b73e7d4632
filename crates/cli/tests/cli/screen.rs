//! Text on a terminal: fits the width and has colors. A pipe gets everything.

use crate::run::{Folder, commands};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use truecast_testkit::npy::npy;
use truecast_testkit::safetensors::{Tensor, f32s, safetensors};
use unicode_width::UnicodeWidthStr;

const NAMES: [&str; 3] = [
    "encoder.layer.5.attention.output.LayerNorm.weight",
    "encoder.layer.5.attention.self.key.bias",
    "encoder.layer.11.attention.output.adapter.down_projection.lora_magnitude_vector.weight",
];

/// Text that a terminal of this width shows after the line is typed, with these environment variables.
fn seen(folder: &Folder, columns: u16, variables: &[(&str, &str)], line: &str) -> String {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let path = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
    let slave = File::options().read(true).write(true).open(path).unwrap();
    tcsetwinsize(&slave, Winsize { ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let mut command = folder.command();
    for name in ["COLUMNS", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI"] {
        command.env_remove(name);
    }
    command.env("TERM", "xterm").envs(variables.iter().copied()).args(line.split_whitespace());
    command.stdout(slave.try_clone().unwrap()).stderr(slave);
    let mut child = command.spawn().unwrap();
    // The terminal is open only in the child process.
    drop(command);
    let (mut master, mut bytes, mut part) = (File::from(master), Vec::new(), [0; 4096]);
    // After the other end closes, reading fails on some systems and ends on others.
    while let Ok(n @ 1..) = master.read(&mut part) {
        bytes.extend(&part[..n]);
    }
    child.wait().unwrap();
    String::from_utf8(bytes).expect("output is UTF-8").replace("\r\n", "\n")
}

fn folder() -> Folder {
    let values = f32s(&[465.0, 1.0, 0.001953125, 1e-9, f32::NAN, 1.0625, 1e20, -3.0]);
    let float = |name| (name, "F32", &[2u64, 4][..], values.clone());
    let integers: Tensor = ("embeddings.position_ids", "I32", &[1], vec![7, 0, 0, 0]);
    let tensors = [float(NAMES[0]), float(NAMES[1]), float(NAMES[2]), integers];
    let long = "a value of many words ".repeat(7);
    let folder = Folder::with("a.safetensors", &safetensors(&tensors, &[("format", "pt"), ("note", long.as_str())]));
    folder.run("convert a.safetensors b.safetensors --to f8e4m3fn").exits(0);
    folder.write("r.json", b"{\"truecast\": \"0\", \"command\": \"compare\"}");
    folder.write("x.npy", &npy("<f4", 8, &values));
    folder.write("y.npy", &npy("|u1", 8, &[0x7f, 0x38, 0x02, 0x01, 0x7e, 0x39, 0x7e, 0xc4]));
    folder.write("i.npy", &npy("<i4", 3, &[1, 0, 0, 0, 100, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f]));
    let module = "entry @k() {
  %f = constant <f32: [300.0, 1.5, -0.0, 0x7FC00000]> : tile<4xf32>
  %a_long_name_for_the_integers_that_come_of_the_conversion = ftoi %f signed : tile<4xf32> -> tile<4xi8>
  return
}
";
    folder.write("m.mlir", module.as_bytes());
    let illegal = module
        .replace("signed : tile<4xf32> -> tile<4xi8>", "signed rounding<nearest_even> : tile<4xf32> -> tile<4xi8>");
    folder.write("illegal.mlir", illegal.as_bytes());
    let matrix = ("a.weight", "F32", &[2u64, 4][..], f32s(&[1.0; 8]));
    folder.write("m/model.safetensors", &safetensors(&[matrix], &[]));
    folder
}

/// No colors and no progress bars, on slow machines too.
const DUMB: [(&str, &str); 1] = [("TERM", "dumb")];

/// One line for each kind of output.
const LINES: &str = include_str!("screen.txt");

#[test]
fn every_command_is_seen() {
    for command in commands() {
        let has_tables = Folder::new().run(&format!("{command} --help")).succeeds().out.contains("--wide");
        assert_eq!(has_tables, LINES.lines().any(|line| line.split(' ').next() == Some(&*command)), "{command}");
    }
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let folder = folder();
    for columns in [80, 100] {
        for line in LINES.lines() {
            let text = seen(&folder, columns, &DUMB, line);
            assert!(!text.is_empty(), "{line}");
            for shown in text.lines() {
                assert!(shown.width() <= columns.into(), "{line} at {columns}: {shown:?}\n{text}");
                assert!(!shown.chars().any(char::is_control), "{line}: {shown:?}");
            }
        }
    }
}

#[test]
fn columns_may_be_said() {
    let folder = folder();
    let line = "inspect a.safetensors";
    let said = seen(&folder, 80, &[("COLUMNS", "50"), ("NO_COLOR", "1")], line);
    assert_eq!(said, seen(&folder, 50, &[("NO_COLOR", "1")], line));
    assert!(said.contains('…') && said.contains("hidden at 50 columns: "), "{said}");
}

#[test]
fn a_pipe_gets_everything() {
    let folder = folder();
    for line in ["inspect a.safetensors --stats", "compare a.safetensors b.safetensors", "formats", "promote --table"] {
        let piped = folder.run(line).succeeds().out;
        assert!(!piped.contains('…') && !piped.contains("hidden at") && !piped.contains('\u{1b}'), "{piped}");
        let mut command = folder.command();
        let narrow = command.args(line.split_whitespace()).env("COLUMNS", "40").output().unwrap();
        assert_eq!(String::from_utf8(narrow.stdout).unwrap(), piped, "{line}");
    }
    let piped = folder.run("inspect a.safetensors --stats").succeeds().out;
    let headings = "tensor type shape parameters bytes min max NaN Inf zero subnormal magnitudes".split(' ');
    assert_eq!(piped.lines().next().unwrap().split_whitespace().collect::<Vec<_>>(), headings.collect::<Vec<_>>());
    assert!(NAMES.iter().all(|name| piped.contains(name)), "{piped}");
    let wide = seen(&folder, 40, &DUMB, "inspect a.safetensors --stats --wide");
    assert_eq!(wide, piped);
}

#[test]
fn color_where_it_is_wanted() {
    let folder = folder();
    let line = "check cast --from f32 --to f8e4m3fn --input x.npy --actual y.npy";
    let red = "\u{1b}[31mNOT PERMITTED\u{1b}[0m";
    let on_terminal = |variables: &[(&str, &str)], more: &str| seen(&folder, 80, variables, &format!("{line} {more}"));
    for (variables, more) in [
        (&[][..], ""),
        (&[("NO_COLOR", "")][..], ""),
        (&[("NO_COLOR", "1")][..], "--color always"),
        (&[("TERM", "dumb")][..], "--color always"),
    ] {
        let text = on_terminal(variables, more);
        assert!(text.contains(red), "{variables:?} {more}: {text:?}");
    }
    for (variables, more) in [
        (&[("NO_COLOR", "1")][..], ""),
        (&[("CLICOLOR", "0")][..], ""),
        (&[("TERM", "dumb")][..], ""),
        (&[][..], "--color never"),
        (&[("CLICOLOR_FORCE", "1")][..], "--color never"),
        (&[("CLICOLOR_FORCE", "0"), ("CLICOLOR", "0")][..], ""),
    ] {
        let text = on_terminal(variables, more);
        assert!(!text.contains('\u{1b}') && text.contains("NOT PERMITTED"), "{variables:?} {more}: {text:?}");
    }
    let piped = |force: Option<&str>, more: &str| {
        let mut command = folder.command();
        command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").args(line.split_whitespace());
        force.map(|force| command.env("CLICOLOR_FORCE", force));
        String::from_utf8(command.args(more.split_whitespace()).output().unwrap().stdout).unwrap()
    };
    assert!(piped(Some("1"), "").contains(red) && piped(None, "--color always").contains(red));
    assert!(!piped(Some("0"), "").contains('\u{1b}') && piped(Some("0"), "--color always").contains(red));
    assert!(!piped(None, "").contains('\u{1b}') && !piped(Some("1"), "--json").contains('\u{1b}'));
}

#[test]
fn one_value_is_explained_on_a_screen() {
    let folder = Folder::new();
    let line = "explain 465 --to f8e4m3fn";
    let plain = seen(&folder, 80, &DUMB, line);
    assert!(plain.lines().count() <= 14, "{plain}");
    let colors = seen(&folder, 80, &[], line);
    let painted = colors.lines().next().unwrap().split("\u{1b}[").filter_map(|part| part.split_once('m'));
    let [sign, exponent, significand] =
        ["0", "10000111", "11010001000000000000000"].map(|bits| painted.clone().find(|part| part.1 == bits).unwrap().0);
    assert!(sign != exponent && exponent != significand && significand != sign, "{colors:?}");
    for line in ["explain nan --to i32", "explain 5e-324 --from f64 --to f32", "explain 0.1"] {
        assert!(seen(&folder, 80, &DUMB, line).lines().count() <= 23, "{line}");
    }
}

#[test]
fn a_name_of_a_megabyte() {
    let name = "n".repeat(1_000_000);
    let mut names: Vec<String> = (0..2000).map(|i| format!("t{i}")).collect();
    names.push(name.clone());
    let tensors: Vec<Tensor> = names.iter().map(|name| (name.as_str(), "U8", &[1u64][..], vec![0])).collect();
    let folder = Folder::with("a.safetensors", &safetensors(&tensors, &[]));
    for line in ["inspect a.safetensors", "convert a.safetensors b.safetensors --rule t1=i8"] {
        let text = folder.run(line).succeeds().out;
        assert!(text.len() < 1_000_000 && text.contains("… 1_000_000 characters …"), "{line}: {}", text.len());
    }
    let object = folder.run("inspect a.safetensors --json").succeeds().object("inspect");
    assert_eq!(object["tensors"].as_array().unwrap().iter().filter(|t| t["name"] == name.as_str()).count(), 1);
}

#[test]
fn many_tensors_share_rows() {
    let names: Vec<String> = (0..30)
        .flat_map(|layer| ["q", "k"].map(|part| format!("layers.{layer}.{part}.weight")))
        .chain(["norm.weight".to_owned(), "layers.7.extra.weight".to_owned()])
        .collect();
    let value = f32s(&[1.0, 1.1]);
    let tensors: Vec<Tensor> = names.iter().map(|name| (&name[..], "F32", &[2][..], value.clone())).collect();
    let folder = Folder::with("a.safetensors", &safetensors(&tensors, &[]));
    let rows = |text: &str| -> Vec<Vec<String>> {
        let rows = text.lines().filter(|line| line.contains(".weight") && !line.starts_with("truecast"));
        rows.map(|row| row.split_whitespace().map(str::to_owned).collect()).collect()
    };
    for line in [
        "inspect a.safetensors", "inspect a.safetensors --stats", "convert a.safetensors b.safetensors --to f16",
        "compare a.safetensors b.safetensors",
    ] {
        let shown = seen(&folder, 100, &DUMB, line);
        let rows = rows(&shown);
        let first: Vec<(&str, &str)> = rows.iter().map(|row| (&row[0][..], &row[1][..])).collect();
        let expected = if line.starts_with("inspect") {
            // Rows above have the names of the modules.
            [("q.weight", "30"), ("k.weight", "30"), ("7.extra.weight", "1"), ("norm.weight", "1")]
        } else {
            [
                ("layers.{0..29}.q.weight", "30"),
                ("layers.{0..29}.k.weight", "30"),
                ("norm.weight", "1"),
                ("layers.7.extra.weight", "1"),
            ]
        };
        assert_eq!(first[..4], expected, "{shown}");
        assert!(line.starts_with("inspect") || rows[0].contains(&"30".into()) && shown.contains("SQNR"), "{shown}");
    }
    let planned = seen(&folder, 100, &DUMB, "convert a.safetensors c.safetensors --to f16 --dry-run");
    let planned = rows(&planned);
    assert!(planned[0].ends_with(&["240".into(), "B".into(), "120".into(), "B".into()]), "{planned:?}");
    assert_eq!(rows(&seen(&folder, 100, &DUMB, "inspect a.safetensors --wide")).len(), names.len());
    assert_eq!(rows(&folder.run("inspect a.safetensors").succeeds().out).len(), names.len());
    let sorted = seen(&folder, 100, &DUMB, "inspect a.safetensors --sort name");
    assert!(rows(&sorted).len() == 20 && sorted.contains("42 more tensors; --wide"), "{sorted}");
}

#[test]
fn many_tensors_are_compared() {
    let names: Vec<String> = (0..300).map(|i| format!("t{i:03}")).collect();
    let write = |error: f32| {
        let value = |i: usize| f32s(&[1.0 + error * i as f32]);
        let tensors: Vec<Tensor> =
            names.iter().enumerate().map(|(i, name)| (&name[..], "F32", &[1][..], value(i))).collect();
        safetensors(&tensors, &[])
    };
    let folder = Folder::with("a.safetensors", &write(0.0));
    folder.write("b.safetensors", &write(1e-4));
    let rows = |text: &str| text.lines().filter(|line| line.starts_with('t') && line.contains("f32 | f32")).count();
    let shown = seen(&folder, 80, &DUMB, "compare a.safetensors b.safetensors");
    assert!(rows(&shown) == 20 && shown.contains("280 more tensors; --wide or a pipe"), "{shown}");
    assert!(shown.lines().find(|line| line.starts_with('t') && line.contains('|')).unwrap().starts_with("t299"));
    let shown = seen(&folder, 80, &DUMB, "compare a.safetensors b.safetensors --wide");
    assert!(rows(&shown) == 300 && !shown.contains("more tensors"), "{shown}");
    let shown = seen(&folder, 80, &DUMB, "compare a.safetensors b.safetensors --summary");
    assert!(rows(&shown) == 0 && !shown.contains("more tensors"), "{shown}");
    assert_eq!(rows(&folder.run("compare a.safetensors b.safetensors").exits(0).out), 300);
}

/// A long answer fits on a terminal, and says how to see all of it.
#[test]
fn long_answers_are_cut_on_a_terminal() {
    let folder = Folder::new();
    let names = |module: &str| (0..90).map(|i| format!("{module}.{i}.a_word.another_word.weight")).collect::<Vec<_>>();
    let (first, second) = (names("encoder"), names("decoder"));
    let file = |names: &[String]| {
        let tensors: Vec<Tensor> = names.iter().map(|name| (name.as_str(), "F32", &[1u64][..], f32s(&[1.5]))).collect();
        safetensors(&tensors, &[])
    };
    folder.write("a.safetensors", &file(&first));
    folder.write("b.safetensors", &file(&second));
    folder.write("c.safetensors", &file(&[&first[..1], &second[..]].concat()));
    for (line, last) in [
        ("differ torch onnx", "DIFFERENT: torch@"),
        ("compare a.safetensors b.safetensors", "different: 180 tensors could not be compared"),
        ("verify a.safetensors c.safetensors --to f32", "DIFFERENT: "),
    ] {
        let text = seen(&folder, 80, &DUMB, line);
        assert!(text.lines().count() <= 40, "{line}: {}\n{text}", text.lines().count());
        assert!(text.lines().all(|line| line.width() <= 80), "{line}:\n{text}");
        assert!(text.contains(" more ") && text.contains("; --wide or a pipe shows all\n"), "{line}:\n{text}");
        assert!(text.contains(last), "{line}:\n{text}");
        for all in [seen(&folder, 80, &DUMB, &format!("{line} --wide")), folder.run(line).out] {
            assert!(all.lines().count() > 90 && !all.contains("--wide"), "{line}:\n{all}");
        }
    }
}

/// 40 tensors without a common pattern, of which seven lose most of their values.
#[test]
fn a_report_of_many_tensors_fits_a_screen() {
    let (rough, smooth) = (f32s(&[&[1.0][..], &[0.01; 15]].concat().repeat(256)), f32s(&[0.5; 4096]));
    let name = |i: u8| (b'a' + i) as char;
    let matrices = (0..20).map(|i| (format!("model.decoder.{0}_block.attention.{0}_proj.weight", name(i)), i));
    let vectors = (0..20).map(|i| (format!("model.decoder.{0}_block.attention.{0}_proj.bias", name(i)), u8::MAX));
    let names: Vec<(String, u8)> = matrices.chain(vectors).collect();
    let tensor = |(name, i): &'static (String, u8)| -> Tensor {
        match i {
            &u8::MAX => (name, "F32", &[1], f32s(&[1.5])),
            i => (name, "F32", &[64, 64], if i % 3 == 0 { rough.clone() } else { smooth.clone() }),
        }
    };
    let tensors: Vec<Tensor> = names.leak().iter().map(tensor).collect();
    let folder = Folder::with("a.safetensors", &safetensors(&tensors, &[]));
    folder.write("model/model.safetensors", &safetensors(&tensors, &[]));
    folder.write("model/config.json", b"{}");
    for line in ["quantize a.safetensors b.safetensors nvfp4", "quantize model out nvfp4"] {
        let text = seen(&folder, 80, &DUMB, line);
        assert!(text.contains("lost much") && text.contains("kept: 1-D 20 tensors"), "{text}");
        assert!(text.lines().count() <= 40, "{}: {text}", text.lines().count());
    }
}
