//! `truecast check cast|rescale` by the rules of TOSA: verdicts, first failing elements, lints.

use super::groups;
use super::source::{Asked, asked, explain_options, source_type};
use crate::args::CheckArgs;
use crate::command::{Context, rescale};
use crate::exact_decimal::code_with_value;
use crate::failure::Failure;
use crate::message;
use crate::number::{count, grouped};
use crate::output::bits;
use crate::table::{Cell, Column, Mark, Table};
use crate::terminal::Terminal;
use serde_json::{Map, Value, json};
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::Path;
use truecast::DType;
use truecast::check::tosa::{Checked, CheckedElements, Compared, check_blocks, check_cast, check_rescale};
use truecast::convention::{Convention, RescaleConvention};
use truecast::io::FileFormat;
use truecast::io::npy::hex::is_hex;
use truecast::permitted::NanComparison;
use truecast::policy::NanRule;
use truecast::rescale::element_type;
use truecast::spec::tosa::block::{BlockCast, Direction, SCALE};
use truecast::spec::tosa::check::tensor::{BlockCheck, Failure as Violation, Lint, ScaleFailure};
use truecast::spec::tosa::check::{Profile, Verdict, cast, rescale as rescale_check};
use truecast::spec::tosa::rescale::GraphResult;
use truecast::spec::tosa::{Cast, Target, signless};

fn compared<'a>(args: &'a CheckArgs, target: &Target) -> Result<(DType, Compared<'a>), Failure> {
    let profile = args.policy.get("profile").map_or(Ok(Profile::of_version(target.version)), str::parse)?;
    let Asked { to, input, actual } = asked(args)?;
    let is_read = |path: &Path| is_hex(path) || FileFormat::of_path(path) == Some(FileFormat::Npy);
    if let Some(other) = [input, actual].into_iter().find(|path| !is_read(path)) {
        let path = other.display();
        return Err(failure!(
            UnknownFileKind,
            "{path}: check by --spec tosa reads .npy arrays and .hex files; save it as one"
        ));
    }
    Ok((to, Compared { input, actual, keep: args.show, profile }))
}

pub fn cast(args: &CheckArgs, nan: Option<NanRule>, target: Target, context: &Context) -> Result<u8, Failure> {
    let (to, files) = compared(args, &target)?;
    let from = source_type(args, files.input)?;
    if let Some((cast, scales)) = blocks(args, from, to)? {
        return of_blocks(&cast, target, files, scales, context);
    }
    let profile = files.profile;
    let input_unsigned = args.rescale.input_unsigned.then_some(true);
    let mut spec = Cast { target, input_unsigned, ..Cast::to(to) }.resolve(from)?;
    spec.policy.nan = nan.unwrap_or(spec.policy.nan);
    let nan = if args.exact_nan { NanComparison::Bits } else { NanComparison::Class };
    match check_cast(&spec, &target, files, nan)? {
        Checked::Elements(judged) => Presentation {
            target,
            profile,
            types: [from, to],
            explain: Some(explain_options(args, [from, to], &spec_name(&target))),
            clause: "docs/spec/tosa.md §6.5 to §6.7",
            permitted: Box::new(move |_, f| cast::permitted(&spec, f.input, nan, |verdict| profile.passes(verdict))),
            scales: None,
        }
        .print(&judged, Convention::name, context),
        Checked::Graph(result) => graph(&result, target, [from, to], context),
    }
}

/// The block-scaled CAST, if one is requested, and the file with the scales of the input or result.
fn blocks(args: &CheckArgs, from: DType, to: DType) -> Result<Option<(BlockCast, &Path)>, Failure> {
    let (direction, element, plain, scales) = match (&args.input_scale, &args.actual_scale) {
        (None, None) => return Ok(None),
        (Some(scales), None) => (Direction::FromBlocks, from, to, scales),
        (None, Some(scales)) => (Direction::ToBlocks, to, from, scales),
        (Some(_), Some(_)) => {
            return Err(failure!(
                ConflictingOptions,
                "--input-scale and --actual-scale exclude each other: at most one side of a CAST is block-scaled"
            ));
        }
    };
    let others = [
        ("--exact-nan", args.exact_nan),
        ("--nan", args.policy.get("nan").is_some()),
        ("--input-unsigned", args.rescale.input_unsigned),
    ];
    match others.iter().find(|(_, given)| *given) {
        Some((flag, _)) => Err(failure!(InapplicableOption, "{flag} does not apply to a block-scaled CAST")),
        None => Ok(Some((BlockCast { direction, element, plain }, scales))),
    }
}

fn of_blocks(
    cast: &BlockCast,
    target: Target,
    files: Compared<'_>,
    scales: &Path,
    context: &Context,
) -> Result<u8, Failure> {
    let types = match cast.direction {
        Direction::ToBlocks => [cast.plain, cast.element],
        Direction::FromBlocks => [cast.element, cast.plain],
    };
    match check_blocks(cast, &target, files, scales)? {
        Checked::Elements(BlockCheck { findings, permitted, failed_scales, scale_failures, .. }) => Presentation {
            target,
            profile: files.profile,
            types,
            explain: None,
            clause: "docs/spec/tosa.md §5.4, §6.9",
            permitted: Box::new(move |at, _| permitted[at].clone()),
            scales: Some((failed_scales, scale_failures)).filter(|_| cast.direction == Direction::ToBlocks),
        }
        .print(
            &CheckedElements::<Convention> { findings, groups: Vec::new(), compared: 0 },
            Convention::name,
            context,
        ),
        Checked::Graph(result) => graph(&result, target, types, context),
    }
}

pub fn rescale(args: &CheckArgs, target: Target, context: &Context) -> Result<u8, Failure> {
    let (to, files) = compared(args, &target)?;
    let profile = files.profile;
    let rounding = args.policy.get("rounding").unwrap_or("single");
    let held = if is_hex(files.input) { signless(source_type(args, files.input)?) } else { element_type(files.input)? };
    let mut request = rescale::request(&args.rescale, rounding, target, held, to)?;
    if let Some(from) = args.from {
        rescale::state_input(&mut request, from, files.input)?;
    }
    let types = request.op.types();
    match check_rescale(&request, files)? {
        Checked::Elements((judged, spec)) => Presentation {
            target,
            profile,
            types,
            explain: None,
            clause: "docs/spec/tosa.md §6.8",
            permitted: Box::new(move |_, f| {
                let values = rescale_check::permitted(&spec, profile, spec.channel_of(f.index), f.input);
                let code = |value: i64| spec.output.code(value.into());
                values.map(|values| code(*values.start())..=code(*values.end())).into_iter().collect()
            }),
            scales: None,
        }
        .print(&judged, RescaleConvention::name, context),
        Checked::Graph(result) => graph(&result, target, types, context),
    }
}

fn spec_name(target: &Target) -> String {
    format!("tosa@{}", target.version.name())
}

fn graph(result: &GraphResult, target: Target, types: [DType; 2], context: &Context) -> Result<u8, Failure> {
    let (status, message, wrong) = match result {
        GraphResult::Unpredictable { requirement, index } => {
            let place = index.map_or(String::new(), |i| format!(", first at element {i}"));
            ("unpredictable", format!("{requirement}{place}; every output is permitted"), false)
        }
        GraphResult::Error(cause) => ("error", format!("{cause}; an implementation must refuse it"), true),
        GraphResult::Valid => ("valid", String::new(), false),
    };
    let object = || {
        let (spec, [from, to]) = (spec_name(&target), types.map(DType::name));
        json!({ "spec": spec, "from": from, "to": to, "status": status, "message": message })
    };
    let text = || context.terminal.wrap(&(message::one_line(&format!("{status}: {message}")) + "\n"));
    context.report("check", object, text)?;
    Ok(wrong as u8)
}

/// Longest range whose codes are all listed.
const MANY_CODES: u64 = 64;

/// Lists all codes of short ranges; otherwise the first and last code.
fn listed(ranges: Vec<RangeInclusive<u64>>, width: u32) -> Vec<String> {
    let mask = u64::MAX >> (64 - width);
    let range = |range: RangeInclusive<u64>| {
        let (first, last) = range.into_inner();
        // A range of integers may contain -1 and 0: the code then wraps from all ones to 0.
        match last.wrapping_sub(first) & mask {
            steps @ 0..MANY_CODES => (0..=steps).map(|step| bits(first.wrapping_add(step) & mask, width)).collect(),
            _ => vec![format!("{}..{}", bits(first, width), bits(last, width))],
        }
    };
    ranges.into_iter().flat_map(range).collect()
}

/// Ranges of permitted codes for a failing element. The first argument is the index of the failure.
type PermittedCodes = Box<dyn Fn(usize, &Violation) -> Vec<RangeInclusive<u64>>>;

struct Presentation {
    target: Target,
    profile: Profile,
    types: [DType; 2],
    /// Options of `explain` for the same conversion, if `explain` supports it.
    explain: Option<String>,
    clause: &'static str,
    permitted: PermittedCodes,
    /// Number of wrong block scales, and the first wrong ones.
    scales: Option<(u64, Vec<ScaleFailure>)>,
}

impl Presentation {
    fn print<C: Display + Copy>(
        &self,
        judged: &CheckedElements<C>,
        name: fn(C) -> String,
        context: &Context,
    ) -> Result<u8, Failure> {
        context.report("check", || self.json(judged, name), || self.text(judged, &context.terminal))?;
        Ok(!judged.findings.passes() as u8)
    }

    fn input(&self, code: u64) -> String {
        bits(code, self.types[0].code_bits())
    }

    fn output(&self, code: u64) -> String {
        bits(code, self.types[1].code_bits())
    }

    fn permitted(&self, at: usize, violation: &Violation) -> Vec<String> {
        listed((self.permitted)(at, violation), self.types[1].code_bits())
    }

    /// `check --json` (`docs/interfaces.md §6`), with a verdict per profile of TOSA.
    fn json<C: Display + Copy>(&self, judged: &CheckedElements<C>, name: fn(C) -> String) -> Value {
        let CheckedElements { findings, groups, compared } = judged;
        let failure = |(at, f): (usize, &Violation)| {
            json!({
                "index": f.index, "input": self.input(f.input), "actual": self.output(f.actual),
                "permitted": self.permitted(at, f), "clause": self.clause, "verdict": f.verdict.name()
            })
        };
        let verdicts: Map<String, Value> =
            Verdict::ALL.into_iter().map(|v| (v.name().into(), json!(findings.count(v)))).collect();
        let lints: Map<String, Value> =
            Lint::ALL.into_iter().map(|l| (l.name().into(), json!(findings.lint(l)))).collect();
        let [from, to] = self.types.map(DType::name);
        let mut object = json!({
            "spec": spec_name(&self.target), "from": from, "to": to, "elements": findings.elements,
            "undefined": findings.count(Verdict::Unpredictable), "wrong": findings.failed, "status": "valid",
            "profile": self.profile.name(), "verdicts": verdicts, "lints": lints,
            "mixed_flush": findings.mixed_flush, "passes": findings.passes(), "fails_by": findings.reasons()
        });
        if let Some((wrong, failures)) = &self.scales {
            let failure = |f: &ScaleFailure| {
                let permitted = listed(f.permitted.clone(), SCALE.code_bits());
                json!({ "block": f.block, "actual": bits(f.actual.into(), SCALE.code_bits()), "permitted": permitted })
            };
            let failures: Vec<Value> = failures.iter().map(failure).collect();
            object["scales"] = json!({ "wrong": wrong, "violations": failures });
        }
        object["violations"] = findings.failures.iter().enumerate().map(failure).collect();
        object["groups"] = groups::to_json(groups, name, |f| f.index);
        object["compared"] = json!(compared);
        object
    }

    /// Permitted codes as text. One or two codes have values, more codes have none.
    fn permitted_with_values(&self, at: usize, violation: &Violation, terminal: &Terminal) -> String {
        let codes = (self.permitted)(at, violation);
        let width = self.types[1].code_bits();
        let value = |range: &RangeInclusive<u64>| code_with_value(self.types[1], *range.start(), terminal);
        if codes.iter().all(|range| range.start() == range.end()) && codes.len() <= 2 {
            codes.iter().map(value).collect::<Vec<_>>().join(", ")
        } else {
            listed(codes, width).join(", ")
        }
    }

    fn rows<'a>(&self, failures: impl Iterator<Item = (usize, &'a Violation)>, terminal: &Terminal) -> String {
        let mut table = Table::new([
            Column::right("index"),
            Column::left("input"),
            Column::left("actual"),
            Column::left("verdict"),
            Column::left("permitted").wraps(),
        ]);
        let [src, dst] = self.types;
        for (at, f) in failures {
            let (input, actual) = (code_with_value(src, f.input, terminal), code_with_value(dst, f.actual, terminal));
            let cells = [f.index.to_string().into(), input.into(), Cell::new(actual).mark(Mark::Bad)];
            table.row(
                cells.into_iter().chain([f.verdict.name().into(), self.permitted_with_values(at, f, terminal).into()]),
            );
        }
        table.render(terminal)
    }

    fn text<C: Display + Copy>(&self, judged: &CheckedElements<C>, terminal: &Terminal) -> String {
        let CheckedElements { findings, groups, compared } = judged;
        let mut text = match groups.is_empty() {
            true if findings.failures.is_empty() => String::new(),
            true => self.rows(findings.failures.iter().enumerate(), terminal),
            false => {
                // The index of the failure matters only for blocks, and blocks have no groups.
                let rows = |failures: &[Violation]| self.rows(failures.iter().map(|f| (0, f)), terminal);
                let explain = |f: &Violation| Some(format!("{} {}", self.input(f.input), self.explain.as_ref()?));
                groups::text(groups, (findings.elements, findings.failures.len()), rows, explain, terminal)
            }
        };
        text += &groups::left_out(findings.failed, if groups.is_empty() { findings.failed } else { *compared });
        if !findings.failures.is_empty() {
            text += &terminal.wrap(&format!("clause: {}\n", self.clause));
        }
        if let Some((wrong, failures)) = self.scales.as_ref().filter(|(wrong, _)| *wrong > 0) {
            for f in failures {
                let (actual, permitted) = (bits(f.actual.into(), 8), listed(f.permitted.clone(), 8).join(", "));
                text += &terminal.wrap(&format!("block {}: scale {actual}, permitted {permitted}\n", f.block));
            }
            let blocks = if *wrong == 1 {
                "the scale of 1 block is".into()
            } else {
                format!("the scales of {} blocks are", grouped(*wrong))
            };
            text += &format!("{blocks} wrong\n");
        }
        for verdict in Verdict::ALL.into_iter().filter(|v| findings.count(*v) > 0) {
            text += &format!("{verdict}: {}\n", grouped(findings.count(verdict)));
        }
        for lint in Lint::ALL.into_iter().filter(|l| findings.lint(*l) > 0) {
            text += &format!("lint {}: {}\n", lint.name(), grouped(findings.lint(lint)));
        }
        if let Some(index) = findings.mixed_flush {
            let weight = if findings.mixed_flush_fails() { "NOT PERMITTED" } else { "lint" };
            text += &terminal.wrap(&format!(
                "{weight} mixed-flush: element {index} treats subnormals differently from earlier elements \
                 (docs/spec/tosa.md §2.3)\n"
            ));
        }
        let verdict = terminal.verdict(findings.passes(), "permitted", "NOT PERMITTED");
        let (elements, failed) = (count(findings.elements, "element"), grouped(findings.failed));
        // Each element may be permitted although their combination is not.
        let together = if findings.mixed_flush_fails() { ", subnormals treated inconsistently" } else { "" };
        let profile = self.profile.name();
        text + &terminal.wrap(&format!("{verdict} by {profile}: {elements}, {failed} wrong{together}\n"))
    }
}
