"use strict";

{
  // Values in order on one axis, with NaN and the infinities at the ends. Magnitudes are logarithmic.
  function scale(format, width) {
    const float = format.kind === "float";
    const least = float ? Math.max(special(format, "smallest_subnormal", "smallest_normal"), 2 ** -160) : 1;
    const most = Math.min(special(format, "largest_finite", "largest"), 2 ** 160);
    const span = Math.log2(most) - Math.log2(least) + 2;
    const signed = special(format, "most_negative", "smallest") < 0;
    const ends = float ? 84 : 14;
    const middle = signed ? width / 2 : ends;
    const reach = width - ends - middle;
    const at = (text) => {
      const side = text.startsWith("-") ? -1 : 1;
      const end = side < 0 ? 0 : width;
      if (/nan/i.test(text)) return end - side * 8;
      if (/inf/i.test(text)) return end - side * (ends - 26);
      if (Number(text) === 0) return middle;
      const along = (Math.log2(Math.abs(text)) - Math.log2(least) + 2) / span;
      return middle + side * Math.min(Math.max(along, 0.002), 1) * reach;
    };
    const powers = marks(Math.log2(least), Math.log2(most), reach / 56);
    return { at, powers, signed, float, ends, middle };
  }

  function paint({ pair, format }, width) {
    const { at, powers, signed, float, ends, middle } = scale(format, width);
    const [top, bottom] = [6, 46];
    const parts = [rect("ground", 0, top, width, bottom - top)];
    for (const range of pair.ranges) {
      const [from, to] = [at(range.first_value), at(range.last_value)].sort((a, b) => a - b);
      const kind = range.open ? "area open" : "area apart";
      const mark = rect(kind, from - 1, top, Math.max(to - from + 2, 3), bottom - top);
      mark.append(draw("title", { text: `${range.first_value} to ${range.last_value}` }));
      parts.push(mark);
    }
    const tick = (x, label) => parts.push(path("notch", `M${x} ${bottom}v6`), words(x, bottom + 22, label));
    tick(middle, "0");
    for (const side of float ? (signed ? [-1, 1] : [1]) : []) {
      const end = side < 0 ? 0 : width;
      tick(end - side * (ends - 26), side < 0 ? "−∞" : "∞");
      tick(end - side * 16, "NaN");
    }
    for (const exponent of powers) {
      const x = at(String(2 ** exponent));
      if (x - middle < 26 || width - ends - x < 16) continue;
      tick(x, power("2", exponent));
      if (signed) tick(2 * middle - x, power("−2", exponent));
    }
    return { height: bottom + 32, parts };
  }

  function build(page) {
    const names = [page.choice("a", "First", []), page.choice("b", "Second", [])];
    page.type("from", "From");
    page.type("to", "To");
    const missing = el("details", { class: "missing" });
    page.controls.after(missing);
    const plot = chart("Ranges where the two differ", paint);
    const list = scroller("Ranges");
    const key = el("p", { class: "key" }, el("span", { class: "area apart", text: "results differ" }),
      el("span", { class: "area open", text: "a specification leaves the result open" }));
    const drawn = el("div", {}, key, plot, list);
    const command = line();
    page.picture.append(command, drawn);

    function showNames(known) {
      const absent = known.filter((each) => each.why);
      for (const control of names) {
        offer(control, known.filter((each) => !each.why).map(({ name, version }) => option(name, version)));
      }
      missing.hidden = absent.length === 0;
      missing.replaceChildren(el("summary", {}, `${plural(absent.length, "name")} left out: `,
        absent.map(({ name }) => name).join(", ")),
      el("ul", {}, absent.map(({ why }) => el("li", {}, cited(why)))));
    }

    function show({ answer, format, codes, command: typed }) {
      const { a, b, pairs: [pair] } = answer;
      const { different, open, from, to } = pair;
      page.title.textContent = `${a} and ${b} ${different ? "differ" : open ? "never contradict each other" : "agree"}`;
      const inputs = `${count(pair.inputs)} ${pair.every_input ? "" : "tested "}values of ${from}`;
      page.reason.textContent = [
        different && `They give different results for ${count(different)} of ${inputs}.`,
        open && `At least one of them leaves the result open for ${count(open)} ${different ? "more" : `of ${inputs}`}.`,
        different || open ? "They agree for the others." : `They give the same result for all ${inputs}.`,
        !pair.every_input && "The inputs tested are the limits of every range and their neighbors.",
      ].filter(Boolean).join(" ");
      command.show(typed);
      drawn.hidden = pair.ranges.length === 0;
      key.firstChild.hidden = !different;
      key.lastChild.hidden = !open;
      plot.show({ pair, format });
      const values = new Map((codes ?? []).map((each) => [each.bits, cut(each.value)]));
      const small = (text) => el("code", { class: "dim", text });
      const end = (value, text) => [link("cast", { value, from, to }, cut(text)), " ", small(value)];
      const result = (range) => (code) => (code
        ? [range.open ? "such as " : "", values.get(code) ?? "", " ", small(code)] : "open");
      const rows = pair.ranges.map((range) => [end(range.first, range.first_value), end(range.last, range.last_value),
        count(range.inputs), ...range.results_at_first.map(result(range)),
        ...(range.open ? ["left open by one or both"] : [])]);
      const unlisted = pair.range_count - rows.length;
      list.replaceChildren(table(["from", "to", "tested", a, b, ...(open ? ["remark"] : [])], rows,
        `${plural(pair.range_count, "range")}; each value links to its cast`),
      unlisted > 0 ? el("p", { text: `${count(unlisted)} more ranges are not listed.` }) : "");
    }

    return ({ a, b, from, to }) => page.settle(async () => {
      const [known, format, { codes }] = await Promise.all([{ ask: "names", from, to }, { ask: "format", type: from },
        { ask: "format", type: to }].map(recall));
      showNames(known.names);
      const answer = await recall({ ask: "differ", a, b, from, to });
      return { answer, format, codes, command: `truecast differ ${a} ${b} --from ${from} --to ${to}` };
    }, show);
  }

  view("differ", "Differ", { a: "torch", b: "ml_dtypes", from: "bf16", to: "f8e4m3fn" }, build);
}
