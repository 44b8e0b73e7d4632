//! Evaluation (§6.1, §6.11).

use super::parsed;
use truecast_core::DType;
use truecast_core::spec::tile::{Options, Profile};
use truecast_models::tile::evaluate::{Settings, evaluate};
use truecast_models::{Error, Tensor};

/// Returns one line per conversion. A line has the name, the codes (`?` after undefined codes), and the behaviors of
/// the notes.
fn run(source: &str, settings: Settings, supplied: Vec<(String, Tensor)>) -> Result<Vec<String>, Error> {
    let module = parsed(source);
    let entry = module.entry(None).unwrap();
    let mut lines = Vec::new();
    evaluate(entry, &settings, supplied, |converted| {
        let shown = match converted.elements {
            None => "unknown".into(),
            Some(elements) => {
                let code = elements.tensor.reader();
                let one = |i| {
                    let mark = if elements.undefined.of(i).is_some() { "?" } else { "" };
                    format!("{:X}{mark}", code(i))
                };
                (0..elements.tensor.len()).map(one).collect::<Vec<_>>().join(" ")
            }
        };
        let short = |reason: &&str| reason.split(':').next().unwrap().to_string();
        let undefined: Vec<_> = converted.undefined.iter().map(|(r, n)| format!("{}x{n}", short(r))).collect();
        let notes: Vec<_> = converted.notes.iter().map(|(r, n)| format!("{}x{n}", short(r))).collect();
        lines.push(format!("{} {shown} [{}] [{}]", converted.name, undefined.join(" "), notes.join(" ")));
        Ok(())
    })
    .map(|()| lines)
}

fn with(profile: Profile) -> Settings {
    Settings { profile, ..Settings::default() }
}

const CHAIN: &str = "entry @k(%a: tile<i32>) {
  %0 = constant <f32: [300.0, 1.5, -0.0, 0x7FC00000]> : tile<4xf32>
  %1 = ftoi %0 signed : tile<4xf32> -> tile<4xi8>
  %2 = exti %1 signed : tile<4xi8> -> tile<4xi32>
  %3 = ftof %0 : tile<4xf32> -> tile<4xf8E4M3FN>
  %4 = itof %a signed : tile<i32> -> tile<f8E4M3FN>
  return
}";

/// An undefined element keeps its first reason, and the next conversion computes from its bits.
#[test]
fn undefined_elements_are_carried() {
    let unknown = |profile| run(CHAIN, with(profile), vec![]).unwrap();
    assert_eq!(
        unknown(Profile::Spec),
        [
            "%1 7F? 1 0 0? [U10x1 U8x1] []", "%2 7F? 1 0 0? [U10x1 U8x1] []", "%3 79 3C 80 7F [] [U3x1]",
            "%4 unknown [] []"
        ]
    );
    assert_eq!(unknown(Profile::Hw)[1], "%2 2C 1 0 0 [] []");
    assert_eq!(unknown(Profile::Seed)[1], "%2 7F 1 0 0 [] []");
}

#[test]
fn supplied_values() {
    let a = |codes| vec![("%a".to_string(), codes)];
    let lines = run(CHAIN, with(Profile::Spec), a(Tensor::of_codes(DType::I32, vec![], [465]))).unwrap();
    assert_eq!(lines[3], "%4 7F [] [U7x1]");
    let wrong = run(CHAIN, with(Profile::Spec), a(Tensor::of_codes(DType::I32, vec![2], [1, 2]))).unwrap_err();
    assert_eq!(wrong.to_string(), "%a: 2 elements of i32, but the entry declares tile<i32>");
    let missing =
        run(CHAIN, with(Profile::Spec), vec![("%z".into(), Tensor::splat(DType::I32, vec![], 0))]).unwrap_err();
    assert_eq!(missing.to_string(), "entry k has no value %z");
    let load = "entry @k() { %t = load_view_tko weak : token -> tile<2xf32>, token
                %h = ftof %t : tile<2xf32> -> tile<2xf16> return }";
    let given = Tensor::of_codes(DType::F32, vec![2], [0x3f800000, 0x7f800001]);
    let lines = run(load, with(Profile::Spec), vec![("%t".into(), given)]).unwrap();
    assert_eq!(lines, ["%h 3C00 7E00 [] []"]);
}

#[test]
fn strict_runs_stop() {
    let options = Options { strict: true, ..Options::default() };
    let stop = run(CHAIN, Settings { options, ..Settings::default() }, vec![]).unwrap_err();
    let message = stop.to_string();
    assert!(message.starts_with("3:8: %1: element 0 is undefined: U8:"), "{message}");
}

/// Splats of any size take no memory; lists are counted.
#[test]
fn memory_is_bounded() {
    let large = "entry @k() { %0 = constant <f64: 1.0> : tile<16777216xf64>
                 %1 = ftof %0 : tile<16777216xf64> -> tile<16777216xf32>
                 %2 = ftof %1 : tile<16777216xf32> -> tile<16777216xf64> return }";
    let settings = Settings { max_bytes: 100, ..Settings::default() };
    let module = parsed(large);
    let mut seen = 0;
    evaluate::<Error>(module.entry(None).unwrap(), &settings, vec![], |converted| {
        assert!(converted.elements.unwrap().tensor.as_splat().is_some());
        seen += 1;
        Ok(())
    })
    .unwrap();
    assert_eq!(seen, 2);
    let list = "entry @k() { %0 = constant <f64: [1.0, 2.0, 3.0, 4.0]> : tile<4xf64>
                %1 = ftof %0 : tile<4xf64> -> tile<4xf32> return }";
    let settings = Settings { max_bytes: 20, ..Settings::default() };
    assert!(matches!(run(list, settings, vec![]), Err(Error::Memory { limit: 20, .. })));
}

/// §6.11: memory image with the low nibble first, tf32 as a word.
#[test]
fn pack_and_unpack() {
    let lines = run(
        "entry @k() {
           %b = constant <i8: [0x21, 0x43, 0x65, 0x87]> : tile<4xi8>
           %0 = unpack %b : tile<4xi8> -> tile<8xf4E2M1FN>
           %1 = unpack %b : tile<4xi8> -> tile<8xi4>
           %2 = unpack %b : tile<4xi8> -> tile<1xtf32>
           %3 = pack %2 : tile<1xtf32> -> tile<4xi8>
           %4 = unpack %b : tile<4xi8> -> tile<2xi16>
           %5 = pack %1 : tile<8xi4> -> tile<4xi8>
           return }",
        Settings::default(),
        vec![],
    )
    .unwrap();
    let codes: Vec<_> = lines.iter().map(|l| l.split(" [").next().unwrap()).collect();
    // 0x43b2a = 0x87654321 >> 13: pack gives a word with 13 zero bits below.
    assert_eq!(
        codes,
        ["%0 1 2 3 4 5 6 7 8", "%1 1 2 3 4 5 6 7 8", "%2 43B2A", "%3 0 40 65 87", "%4 4321 8765", "%5 21 43 65 87"]
    );
}

#[test]
fn undefined_elements_are_packed() {
    let lines = run(
        "entry @k() {
           %f = constant <f32: [300.0, 1.0]> : tile<2xf32>
           %0 = ftoi %f signed : tile<2xf32> -> tile<2xi16>
           %1 = ftoi %f signed : tile<2xf32> -> tile<2xi8>
           %2 = unpack %1 : tile<2xi8> -> tile<1xi16>
           %3 = trunci %1 : tile<2xi8> -> tile<2xi4>
           %4 = pack %3 : tile<2xi4> -> tile<1xi8>
           return }",
        Settings::default(),
        vec![],
    )
    .unwrap();
    assert_eq!(lines[2], "%2 17F? [U8x1] []");
    assert_eq!(lines[4], "%4 1F? [U8x1] []");
}
