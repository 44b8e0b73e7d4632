//! `truecast bench`.

use super::Context;
use crate::args::BenchArgs;
use crate::bench::{Arrays, BenchError, Seconds, Size, data, measure, pairs, planned, pools};
use crate::failure::Failure;
use crate::number::grouped;
use crate::table::{Column, Table};
use crate::terminal::Terminal;
use crate::{number, progress};
use serde_json::{Value, json};
use truecast::{Caches, CastOptions, CastSpec, DType};
use truecast_kernel::Route;

/// One pair at one size.
struct Row {
    src: DType,
    dst: DType,
    size: Size,
    arrays: Arrays,
    route: Route,
    seconds: Seconds,
}

impl Row {
    /// Bytes that are read and written in this time, in 10^9 per second.
    fn gbps(&self, seconds: f64) -> f64 {
        (self.arrays.src_bytes + self.arrays.dst_bytes) as f64 / seconds / 1e9
    }
}

pub fn run(args: &BenchArgs, context: &Context) -> Result<u8, Failure> {
    let request = args.policy.request()?;
    let level = args.level.as_deref().map_or(Ok(context.exec.level), |name| super::level("--level", name))?;
    let (exec, caches) = (CastOptions { level, ..context.exec }, Caches::of_this_machine());
    let mut works = Vec::new();
    for pair in pairs::chosen(&args.pairs, &request)? {
        let CastSpec { src, dst, .. } = *planned(pair, &request, &exec)?.spec();
        let arrays = |size: &Size| (*size, Arrays::new(src, dst, *size, &caches).expect("text is never planned"));
        works.extend(args.sizes.iter().map(arrays).map(|(size, arrays)| (src, dst, size, arrays)));
    }
    let most = |bytes: fn(&Arrays) -> usize| {
        works.iter().map(|(.., arrays)| bytes(arrays).max(arrays.copied_bytes())).max().unwrap_or(0)
    };
    let [mut from, mut to] = pools([most(|arrays| arrays.src_bytes), most(|arrays| arrays.dst_bytes)])?;
    let bar = progress::steps(works.len() as u64, context.quiet || context.json);
    let (mut rows, mut filled): (Vec<Row>, _) = (Vec::new(), None);
    for (src, dst, size, arrays) in works {
        if filled != Some(src) {
            data::fill(src, from.bytes_mut());
            filled = Some(src);
        }
        let caster = planned((src, dst), &request, &exec)?;
        let seconds = measure(&caster, &exec, args.best_of, arrays, from.bytes(), to.bytes_mut());
        let seconds = seconds.map_err(|cause| BenchError::Value { src, dst, cause })?;
        rows.push(Row { src, dst, size, arrays, route: caster.route().clone(), seconds });
        bar.more(1, &format!("{src} -> {dst} {size}"));
    }
    bar.finish();
    let text = || render(&rows, &exec, &caches, args, &context.terminal);
    context.answer("bench", || to_json(&rows, &exec, &caches), text)?;
    Ok(0)
}

/// Rounds to four digits: no clock is more precise.
fn rounded(value: f64) -> Value {
    json!(format!("{value:.3e}").parse::<f64>().unwrap_or(value))
}

fn to_json(rows: &[Row], exec: &CastOptions, caches: &Caches) -> Value {
    let row = |row: &Row| {
        let Seconds { conversion, memcpy, limit } = row.seconds;
        json!({
            "src": row.src.name(), "dst": row.dst.name(), "size": row.size.to_string(), "level": exec.level.name(),
            "threads": exec.threads, "gbps": rounded(row.gbps(conversion)), "limit_gbps": rounded(row.gbps(limit)),
            "of_limit": rounded(limit / conversion), "memcpy_gbps": rounded(row.gbps(memcpy)),
            "ratio": rounded(memcpy / conversion), "elements": row.arrays.len, "route": row.route.to_string()
        })
    };
    json!({ "l2_bytes": caches.l2, "llc_bytes": caches.llc, "rows": rows.iter().map(row).collect::<Value>() })
}

fn render(rows: &[Row], exec: &CastOptions, caches: &Caches, args: &BenchArgs, terminal: &Terminal) -> String {
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
        let Seconds { conversion, memcpy, limit } = row.seconds;
        table.row([
            row.src.to_string(),
            row.dst.to_string(),
            row.size.to_string(),
            grouped(row.arrays.len as u64),
            row.route.to_string(),
            format!("{:.1}", row.gbps(conversion)),
            format!("{:.1}", row.gbps(limit)),
            format!("{:.2}", limit / conversion),
            format!("{:.1}", row.gbps(memcpy)),
            format!("{:.2}", memcpy / conversion),
        ]);
    }
    let text = table.render(terminal);
    let note = format!(
        "GB/s: bytes read and written; limit: the fastest plain pass that reads and writes as many bytes; \
         memcpy: a copy of as many bytes in total\n\
         level {}, {}, best of {}; L2 {}, last-level cache {}\n",
        exec.level,
        number::count(exec.threads.get() as u64, "thread"),
        args.best_of,
        number::bytes(caches.l2),
        number::bytes(caches.llc)
    );
    text + &terminal.wrap(&note)
}
