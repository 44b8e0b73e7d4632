//! RESCALE: `docs/spec/tosa.md §4`.

use crate::page::table;
use truecast_core::DType::{self, *};
use truecast_core::spec::SpecError;
use truecast_core::spec::tosa::rescale::*;
use truecast_core::spec::tosa::{Feature, Features, Rescale, Target, Version};
use truecast_testkit::random::Random;

/// Legal graph of one RESCALE; tests break one part.
#[derive(Clone)]
struct Graph {
    op: Rescale,
    shape: Vec<u64>,
    multiplier: Vec<i64>,
    shift: Vec<i64>,
    input_zp: i64,
    output_zp: i64,
    target: Target,
}

impl Graph {
    fn new(input: DType, output: DType) -> Self {
        let op = Rescale { scale32: input != I48, ..Rescale::new(input, output) };
        let one = if op.scale32 { (1 << 30, 30) } else { (1 << 14, 14) };
        Self {
            op,
            shape: vec![4],
            multiplier: vec![one.0],
            shift: vec![one.1],
            input_zp: 0,
            output_zp: 0,
            target: Target::default(),
        }
    }

    fn with<R>(&self, use_operands: impl FnOnce(&Operands<'_>) -> R) -> R {
        let lengths = [self.multiplier.len() as u64, self.shift.len() as u64];
        let (izp, ozp) = ([self.input_zp], [self.output_zp]);
        use_operands(&Operands {
            multiplier: Operand { dtype: self.op.multiplier_type(), shape: &lengths[..1], values: &self.multiplier },
            shift: Operand { dtype: I8, shape: &lengths[1..], values: &self.shift },
            input_zp: Operand { dtype: self.op.input, shape: &[1], values: &izp },
            output_zp: Operand { dtype: self.op.output, shape: &[1], values: &ozp },
        })
    }

    fn resolve(&self) -> Result<RescaleSpec, SpecError> {
        self.with(|operands| self.op.resolve(&self.shape, operands, &self.target))
    }

    fn error(&self) -> Option<std::string::String> {
        match self.resolve() {
            Ok(_) => None,
            Err(SpecError::Condition { id, .. }) => Some(id.into()),
            Err(SpecError::Missing { what, .. }) => what.split(['(', ')']).nth(1).map(Into::into),
            Err(other) => panic!("{other}"),
        }
    }

    fn results(&self, inputs: &[i64]) -> Vec<Result<i64, Requirement>> {
        let spec = self.resolve().unwrap();
        let one = |(i, x): (usize, &i64)| {
            let code = *x as u64 & spec.input.mask();
            spec.rescale_one(spec.channel_of(i as u64), code).map(|r| spec.output.value(r.code) as i64)
        };
        inputs.iter().enumerate().map(one).collect()
    }

    fn values(&self, inputs: &[i64]) -> Vec<i64> {
        self.results(inputs).into_iter().map(|r| r.unwrap()).collect()
    }
}

fn numbers(text: &str) -> Vec<i64> {
    text.split_whitespace().map(|n| n.parse().unwrap()).collect()
}

/// Formats `2^30`, `2^31 - 1`.
fn multiplier(text: &str) -> i64 {
    let (power, less) = text.split_once(" - ").unwrap_or((text, "0"));
    (1 << power.strip_prefix("2^").unwrap().parse::<i64>().unwrap()) - less.parse::<i64>().unwrap()
}

/// First table of §4.8.
#[test]
fn golden_small_values() {
    let inputs: Vec<i64> = (-6..=6).collect();
    for row in &table("### 4.8", "Input v")[1..] {
        let (m, s) = row[0].split_once(", ").unwrap();
        let mut graph =
            Graph { multiplier: vec![multiplier(m)], shift: vec![s.parse().unwrap()], ..Graph::new(I32, I32) };
        let expected = numbers(&row[2]);
        if let Some(end) = row[1].strip_prefix("INEXACT ") {
            graph.op.rounding = RoundingMode::Inexact;
            let spec = graph.resolve().unwrap();
            let bound = |v: &i64| {
                let (lo, hi) = inexact_interval(&spec, 0, *v as u32 as u64, Bound::Released).unwrap();
                if end == "lo" { lo } else { hi }
            };
            assert_eq!(inputs.iter().map(bound).collect::<Vec<_>>(), expected, "{row:?}");
            continue;
        }
        for mode in row[1].split(", ") {
            graph.op.rounding = if mode == "DOUBLE" { RoundingMode::Double } else { RoundingMode::Single };
            assert_eq!(graph.values(&inputs), expected, "{row:?}");
        }
    }
}

/// Second table of §4.8.
#[test]
fn golden_cases() {
    let scale16 =
        |g: Graph, m, s| Graph { op: Rescale { scale32: false, ..g.op }, multiplier: vec![m], shift: vec![s], ..g };
    let scale = |g: Graph, m: i64, s| Graph { multiplier: vec![m], shift: vec![s], ..g };
    let iu = |g: Graph, zp| Graph { op: Rescale { input_unsigned: true, ..g.op }, input_zp: zp, ..g };
    let ou = |g: Graph, zp| Graph { op: Rescale { output_unsigned: true, ..g.op }, output_zp: zp, ..g };
    let small: Vec<i64> = (-6..=6).collect();
    let same = |g: Graph, inputs: &[i64], expected: &[i64]| assert_eq!(g.values(inputs), expected);
    same(scale16(Graph::new(I16, I16), 1 << 13, 14), &small, &[-3, -2, -2, -1, -1, 0, 0, 1, 1, 2, 2, 3, 3]);
    same(iu(Graph::new(I8, I8), 128), &[0, 127, 128, 255], &[-128, -1, 0, 127]);
    same(ou(Graph::new(I8, I8), 128), &[-128, 0, 127], &[0, 128, 255]);
    same(ou(Graph::new(I8, I8), 0), &[-128, -5, 5], &[0, 0, 5]);
    same(iu(Graph::new(I16, I16), 32768), &[0, 32768, 65535], &[-32768, 0, 32767]);
    same(ou(Graph::new(I16, I16), 32768), &[-32768, 0, 32767], &[0, 32768, 65535]);
    same(ou(Graph::new(I16, I8), 0), &[-300, -1, 0, 255, 256], &[0, 0, 0, 255, 255]);
    same(scale(Graph::new(I32, I8), 1 << 30, 31), &[1_000_000_000, -1_000_000_000], &[127, -128]);
    let wide = [1 << 40, -1 << 40, 1 << 46, -1 << 47];
    same(scale(Graph::new(I48, I32), 16384, 34), &wide, &[1048576, -1048576, 67108864, -134217728]);
    assert_eq!(scale(Graph::new(I48, I32), 16384, 14).results(&[1 << 40]), [Err(Requirement::Scaled)]);
    let mut channels = Graph { multiplier: vec![1 << 30, 1 << 29, 1 << 28], shift: vec![30; 3], ..Graph::new(I8, I8) };
    (channels.op.per_channel, channels.shape) = (true, vec![2, 3]);
    same(channels, &[10, 10, 10, 20, 20, 20], &[10, 5, 3, 20, 10, 5]);
    for (m, s, why) in
        [(1 << 30, 1, Requirement::Shift), (1 << 30, 63, Requirement::Shift), (-1, 30, Requirement::Multiplier)]
    {
        assert_eq!(scale(Graph::new(I8, I8), m, s).results(&[4]), [Err(why)]);
    }
    let narrow = scale(Graph::new(I8, I8), 4, 2);
    assert_eq!(narrow.results(&[-2, 1, 2, -3]), [Ok(-2), Ok(1), Err(Requirement::Value), Err(Requirement::Value)]);
    let top = Graph { output_zp: 127, ..scale16(Graph::new(I32, I8), 16384, 14) };
    assert_eq!(top.results(&[i32::MAX.into()]), [Err(Requirement::Offset)]);
    let inexact = |g: Graph, x: u64| {
        let g = Graph { op: Rescale { rounding: RoundingMode::Inexact, ..g.op }, ..g };
        inexact_interval(&g.resolve().unwrap(), 0, x, Bound::Released).unwrap()
    };
    assert_eq!(inexact(Graph::new(I32, I32), 1 << 24), ((1 << 24) - 4, (1 << 24) + 4));
    for (x, expected) in [(-128i8, 0), (-5, 0), (5, 20), (127, 255)] {
        assert_eq!(inexact(ou(scale(Graph::new(I8, I8), 1 << 30, 28), 0), x as u8 as u64), (expected, expected));
    }
}

/// §4.3: one graph per condition.
#[test]
fn error_conditions() {
    let op = |g: Graph, change: fn(&mut Rescale)| {
        let mut g = g;
        change(&mut g.op);
        g
    };
    let unsigned_in: fn(&mut Rescale) = |o| o.input_unsigned = true;
    let unsigned_out: fn(&mut Rescale) = |o| o.output_unsigned = true;
    let g = Graph::new;
    let double: fn(&mut Rescale) = |o| (o.rounding, o.scale32) = (RoundingMode::Double, false);
    let cases = [
        ("E1", op(op(g(I8, I8), unsigned_in), unsigned_out)),
        ("E2", op(g(I8, I32), unsigned_in)),
        ("E3", op(g(I16, I32), unsigned_out)),
        ("E4", op(g(I32, I8), unsigned_in)),
        ("E5", op(g(I32, I8), unsigned_out)),
        ("E6", op(g(I48, I8), unsigned_in)),
        ("E7", op(g(I48, I8), unsigned_out)),
        ("E8", op(g(I48, I8), |o| o.scale32 = true)),
        ("E9", op(g(I8, I8), double)),
        ("E10", Graph { shape: vec![], ..op(g(I8, I8), |o| o.per_channel = true) }),
        ("E11", Graph { input_zp: 1, ..g(I16, I8) }),
        ("E11", Graph { input_zp: -1, ..g(I32, I8) }),
        ("E12", Graph { output_zp: 1, ..g(I8, I16) }),
        ("E12", Graph { output_zp: 1, ..g(I8, I32) }),
        ("E13", Graph { input_zp: 1, ..op(g(I16, I8), unsigned_in) }),
        ("E14", Graph { output_zp: 32767, ..op(g(I8, I16), unsigned_out) }),
        ("E15", Graph { multiplier: vec![1 << 30; 2], ..g(I8, I8) }),
        ("E15", Graph { shift: vec![30; 3], ..op(g(I8, I8), |o| o.per_channel = true) }),
        ("E18", g(F32, I8)),
        ("E18", g(I8, I48)),
        ("E18", g(I64, I32)),
        (
            "E18",
            Graph { target: without(Feature::ExtDoubleRound), ..op(g(I8, I8), |o| o.rounding = RoundingMode::Double) },
        ),
        (
            "E18",
            Graph {
                target: without(Feature::ExtInexactRound),
                ..op(g(I8, I8), |o| o.rounding = RoundingMode::Inexact)
            },
        ),
        ("E18", Graph { target: without(Feature::ExtInt16), ..g(I48, I8) }),
    ];
    for (id, graph) in cases {
        assert_eq!(graph.error().as_deref(), Some(id), "{:?}", graph.op);
    }
    for (zp, input) in [(0, 32768), (1, 32768), (200, 200)] {
        let mut legal = op(g(if input == 200 { I8 } else { I16 }, I8), unsigned_in);
        legal.input_zp = if zp == 0 { 0 } else { input };
        assert_eq!(legal.error(), None, "{:?}", legal.op);
    }
    assert!(rounding_mode(0, &Target::default()).unwrap_err().to_string().contains("E18"));
    assert_eq!(rounding_mode(2, &Target::default()), Ok(RoundingMode::Inexact));
    // `Graph` cannot have the operands of E16 and E17.
    let graph = g(I8, I8);
    let changed = |change: fn(&mut Operands<'_>)| {
        graph.with(|operands| {
            let mut operands = *operands;
            change(&mut operands);
            graph.op.resolve(&graph.shape, &operands, &graph.target).unwrap_err().to_string()
        })
    };
    assert!(changed(|o| o.input_zp.shape = &[]).contains("E16"));
    assert!(changed(|o| (o.output_zp.shape, o.output_zp.values) = (&[2], &[0, 0])).contains("E16"));
    assert!(changed(|o| o.multiplier.dtype = I16).contains("E17"));
    assert!(changed(|o| o.shift.dtype = I32).contains("E17"));
    assert!(changed(|o| o.input_zp.dtype = I16).contains("E17"));
}

fn without(feature: Feature) -> Target {
    Target { enabled: Features::of(Feature::ALL).without(Features::of(&[feature])), ..Target::default() }
}

/// §4.2: 182 legal variants of all combinations.
#[test]
fn legal_variants() {
    let flags = [false, true];
    let mut legal = 0;
    for input in [I8, I16, I32, I48] {
        for output in [I8, I16, I32] {
            for rounding in RoundingMode::ALL {
                for bits in 0..16 {
                    let flag = |i: usize| flags[(bits >> i) & 1];
                    let (scale32, per_channel, input_unsigned, output_unsigned) = (flag(0), flag(1), flag(2), flag(3));
                    let op = Rescale { input, output, scale32, rounding, per_channel, input_unsigned, output_unsigned };
                    legal += op.check(1, &Target::default()).is_ok() as usize;
                }
            }
        }
    }
    assert_eq!(legal, 182);
    let names: Vec<_> = [Version::V1_0, Version::V1_1].map(|v| Rescale::new(I8, I8).check(1, &Target::of(v))).into();
    assert_eq!(names, [Ok(()), Ok(())]);
}

/// §6.1: a broken requirement takes precedence over an error. The result has the index of the first element.
#[test]
fn results_of_graphs() {
    let result = |g: &Graph, input: &[i64]| {
        let mask = u64::MAX >> (64 - g.op.input.code_bits());
        g.with(|o| g.op.graph_result(&g.shape, o, &g.target, input.iter().map(|&x| x as u64 & mask)))
    };
    let mut graph = Graph { shift: vec![8], ..Graph::new(I32, I8) };
    assert_eq!(result(&graph, &[127, -128]), GraphResult::Valid);
    let value = |index| GraphResult::Unpredictable { requirement: Requirement::Value, index: Some(index) };
    assert_eq!(result(&graph, &[127, 128, 129]), value(1));
    graph.op.rounding = RoundingMode::Double;
    graph.input_zp = 3;
    assert!(matches!(result(&graph, &[1, 2]), GraphResult::Error(SpecError::Condition { id: "E11", .. })));
    assert_eq!(result(&graph, &[1, 2, -126]), value(2));
    graph.shape = vec![1; 7];
    let rank = GraphResult::Unpredictable { requirement: Requirement::Rank, index: None };
    assert_eq!(result(&graph, &[1]), rank);
    let wide = Graph { op: Rescale { scale32: true, ..Rescale::new(I48, I8) }, ..Graph::new(I48, I8) };
    assert!(matches!(result(&wide, &[1 << 40]), GraphResult::Error(_)));
}

fn floor(n: i128, d: i128) -> i128 {
    n.div_euclid(d)
}

/// Result as a fraction: `v m / 2^s + 1/2`, then the limits. DOUBLE_ROUND first rounds at bit 30.
fn oracle(spec: &RescaleSpec, channel: Channel, x: i64) -> Option<i64> {
    let (m, s) = (i128::from(channel.multiplier), i128::from(channel.shift));
    let v = i128::from(x - spec.input_zp);
    if m < 0 || !(2..=62).contains(&s) || (spec.scale32 && (2 * v + 1).abs() > 1 << s) {
        return None;
    }
    let mut doubled = 2 * v * m + (1 << s); // 2 (v m + 2^(s-1)), over 2^(s+1)
    if spec.rounding == RoundingMode::Double && s > 31 {
        doubled += if v >= 0 { 1 << 31 } else { -(1 << 31) };
    }
    let i32_range = i128::from(i32::MIN)..=i128::from(i32::MAX);
    let q = floor(doubled, 1 << (s + 1));
    let offset = q + i128::from(spec.output_zp);
    (i32_range.contains(&q) && i32_range.contains(&offset))
        .then(|| offset.clamp(spec.output.min(), spec.output.max()) as i64)
}

#[test]
fn against_fractions() {
    let mut random = Random::seeded(5);
    let (mut defined, mut refused) = (0, 0);
    for _ in 0..60_000 {
        let inputs = [I8, I16, I32, I48];
        let outputs = [I8, I16, I32];
        let (input, output) = (inputs[random.next() as usize % 4], outputs[random.next() as usize % 3]);
        let mut graph = Graph::new(input, output);
        graph.op.scale32 = random.next().is_multiple_of(2);
        graph.op.rounding = RoundingMode::ALL[random.next() as usize % 3];
        graph.op.input_unsigned = random.next().is_multiple_of(4);
        graph.op.output_unsigned = random.next().is_multiple_of(4);
        if graph.op.check(1, &graph.target).is_err() {
            continue;
        }
        graph.multiplier = vec![
            random.signed(if graph.op.scale32 { 32 } else { 16 }) & if graph.op.scale32 { 0x7fff_ffff } else { 0x7fff },
        ];
        graph.shift = vec![1 + (random.next() % 63) as i64];
        graph.input_zp = if input == I8 { random.signed(8) } else { 0 };
        graph.output_zp = if output == I8 { random.signed(8) } else { 0 };
        let spec = graph.resolve().unwrap();
        for _ in 0..4 {
            let code = random.signed(input.code_bits()) as u64 & spec.input.mask();
            let x = spec.input.value(code) as i64;
            let ours = spec.rescale_one(0, code);
            let expected = oracle(&spec, spec.channels[0], x);
            assert_eq!(ours.ok().map(|r| spec.output.value(r.code) as i64), expected, "{spec:?}, {x}");
            let Some(value) = expected else {
                refused += 1;
                continue;
            };
            defined += 1;
            let single = RescaleSpec { rounding: RoundingMode::Single, ..spec.clone() };
            let single = single.output.value(single.rescale_one(0, code).unwrap().code) as i64;
            // §4.6: SINGLE_ROUND is inside both intervals, and the older interval inside the newer.
            let (lo, hi) = inexact_interval(&spec, 0, code, Bound::Released).unwrap();
            let (seed_lo, seed_hi) = inexact_interval(&spec, 0, code, Bound::Seed).unwrap();
            assert!(lo <= seed_lo && seed_lo <= single && single <= seed_hi && seed_hi <= hi, "{spec:?}, {x}");
            if spec.rounding == RoundingMode::Inexact || spec.channels[0].shift <= 31 {
                assert_eq!(value, single, "{spec:?}, {x}"); // §4.7
            }
        }
    }
    assert!(defined > 20_000 && refused > 1_000, "{defined} {refused}");
}

/// §4.7: with a normalized multiplier, DOUBLE_ROUND equals the two-stage rounding of quantized networks. First stage:
/// doubling high multiply, rounded to nearest. Second stage: division by a power of two, rounded to nearest, ties away
/// from zero.
#[test]
fn double_rounding_in_two_stages() {
    let mut random = Random::seeded(11);
    let mut differs = 0;
    for _ in 0..100_000 {
        let m = (1 << 30) | (random.next() & 0x3fff_ffff) as i64;
        let s = 32 + (random.next() % 12) as i64;
        let v = random.signed(32);
        let product = i128::from(v) * i128::from(m);
        let nudge: i128 = if product >= 0 { 1 << 30 } else { 1 - (1 << 30) };
        let high = (product + nudge) / (1 << 31); // truncates
        let (n, d) = (high, 1i128 << (s - 31));
        let two_stages = floor(2 * n.abs() + d, 2 * d) * n.signum();
        let mut graph = Graph { multiplier: vec![m], shift: vec![s], ..Graph::new(I32, I32) };
        graph.op.rounding = RoundingMode::Double;
        assert_eq!(graph.values(&[v]), [two_stages as i64], "v = {v}, m = {m}, s = {s}");
        graph.op.rounding = RoundingMode::Single;
        differs += (graph.values(&[v]) != [two_stages as i64]) as u32;
    }
    assert!(differs > 500, "{differs}");
}
