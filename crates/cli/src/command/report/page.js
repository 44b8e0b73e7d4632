const report = JSON.parse(document.getElementById("report").textContent);
const list = (value) => (Array.isArray(value) ? value.filter((item) => item !== null) : []);
const tensors = list(report.tensors);
const total = report.total ?? {};
const isComparison = report.command === "compare";
const [BEFORE, AFTER] = isComparison ? ["first", "second"] : ["before", "after"];
const LOSSES = ["saturated", "wrapped", "to_inf", "to_nan", "flushed_to_zero"];
const COUNTS = ["exact", "inexact", ...LOSSES, "left_out", "subnormal", "sign_of_zero_lost", "undefined",
  "nan_in", "inf_in", "zero_in", "blocks", "blocks_to_zero", "scale_saturated", "scale_zero", "scale_nan"];
const MEASURES = ["sqnr_db", "rmse", "max_abs_error", "max_abs_error_at_least", "max_rel_error",
  "max_rel_error_at_least", "cosine"];

// Characters of files that cannot be seen become escapes, as in the command's text.
const shown = (text) =>
  String(text).replace(/[\p{C}\p{Zl}\p{Zp}\p{DI}]/gu, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
const flat = (value) =>
  (value !== null && typeof value === "object" ? Object.values(value).map(flat).join(" ") : shown(value));
const spaced = (name) => name.replace("sqnr_db", "SQNR dB").replaceAll("_", " ");
const written = (format) => (value) => (Number.isFinite(value) ? format(value) : shown(value ?? ""));
const grouped = written((n) => String(n).replace(/\B(?=(\d{3})+$)/g, "_"));
const decibels = (value) => (Number(value) === Infinity ? "exact" : written((n) => n.toFixed(1))(value));
const digits = written((value) => String(Number(value.toPrecision(4))));
const plural = (n, thing) => `${grouped(n)} ${thing}${n === 1 ? "" : "s"}`;

const breakable = (text) => text.split(/(?<=[._/])/).flatMap((part) => [part, el("wbr")]);
const code = (text) => el("span", { class: "name" }, breakable(shown(text)));
const superscript = (n) => String(n).replace(/[-\d]/g, (c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]);
const terms = (pairs) => el("dl", {}, pairs.filter(([, value]) => value)
  .map(([name, value]) => [el("dt", { text: name }), el("dd", { text: value })]));
const section = (title, ...children) => el("section", {}, el("h2", { text: title }), children);

// Errors are measured between finite values, of which a tensor may have none.
const isMeasured = (t) => t.inexact > 0 && t.elements > (t.left_out ?? 0);

function types(t) {
  const [from, to] = [t.scheme ?? t.from, t.to_scheme ?? t.to].map((name) => shown(name ?? "?"));
  if (isComparison) return from === to ? from : `${from} | ${to}`;
  return t.converted === false || (from === to && t.exact === t.elements) ? `${from} kept` : `${from} → ${to}`;
}

// Counts by power of two on both sides: bins from the lowest power to the highest, with marks of lost values.
function bins(t) {
  const sides = [t.magnitudes?.from, t.magnitudes?.to]
    .map((side) => ({ first: 0, zero: 0, nan: 0, inf: 0, ...side, counts: list(side?.counts) }));
  const [from, to] = sides;
  const used = sides.filter((side) => side.counts.length);
  const end = (side) => side.first + side.counts.length;
  const lowest = Math.min(...used.map((side) => side.first));
  const length = Math.min(Math.max(0, ...used.map((side) => end(side) - lowest)), 4000);
  const beyond = to.inf > from.inf ? "→ Inf" : to.nan > from.nan ? "→ NaN" : "→ max";
  const powers = Array.from({ length }, (_, at) => {
    const power = lowest + at;
    const n = sides.map((side) => side.counts[power - side.first] ?? 0);
    const below = to.zero > from.zero && (!to.counts.length || power < to.first);
    const above = to.counts.length > 0 && power >= end(to);
    return { label: `2${superscript(power)}`, n, lost: !n[0] ? "" : below ? "→ 0" : above ? beyond : "" };
  });
  const special = (label, key) => {
    const n = sides.map((side) => side[key]);
    const lost = n[1] > n[0] ? `+${grouped(n[1] - n[0])}` : "";
    return n[0] || n[1] ? [{ label, n, special: true, lost }] : [];
  };
  const elements = [...from.counts, from.zero, from.nan, from.inf].reduce((a, b) => a + b, 0);
  return { all: [...special("0", "zero"), ...powers, ...special("Inf", "inf"), ...special("NaN", "nan")], elements };
}

let figures = 0;

// The histogram of a tensor: filled bars before, outlines after; values that the result does not hold are hatched.
function histogram(t, width, height) {
  const { all, elements } = bins(t);
  if (!all.length) return el("p", { class: "dim", text: "no values" });
  const highest = Math.max(...all.flatMap((bin) => bin.n));
  const most = Math.log1p(highest);
  const floor = height - 18;
  const gaps = all.filter((bin) => bin.special).length;
  const powers = all.length - gaps;
  const step = Math.min((width - 40 * gaps) / Math.max(powers, 1), 48);
  const stride = Math.ceil(52 / step);
  const tall = (n) => (most ? ((floor - 16) * Math.log1p(n)) / most : 0);
  const hatch = `hatch${figures++}`;
  const [bars, marks] = [[], []];
  let [x, left, marked] = [0, powers, ""];
  for (const [at, bin] of all.entries()) {
    const wide = bin.special ? 28 : step;
    if (bin.special && bin.label !== "0") x += 12;
    const [before, after] = bin.n.map(tall);
    const bar = (tall, inset, attributes) => draw("rect", { x: x + inset, y: floor - tall, height: tall,
      width: Math.max(wide - 2 * inset, 0.5), "stroke-width": step < 6 ? 0.8 : 1.6, ...attributes });
    bars.push(draw("g", {},
      draw("title", { text: `${bin.label}: ${BEFORE} ${grouped(bin.n[0])}, ${AFTER} ${grouped(bin.n[1])}` }),
      before ? bar(before, 0, { class: "before" }) : null,
      before && bin.lost && !bin.special ? bar(before, 0, { fill: `url(#${hatch})` }) : null,
      after ? bar(after, Math.min(1, wide / 5), { class: "after" }) : null));
    if (bin.lost && bin.lost !== marked) {
      const near = all.slice(at, at + 1 + (bin.special ? 0 : 36 / step)).flatMap(({ n }) => n).map(tall);
      const y = Math.max(floor - Math.max(...near) - 4, 11);
      marks.push(x < width / 2 ? words(x, y, bin.lost, "mark", "start") : words(x + wide, y, bin.lost, "mark", "end"));
      marked = bin.lost;
    }
    if (bin.special) bars.push(words(x + wide / 2, height - 4, bin.label));
    // The last power has a label, and those before it at equal distances.
    else if (--left % stride === 0 && (powers - left) * step > 40) {
      bars.push(words(x + wide, height - 4, bin.label, "", "end"));
    }
    x += wide + (bin.label === "0" ? 12 : 0);
  }
  const lost = [...LOSSES, "undefined"].filter((name) => t[name] > 0)
    .map((name) => `${grouped(t[name])} ${spaced(name)}`).join(", ");
  const said = `Values of ${shown(t.name)} by power of two, ${BEFORE} and ${AFTER}${lost && `: ${lost}`}`;
  const isHatched = all.some(({ n, lost: mark, special }) => n[0] && mark && !special);
  const hatched = isHatched ? " (hatched: no result has their power of two)" : "";
  const sampled = t.elements > elements && elements ? `; sampled: 1 in ${digits(t.elements / elements)} elements` : "";
  return el("figure", {},
    draw("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": said },
      draw("defs", {}, draw("pattern", { id: hatch, width: 5, height: 5, patternUnits: "userSpaceOnUse",
        patternTransform: "rotate(45)" }, path("hatch", "M0 0V5"))),
      bars, marks, path("axis", `M0 ${floor}H${width}`)),
    el("figcaption", {}, el("span", { class: "key before" }), `${BEFORE} `, el("span", { class: "key after" }),
      `${AFTER}: values by power of two, on a logarithmic scale up to ${grouped(highest)}${sampled}`,
      lost ? el("div", { text: `lost: ${lost}${hatched}` }) : null));
}

function spark(t) {
  const { all } = bins(t);
  if (!all.length) return "";
  const most = Math.log1p(Math.max(...all.flatMap((bin) => bin.n))) || 1;
  const point = (n, at) => [((at + 0.5) * 96) / all.length, 19 - (17 * Math.log1p(n)) / most].map((x) => x.toFixed(1));
  const line = (side) => `M${all.map((bin, at) => point(bin.n[side], at)).join("L")}`;
  return draw("svg", { viewBox: "0 0 96 20", width: 96, height: 20, "aria-hidden": "true" },
    path("before", `${line(0)}L96 19L0 19Z`), path("after", line(1)));
}

function details(t) {
  const shape = list(t.shape).map(grouped).join(" × ");
  const facts = [["shape", shape || "scalar"], ["elements", grouped(t.elements)],
    ["size", `${bytes(t.bytes_in)} → ${bytes(t.bytes_out)}`], ["types", types(t)],
    ["kept by", shown(t.kept_by ?? "")], ["measured", grouped(t.measured)],
    ...COUNTS.filter((name) => t[name] > 0).map((name) => [spaced(name), grouped(t[name])])];
  const measures = t.inexact && !isMeasured(t) ? [] : MEASURES.map((name) => [spaced(name), digits(t[name])]);
  return el("div", { class: "parts" }, t.magnitudes ? histogram(t, innerWidth < 700 ? 330 : 560, 190) : null,
    terms(facts), terms(measures));
}

function toggle(t, { currentTarget: button }) {
  const row = button.closest("tr");
  const isOpen = button.ariaExpanded === "true";
  button.ariaExpanded = String(!isOpen);
  if (isOpen) row.nextElementSibling.remove();
  else row.after(el("tr", { class: "detail" }, el("td", { colspan: row.cells.length }, details(t))));
}

const page = document.getElementById("page");
const byName = new Map(tensors.map((t) => [t.name, t]));
const worst = list(report.worst_tensors).filter(({ name }) => byName.has(name));
if (worst.length) {
  page.append(section("Worst tensors", el("div", { class: "worst" }, worst.map(({ name, why }) => {
    const t = byName.get(name);
    return el("div", {}, code(name), el("p", { text: `${types(t)}: ${shown(why)}` }),
      t.magnitudes ? histogram(t, 330, 130) : null);
  }))));
}
const notes = { Differences: "differences", Warnings: "warnings", "Only in the first": "only_first",
  "Only in the second": "only_second", "Not comparable": "incomparable" };
for (const [title, field] of Object.entries(notes)) {
  const lines = list(report[field]);
  const said = (line) => (typeof line !== "object" ? shown(line)
    : Object.entries(line).map(([name, value]) => `${spaced(name)} ${flat(value)}`).join(", "));
  if (lines.length) {
    page.append(el("details", { open: lines.length <= 3 || field === "differences" },
      el("summary", { text: `${title} (${lines.length})` }),
      el("ul", {}, lines.slice(0, 1000).map((line) => el("li", { text: said(line) })))));
  }
}

// The table of all tensors.
const maxError = (t) => t.max_abs_error ?? t.max_abs_error_at_least;
const columns = [
  { title: "tensor", of: (t) => t.name, text: true, kind: "text wide",
    cell: (t) => el("button", { type: "button", "aria-expanded": "false", onclick: (event) => toggle(t, event) },
      code(t.name)) },
  { title: "types", of: types, cell: types, text: true, kind: "text minor" },
  { title: "elements", of: (t) => t.elements, cell: (t) => grouped(t.elements), kind: "minor" },
  { title: `size ${AFTER}`, of: (t) => t.bytes_out, cell: (t) => bytes(t.bytes_out), kind: "minor" },
  ...[...LOSSES, "subnormal"].filter((name) => total[name] > 0).map((name) =>
    ({ title: spaced(name), of: (t) => t[name] ?? 0, cell: (t) => (t[name] ? grouped(t[name]) : ""),
      kind: name === "subnormal" ? "minor" : null })),
  { title: "SQNR dB", of: (t) => (isMeasured(t) ? Number(t.sqnr_db) : t.inexact ? -Infinity : Infinity), ascends: true,
    cell: (t) => (isMeasured(t) ? decibels(t.sqnr_db) : "") },
  { title: "max error", of: (t) => (isMeasured(t) ? Number(maxError(t)) : t.inexact ? Infinity : 0), kind: "minor",
    cell: (t) => (isMeasured(t) ? `${Number.isFinite(t.max_abs_error) ? "" : "≥ "}${digits(maxError(t))}` : "") },
  ...(tensors.some((t) => t.magnitudes) ? [{ title: "powers of two", cell: spark, kind: "text minor" }] : []),
];
if (tensors.length) {
  let [sorted, descends, drawing] = [null, false, 0];
  const kinds = [...new Set(tensors.map(types))];
  const search = el("input", { type: "search", placeholder: "Filter by name", "aria-label": "Filter by name" });
  const choice = el("select", { "aria-label": "Types" }, el("option", { value: "", text: "all types" }),
    kinds.map((name, i) => el("option", { value: i, text: name })));
  const losing = el("input", { type: "checkbox" });
  const said = el("span", { role: "status" });
  const body = el("tbody");
  const head = el("tr", {}, columns.map((column) => el("th", { class: column.kind, scope: "col" },
    column.of ? el("button", { type: "button", text: column.title, onclick: (event) => sort(column, event) })
      : column.title)));

  const inOrder = new Intl.Collator("en", { numeric: true }).compare;
  const rank = (value) => (Number.isNaN(value) ? -Infinity : value);

  function show() {
    const asked = search.value.toLowerCase().split(/\s+/);
    const rows = tensors.filter((t) => asked.every((word) => String(t.name).toLowerCase().includes(word))
      && (choice.value === "" || types(t) === kinds[choice.value])
      && (!losing.checked || LOSSES.some((name) => t[name] > 0)));
    if (sorted) {
      const [side, compare] = [descends ? -1 : 1, sorted.text ? inOrder : (a, b) => rank(a) - rank(b) || 0];
      rows.sort((a, b) => side * compare(sorted.of(a), sorted.of(b)));
    }
    said.textContent = `${grouped(rows.length)} of ${plural(tensors.length, "tensor")}`;
    body.replaceChildren();
    clearTimeout(drawing);
    const further = (first, last) => {
      body.append(...rows.slice(first, last).map((t) =>
        el("tr", {}, columns.map(({ kind, cell }) => el("td", { class: kind }, cell(t))))));
      // The first screen comes at once, the others without blocking it.
      if (last < rows.length) drawing = setTimeout(further, 0, last, last + 200);
    };
    further(0, 60);
  }

  function sort(column, { target }) {
    descends = sorted === column ? !descends : !column.text && !column.ascends;
    sorted = column;
    for (const cell of head.cells) cell.ariaSort = null;
    target.parentElement.ariaSort = descends ? "descending" : "ascending";
    show();
  }

  for (const control of [search, choice, losing]) control.addEventListener("input", show);
  const filters = el("div", { class: "filters" }, search, choice, el("label", {}, losing, " with lost values"), said);
  const table = scroller("Tensors");
  table.append(el("table", {}, el("thead", {}, head), body));
  page.append(section("Tensors", filters, table));
  show();
}
