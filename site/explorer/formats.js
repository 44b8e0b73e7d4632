"use strict";

{
  const FACTS = { largest_finite: "largest", most_negative: "lowest" };
  const KINDS = { normal: "normal", subnormal: "subnormal", zero: "zero", inf: "infinity", nan: "NaN" };
  const fieldsOf = (format) => (format.kind === "float"
    ? [format.sign_bits, format.exponent_bits, format.fraction_bits] : [format.code_bits]);

  function kindOf(value, format) {
    if (/nan/i.test(value)) return "nan";
    if (/inf/i.test(value)) return "inf";
    if (Number(value) === 0) return "zero";
    return Math.abs(value) < special(format, "smallest_normal") ? "subnormal" : "normal";
  }

  function inCell(value) {
    const [sign, size] = value.startsWith("-") ? ["−", value.slice(1)] : ["", value];
    const text = brief(size, 3, 5).replace(/^0\./, ".");
    return sign + (text.length > 6 ? Number(size).toExponential(1).replace("+", "") : text);
  }

  function summary(format) {
    const { smallest, largest, infinity, NaN: nan, ...others } = format.special;
    if (format.kind !== "float") {
      return largest ? `From ${cut(smallest.value)} to ${cut(largest.value)}.` : "";
    }
    const widths = fieldsOf(format).map((size, at) => size && `${size} ${["sign", "exponent", "significand"][at]}`);
    const least = others.smallest_subnormal ?? others.smallest_normal ?? smallest;
    const over = infinity ? "It has infinities."
      : nan ? "It has no infinity: what is too large becomes NaN or saturates."
        : "It has neither infinity nor NaN: what is too large saturates or is refused.";
    return `${widths.filter(Boolean).join(" + ")} bits. The largest value is ${cut(others.largest_finite.value)}, ` +
      `the smallest above 0 is ${cut(least.value)}. ${over}`;
  }

  function describe(format) {
    const { kind, special: codes, names = {} } = format;
    const rows = [["kind", kind],
      ["stored in", format.storage_bits ? plural(format.storage_bits, "bit") : "no fixed size"]];
    if (format.bias !== undefined) rows.push(["exponent bias", format.bias]);
    for (const [key, { bits: code, value }] of Object.entries(codes)) {
      const same = key === "NaN" ? (format.codes ?? []).filter((each) => each.value === value).length : 0;
      const others = same ? same - 1 && ` and ${same - 1} more` : key === "NaN" && " and others";
      rows.push([FACTS[key] ?? key.replaceAll("_", " "), cut(value), code + (others || "")]);
    }
    const missing = kind === "float" ? ["infinity", "NaN", "negative_zero"].filter((key) => !codes[key]) : [];
    rows.push(...missing.map((key) => [key.replace("_", " "), "none"]));
    const top = codes.largest_finite ?? codes.largest;
    return el("div", { class: "sheet" },
      el("h2", { text: top ? `Layout, here of ${cut(top.value)}` : "Layout" }),
      format.code_bits > 0 ? bits(top?.bits ?? "0x0", fieldsOf(format)) : el("p", { text: "no layout of bits" }),
      el("table", { class: "facts" }, el("caption", { text: "Range and special codes" }),
        el("tbody", {}, rows.map(([name, value, code = ""]) => el("tr", {}, el("th", { scope: "row", text: name }),
          el("td", { text: value }), el("td", { class: "dim", text: code }))))),
      el("details", {}, el("summary", { text: "Names elsewhere" }),
        el("dl", { class: "elsewhere" }, Object.entries(names).map(([where, list]) =>
          [el("dt", { text: where }), el("dd", { text: list.join(", ") })]))));
  }

  function map(format, chosen) {
    const { codes, name } = format;
    const readout = el("div", { class: "readout", role: "status", "aria-live": "polite" });
    const tell = ({ bits: code, value }) => readout.replaceChildren(bits(code, fieldsOf(format), null, false),
      el("p", {}, el("code", { text: code }), " is ", el("strong", { text: cut(value, 10, 24) }),
        `, ${KINDS[kindOf(value, format)]}. `, link("cast", { value: code, from: name, to: "f32" }, "Cast it")));
    const cell = (each) => {
      const kind = kindOf(each.value, format);
      const choose = () => change({ code: each.bits });
      return el("td", { class: `code ${kind}${each.bits === chosen ? " chosen" : ""}`, tabindex: -1, role: "gridcell",
        "aria-label": `${each.bits}: ${each.value}, ${KINDS[kind]}`, "data-code": each.bits,
        onmouseenter: () => tell(each), onfocus: () => tell(each), onclick: choose,
        onkeydown: (event) => event.key === "Enter" && choose() },
      el("span", { text: inCell(each.value) }));
    };
    const first = Math.max(codes.findIndex((each) => each.bits === chosen), 0);
    const rows = Array.from({ length: Math.ceil(codes.length / 16) }, (_, row) =>
      [`${row.toString(16)}_`, codes.slice(16 * row, 16 * row + 16).map(cell)]);
    const heads = codes.slice(0, 16).map((_, at) => `_${at.toString(16)}`);
    tell(codes[first]);
    const legend = Object.entries(KINDS).map(([key, text]) => {
      const number = codes.filter((each) => kindOf(each.value, format) === key).length;
      return number ? el("li", {}, el("i", { class: `code ${key}` }), `${number} ${text}`) : null;
    });
    return el("div", {}, el("h2", { text: `All ${codes.length} codes; choose one to read it` }),
      el("ul", { class: "legend" }, legend),
      grid(codes.length > 64 ? "map" : "map few", `All codes of ${name}`, heads, rows, first), readout);
  }

  const percent = (part) => `${brief(String(100 * part), 3, 4)}%`;

  // The axis of powers of two, and its margins.
  function axis(types) {
    const all = types.flatMap((each) => each.binades);
    const exponents = all.map((each) => each.exponent);
    return { all, low: Math.min(...exponents), high: Math.max(...exponents) + 1, left: 66, margin: 12 };
  }

  // What each type makes of the values of a binade.
  function tellBinade(types, at) {
    const [from, to] = [at, at + 1].map((exponent) => brief(String(2 ** exponent), 3, 7));
    return `From ${from} to ${to}: ` + types.map(({ name, binades, overflow }) => {
      const found = binades.find((each) => each.exponent === at);
      if (!found) return `${name} has no value so ${at < binades[0].exponent ? "small" : "large"}`;
      const end = at === binades.at(-1).exponent ? ` up to ${cut(overflow, 3, 7)}, where it overflows` : "";
      return `${name} errs by at most ${percent(found.relative_error)}${end}`;
    }).join("; ");
  }

  function tellLoss(types, sigma) {
    if (!sigma || !types.length) return [];
    const known = types.filter((each) => each.normal).sort((a, b) => b.normal.sqnr_db - a.normal.sqnr_db);
    const unable = types.filter((each) => !each.normal).map(({ name }) => ` ${name} has no sign.`);
    if (!known.length) return [`Normal weights of sigma ${sigma}:`, unable];
    const share = (part, words) => (part >= 0.0005 ? `, ${percent(part)} ${words}` : "");
    const decibels = ({ normal }) => normal.sqnr_db.toFixed(1);
    const each = ({ name, normal }) => `${name} ${percent(normal.error)} (SQNR ${decibels({ normal })} dB` +
      `${share(normal.to_zero, "become 0")}${share(normal.too_large, "are too large")})`;
    const [best, next] = known;
    const wins = next && decibels(best) !== decibels(next);
    return [`Normal weights of sigma ${sigma}, without a scale: `,
      wins ? el("strong", { text: `${best.name} loses less` }) : "",
      `${wins ? ". Relative" : "relative"} error: ${known.map(each).join("; ")}.`, unable];
  }

  // Relative error above, values in each binade below, on one axis of powers of two.
  function paintBinades({ types, at: chosen }, width) {
    const { all, low, high, left, margin } = axis(types);
    const errors = all.filter((each) => each.relative_error > 0);
    const worst = Math.min(...errors.map((each) => Math.log2(each.relative_error)), -4);
    const most = Math.max(...all.map((each) => Math.log2(each.values)), 1);
    const [right, bottom] = [width - margin, 352];
    const x = (exponent) => left + ((exponent - low) / (high - low)) * (right - left);
    const yError = (exponent) => 34 + (exponent / worst) * 140;
    const yValues = (exponent) => bottom - ((exponent + 1) / (most + 1)) * 120;
    const parts = [path("cursor", `M${x(chosen)} 34V${bottom}H${x(chosen + 1)}V34z`),
      words(0, 12, "largest relative error of rounding to nearest", "strong", "start"),
      words(0, 208, "values in each binade", "strong", "start")];
    for (const at of marks(low, high, (right - left) / 46)) {
      parts.push(path("gridline", `M${x(at)} 34V${bottom}`), words(x(at), bottom + 20, power("2", at)));
    }
    const level = (y, exponent) => [path("gridline", `M${left} ${y}H${right}`),
      words(left - 8, y + 4, power("2", exponent), "", "end")];
    parts.push(marks(worst, 0, 6).map((at) => level(yError(at), at)),
      marks(0, most, 5).map((at) => level(yValues(at), at)));
    types.forEach(({ binades, overflow }, index) => {
      const end = Math.log2(overflow);
      const line = (list, y) => list.map((each, at) =>
        `${at ? "L" : "M"}${x(each.exponent)} ${y(each)}H${x(Math.min(each.exponent + 1, end))}`).join("");
      const values = line(binades, (each) => yValues(Math.log2(each.values)));
      parts.push(path(`curve c${index}`, line(binades.filter((each) => each.relative_error > 0),
        (each) => yError(Math.log2(each.relative_error)))),
      path(`curve c${index}`, `M${x(binades[0].exponent)} ${bottom}${values.replace("M", "L")}V${bottom}`));
    });
    const said = types.map(({ name, binades }) => `${name} has values from 2^${binades[0].exponent} to ` +
      `2^${binades.at(-1).exponent + 1}, rounded within ${Math.min(...binades.map((each) => each.relative_error))}`);
    return { height: bottom + 30, parts, label: `Relative error and values by magnitude: ${said.join("; ")}` };
  }

  function build(page) {
    page.type("type", "Type", () => true, { code: "" });
    const ofFloats = [page.type("other", "Compared with", (each) => each.kind === "float"),
      page.text("sigma", "Sigma of weights", { inputmode: "decimal" })];
    const sheet = el("div", { class: "columns" });
    const alert = el("p", { role: "alert", class: "error" });
    const plot = chart("Comparison", paintBinades);
    const key = el("p", { class: "key" });
    const binade = el("p", { class: "binade" });
    const comparison = el("div", {}, key, binade, plot);
    const pair = el("div", {}, el("h2", { text: "Two formats on one axis" }), comparison);
    const loss = el("p", { class: "loss" });
    page.headline.before(alert);
    page.headline.append(loss);
    page.picture.append(sheet, pair);
    let drawn = { types: [], at: 0 };

    // The arrow keys or the pointer choose a binade.
    function choose(at) {
      const { low, high } = axis(drawn.types);
      drawn = { ...drawn, at: Math.min(Math.max(at, low), high - 1) };
      plot.show(drawn);
      binade.textContent = tellBinade(drawn.types, drawn.at);
      const values = { min: low, max: high - 1, now: drawn.at, text: binade.textContent };
      for (const [name, value] of Object.entries(values)) plot.setAttribute(`aria-value${name}`, value);
    }
    plot.setAttribute("role", "slider");
    plot.tabIndex = 0;
    for (const name of ["pointermove", "pointerdown"]) {
      plot.addEventListener(name, ({ clientX }) => {
        const { left: from, width } = plot.getBoundingClientRect();
        const { low, high, left, margin } = axis(drawn.types);
        choose(Math.floor(low + ((clientX - from - left) / (width - left - margin)) * (high - low)));
      });
    }
    plot.addEventListener("keydown", (event) => {
      const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowDown: -1, ArrowUp: 1, Home: -Infinity, End: Infinity };
      const step = steps[event.key];
      if (step === undefined) return;
      event.preventDefault();
      choose(drawn.at + step);
    });
    const settleChart = outlet(comparison, alert, loss);
    let shown = "";

    function show(format, code) {
      if (shown === `${format.name} ${code}`) return;
      shown = `${format.name} ${code}`;
      page.title.textContent = format.name;
      page.reason.textContent = summary(format);
      const focus = sheet.contains(document.activeElement);
      sheet.replaceChildren(describe(format), format.codes?.length ? map(format, code)
        : el("p", { class: "dim aside", text: "A map of all codes is drawn for types of at most 8 bits." }));
      if (focus) sheet.querySelector(".code[tabindex='0']")?.focus();
    }

    function showChart({ types, sigma }) {
      pair.hidden = types.length === 0;
      key.replaceChildren(...types.map((each, index) => el("span", { class: `curve c${index}`, text: each.name })));
      loss.replaceChildren(...tellLoss(types, sigma));
      if (types.length === 0 || types === drawn.types) return;
      drawn.types = types;
      choose(Math.floor(Math.log2(Number(sigma) || 1)));
    }

    return ({ type, other, code, ...state }) => {
      const format = recall({ ask: "format", type });
      const sigma = state.sigma.trim();
      page.settle(() => format, (format) => show(format, code));
      settleChart(async () => {
        const { kind } = await format;
        for (const control of ofFloats) control.disabled = kind !== "float";
        if (kind !== "float") return { types: [], sigma };
        const request = { ask: "binades", types: [...new Set([type, other])], ...(sigma && { sigma }) };
        return { ...await recall(request), sigma };
      }, showChart);
    };
  }

  view("formats", "Formats", { type: "f8e4m3fn", other: "f8e5m2", sigma: "0.02", code: "" }, build);
}
