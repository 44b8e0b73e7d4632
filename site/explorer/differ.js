"use strict";

(() => {
  const { el, draw, path, words, brief, count, power, special } = explorer;

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
    const powers = explorer.marks(Math.log2(least), Math.log2(most), reach / 56);
    return { at, powers, signed, float, ends, middle };
  }

  function paint({ pair, format }, width) {
    const { at, powers, signed, float, ends, middle } = scale(format, width);
    const [top, bottom] = [6, 46];
    const parts = [explorer.rect("ground", 0, top, width, bottom - top)];
    for (const range of pair.ranges) {
      const [from, to] = [at(range.first_value), at(range.last_value)].sort((a, b) => a - b);
      const kind = range.open ? "apart open" : "apart";
      const mark = explorer.rect(kind, from - 1, top, Math.max(to - from + 2, 3), bottom - top);
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
    const names = ["a", "b"].map((key, index) => page.choice(key, ["First", "Second"][index], []));
    page.type("from", "From");
    page.type("to", "To");
    const missing = el("details", { class: "missing" });
    page.controls.after(missing);
    const chart = explorer.chart("Ranges where the two differ", paint);
    const list = el("div", { class: "scroller", tabindex: 0, role: "region", "aria-label": "Ranges" });
    const key = el("p", { class: "key ranges" }, el("span", { class: "apart", text: "results differ" }),
      el("span", { class: "open", text: "a specification leaves the result open" }));
    const drawn = el("div", {}, key, chart, list);
    const command = explorer.line();
    page.picture.append(command, drawn);

    function showNames(known) {
      const [there, absent] = [known.filter((each) => !each.why), known.filter((each) => each.why)];
      for (const control of names) explorer.fillSelect(control, there.map((each) => [each.name, each.version]));
      missing.hidden = absent.length === 0;
      missing.replaceChildren(el("summary", {}, `${explorer.plural(absent.length, "name")} left out: `,
        absent.map((each) => each.name).join(", ")),
      el("ul", {}, absent.map((each) => el("li", {}, explorer.cited(each.why)))));
    }

    function show({ answer, format, codes, state }) {
      const pair = answer.pairs[0];
      const { a, b } = answer;
      const { different, open } = pair;
      page.title.textContent = `${a} and ${b} ${different ? "differ" : open ? "never contradict each other" : "agree"}`;
      const of = `${count(pair.inputs)} ${pair.every_input ? "" : "tested "}values of ${pair.from}`;
      const parts = [];
      if (different) parts.push(`They give different results for ${count(different)} of ${of}.`);
      const more = different ? "more" : `of ${of}`;
      if (open) parts.push(`At least one of them leaves the result open for ${count(open)} ${more}.`);
      parts.push(different || open ? "They agree for the others." : `They give the same result for all ${of}.`);
      if (!pair.every_input) parts.push("The inputs tested are the limits of every range and their neighbors.");
      page.reason.textContent = parts.join(" ");
      drawn.hidden = pair.ranges.length === 0;
      key.firstChild.hidden = !different;
      key.lastChild.hidden = !open;
      chart.show({ pair, format });
      command.show(`truecast differ ${state.a} ${state.b} --from ${pair.from} --to ${pair.to}`);
      const values = new Map((codes ?? []).map((each) => [each.bits, brief(each.value)]));
      const small = (text) => el("code", { class: "dim", text });
      const { from, to } = pair;
      const end = (value, text) => [explorer.link("cast", { value, from, to }, brief(text)), " ", small(value)];
      const result = (code) => (code ? [values.get(code) ?? "", " ", small(code)] : ["open"]);
      const unlisted = pair.range_count - pair.ranges.length;
      list.replaceChildren(explorer.table(["from", "to", "tested", a, b, ...(open ? ["remark"] : [])],
        pair.ranges.map((range) => [end(range.first, range.first_value), end(range.last, range.last_value),
          count(range.inputs), ...range.results_at_first.map((code) => [range.open ? "such as " : "", ...result(code)]),
          ...(range.open ? ["left open by one or both"] : [])]),
        `${explorer.plural(pair.range_count, "range")}; each value links to its cast`),
      unlisted > 0 ? el("p", { text: `${count(unlisted)} more ranges are not listed.` }) : "");
    }

    return (state) => page.settle(async () => {
      const [known, source, target] = await Promise.all([{ ask: "names", from: state.from, to: state.to },
        { ask: "format", type: state.from }, { ask: "format", type: state.to }].map(explorer.recall));
      showNames(known.names);
      const answer = await explorer.recall({ ask: "differ", a: state.a, b: state.b, from: state.from, to: state.to });
      return { answer, format: source, codes: target.codes, state };
    }, show);
  }

  explorer.view("differ", "Differ", { a: "torch", b: "ml_dtypes", from: "bf16", to: "f8e4m3fn" }, build);
})();
