"use strict";
const report = JSON.parse(document.getElementById("report").textContent);
const list = (value) => (Array.isArray(value) ? value.filter((item) => item !== null) : []);
const has = (value) => value !== undefined && value !== null && value !== false && value !== "" && String(value) !== "[object Object]";
const tensors = list(report.tensors);
const isComparison = report.command === "compare";
const [BEFORE, AFTER] = isComparison ? ["first", "second"] : ["before", "after"];
const COUNTS = ["inexact", "saturated", "wrapped", "to_inf", "to_nan", "flushed_to_zero", "subnormal", "sign_of_zero_lost", "undefined"];
const LOSSES = COUNTS.slice(1, 6);
const MEASURES = ["sqnr_db", "rmse", "max_abs_error", "max_abs_error_at_least", "max_rel_error", "max_rel_error_at_least", "cosine"];
const BLOCKS = ["blocks", "blocks_to_zero", "scale_saturated", "scale_zero", "scale_nan"];
const OF_SVG = ["svg", "path", "rect", "line", "text", "title", "pattern", "defs", "g"];

// Characters of files that cannot be seen become escapes, as in the command's text.
const shown = (text) =>
  String(text).replace(/[\p{C}\p{Zl}\p{Zp}\p{DI}]/gu, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
const grouped = (n) => (Number.isFinite(n) ? String(n).replace(/\B(?=(\d{3})+$)/g, "_") : shown(n ?? ""));
const plural = (n, thing) => `${grouped(n)} ${thing}${n === 1 ? "" : "s"}`;
const words = (name) => name.replace("sqnr_db", "SQNR dB").replaceAll("_", " ");
function bytes(n) {
  let unit = 0;
  for (; n >= 999.5 && unit < 4; unit++) n /= 1024;
  const decimals = !unit || n >= 99.95 ? 0 : n >= 9.995 ? 1 : 2;
  // A tie goes to the even digit, as in the command's text.
  const scaled = n * 10 ** decimals, floor = Math.floor(scaled), isDown = scaled - floor === .5 && floor % 2 === 0;
  return Number.isFinite(n) ? `${(isDown ? floor / 10 ** decimals : n).toFixed(decimals)} ${["B", "KiB", "MiB", "GiB", "TiB"][unit]}` : "?";
}
const decibels = (value) => (Number.isFinite(value) ? value.toFixed(1) : shown(value ?? ""));
const digits = (value) => (Number.isFinite(value) ? String(Number(value.toPrecision(4))) : shown(value ?? ""));

const flat = (value) => (value !== null && typeof value === "object" ? Object.values(value).map(flat).join(" ") : shown(value));

/** Makes an element. Text of files only becomes text nodes. */
function el(name, attributes, ...children) {
  const made = OF_SVG.includes(name) ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) if (value !== undefined && value !== null && value !== false) made.setAttribute(key, value === true ? "" : value);
  made.append(...children.filter(has));
  return made;
}
const code = (text) => el("span", { class: "name" }, shown(text));
const terms = (pairs) => el("dl", {}, ...pairs.filter(([, value]) => has(value)).flatMap(([term, value]) =>
  [el("dt", {}, term), el("dd", {}, value)]));
const section = (title, ...children) => el("section", {}, el("h2", {}, title), ...children);

function types(t) {
  const [from, to] = [t.scheme ?? t.from, t.to_scheme ?? t.to].map((name) => shown(name ?? "?"));
  if (isComparison) return from === to ? from : `${from} | ${to}`;
  return t.converted === false || (from === to && t.exact === t.elements) ? `${from} kept` : `${from} → ${to}`;
}

/** Counts by power of two on both sides: bins from the lowest power to the highest, with marks of lost values. */
function bins(t) {
  const sides = [t.magnitudes?.from, t.magnitudes?.to].map((side) => ({ first: 0, zero: 0, nan: 0, inf: 0, ...side, counts: list(side?.counts) }));
  const [from, to] = sides;
  const used = sides.filter((side) => side.counts.length);
  const end = (side) => side.first + side.counts.length;
  const first = Math.min(...used.map((side) => side.first)), last = Math.max(...used.map(end));
  const at = (side, power) => side.counts[power - side.first] ?? 0;
  const all = [];
  for (let power = first; power < last && all.length < 4000; power++) {
    const below = to.zero > from.zero && (!to.counts.length || power < to.first);
    const above = to.counts.length > 0 && power >= end(to);
    const lost = !at(from, power) ? "" : below ? "→ 0" : above ? (to.inf > from.inf ? "→ Inf" : to.nan > from.nan ? "→ NaN" : "→ max") : "";
    all.push({ label: `2^${power}`, power, n: [at(from, power), at(to, power)], lost });
  }
  const special = [["0", from.zero, to.zero], ["Inf", from.inf, to.inf], ["NaN", from.nan, to.nan]]
    .filter(([, a, b]) => a || b).map(([label, ...n]) => ({ label, n, special: true, lost: n[1] > n[0] ? `+${grouped(n[1] - n[0])}` : "" }));
  const elements = [...from.counts, from.zero, from.nan, from.inf].reduce((a, b) => a + b, 0);
  return { all: [...special.filter((bin) => bin.label === "0"), ...all, ...special.filter((bin) => bin.label !== "0")], elements };
}
let figures = 0;

/** The histogram of a tensor: filled bars before, outlines after; values that the result does not hold are hatched. */
function histogram(t, width, height) {
  const { all, elements } = bins(t);
  if (!all.length) return el("p", { class: "dim" }, t.magnitudes ? "no values" : "magnitudes were not counted");
  const most = Math.log1p(Math.max(...all.flatMap((bin) => bin.n)));
  const floor = height - 18, gaps = all.filter((bin) => bin.special).length;
  const step = (width - 40 * gaps) / Math.max(all.length - gaps, 1);
  const hatch = `hatch${figures++}`;
  const svg = el("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img" },
    el("defs", {}, el("pattern", { id: hatch, width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
      el("line", { class: "hatch", x1: 0, y1: 0, x2: 0, y2: 5 }))));
  const tall = (n) => (most ? ((floor - 16) * Math.log1p(n)) / most : 0), marks = [];
  let x = 0, labeled = -1e9, marked = "";
  for (const [at, bin] of all.entries()) {
    const wide = bin.special ? 28 : step;
    if (bin.special && bin.label !== "0") x += 12;
    const [before, after] = bin.n.map(tall);
    const group = el("g", {}, el("title", {}, `${bin.label}: ${BEFORE} ${grouped(bin.n[0])}, ${AFTER} ${grouped(bin.n[1])}`));
    const bar = (tall, attributes, inset) => el("rect", { x: x + inset, y: floor - tall, width: Math.max(wide - 2 * inset, .5), height: tall, "stroke-width": step < 6 ? .8 : 1.6, ...attributes });
    if (before) group.append(bar(before, { class: "before" }, 0));
    if (before && bin.lost && !bin.special) group.append(bar(before, { fill: `url(#${hatch})` }, 0));
    if (after) group.append(bar(after, { class: "after" }, Math.min(1, wide / 5)));
    if (bin.lost && bin.lost !== marked) {
      const near = all.slice(at, at + 1 + (bin.special ? 0 : 36 / step)).flatMap(({ n }) => n).map(tall);
      const place = x < width / 2 ? { x, "text-anchor": "start" } : { x: x + wide, "text-anchor": "end" };
      marks.push(el("text", { class: "mark", ...place, y: Math.max(floor - Math.max(...near) - 4, 11) }, bin.lost));
    }
    if (bin.lost) marked = bin.lost;
    if (bin.special || (x - labeled > 52 && x < width - 74 - 40 * (gaps - 1))) {
      group.append(el("text", { x: x + (bin.special ? wide / 2 : 0), y: height - 4, "text-anchor": bin.special ? "middle" : "start" }, bin.label));
      labeled = x;
    }
    svg.append(group);
    x += wide + (bin.label === "0" ? 12 : 0);
  }
  svg.append(...marks, el("line", { class: "axis", x1: 0, y1: floor, x2: width, y2: floor }));
  const one = t.elements > elements && elements ? `; sampled: 1 in ${digits(t.elements / elements)} elements` : "";
  const lost = [...LOSSES, "undefined"].filter((name) => t[name] > 0).map((name) => `${grouped(t[name])} ${words(name)}`).join(", ");
  svg.setAttribute("aria-label", `Values of ${shown(t.name)} by power of two, ${BEFORE} and ${AFTER}${lost ? `: ${lost}` : ""}`);
  return el("figure", {}, svg, el("figcaption", {},
    el("span", { class: "key before" }), `${BEFORE} `, el("span", { class: "key after" }), `${AFTER}: values by power of two, log scale${one}`,
    lost && el("div", {}, `lost: ${lost} (hatched: no result has their power of two)`)));
}

function spark(t) {
  const { all } = bins(t);
  if (!all.length) return "";
  const most = Math.log1p(Math.max(...all.flatMap((bin) => bin.n))) || 1;
  const line = (side) => all.map((bin, i) => `${i ? "L" : "M"}${((i + .5) * 96 / all.length).toFixed(1)} ${(19 - (17 * Math.log1p(bin.n[side])) / most).toFixed(1)}`).join("");
  return el("svg", { viewBox: "0 0 96 20", width: 96, height: 20, "aria-hidden": "true" },
    el("path", { class: "before", d: `${line(0)}L96 19L0 19Z` }), el("path", { class: "after", d: line(1) }));
}

function details(t) {
  const sizes = [["shape", list(t.shape).length ? list(t.shape).map(grouped).join(" × ") : "scalar"], ["elements", grouped(t.elements)],
    ["size", `${bytes(t.bytes_in)} → ${bytes(t.bytes_out)}`], ["types", types(t)], ["kept by", t.kept_by && shown(t.kept_by)], ["measured", t.measured && grouped(t.measured)]];
  const counts = ["exact", ...COUNTS, "nan_in", "inf_in", "zero_in", ...BLOCKS].filter((name) => t[name] > 0).map((name) => [words(name), grouped(t[name])]);
  const measures = MEASURES.filter((name) => has(t[name])).map((name) => [words(name), digits(t[name])]);
  return el("div", { class: "parts" }, t.magnitudes && histogram(t, innerWidth < 700 ? 330 : 560, 190), terms([...sizes, ...counts]), terms(measures));
}

const page = document.getElementById("page"), total = report.total ?? {};
const byName = new Map(tensors.map((t) => [t.name, t]));
const worst = list(report.worst_tensors).filter(({ name }) => byName.has(name));
if (worst.length) page.append(section("Worst tensors", el("div", { class: "worst" }, ...worst.map(({ name, why }) =>
  el("div", {}, code(name), el("p", {}, `${types(byName.get(name))}: ${shown(why)}`), byName.get(name).magnitudes && histogram(byName.get(name), 330, 130))))));
const notes = { Differences: "differences", Warnings: "warnings", "Only in the first": "only_first", "Only in the second": "only_second", "Not comparable": "incomparable" };
for (const [title, field] of Object.entries(notes)) {
  const lines = list(report[field]), said = (line) => Object.entries(line).map(([name, value]) => `${words(name)} ${flat(value)}`).join(", ");
  const items = lines.slice(0, 1000).map((line) => el("li", {}, typeof line === "object" ? said(line) : shown(line)));
  if (lines.length) page.append(el("details", { open: lines.length <= 3 || field === "differences" }, el("summary", {}, `${title} (${lines.length})`), el("ul", {}, ...items)));
}

// The table of all tensors.
const columns = [
  { key: "name", title: "tensor", of: (t) => t.name, cell: (t) => el("button", { type: "button", "aria-expanded": "false" }, code(t.name)), text: true, kind: "text wide" },
  { key: "types", title: "types", of: types, cell: types, text: true, kind: "text" },
  { key: "elements", title: "elements", of: (t) => t.elements, cell: (t) => grouped(t.elements), kind: "minor" },
  { key: "bytes", title: `size ${AFTER}`, of: (t) => t.bytes_out, cell: (t) => bytes(t.bytes_out), kind: "minor" },
  ...[...LOSSES, "subnormal"].filter((name) => total[name] > 0).map((name) => ({ key: name, title: words(name), of: (t) => t[name] ?? 0, cell: (t) => (t[name] ? grouped(t[name]) : "") })),
  { key: "sqnr_db", title: "SQNR dB", of: (t) => (t.inexact ? Number(t.sqnr_db) : Infinity), cell: (t) => (t.inexact && has(t.sqnr_db) ? decibels(t.sqnr_db) : ""), ascends: true },
  { key: "max_abs_error", title: "max error", of: (t) => Number(t.max_abs_error ?? t.max_abs_error_at_least ?? 0), cell: (t) => (has(t.max_abs_error_at_least) ? "≥ " : "") + digits(t.max_abs_error ?? t.max_abs_error_at_least), kind: "minor" },
];
if (tensors.some((t) => t.magnitudes)) columns.push({ title: "powers of two", cell: spark, kind: "text" });
if (tensors.length) {
  let sorted = null, descends = false, drawing = 0;
  const search = el("input", { type: "search", placeholder: "Filter by name", "aria-label": "Filter by name" });
  const kinds = [...new Set(tensors.map(types))];
  const choice = el("select", { "aria-label": "Types" }, el("option", { value: "" }, "all types"), ...kinds.map((name, i) => el("option", { value: `${i}` }, name)));
  const changed = el("input", { type: "checkbox" });
  const said = el("span", { role: "status" });
  const head = el("tr", {}, ...columns.map((column, i) => el("th", { class: column.kind, scope: "col" }, column.of ? el("button", { type: "button", "data-column": `${i}` }, column.title) : column.title)));
  const body = el("tbody");
  const compared = (a, b) => (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : (Number.isNaN(a) ? -Infinity : a) - (Number.isNaN(b) ? -Infinity : b));
  function draw() {
    const asked = search.value.toLowerCase().split(/\s+/);
    let rows = tensors.filter((t) => asked.every((word) => String(t.name).toLowerCase().includes(word))
      && (choice.value === "" || types(t) === kinds[choice.value]) && (!changed.checked || t.inexact > 0));
    if (sorted) rows = rows.map((t) => [sorted.of(t), t]).sort(([a], [b]) => (descends ? compared(b, a) : compared(a, b))).map(([, t]) => t);
    body.replaceChildren();
    clearTimeout(drawing);
    const further = (first, last) => {
      body.append(...rows.slice(first, last).map((t) => {
        const row = el("tr", {}, ...columns.map(({ kind, cell }) => el("td", { class: kind }, cell(t))));
        row.tensor = t;
        return row;
      }));
      // The first screen comes at once, the others without blocking it.
      if (last < rows.length) drawing = setTimeout(further, 0, last, last + 200);
    };
    further(0, 60);
    said.textContent = `${grouped(rows.length)} of ${plural(tensors.length, "tensor")}`;
  }
  head.addEventListener("click", ({ target }) => {
    const column = columns[target.dataset.column];
    if (!column) return;
    descends = sorted === column ? !descends : !column.text && !column.ascends;
    sorted = column;
    for (const cell of head.cells) cell.removeAttribute("aria-sort");
    target.parentElement.setAttribute("aria-sort", descends ? "descending" : "ascending");
    draw();
  });
  body.addEventListener("click", ({ target }) => {
    const button = target.closest("button"), row = button?.closest("tr");
    if (!row?.tensor) return;
    const isOpen = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!isOpen));
    if (isOpen) row.nextElementSibling.remove();
    else row.after(el("tr", { class: "detail" }, el("td", { colspan: columns.length }, details(row.tensor))));
  });
  for (const control of [search, choice, changed]) control.addEventListener("input", draw);
  page.append(section("Tensors", el("div", { class: "filters" }, search, choice, el("label", {}, changed, " with errors only"), said),
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Tensors" }, el("table", {}, el("thead", {}, head), body))));
  draw();
}
