//! Bytecode (§10).

use super::assemble::{File, join, varint};
use super::{parsed, verified, without_places};
use truecast_core::spec::tile::{Options, Profile, Release, Rules};
use truecast_models::tile::module::Operation;
use truecast_models::tile::{Module, bytecode};

fn hex(text: &str) -> Vec<u8> {
    text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

/// File of §10.10 in version 13.1.
const GOLDEN_13_1: &str = "
7f 54 69 6c 65 49 52 00 0d 01 00 00 81 09 04 cb
01 cb cb cb 00 00 00 00 6b 85 33 04 05 cb cb cb
00 00 00 00 01 00 00 00 0c 00 00 00 0d 00 00 00
18 00 00 00 07 0d 00 01 04 00 00 00 00 00 00 00
05 0d 02 01 04 00 00 00 00 00 00 00 10 00 00 84
15 08 cb cb cb cb cb cb 01 cb cb cb cb cb cb cb
00 00 00 00 00 00 00 00 04 00 00 c0 3f 82 10 08
01 00 04 02 00 0a 10 01 00 2a 03 00 00 5c 00 00
00";

/// The file of [`GOLDEN_13_1`] in version 13.5. Only byte 9 and the last part differ.
fn golden_13_5() -> Vec<u8> {
    let mut bytes = hex(GOLDEN_13_1);
    bytes[9] = 5;
    bytes[110] = 0x14;
    bytes.truncate(112);
    bytes.extend(hex("01 00 04 02 00 0b 00 06 00 0a 10 01 00 2a 03 00 00 5c 00 00 00"));
    bytes
}

#[test]
fn golden_files() {
    let text = "entry @k() { %a = constant <f32: 1.5> : tile<4xf32> \
                %b = ftof %a : tile<4xf32> -> tile<4xf16> return }";
    for (bytes, version, length) in [(hex(GOLDEN_13_1), Release::V13_1, 129), (golden_13_5(), Release::V13_5, 133)] {
        assert_eq!(bytes.len(), length);
        let module = bytecode::read(&bytes).unwrap();
        assert_eq!(module.version, version);
        let same = truecast_models::tile::text::parse(text, version).unwrap();
        assert_eq!(without_places(&module), without_places(&same));
        assert_eq!(verified(&module).errors, []);
        let printed = truecast_models::tile::text::print(&module).unwrap();
        assert_eq!(
            without_places(&truecast_models::tile::text::parse(&printed, version).unwrap()),
            without_places(&module)
        );
    }
}

/// A file with `tile<4xT>` for every number type T. `body` makes the body from the types' numbers.
fn file(minor: u8, body: impl Fn(&dyn Fn(&str) -> u64) -> Vec<u8>) -> Vec<u8> {
    let mut file = File::entry(minor, &[]);
    let mut numbers = Vec::new();
    let tags = [
        ("i1", 0, 1),
        ("i4", 22, 3),
        ("i8", 1, 1),
        ("i16", 2, 1),
        ("i32", 3, 1),
        ("i64", 4, 1),
        ("f16", 5, 1),
        ("f32", 7, 1),
        ("tf32", 8, 1),
        ("f64", 9, 1),
        ("e4m3", 10, 1),
        ("e8m0", 18, 2),
        ("e2m1", 19, 3),
        ("ue5m3", 130, 4),
    ];
    for (name, tag, since) in tags {
        if since <= minor {
            numbers.push((name, file.with_tile(tag, &[4])));
        }
    }
    let number = |name: &str| numbers.iter().find(|n| n.0 == name).unwrap_or_else(|| panic!("{name}")).1;
    file.constants.push(1.5f32.to_le_bytes().to_vec());
    file.constants.push(vec![7, 0, 0, 0]);
    file.functions = vec![super::assemble::function(minor, 0, &body(&number))];
    file.bytes()
}

fn read(bytes: &[u8]) -> Module {
    bytecode::read(bytes).unwrap_or_else(|e| panic!("{e}"))
}

/// Makes a body, given a function from a type's name to its number.
type Body<'a> = &'a dyn Fn(&dyn Fn(&str) -> u64) -> Vec<u8>;
type Change<'a> = &'a dyn Fn(&mut Vec<u8>);

const RETURN: [u8; 3] = [0x5c, 0, 0];

/// §10.7, §10.10: each conversion with all its fields equals the module that the text form gives.
#[test]
fn every_conversion() {
    for minor in [1u8, 4, 5] {
        let flags: &[u8] = if minor >= 4 { &[1] } else { &[] };
        let bytes = file(minor, |t| {
            let op = |opcode: u8, result: &str, fields: &[u8]| join(&[&[opcode], &varint(t(result)), fields]);
            [
                op(0x10, "f32", &[0]),                       // 0
                op(0x10, "i32", &[1]),                       // 1
                op(0x09, "i32", &[0]),                       // 2: bitcast
                op(0x25, "i64", &[1, 1]),                    // 3: exti signed
                op(0x2a, "e4m3", &[0, 0]),                   // 4: ftof
                op(0x2b, "i8", &join(&[flags, &[0, 6, 0]])), // 5: ftoi unsigned
                op(0x3b, "f16", &[0, 0, 1]),                 // 6: itof unsigned
                op(0x6b, "i8", &[3, 1]),                     // 7: trunci no_wrap
                RETURN.to_vec(),
            ]
            .concat()
        });
        let saturating = if minor >= 4 { " saturating" } else { "" };
        let text = format!(
            "entry @k() {{
              %0 = constant <f32: 1.5> : tile<4xf32>
              %1 = constant <i32: 7> : tile<4xi32>
              %2 = bitcast %0 : tile<4xf32> -> tile<4xi32>
              %3 = exti %1 signed : tile<4xi32> -> tile<4xi64>
              %4 = ftof %0 : tile<4xf32> -> tile<4xf8E4M3FN>
              %5 = ftoi %0 unsigned{saturating} : tile<4xf32> -> tile<4xi8>
              %6 = itof %1 unsigned : tile<4xi32> -> tile<4xf16>
              %7 = trunci %1 overflow<no_wrap> : tile<4xi32> -> tile<4xi8>
              return
            }}"
        );
        let version = Release::ALL[usize::from(minor) - 1];
        let module = read(&bytes);
        let same = truecast_models::tile::text::parse(&text, version).unwrap();
        assert_eq!(without_places(&module), without_places(&same), "13.{minor}");
        assert_eq!(verified(&module).errors, []);
    }
}

/// Version 13.4 added a field of flags.
#[test]
fn pointers() {
    for minor in [1u8, 4] {
        let mut file = File::entry(minor, &[]);
        let i64s = file.with_tile(4, &[]);
        let i8 = file.with_type(vec![1]);
        let flags: &[u8] = if minor >= 4 { &[0] } else { &[] };
        let pointer = file.with_type(join(&[&[12], flags, &varint(i8)]));
        let tile = file.with_type(join(&[&[13], &varint(pointer), &[0]]));
        file.constants.push(vec![1; 8]);
        let body = [
            join(&[&[0x10], &varint(i64s), &[0]]),
            join(&[&[0x33], &varint(tile), &[0]]),
            join(&[&[0x57], &varint(tile), &[1]]),
            join(&[&[0x56], &varint(i64s), &[2]]),
            RETURN.to_vec(),
        ];
        file.functions = vec![super::assemble::function(minor, 0, &body.concat())];
        let same = parsed(
            "entry @k() { %0 = constant <i64: 0x0101010101010101> : tile<i64>
               %1 = int_to_ptr %0 : tile<i64> -> tile<ptr<i8>>
               %2 = ptr_to_ptr %1 : tile<ptr<i8>> -> tile<ptr<i8>>
               %3 = ptr_to_int %2 : tile<ptr<i8>> -> tile<i64> return }",
        );
        let module = read(&file.bytes());
        assert_eq!(module.functions[0].body.len(), same.functions[0].body.len());
        assert_eq!(without_places(&Module { version: same.version, ..module }), without_places(&same));
    }
}

/// Source: §10.5.
#[test]
fn constants() {
    let codes = |tag: u64, shape: &[i64], bytes: &[u8]| {
        let mut file = File::entry(4, &[]);
        let tile = file.with_tile(tag, shape);
        file.constants.push(bytes.to_vec());
        let body = join(&[&[0x10], &varint(tile), &[0], &RETURN]);
        file.functions = vec![super::assemble::function(4, 0, &body)];
        let module = read(&file.bytes());
        match (&module.functions[0].body.first().map(|s| &s.operation), module.findings.first()) {
            (Some(Operation::Constant { elements, .. }), _) => {
                Ok((0..elements.len()).map(elements.reader()).collect::<Vec<_>>())
            }
            (_, Some(error)) => Err(error.code()),
            _ => panic!("{module:?}"),
        }
    };
    assert_eq!(codes(8, &[2], &[0x01, 0xfc, 0x01]), Ok(vec![0x1fc01; 2])); // tf32: three bytes, splat
    assert_eq!(codes(8, &[2], &[1, 0, 0xf8, 2, 0, 0]), Ok(vec![1, 2])); // bits above the 19 are ignored
    assert_eq!(codes(8, &[], &[0, 0, 0, 0]), Err("T017")); // four bytes are not read
    assert_eq!(codes(19, &[2], &[0xf7, 0x12]), Ok(vec![7, 2])); // e2m1: one a byte, high nibble ignored
    assert_eq!(codes(0, &[8], &[0xff]), Ok(vec![1; 8]));
    assert_eq!(codes(0, &[16], &[0xff]), Ok(vec![1; 16]));
    assert_eq!(codes(0, &[16], &[0x00]), Ok(vec![0; 16]));
    assert_eq!(codes(0, &[4], &[0b0101]), Ok(vec![1, 0, 1, 0]));
    assert_eq!(codes(0, &[], &[2]), Ok(vec![0]));
    assert_eq!(codes(0, &[4], &[1, 1, 1, 1]), Err("T017"));
    assert_eq!(codes(2, &[2], &[1, 2, 3, 4]), Ok(vec![0x0201, 0x0403]));
    assert_eq!(codes(2, &[4], &[1, 2, 3, 4]), Err("T017"));
    assert_eq!(codes(22, &[], &[1]), Err("T016")); // i4 has none
}

/// §4.7: features that the file's version lacks.
#[test]
fn version_gates() {
    for (tag, since) in [(18u64, 2u8), (22, 3), (19, 3), (130, 4), (10, 1)] {
        for minor in 1..=5 {
            let mut file = File::entry(minor, &RETURN);
            file.with_tile(tag, &[4]);
            let read = bytecode::read(&file.bytes());
            assert_eq!(read.is_ok(), minor >= since, "tag {tag} in 13.{minor}");
            assert!(read.is_ok() || read.unwrap_err().code() == "T013");
        }
    }
    let code = |minor, body: Body<'_>| {
        let module = read(&file(minor, body));
        module.findings.first().map(|e| e.code())
    };
    let constant = |t: &dyn Fn(&str) -> u64| join(&[&[0x10], &varint(t("f32")), &[0]]);
    let away = |t: &dyn Fn(&str) -> u64| join(&[&constant(t), &[0x2a], &varint(t("tf32")), &[7, 0], &RETURN]);
    assert_eq!(code(3, &away), Some("T013"));
    assert_eq!(code(4, &away), None);
    let unknown = |t: &dyn Fn(&str) -> u64| join(&[&constant(t), &[0x2a], &varint(t("tf32")), &[9, 0], &RETURN]);
    assert_eq!(code(4, &unknown), Some("T011"));
    let sign = |t: &dyn Fn(&str) -> u64| join(&[&constant(t), &[0x2b], &varint(t("i8")), &[2, 6, 0], &RETURN]);
    assert_eq!(code(3, &sign), Some("T009"));
    let flags = |t: &dyn Fn(&str) -> u64| join(&[&constant(t), &[0x2b], &varint(t("i8")), &[2, 1, 6, 0], &RETURN]);
    assert_eq!(code(4, &flags), Some("T017"));
    let overflow =
        |t: &dyn Fn(&str) -> u64| join(&[&[0x10], &varint(t("i32")), &[1, 0x6b], &varint(t("i8")), &[4, 0], &RETURN]);
    assert_eq!(code(1, &overflow), Some("T010"));
    let pack = |t: &dyn Fn(&str) -> u64| join(&[&constant(t), &[0x6f], &varint(t("i8")), &[0], &RETURN]);
    assert_eq!(code(2, &pack), Some("T018"));
    assert_eq!(code(3, &pack), None);
    let opcode = |_: &dyn Fn(&str) -> u64| vec![0x7e];
    assert_eq!(code(5, &opcode), Some("T018"));
    let early = |_: &dyn Fn(&str) -> u64| vec![0x6e];
    assert_eq!(code(1, &early), Some("T018"));
    let open = |t: &dyn Fn(&str) -> u64| constant(t);
    assert_eq!(code(5, &open), Some("T020"));
    let forward = |t: &dyn Fn(&str) -> u64| join(&[&[0x09], &varint(t("i32")), &[0], &RETURN]);
    assert_eq!(code(5, &forward), Some("T017"));
}

/// §10.8: operations other than conversions are skipped. Numbers that a block uses are free after the block. Results
/// come after the regions.
#[test]
fn other_operations() {
    let bytes = file(5, |t| {
        let op = |opcode: u8, result: &str, fields: &[u8]| join(&[&[opcode], &varint(t(result)), fields]);
        let nested = [
            op(0x2a, "f16", &[0, 0]), // inside: ftof of value 0
            vec![0x6d, 0, 1, 2],      // yield of value 2, the ftof (value 1 is the block's argument)
        ]
        .concat();
        let block = join(&[&[1, 1, 1], &varint(t("i32")), &[2], &nested]);
        [
            op(0x10, "f32", &[0]),                                            // 0
            join(&[&[0x29, 1], &varint(t("f16")), &[0, 3, 0, 0, 0], &block]), // for, result 1
            op(0x02, "f32", &[0, 0, 0, 0]),                                   // addf: flags, rounding; result 2
            op(0x2a, "f64", &[0, 2]),                                         // 3
            op(0x2a, "f64", &[0, 1]),                                         // 4: of the loop's result
            RETURN.to_vec(),
        ]
        .concat()
    });
    let module = read(&bytes);
    assert_eq!(module.findings, []);
    let function = &module.functions[0];
    let names = function.body.iter().map(|s| match &s.operation {
        Operation::Opaque { name, .. } => name.to_string(),
        Operation::Convert { from, .. } => from.to_string(),
        _ => "-".into(),
    });
    let names: Vec<_> = names.collect();
    assert_eq!(names, ["-", "for", "addf", "tile<4xf32>", "tile<4xf16>", "-"]);
    let Operation::Opaque { regions, .. } = &function.body[1].operation else { panic!() };
    assert!(matches!(regions[0][0].operation, Operation::Convert { .. }));
    assert_eq!(verified(&module).conversions, 3);
}

/// §10.2, §10.11: errors of the container, with positions.
#[test]
fn container_errors() {
    let good = hex(GOLDEN_13_1);
    let error = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        bytecode::read(&bytes).unwrap_err().to_string()
    };
    let rows: [(&str, Change<'_>); 8] = [
        ("offset 0: T017: the magic number of Tile IR bytecode is missing", &|b| b[0] = 0),
        ("offset 8: T017: file version 13.6 is not one of 13.1 to 13.5", &|b| b[9] = 6),
        ("offset 8: T017: file version 12.1 is not one of 13.1 to 13.5", &|b| b[8] = 12),
        ("offset 10: T017: version tag 0x0001: files with preview features are not read", &|b| b[10] = 1),
        ("offset 129: T017: 1 bytes after the end section", &|b| b.push(0)),
        ("offset 128: T017: the end section is missing; the file is truncated", &|b| b.truncate(128)),
        ("offset 12: T017: section 9 is not known in version 13.1", &|b| b[12] = 0x89),
        ("offset 12: T017: section 7 is not known in version 13.1", &|b| b[12] = 0x87),
    ];
    for (expected, change) in rows {
        assert_eq!(error(change), expected);
    }
    // §10.1: padding is ignored.
    let mut padded = good.clone();
    padded[15] = 0;
    assert_eq!(without_places(&bytecode::read(&padded).unwrap()), without_places(&bytecode::read(&good).unwrap()));
    let twice = error(&|b| b.splice(128..128, [0x81, 1, 4, 0xcb, 0]).for_each(drop));
    assert!(twice.contains("a second section of strings"), "{twice}");
    assert!(error(&|b| b[12..].copy_from_slice(&[0; 117])).contains("bytes after the end section"));
    let empty = bytecode::read(&join(&[b"\x7fTileIR\0", &[13, 1, 0, 0, 0]])).unwrap_err().to_string();
    assert_eq!(empty, "offset 13: T017: the section of strings is missing");
    for cut in 0..good.len() {
        assert!(bytecode::read(&good[..cut]).is_err(), "cut at {cut}");
    }
}

#[test]
fn files_newer_than_the_release() {
    let module = read(&golden_13_5());
    let report = |rules| truecast_models::tile::check(&module, rules, Profile::Spec, &Options::default());
    assert_eq!(report(Rules::OfFile).errors, []);
    assert_eq!(report(Rules::Of(Release::V13_4)).errors[0].code(), "T013");
}
