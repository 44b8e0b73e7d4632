//! Tests of the driver: every command passes on a small sample, and detects errors.

use clap::Parser;
use std::collections::HashSet;
use truecast_core::{CastSpec, DType, Outcome, cast_one};
use truecast_kernel::Counts;
use truecast_verify::commands::{boundary, counts, ftz, properties, small, split, sweep, theorem};
use truecast_verify::naive::differences;
use truecast_verify::session::{Definition, Progress};
use truecast_verify::{Report, Session};

fn session(definition: Definition) -> Session {
    Session { definition, ..Session::new(Progress::Hidden) }
}

fn typed<T: clap::Args>(line: &str) -> T {
    #[derive(Parser)]
    #[command(no_binary_name = true)]
    struct Line<T: clap::Args> {
        #[command(flatten)]
        options: T,
    }
    Line::parse_from(line.split_whitespace()).options
}

/// Every command that uses the definition, on few pairs. All have values that round to 1.0 in f8e4m3fn; the sweep in
/// its second block (3f80).
fn reports(session: &Session) -> Vec<(&'static str, Report)> {
    // Block 16256 has 1.0.
    let from_zero = &Session { seed: 0, ..session.clone() };
    let ftz_dst = if cfg!(target_arch = "x86_64") { "f8e4m3fn" } else { "f16" };
    vec![
        (
            "small",
            small::run(session, &typed("--src f16,u3,f8e5m2 --dst f8e4m3fn --random-policies 1 --oracle-every 5")),
        ),
        ("sweep", sweep::run(from_zero, &typed("--dst f8e4m3fn --sample 16256 --policy saturate"))),
        ("boundary", boundary::run(session, &typed("--src f32,i48 --dst f8e4m3fn --random 99 --limit-others 200"))),
        ("ftz", ftz::run(session, &typed(&format!("--src f16,f64 --dst {ftz_dst} --limit 500")))),
        ("split", split::run(session, &typed("--src f32 --dst f8e4m3fn --elements 66000 --lengths 40"))),
        ("properties", properties::run(session, &typed("--src f16,i32 --dst f8e4m3fn --limit 900"))),
        ("counts", counts::run(session, &typed("--src f16,i32 --dst f8e4m3fn,i8 --limit 3000"))),
    ]
}

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    let session = session(cast_one);
    for (name, report) in reports(&session) {
        assert_eq!(report.mismatches(), 0, "{name}\n{report}");
        assert!(report.checks() > 10_000, "{name} compares something\n{report}");
        assert!(report.sheet.rows.iter().any(|(_, row)| row.checks > 0), "{name}\n{report}");
    }
    let report = theorem::run(&session, &typed("--intermediate-bits 4"));
    assert_eq!(report.mismatches(), 0, "{report}");
    assert!(report.sheet.rows.iter().all(|(_, row)| row.checks > 0) && report.sheet.rows.len() == 3, "{report}");
}

/// Definition with one error: values that round to 1.0 in f8e4m3fn (0x38) give 0x39.
fn wrong_at_one(spec: &CastSpec, code: u64) -> Outcome {
    match cast_one(spec, code) {
        Outcome::Defined(0x38) if spec.dst == DType::F8E4M3Fn => Outcome::Defined(0x39),
        right => right,
    }
}

#[test]
fn a_wrong_expectation_is_found_by_every_command() {
    let session = session(wrong_at_one);
    for (name, report) in reports(&session) {
        assert!(report.mismatches() > 0, "{name}\n{report}");
        let witnesses: Vec<String> =
            report.sheet.rows.iter().flat_map(|(_, row)| &row.witnesses).map(|w| w.to_string()).collect();
        assert!(!witnesses.is_empty() && witnesses.len() < 60, "{name} shows the first ones\n{report}");
        assert!(witnesses.iter().all(|w| w.contains("f8e4m3fn")), "{name} blames no other type\n{report}");
        assert!(report.to_string().contains("mismatch in "), "{name}\n{report}");
    }
}

/// The levels, the oracle and `rustc_apfloat` each detect the error.
#[test]
fn a_wrong_expectation_is_found_by_every_comparison() {
    let report = small::run(&session(wrong_at_one), &typed("--src bf16,f8e5m2 --dst f8e4m3fn --random-policies 0"));
    for (name, row) in &report.sheet.rows {
        assert!(row.mismatches > 0, "{name}\n{report}");
        let witness = &row.witnesses[0].to_string();
        let who = if name.starts_with("casters") { "baseline" } else { "definition" };
        assert!(witness.contains(who) && witness.contains("0x38") && witness.contains("0x39"), "{witness}");
    }
    assert_eq!(report.sheet.rows.len(), 3);
}

/// The definition refuses wrong inputs, or no input.
#[test]
fn a_wrong_refusal_is_found() {
    fn refuses_too_much(spec: &CastSpec, code: u64) -> Outcome {
        match cast_one(spec, code) {
            Outcome::Defined(0x7e) => Outcome::Refused { condition: truecast_core::policy::Condition::Overflow },
            right => right,
        }
    }
    let report = small::run(&session(refuses_too_much), &typed("--src f8e5m2 --dst f8e4m3fn --random-policies 0"));
    let row = |name: &str| report.sheet.rows.iter().find(|(row, _)| row == name).map(|(_, row)| row.mismatches);
    assert!(row("casters = definition") > Some(0) && row("definition = oracle") > Some(0), "{report}");
}

#[test]
fn every_count_is_compared() {
    let one = Counts { noise: 1.0, ..Counts::default() };
    let text = format!("{one:?}");
    let fields: HashSet<&str> = text.split(&['{', ',', ' '][..]).filter_map(|word| word.strip_suffix(':')).collect();
    let all = Counts {
        elements: 1,
        measured: 1,
        exact: 1,
        inexact: 1,
        saturated: 1,
        wrapped: 1,
        to_inf: 1,
        to_nan: 1,
        nan_in: 1,
        inf_in: 1,
        zero_in: 1,
        nan_out: 1,
        inf_out: 1,
        flushed_to_zero: 1,
        subnormal: 1,
        sign_of_zero_lost: 1,
        undefined: 1,
        max_abs_error: 1.0,
        index_max_abs: 1,
        max_rel_error: 1.0,
        finite_pairs: 1,
        noise: 1.0,
        signal: 1.0,
        image: 1.0,
        product: 1.0,
    };
    let found: HashSet<String> = differences(&all, &Counts::default())
        .into_iter()
        .filter_map(|(got, _)| got.split(' ').next().map(str::to_owned))
        .collect();
    assert_eq!(found.len(), fields.len(), "{fields:?} {found:?}");
    assert!(fields.iter().all(|field| found.contains(*field)), "{fields:?} {found:?}");
}

/// An unused route could hide errors.
#[test]
fn every_route_is_taken() {
    let session = session(cast_one);
    let mut report =
        small::run(&session, &typed("--src f16,u8 --dst f8e4m3fn,u8 --random-policies 0 --oracle-every 99"));
    let wide = boundary::run(
        &session,
        &typed("--src f32,f64,i32 --dst f8e4m3fn,f32,i8,bool --random 9 --limit 99 --limit-others 9"),
    );
    report.sheet.merge(wide.sheet);
    assert!(report.sheet.routes.covers_all(&session.levels), "{report}");
}
