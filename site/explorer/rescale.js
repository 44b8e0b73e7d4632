"use strict";

{
  const MODES = ["single", "double"];
  const has = (row, mode) => row !== undefined && row[mode] !== null && row[mode] !== undefined;
  const differs = (row) => has(row, "double") && row.double !== row.single;
  const several = (row) => has(row, "permitted") && row.permitted[0] < row.permitted[1];

  function paint({ rows }, width) {
    const height = Math.min(460, Math.max(300, width * 0.5));
    const [left, right, top, bottom] = [52, width - 16, 22, height - 44];
    const results = rows.flatMap((row) => [row.exact, ...MODES.map((mode) => row[mode] ?? row.exact),
      ...(row.permitted ?? [])].map(Number));
    const [low, high] = [Math.floor(Math.min(...results)) - 0.5, Math.ceil(Math.max(...results)) + 0.5];
    const [first, last] = [rows[0].input - 0.5, rows.at(-1).input + 0.5];
    const x = (input) => left + ((input - first) / (last - first)) * (right - left);
    const y = (result) => bottom - ((result - low) / (high - low)) * (bottom - top);
    const parts = [words(0, 12, "result", "", "start"), words(right, height - 6, "input", "", "end")];
    for (const at of marks(first, last, (right - left) / 34)) {
      parts.push(path("gridline", `M${x(at)} ${top}V${bottom}`), words(x(at), bottom + 18, minus(at)));
    }
    for (const at of marks(low, high, (bottom - top) / 34)) {
      parts.push(path("gridline", `M${left} ${y(at)}H${right}`), words(left - 8, y(at) + 4, minus(at), "", "end"));
    }
    const column = (kind, row, from, to) => rect(kind, x(row.input - 0.5), from, x(1) - x(0), to - from);
    parts.push(rows.filter(differs).map((row) => column("area odd", row, top, bottom)),
      rows.filter((row) => has(row, "permitted")).map((row) =>
        column("area band", row, y(row.permitted[1]) - 7, y(row.permitted[0]) + 7)),
      path("curve exact", `M${rows.map((row) => [x(row.input), y(row.exact)]).join("L")}`));
    MODES.forEach((mode, index) => parts.push(path(`curve ${mode}`, rows.map((row, at) => {
      const from = has(rows[at - 1], mode) ? "V" : `M${x(row.input - 0.5)} `;
      return has(row, mode) ? `${from}${y(row[mode]) + index * 5 - 2.5}H${x(row.input + 0.5)}` : "";
    }).join(""))));
    return { height, parts, label: `Staircase of ${plural(rows.length, "input")}; the table has its numbers` };
  }

  function build(page) {
    const { controls } = page;
    controls.classList.add("narrow");
    const inputs = {};
    const number = (key, label) => { inputs[key] = page.text(key, label, { inputmode: "decimal" }); };
    page.choice("by", "Given by", [["scale", "scale"], ["pair", "multiplier, shift"]]);
    number("scale", "Scale");
    number("multiplier", "Multiplier");
    number("shift", "Shift");
    const [, scale, ...pair] = controls.children;
    page.choice("from", "From", ["i8", "i16", "i32", "i48", "u8", "u16"]);
    page.choice("to", "To", ["i8", "i16", "i32", "u8", "u16"]);
    number("input_zp", "input_zp");
    number("output_zp", "output_zp");
    page.choice("scale32", "scale32", [["1", "true"], ["0", "false"]]);
    number("low", "First input");
    number("high", "Last input");
    const plot = chart("Staircase", paint);
    const list = scroller("Results");
    const key = el("p", { class: "key" }, ["exact", ...MODES].map((kind) =>
      el("span", { class: `curve ${kind}`, text: kind })), el("span", { class: "area odd", text: "they differ" }),
    el("span", { class: "area band", text: "inexact: permitted" }));
    const pick = line();
    page.headline.after(pick);
    page.picture.append(key, plot, el("details", {}, el("summary", { text: "The same as a table" }), list));

    function show({ answer, scale32 }) {
      const { multiplier, shift, rows } = answer;
      const odd = rows.filter(differs);
      page.title.textContent = `TOSA RESCALE: multiplier ${minus(multiplier)}, shift ${shift}`;
      pick.show(`multiplier=${multiplier}, shift=${shift}`);
      const [results, doubles] = MODES.map((mode) => rows.filter((row) => has(row, mode)).length);
      const without = rows.filter((row) => row.why);
      [true, results, doubles, odd.length, results].forEach((is, at) => { key.children[at].hidden = !is; });
      page.reason.textContent = [
        `A scale of ${answer.scale}, with a multiplier of ${scale32 ? 32 : 16} bits.`,
        odd.length && `“Single” and “double” differ for ${plural(odd.length, "input")} of ${rows.length}.`,
        !odd.length && doubles && "“Single” and “double” agree for every input that has a result.",
        without.length && `No result (–) for ${plural(without.length, "input")} of ${rows.length}: ` +
          `${minus(without[0].why)}.`,
        results && "TOSA's roundings: “single” adds a half and rounds down; “double” rounds twice if the shift is " +
          `above 31${scale32 ? "" : ", and needs a multiplier of 32 bits"}; “inexact” permits every result of the ` +
          `band, more than one for ${plural(rows.filter(several).length, "input")}: truecast gives that of “single”.`,
      ].filter(Boolean).join(" ");
      plot.show(answer);
      list.replaceChildren(table(["input", "exact", ...MODES, "inexact"], rows.map((row) =>
        [row.input, row.exact, ...MODES.map((mode) => row[mode] ?? "–"),
          [...new Set(row.permitted ?? ["–"])].map(minus).join(" to ")].map(minus))));
      for (const row of odd) list.querySelectorAll("tbody tr")[rows.indexOf(row)].classList.add("odd");
    }

    return (state) => {
      scale.hidden = state.by === "pair";
      for (const part of pair) part.hidden = !scale.hidden;
      const integers = (...keys) => Object.fromEntries(keys.map((key) => {
        if (/^\s*[-+]?\d+\s*$/.test(state[key])) return [key, Number(state[key])];
        throw new Refusal(`“${inputs[key].labels[0].textContent}” is not a whole number`);
      }));
      page.settle(async () => {
        const whole = integers("input_zp", "output_zp", "low", "high");
        if (whole.high < whole.low) throw new Refusal("the last input is below the first");
        if (whole.high - whole.low > 512) throw new Refusal("at most 513 inputs are drawn");
        const by = scale.hidden ? integers("multiplier", "shift") : { scale: state.scale.trim() };
        const { from, to } = state;
        const scale32 = state.scale32 === "1";
        return { answer: await ask({ ask: "rescale", ...by, ...whole, from, to, scale32 }), scale32 };
      }, show);
    };
  }

  view("rescale", "Rescale", { by: "scale", scale: "0.3", multiplier: "1288490189", shift: "32", from: "i32",
    to: "i8", input_zp: "0", output_zp: "0", scale32: "1", low: "-12", high: "12" }, build);
}
