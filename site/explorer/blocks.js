"use strict";

{
  const WEIGHTS = ("0.42,-0.13,0.87,-0.55,0.06,-0.91,0.31,0.02,-0.27,0.64,-0.08,0.19,-0.73,0.48,-0.36,0.11," +
    "0.25,-0.6,0.04,0.97,-0.17,0.33,-0.82,0.09,0.58,-0.21,0.14,-0.45,0.7,-0.03,0.38,-0.66").split(",");
  const SAMPLES = { weights: WEIGHTS, "one outlier": WEIGHTS.with(5, "-40"),
    ramp: WEIGHTS.map((_, index) => String((index - 8) / 4)), zeros: WEIGHTS.map(() => "0") };
  // A comma within a value, which the engine refuses, does not separate values.
  const join = (values) => values.map((value) => value.replaceAll(",", "%2C")).join(",");
  const parts = (text) => text.split(",").map((value) => value.replaceAll("%2C", ","));

  function build({ picture, controls, title, reason, ...page }) {
    page.choice("scheme", "Scheme", ["mxfp4", "nvfp4", "fp8", "int4", "q4_0", "q8_0"], { bytes: "" });
    const hex = page.add("Bytes (hexadecimal)", input({ "aria-describedby": "error-blocks",
      oninput: () => change({ bytes: hex.value.replace(/\s/g, "") }, true) }), "field grow");
    controls.after(el("p", { class: "samples" }, "Fill with ", Object.entries(SAMPLES).map(([name, values]) =>
      [button(name, () => change({ values: join(values), bytes: "" })), " "])));
    const scales = el("div", { class: "scales" });
    const order = el("p", { class: "note" });
    const strip = el("ol", { class: "strip", "aria-label": "Bytes of the block" });
    const cards = el("div", { class: "cards" });
    picture.append(el("h2", { text: "Scale" }), scales, el("h2", { text: "Bytes, in the order of the file" }), order,
      strip, el("h2", { text: "Elements: input, code, code × scale" }), cards);
    let [shown, hidden] = [[], []];

    // Attributes of the places of an element, which light up together.
    function lights(index) {
      const light = (on) => () => picture.querySelectorAll(`[data-element="${index}"]`)
        .forEach((node) => node.classList.toggle("lit", on));
      const [on, off] = [light(true), light(false)];
      return { "data-element": index, onmouseenter: on, onmouseleave: off, onfocusin: on, onfocusout: off };
    }

    function edit() {
      const values = shown.map(({ field }) => hyphen(field.value.trim()) || "0");
      change({ values: join([...values, ...hidden]), bytes: "" }, true);
    }

    function makeCard(index) {
      const field = input({ "aria-label": `Value ${index}`, oninput: edit });
      const [code, sum, error] = [el("div", { class: "mini" }), el("p", { class: "sum" }), el("p", { class: "dim" })];
      const node = el("div", { class: "card", ...lights(index) },
        el("div", { class: "cardtop" }, el("b", { text: index }), field), code, sum, error);
      return { node, field, code, sum, error };
    }

    // Keeps the cards that stay, so that typing goes on.
    function showCards(number) {
      shown.splice(number).forEach(({ node }) => node.remove());
      while (shown.length < number) {
        shown.push(makeCard(shown.length));
        cards.append(shown.at(-1).node);
      }
    }

    function showStrip({ bytes, codes }, own) {
      const holders = new Map(codes.map(({ byte, bit, bits: code }, index) =>
        [`${byte}:${code.length > 3 ? "" : bit}`, index]));
      const pairs = bytes.match(/../g) ?? [];
      const part = (text, element, kind) => el("span", element === undefined ? {} : lights(element),
        el("b", { text }), el("small", { text: element ?? kind }));
      strip.replaceChildren(...pairs.map((pair, byte) => {
        const kind = byte >= pairs.length - own ? "global" : "scale";
        const [whole, low, high] = ["", 0, 4].map((bit) => holders.get(`${byte}:${bit}`));
        if (low !== undefined) return el("li", { class: "byte" }, part(pair[0], high), part(pair[1], low));
        return el("li", { class: whole === undefined ? "byte scaling" : "byte" }, part(pair, whole, kind));
      }));
    }

    const scaleCard = (name, { type, value, bits: code, fields, rule }) => el("div", {},
      el("p", {}, `${name}: `, el("strong", { text: brief(value, 10, 20), title: value }), " ",
        el("code", { class: "dim", text: `${type} ${code}` })),
      el("div", { class: "mini" }, bits(code, fields, null, false)), el("p", { class: "note", text: sentence(rule) }));

    function show({ answer, state }) {
      const { scheme, scale, global_scale: globe, codes, elements } = answer;
      const own = globe ? globe.bits.length / 2 - 1 : 0;
      const size = answer.bytes.length / 2 - own;
      const factors = [`× ${brief(scale.value, 6, 9)}`, ...(globe ? [`÷ ${brief(globe.value, 6, 9)}`] : [])];
      const errors = codes.map((each) => each.error ?? 0);
      const [worst, mean] = [Math.max(...errors.map(Math.abs)), Math.hypot(...errors) / Math.sqrt(elements)];
      title.textContent = `${scheme}: ${elements} values in ${plural(size, "byte")}` +
        (scheme === "fp8" ? "" : `, ${brief(String((size * 8) / elements), 4, 6)} bits each`);
      reason.textContent = `Each value is its code ${factors.join(" ")}.` + (codes[0].input === null ? ""
        : ` The largest error in this block is ${brief(String(worst), 4, 8)}, ` +
          `the root mean square ${brief(String(mean), 4, 8)}.`);
      scales.replaceChildren(scaleCard("Scale of the block", scale),
        globe ? scaleCard("Global scale of the tensor", globe) : "");
      order.textContent = sentence(answer.order);
      showStrip(answer, own);
      if (document.activeElement !== hex) hex.value = answer.bytes.replace(/(..)(?=.)/g, "$1 ");
      showCards(elements);
      const typed = state.bytes ? [] : parts(state.values);
      hidden = typed.slice(elements);
      codes.forEach((each, index) => {
        const { field, code, sum, error } = shown[index];
        if (document.activeElement !== field) field.value = typed[index] ?? each.input ?? each.decoded;
        code.replaceChildren(bits(each.bits, answer.fields, null, false));
        sum.replaceChildren(`${brief(each.value, 5, 8)} ${factors.join("\n")}\n= `,
          el("strong", { text: brief(each.decoded, 6, 9), title: each.decoded }));
        error.textContent = each.error === null ? "" : each.error === 0 ? "exact"
          : `off by ${each.error > 0 ? "+" : ""}${minus(brief(String(each.error), 3, 6))}`;
      });
    }

    return (state) => page.settle(async () => {
      const { scheme, bytes } = state;
      const given = bytes ? { bytes } : { values: parts(state.values) };
      return { answer: await ask({ ask: "block", scheme, ...given }), state };
    }, show);
  }

  view("blocks", "Blocks", { scheme: "mxfp4", values: join(WEIGHTS), bytes: "" }, build);
}
