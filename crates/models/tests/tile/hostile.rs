//! Arbitrary bytes: never a panic, never more memory than the input justifies.

use proptest::prelude::*;
use truecast_core::spec::tile::{Options, Profile, Release, Rules};
use truecast_models::Error;
use truecast_models::tile::evaluate::{Settings, evaluate};

use super::assemble::{File, function, join, varint};
use truecast_testkit::memory;

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

fn exercise(bytes: &[u8]) {
    memory::begin();
    if let Ok(module) = truecast_models::tile::read(bytes, Release::NEWEST) {
        let report = truecast_models::tile::check(&module, Rules::OfFile, Profile::Spec, &Options::default());
        for error in report.errors.iter().chain(&report.warnings) {
            assert!(!error.to_string().chars().any(char::is_control));
        }
        // Text repeats a constant at every use; bytecode stores it once.
        if !bytes.starts_with(&truecast_models::tile::bytecode::MAGIC) {
            let _ = truecast_models::tile::text::print(&module);
        }
        if report.errors.is_empty() {
            for entry in module.functions.iter().filter(|f| f.is_entry) {
                let settings = Settings { max_bytes: 1 << 16, ..Settings::default() };
                let _ = evaluate::<Error>(entry, &settings, vec![], |_| Ok(()));
            }
        }
    }
    let bound = 600_000 + 200 * bytes.len();
    assert!(memory::peak() <= bound, "{} bytes for {}", memory::peak(), bytes.len());
}

const TEXTS: [&str; 3] = [
    "cuda_tile.module @m { entry @k(%a: tile<f32>, %p: tile<ptr<i8>>) optimization_hints=<x = {a = 1}> {\n\
     %0 = constant <f32: [[1.5, -0.25], [0x7FC00000, 1e-45]]> : tile<2x2xf32>\n\
     %1 = ftof %0 rounding<zero> {d = 1} : tile<2x2xf32> -> tile<2x2xbf16> loc(\"a\")\n\
     %2 = ftoi %0 signed saturating : tile<2x2xf32> -> tile<2x2xi8>\n return } }",
    "entry @k() {\n %x:2 = for %i in (%a to %b) iter_values(%c = %d) -> (tile<i32>) {\n ^bb0(%q: tile<f32>):\n\
     %0 = ftof %q : tile<f32> -> tile<f16>\n continue %0\n }\n %y = bitcast %x#1 : tile<i32> -> tile<f32>\n return\n}",
    "entry @k() { %c = constant <i8: [1, 2, 3, 255]> : tile<4xi8> %u = unpack %c : tile<4xi8> -> tile<8xi4> return }",
];

fn bytecode() -> Vec<Vec<u8>> {
    (1..=5u8)
        .map(|minor| {
            let mut file = File::entry(minor, &[]);
            let (f32s, f16s) = (file.with_tile(7, &[4]), file.with_tile(5, &[4]));
            file.constants.push([0u8; 16].to_vec());
            let nested = join(&[&[0x2a], &varint(f16s), &[0, 0, 0x6d, 0, 0]]);
            let block = join(&[&[1, 0, 2], &nested]);
            let body = [
                join(&[&[0x10], &varint(f32s), &[0]]),
                join(&[&[0x32, 0, 0, 1], &block]),
                join(&[&[0x2a], &varint(f16s), &[0, 0]]),
                vec![0x5c, 0, 0],
            ];
            file.functions = vec![function(minor, 0, &body.concat())];
            file.bytes()
        })
        .collect()
}

#[test]
fn seeds_are_good() {
    for bytes in bytecode().iter().map(Vec::as_slice).chain(TEXTS.iter().map(|t| t.as_bytes())) {
        exercise(bytes);
        let module = truecast_models::tile::read(bytes, Release::NEWEST).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(module.findings, []);
    }
}

#[test]
fn deep_nesting_is_refused() {
    let regions = format!("entry @k() {{ {} }}", "%a = if {\n".repeat(5000));
    let lists = format!("entry @k() {{ %c = constant <i8: {}> : tile<1xi8> }}", "[".repeat(100_000));
    let dictionaries = format!("entry @k() {{ return loc({}", "{".repeat(100_000));
    let dimensions = format!("entry @k(%a: tile<{}i8>) {{ return }}", "1x".repeat(100_000));
    for text in [regions, lists, dictionaries, dimensions] {
        exercise(text.as_bytes());
        assert!(truecast_models::tile::read(text.as_bytes(), Release::NEWEST).is_err());
    }
    let loops = [0x41, 0, 0, 1, 1, 0, 1].repeat(5000);
    let mut file = File::entry(4, &loops);
    exercise(&file.bytes());
    let arrays = [6, 1].repeat(5000);
    let i32s = file.with_tile(3, &[]);
    let assume = join(&[&[0x06], &varint(i32s), &arrays]);
    file.functions = vec![function(4, 0, &assume)];
    exercise(&file.bytes());
    let module = truecast_models::tile::bytecode::read(&file.bytes()).unwrap();
    assert!(module.findings[0].to_string().contains("nested deeper"), "{:?}", module.findings);
}

/// Small inputs that expand much: shared constants, names and signatures, and impossible counts.
#[test]
fn amplification_is_refused() {
    let mut file = File::entry(4, &[]);
    file.strings = vec![vec![b'n'; 20_000]];
    file.constants.push(vec![1; 1 << 14]);
    let bytes = file.with_tile(1, &[1 << 14]);
    let body = join(&[&[0x10], &varint(bytes), &[0]]).repeat(2000);
    file.functions = (0..500).map(|_| function(4, 0, &[0x5c, 0, 0])).chain([function(4, 0, &body)]).collect();
    exercise(&file.bytes());
    let mut shared = File::entry(4, &[]);
    let scalar = shared.with_tile(3, &[]);
    let parameters = varint(scalar).repeat(5000);
    let signature = shared.with_type(join(&[&[16], &varint(5000), &parameters, &[0]]));
    shared.functions = (0..2000).map(|_| function(4, signature, &[0x5c, 0, 0])).collect();
    let error = truecast_models::tile::bytecode::read(&shared.bytes()).unwrap_err().to_string();
    assert!(error.contains("arguments in all functions"), "{error}");
    for count in [u64::MAX, 1 << 40, 1 << 20] {
        let functions = join(&[b"\x7fTileIR\0", &[13, 4, 0, 0, 0x81, 1, 4, 0xcb, 0, 0x82, 10, 8], &varint(count)]);
        exercise(&functions);
    }
    exercise(
        "entry @k() { %r:18446744073709551615 = foo\n %a = bitcast %r#9 : tile<i8> -> tile<i8> return }".as_bytes(),
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        exercise(&bytes);
        exercise(&[&b"\x7fTileIR\0\x0d\x04\0\0"[..], &bytes].concat());
    }

    #[test]
    fn changed_bytecode(which in 0usize..5, changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6)) {
        let mut bytes = bytecode().swap_remove(which);
        for (index, value) in changes {
            let at = index.index(bytes.len());
            bytes[at] = value;
        }
        exercise(&bytes);
    }

    #[test]
    fn changed_text(
        which in 0usize..3,
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<proptest::sample::Index>(), 0usize..12), 1..6),
    ) {
        let mut text: Vec<char> = TEXTS[which].chars().collect();
        for (from, to, length) in changes {
            let piece: Vec<char> = text.iter().skip(from.index(text.len())).take(length).copied().collect();
            let at = to.index(text.len());
            text.splice(at..(at + length / 2).min(text.len()), piece);
            if text.is_empty() {
                break;
            }
        }
        exercise(text.into_iter().collect::<String>().as_bytes());
    }

    #[test]
    fn words_of_the_language(words in proptest::collection::vec(proptest::sample::select(vec![
        "entry", "@k", "(", ")", "{", "}", "%a", "%b", ":", "tile", "<", ">", "4xf32", "f16", "->", "=", "ftof", "exti",
        "constant", "signed", "rounding", "zero", ",", "[", "]", "1.0", "-", "return", "for", "\n", "loc", "#", "0", "^",
        "ptr", "!", "module", "\"s\"", "pack",
    ]), 0..60)) {
        exercise(words.join(" ").as_bytes());
        exercise(format!("entry @k() {{ {} }}", words.join(" ")).as_bytes());
    }
}
