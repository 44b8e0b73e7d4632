"use strict";

{
  const SAMPLES = ["465", "448", "464", "0.1", "0.0009", "1e9", "-0", "inf", "nan"];
  const finite = (text) => text !== "open" && Number.isFinite(Number(text));
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
  // As many digits as tell the values of the shown answer apart.
  let digits = 8;
  const exact = (text) => cut(text, digits);
  const say = (answer) => (answer.bits === null ? "left open" : exact(answer.value));

  function digitsApart({ source, neighbors: { below, above, beyond, midpoint, threshold }, answers }) {
    const texts = new Set([source.exact, midpoint, threshold, ...[below, above, beyond, ...answers]
      .map((each) => each?.value)].filter(Boolean));
    let number = 8;
    while (number < 40 && new Set([...texts].map((text) => cut(text, number))).size < texts.size) number += 1;
    return number;
  }

  // What the bits of a float say: sign, power of two and significand, read off the fields.
  function reading(code, fields, bias) {
    const part = Object.fromEntries(split(code, fields).map(({ name, digits }) => [name, digits]));
    const exponent = parseInt(part.exponent, 2);
    const fraction = part.significand ? parseInt(part.significand, 2) / 2 ** part.significand.length : 0;
    const subnormal = exponent === 0 && part.significand;
    const from = subnormal ? 1 : exponent;
    const sign = part.sign === "1" ? "−1" : "+1";
    const significand = (fraction + (subnormal ? 0 : 1)).toFixed(52).replace(/\.?0+$/, "");
    return [`= ${sign} × 2`, el("sup", { text: `${from}−${bias} = ${minus(from - bias)}` }),
      ` × ${cut(significand, 16)} ${subnormal ? "(subnormal) " : ""}`];
  }

  function verdict({ neighbors: near, to, source, answers, destination }) {
    const value = exact(source.exact);
    if (near.side === "exact") return `${value} is a value of ${to}: no rounding is needed.`;
    if (near.side === "none" || !(near.beyond || (near.below && near.above))) {
      const lacksSubject = /^(negative|between|beyond)/.test(near.decision);
      return sentence(lacksSubject ? `${value} is ${near.decision}` : near.decision);
    }
    if (near.beyond) {
      const whole = destination.fields.length === 1;
      const beyond = exact(near.beyond.value);
      const edge = near.below ?? near.above;
      const last = `${exact(edge.value)}, the last ${whole ? "" : "finite "}value of ${to}`;
      const [size, middle, end] = [source.exact, near.midpoint, near.beyond.value].map((text) => Math.abs(text));
      if (size < middle) return `${value} is beyond ${last}, but nearer to it than to ${beyond}. It rounds back.`;
      if (whole && size >= end) return `${value} is out of range: it is beyond ${last}.`;
      const where = size === middle ? "is exactly the midpoint" : `is past ${exact(near.midpoint)}, the midpoint`;
      const differ = answers.filter(({ bits: code }) => code).length > 1;
      return `${value} ${where} between ${last}, and ${beyond}, which ${to} does not have. ` +
        (whole ? "Truncated, it stays; rounded to nearest, it overflows."
          : `So it overflows${differ ? ", and the specifications part ways" : ""}.`);
    }
    const between = `${value} lies between ${exact(near.below.value)} and ${exact(near.above.value)}`;
    if (near.decision.startsWith("toward zero")) {
      return `${between}. ${sentence(capital(near.decision.replace(/0x[0-9a-f]+ = /g, "")))}`;
    }
    if (near.side === "tie") return `${between}, at the midpoint: a tie.`;
    return `${between}, nearer to the ${near.side === "below" ? "lower" : "upper"}.`;
  }

  const sizeOf = (text, kind) => text.length * (kind === "value" ? 9.1 : 7.9);
  // A label that stays within the picture at its ends.
  const inside = (x, y, text, width, kind) =>
    words(clamp(x, sizeOf(text, kind) / 2 + 1, width - sizeOf(text, kind) / 2 - 1), y, text, kind);

  // Labels beside each other: one that would touch an earlier one is left out.
  function row(y, labels) {
    const taken = [];
    return labels.map(([x, text, anchor = "middle", kind = ""]) => {
      const from = x - sizeOf(text) * { start: 0, middle: 0.5, end: 1 }[anchor];
      const to = from + sizeOf(text);
      if (taken.some(([first, last]) => from < last + 8 && to > first - 8)) return null;
      taken.push([from, to]);
      return words(x, y, text, kind, anchor);
    });
  }

  // The whole range of the destination, by magnitude, with the place of the value.
  function paintRange({ answer, format }, width) {
    const { value: lastText } = format.special.largest_finite ?? format.special.largest;
    const last = Number(lastText);
    const first = Math.max(special(format, "smallest_subnormal", "smallest_normal", "one_unit", "smallest"), 0) || 1;
    const value = Math.abs(answer.source.exact);
    const low = Math.log2(first);
    const high = Math.max(Math.log2(last), low + 1);
    const [left, right, y] = [76, width - 96, 36];
    const x = (at) => left + ((Math.log2(at) - low) / (high - low)) * (right - left);
    const zone = (kind, from, to) => rect(`zone ${kind}`, from, y, to - from, 14);
    const parts = [zone("under", 0, left), zone("normal", left, right), zone("over", right, width)];
    const labels = [[right, cut(lastText), "end", "strong"], [8, "toward 0", "start"], [width - 8, "too large", "end"]];
    if (low <= 0 && high >= 0) labels.push([x(1), "1"]);
    if (format.special.smallest_subnormal) {
      const normal = x(special(format, "smallest_normal"));
      parts.push(zone("subnormal", left, normal));
      if (normal - left > 90) labels.push([(left + normal) / 2, "subnormal"]);
    }
    if ((right - left) / (high - low) > 4) {
      parts.push(...marks(low, high, Infinity).map((at) => path("notch", `M${x(2 ** at)} ${y + 9}v5`)));
    }
    parts.push(row(y + 31, labels));
    if (value > 0) {
      const at = clamp(x(value), 12, width - 12);
      parts.push(path("ink", `M${at - 6} ${y - 13}h12l-6 9z`), path("stem", `M${at} ${y - 4}v18`),
        inside(at, y - 19, exact(answer.source.exact), width, "value"));
    }
    return { height: y + 38, parts };
  }

  // The gap between two neighbors, the midpoint, the value, and where each answer steps to.
  function paintGap(answer, width) {
    const { neighbors: near, source, to } = answer;
    const label = `Number line. ${verdict(answer)}`;
    const tick = (x, y, kind, text, detail, drop = 0) => [path(`tick ${kind}`, `M${x} ${y - 10}v${20 + drop}`),
      inside(x, y + 30 + drop, text, width, kind || "strong"), inside(x, y + 46 + drop, detail, width, "detail")];
    if (near.side === "exact") {
      const parts = [path("axis", `M0 24H${width}`), tick(width / 2, 24, "", exact(source.exact), `a value of ${to}`)];
      return { height: 78, parts, label };
    }
    const [low, high] = [near.below, near.above].map((each) => (each ?? near.beyond)?.value);
    const narrow = width < 620;
    const [left, right] = narrow ? [40, width - 40] : [150, width - 150];
    const overLow = !near.below;
    const { threshold } = near; // of a code book, which has no midpoints
    const among = (text) => (text - low) / (high - low);
    const place = threshold ? among(source.exact) : near.place ?? (overLow ? -Infinity : Infinity);
    const x = clamp(left + (right - left) * place, 12, width - 12);
    const y = 42 + answer.answers.length * 26;
    const parts = [];
    if (near.beyond) parts.push(rect("beyond", overLow ? 0 : left, y - 16, overLow ? right : width - left, 32));
    parts.push(path("axis", `M0 ${y}H${width}`));
    for (const [at, own, value] of [[left, near.below, low], [right, near.above, high]]) {
      parts.push(tick(at, y, own ? "" : "absent", exact(value), own?.bits ?? (narrow ? "absent" : `not in ${to}`)));
    }
    const middle = left + (right - left) * (threshold ? among(threshold) : 0.5);
    const drop = narrow ? 38 : 0; // below the labels of the neighbors
    parts.push(tick(middle, y, "middle", exact(near.midpoint ?? threshold), threshold ? "threshold" : "midpoint", drop),
      path("stem", `M${x} 26V${y}`));
    answer.answers.forEach((each, index) => {
      const lane = 44 + index * 26;
      const target = !finite(each.value) ? null : each.value === low ? left : each.value === high ? right : null;
      const end = target ?? (overLow ? Math.max(x - 60, 8) : Math.min(x + 60, width - 8));
      const back = end <= x;
      parts.push(path(`step${target === null ? " away" : ""}`, `M${x} ${lane}H${end}`));
      if (target === null) parts.push(draw("circle", { class: "ink", cx: end, cy: lane, r: 4 }));
      else parts.push(path("fall", `M${end} ${lane}V${y - 10}`), path("ink", `M${end} ${lane}l${back ? 9 : -9}-5v10z`));
      const text = `${say(each)} · ${plural(each.labels.length, "name")}`;
      const fits = (back ? end : width - end) > sizeOf(text) + 14;
      parts.push(fits && back ? words(end - 8, lane + 4, text, "lane", "end")
        : fits ? words(end + 10, lane + 4, text, "lane", "start")
          : inside((x + end) / 2, lane - 6, text, width, "lane"));
    });
    const far = place > 1.35 || place < -0.35 ? " (far beyond)" : "";
    parts.push(path("ink", `M${x} ${y - 8}l8 8l-8 8l-8 -8z`),
      inside(x, 18, exact(source.exact) + far, width, "value"));
    return { height: y + 54 + drop, parts, label };
  }

  function build(page) {
    const { title, reason, headline, picture } = page;
    let [now, shown] = [null, null];
    page.text("value", "Value", { "aria-describedby": "cast-hint error-cast" });
    page.type("from", "From");
    page.controls.append(button("⇄", () => change({ from: now.to, to: now.from }),
      { class: "swap", "aria-label": "Exchange the two types", title: "Exchange the two types" }));
    page.type("to", "To");
    page.controls.after(el("p", { class: "samples", id: "cast-hint" },
      "A number, a code such as 0x43e88000, inf or nan. Try ",
      SAMPLES.map((each) => [button(minus(each), () => change({ value: each })), " "])));
    const tally = el("p", { class: "tally" });
    const source = el("div");
    const steps = el("div", { class: "nudges" });
    const meaning = el("p", { class: "meaning" });
    const range = chart("Range of the destination", paintRange);
    const gap = chart("Number line", paintGap);
    const rangeTitle = el("h2");
    const [rangePart, gapPart] = [el("div", {}, rangeTitle, range), el("div", {}, el("h2", { text: "The step" }), gap)];
    const answers = el("div", { class: "answers" });
    headline.append(tally);
    picture.append(el("div", { class: "bitrow" }, source, el("div", { class: "under" }, meaning, steps)),
      rangePart, gapPart, el("h2", { text: "Answers, rarest first. A name is a specification or program, and its options." }),
      answers);
    roving(source, () => [...source.querySelectorAll("button")]);
    const opened = new Set();

    function flip(place) {
      const code = BigInt(shown.bits) ^ (1n << BigInt(place));
      change({ value: `0x${code.toString(16).padStart(shown.bits.length - 2, "0")}` }, true);
    }

    function showSource({ source: given, from, value }, bias) {
      shown = given;
      renew(source, [bits(given.bits, given.fields, flip)]);
      const active = document.activeElement;
      (source.contains(active) ? active : source.querySelector("button")).tabIndex = 0;
      const focused = [...steps.children].indexOf(active);
      const sum = bias !== undefined && finite(given.exact) && Number(given.exact) !== 0
        ? reading(given.bits, given.fields, bias) : "";
      meaning.replaceChildren(el("code", { text: given.bits }), " ", ...sum, "= ",
        el("strong", { text: given.nan?.negative ? NAMED["-nan"] : cut(given.exact, 40, 60), title: given.exact }),
        given.rounded ? el("span", { class: "note", text: `, the ${from} nearest to ${cut(value)}` }) : "");
      steps.replaceChildren(...[["previous", "◂ previous"], ["next", "next ▸"]].map(([key, text]) =>
        button(text, () => change({ value: given[key].bits }, true),
          { title: `The ${key} value of ${from}`, disabled: given[key] === null })));
      steps.children[focused]?.focus();
    }

    function showAnswer({ bits: code, value, labels, why, clauses }, fields, everyone) {
      const key = code ?? "open";
      return el("article", { class: "answer" },
        el("div", { class: "result" }, el("h3", { text: say({ bits: code, value }) }),
          el("code", { text: code ?? "any code is allowed" })),
        code ? bits(code, fields, null, false) : el("div", { class: "bits none", text: "no bits are promised" }),
        el("div", {}, el("p", { class: "share" }, el("b", { text: labels.length }), ` of ${everyone} names. `,
          el("span", { text: sentence(capital(why.join("; or "))) }),
          code && say({ bits: code, value }).includes("…") ? ` Its value is ${cut(value, Infinity)}.` : ""),
          el("details", { open: opened.has(key), "data-key": key, ontoggle: ({ target }) =>
            (target.open ? opened.add(target.dataset.key) : opened.delete(target.dataset.key)) },
          el("summary", {}, el("span", { class: "names" }, clauses.map(({ name, newest }, index) =>
            [el("span", { text: newest ? `${name} (newest: ${newest})` : labels[index] }), " "])),
            el("span", { class: "more", text: clauses.length === 1 ? "clause" : "clauses" })),
          el("dl", {}, clauses.map(({ name, clause, newest }) => [
            el("dt", {}, name, newest ? ` (older; the newest is ${newest})` : ""),
            el("dd", {}, cited(clause ?? ""))])))));
    }

    function show({ answer, formats }) {
      const common = [...answer.answers].sort((a, b) => b.labels.length - a.labels.length);
      const everyone = common.reduce((sum, each) => sum + each.labels.length, 0);
      if (!everyone) throw new Refusal(`no name converts ${answer.from} to ${answer.to}`);
      digits = digitsApart(answer);
      const untold = common.find((each) => each.bits === null && each.labels.length * 2 < everyone);
      const told = common.filter((each) => each !== untold).map(say);
      const last = told.pop();
      title.replaceChildren(el("span", { class: "dim", text: `${answer.from} ` }), cut(answer.value, 10, 24),
        el("span", { class: "dim", text: ` as ${answer.to} is ` }),
        el("strong", { text: told.length ? `${told.join(", ")} or ${last}` : last }));
      reason.textContent = verdict(answer) + (common.length === 1 ? " All names agree." : "") +
        (untold ? ` ${plural(untold.labels.length, "name leaves", "names leave")} the result open.` : "");
      tally.replaceChildren(...common.map((each) => {
        const part = el("span", { class: each.bits === null ? "open" : null }, el("b", { text: say(each) }),
          ` ${plural(each.labels.length, "name")}`);
        part.style.flexGrow = each.labels.length;
        return part;
      }));
      tally.hidden = common.length === 1;
      showSource(answer, formats.from.bias);
      rangeTitle.textContent = `Where it lies in ${answer.to}, by magnitude: each mark is twice the one before`;
      const { source: { exact: value }, neighbors: { below, above, beyond } } = answer;
      const signless = formats.to.sign_bits === 0 || formats.to.kind === "unsigned integer";
      rangePart.hidden = value === "NaN" || formats.to.kind === "code book" || (signless && value.startsWith("-")) ||
        !special(formats.to, "largest_finite", "largest");
      gapPart.hidden = value === "NaN" || !(beyond || (below && above));
      if (!rangePart.hidden) range.show({ answer, format: formats.to });
      if (!gapPart.hidden) gap.show(answer);
      renew(answers, common.reverse().map((each) => showAnswer(each, answer.destination.fields, everyone)));
    }

    return (state) => {
      now = state;
      const { from, to } = state;
      page.settle(async () => {
        const value = state.value.trim();
        if (!value) throw new Refusal("type a number to cast");
        const [answer, { types }] =
          await Promise.all([ask({ ask: "cast", value, from, to }), recall({ ask: "formats" })]);
        const named = (name) => types.find((each) => each.name === name) ?? {};
        return { answer, formats: { from: named(from), to: named(to) } };
      }, show);
    };
  }

  view("cast", "Cast", { value: "465", from: "f32", to: "f8e4m3fn" }, build);
}
