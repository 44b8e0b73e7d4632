//! `truecast bench`.

use super::Context;
use crate::args::BenchArgs;
use crate::bench::scaled::{self, Direction, ScaledRow};
use crate::bench::{BenchOptions, BenchPlan, BenchRow, pairs, route};
use crate::failure::Failure;
use crate::number::grouped;
use crate::table::{Column, Table};
use crate::terminal::Terminal;
use crate::{number, progress};
use serde_json::{Value, json};
use truecast::request::Request;
use truecast::{Caches, CastOptions, Counting, DType, Level};

pub fn run(args: &BenchArgs, context: &Context) -> Result<u8, Failure> {
    let level = args.level.as_deref().map(available).transpose()?;
    if let Some(layouts) = &args.scaled {
        return scaled(layouts, level.unwrap_or(context.exec.level), args, context);
    }
    let request = args.policy.request()?;
    if args.routes {
        return routes(args, &request, level, context);
    }
    let counting = if args.counts { Counting::Full } else { Counting::Off };
    let options = BenchOptions {
        pairs: chosen_pairs(&args.pairs, &request)?,
        sizes: args.sizes.clone(),
        request,
        exec: CastOptions { level: level.unwrap_or(context.exec.level), counting, ..context.exec },
        best_of: args.best_of,
    };
    let mut plan = BenchPlan::new(options)?;
    let caches = *plan.caches();
    let bar = progress::steps(plan.len() as u64, context.quiet || context.json);
    let rows = plan.run(|row| {
        bar.more(1, &format!("{} -> {} {}", row.src, row.dst, row.size));
    })?;
    bar.finish();
    context.answer("bench", || to_json(&rows, &caches), || render(&rows, &caches, args, &context.terminal))?;
    Ok(0)
}

/// Prints the route that each pair takes, at one level or at every level.
fn routes(args: &BenchArgs, request: &Request, level: Option<Level>, context: &Context) -> Result<u8, Failure> {
    let pairs = chosen_pairs(&args.pairs, request)?;
    let levels = level.map_or_else(Level::available, |level| vec![level]);
    let types = [Column::left("from"), Column::left("to")];
    let mut table = Table::new(types.into_iter().chain(levels.iter().map(|l| Column::left(l.name()))));
    let mut objects = Vec::new();
    for (src, dst) in pairs {
        let mut cells = vec![src.to_string(), dst.to_string()];
        for &level in &levels {
            let route = route((src, dst), request, level)?.to_string();
            objects.push(json!({ "src": src.name(), "dst": dst.name(), "level": level.name(), "route": route }));
            cells.push(route);
        }
        table.row(cells);
    }
    context.answer("bench", || json!({ "routes": objects }), || table.render(&context.terminal))?;
    Ok(0)
}

/// Measures layouts of quantized checkpoints.
fn scaled(layouts: &[String], level: Level, args: &BenchArgs, context: &Context) -> Result<u8, Failure> {
    let bar = progress::steps(scaled::rows(layouts) as u64, context.quiet || context.json);
    let rows = scaled::run(layouts, level, args.best_of, |row| {
        bar.more(1, &format!("{} {}", row.layout, row.direction.name()));
    })?;
    bar.finish();
    let object = |row: &ScaledRow| {
        json!({
            "layout": row.layout, "direction": row.direction.name(), "level": row.level.name(),
            "gbps": rounded(row.gbps()), "limit_gbps": rounded(row.limit_gbps()), "of_limit": rounded(row.of_limit()),
            "elements": row.len
        })
    };
    let mut table = Table::new([
        Column::left("layout"),
        Column::left("direction"),
        Column::right("elements").drops(1),
        Column::right("GB/s"),
        Column::right("limit"),
        Column::right("of limit"),
    ]);
    for row in &rows {
        let direction = if row.direction == Direction::Read { "to bf16" } else { "from bf16" };
        table.row([
            row.layout.to_string(),
            direction.to_string(),
            grouped(row.len as u64),
            format!("{:.1}", row.gbps()),
            format!("{:.1}", row.limit_gbps()),
            format!("{:.2}", row.of_limit()),
        ]);
    }
    let note = format!(
        "GB/s: bytes read and written; limit: the fastest plain pass that reads and writes about as many bytes\n\
         level {level}, 1 thread, best of {}\n",
        args.best_of
    );
    let object = || json!({ "scaled": rows.iter().map(object).collect::<Value>() });
    context.answer("bench", object, || table.render(&context.terminal) + &context.terminal.wrap(&note))?;
    Ok(0)
}

/// Returns the typed pairs, or the representative pairs if no pair was typed.
fn chosen_pairs(typed: &[String], request: &Request) -> Result<Vec<(DType, DType)>, Failure> {
    if typed.is_empty() {
        return Ok(pairs::REPRESENTATIVE.to_vec());
    }
    let mut chosen = Vec::new();
    for text in typed {
        match text.as_str() {
            "all" => chosen.extend(pairs::all().filter(|(src, dst)| request.resolve(*src, *dst).is_ok())),
            pair => chosen.push(pairs::parse(pair)?),
        }
    }
    Ok(chosen)
}

fn available(wanted: &str) -> Result<Level, Failure> {
    let levels = Level::available();
    levels.iter().find(|level| level.name() == wanted).copied().ok_or_else(|| {
        let names: Vec<_> = levels.iter().map(|level| level.name()).collect();
        failure!(InvalidValue, "this CPU lacks level {wanted}; it has {}", names.join(", "))
    })
}

/// Rounds to four digits: no clock is more precise.
fn rounded(value: f64) -> Value {
    json!(format!("{value:.3e}").parse::<f64>().unwrap_or(value))
}

fn to_json(rows: &[BenchRow], caches: &Caches) -> Value {
    let row = |row: &BenchRow| {
        let mut object = json!({
            "src": row.src.name(), "dst": row.dst.name(), "size": row.size.to_string(), "level": row.level.name(),
            "threads": row.threads, "gbps": rounded(row.gbps()), "limit_gbps": rounded(row.limit_gbps()),
            "of_limit": rounded(row.of_limit()), "memcpy_gbps": rounded(row.memcpy_gbps()), "ratio": rounded(row.ratio()),
            "elements": row.len, "route": row.route.to_string()
        });
        if let (Some(gbps), Some(ratio)) = (row.counts_gbps(), row.counts_ratio()) {
            object["counts_gbps"] = rounded(gbps);
            object["counts_ratio"] = rounded(ratio);
        }
        object
    };
    json!({ "l2_bytes": caches.l2, "llc_bytes": caches.llc, "rows": rows.iter().map(row).collect::<Value>() })
}

fn render(rows: &[BenchRow], caches: &Caches, args: &BenchArgs, terminal: &Terminal) -> String {
    let mut columns = vec![
        Column::left("from"),
        Column::left("to"),
        Column::left("size"),
        Column::right("elements").drops(2),
        Column::left("route").drops(1),
        Column::right("GB/s"),
        Column::right("limit"),
        Column::right("of limit"),
        Column::right("memcpy").drops(4),
        Column::right("of memcpy").drops(3),
    ];
    if args.counts {
        columns.extend([Column::right("counting"), Column::right("of GB/s")]);
    }
    let mut table = Table::new(columns);
    for row in rows {
        let mut cells = vec![
            row.src.to_string(),
            row.dst.to_string(),
            row.size.to_string(),
            grouped(row.len as u64),
            row.route.to_string(),
            format!("{:.1}", row.gbps()),
            format!("{:.1}", row.limit_gbps()),
            format!("{:.2}", row.of_limit()),
            format!("{:.1}", row.memcpy_gbps()),
            format!("{:.2}", row.ratio()),
        ];
        cells.extend(row.counts_gbps().map(|gbps| format!("{gbps:.1}")));
        cells.extend(row.counts_ratio().map(|ratio| format!("{ratio:.2}")));
        table.row(cells);
    }
    let Some(first) = rows.first() else { return String::new() };
    let text = table.render(terminal);
    let mut note = "GB/s: bytes read and written; limit: the fastest plain pass that reads and writes as many bytes; \
        memcpy: a copy of as many bytes in total"
        .to_string();
    note += if args.counts {
        "; counting: the speed with everything counted, and its ratio to the speed without\n"
    } else {
        "\n"
    };
    note += &format!(
        "level {}, {}, best of {}; L2 {}, last-level cache {}\n",
        first.level,
        number::count(first.threads.get() as u64, "thread"),
        args.best_of,
        number::bytes(caches.l2),
        number::bytes(caches.llc)
    );
    text + &terminal.wrap(&note)
}
