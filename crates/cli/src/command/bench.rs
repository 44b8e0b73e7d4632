//! `truecast bench`.

use super::Context;
use crate::args::BenchArgs;
use crate::bench::{BenchOptions, BenchPlan, BenchRow, pairs};
use crate::failure::Failure;
use crate::number::grouped;
use crate::table::{Column, Table};
use crate::terminal::Terminal;
use crate::{number, progress};
use serde_json::{Value, json};
use truecast::{Caches, CastOptions};

pub fn run(args: &BenchArgs, context: &Context) -> Result<u8, Failure> {
    let request = args.policy.request()?;
    let level = args.level.as_deref().map_or(Ok(context.exec.level), |name| super::level("--level", name))?;
    let options = BenchOptions {
        pairs: pairs::chosen(&args.pairs, &request)?,
        sizes: args.sizes.clone(),
        request,
        exec: CastOptions { level, ..context.exec },
        best_of: args.best_of,
    };
    let mut plan = BenchPlan::new(options)?;
    let caches = *plan.caches();
    let bar = progress::steps(plan.n_rows() as u64, context.quiet || context.json);
    let rows = plan.run(|row| {
        bar.more(1, &format!("{} -> {} {}", row.src, row.dst, row.size));
    })?;
    bar.finish();
    context.answer("bench", || to_json(&rows, &caches), || render(&rows, &caches, args, &context.terminal))?;
    Ok(0)
}

/// Rounds to four digits: no clock is more precise.
fn rounded(value: f64) -> Value {
    json!(format!("{value:.3e}").parse::<f64>().unwrap_or(value))
}

fn to_json(rows: &[BenchRow], caches: &Caches) -> Value {
    let row = |row: &BenchRow| {
        json!({
            "src": row.src.name(), "dst": row.dst.name(), "size": row.size.to_string(), "level": row.level.name(),
            "threads": row.threads, "gbps": rounded(row.gbps()), "limit_gbps": rounded(row.limit_gbps()),
            "of_limit": rounded(row.of_limit()), "memcpy_gbps": rounded(row.memcpy_gbps()), "ratio": rounded(row.ratio()),
            "elements": row.len, "route": row.route.to_string()
        })
    };
    json!({ "l2_bytes": caches.l2, "llc_bytes": caches.llc, "rows": rows.iter().map(row).collect::<Value>() })
}

fn render(rows: &[BenchRow], caches: &Caches, args: &BenchArgs, terminal: &Terminal) -> String {
    let mut table = Table::new([
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
    ]);
    for row in rows {
        table.row([
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
        ]);
    }
    let Some(first) = rows.first() else { return String::new() };
    let text = table.render(terminal);
    let note = format!(
        "GB/s: bytes read and written; limit: the fastest plain pass that reads and writes as many bytes; \
         memcpy: a copy of as many bytes in total\n\
         level {}, {}, best of {}; L2 {}, last-level cache {}\n",
        first.level,
        number::count(first.threads.get() as u64, "thread"),
        args.best_of,
        number::bytes(caches.l2),
        number::bytes(caches.llc)
    );
    text + &terminal.wrap(&note)
}
