"use strict";

const explorer = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const views = new Map();

  function fill(node, attributes, children) {
    for (const [key, value] of Object.entries(attributes)) {
      if (value === null || value === undefined || value === false) continue;
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else if (key === "text") node.textContent = value;
      else node.setAttribute(key, value === true ? "" : value);
    }
    node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
    return node;
  }
  const el = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
  const draw = (name, attributes = {}, ...children) =>
    fill(document.createElementNS(SVG, name), attributes, children);

  const path = (kind, d) => draw("path", { class: kind, d });
  const rect = (kind, x, y, width, height) =>
    draw("rect", { class: kind, x, y, width: Math.max(width, 0.5), height: Math.max(height, 0.5), rx: 2 });
  const words = (x, y, text, kind = "", anchor = "middle") =>
    draw("text", { x, y, class: kind, "text-anchor": anchor }, text);
  const power = (base, exponent) =>
    [draw("tspan", { text: base }), draw("tspan", { class: "up", dy: -5, text: minus(exponent) })];
  // Round numbers from `low` to `high`, fewer than `most`.
  const STRIDES = [1, 2, 4, 5, 10, 20, 50, 100, 200, 500, 1000];
  function marks(low, high, most) {
    const stride = STRIDES.find((each) => (high - low) / each < most) ?? high - low;
    const first = Math.ceil(low / stride);
    return Array.from({ length: Math.floor(high / stride) - first + 1 }, (_, at) => (first + at) * stride);
  }
  // Value of the first of these special codes that a format has, or 0.
  const special = (format, ...keys) => Number(format.special?.[keys.find((key) => format.special[key])]?.value ?? 0);

  // Engine

  class Refusal extends Error {}
  class Unreachable extends Error {}

  async function ask(request) {
    const trouble = document.getElementById("trouble");
    try {
      if (!window.truecast) {
        throw new Unreachable("The engine did not load: engine.js is missing or damaged. Start the page with “truecast " +
          "explore”, or open the index.html of a release, and keep the files of its folder together.");
      }
      const answer = await window.truecast.ask(request).catch((error) => {
        throw new Unreachable(`The engine does not answer (${error.message}). If you started “truecast explore”, ` +
          "start it again, then reload this page.");
      });
      trouble.hidden = true;
      if (answer.error) throw new Refusal(answer.error.message);
      return answer;
    } catch (error) {
      if (!(error instanceof Refusal)) {
        trouble.textContent = error.message;
        trouble.hidden = false;
      }
      throw error;
    }
  }

  const remembered = new Map();
  function recall(request) {
    const key = JSON.stringify(request);
    if (!remembered.has(key)) {
      remembered.set(key, ask(request));
      remembered.get(key).catch(() => remembered.delete(key));
    }
    return remembered.get(key);
  }

  // A view's outlet shows the newest answer. After an error the last good picture stays, dimmed.
  function outlet(picture, alert) {
    let turn = 0;
    picture.hidden = true;
    return async (work, show) => {
      const mine = ++turn;
      try {
        const answer = await work();
        if (mine !== turn) return;
        picture.hidden = false;
        show(answer);
        alert.textContent = "";
        picture.classList.remove("stale");
      } catch (error) {
        if (mine !== turn) return;
        if (!(error instanceof Unreachable)) alert.textContent = sentence(error.message);
        picture.classList.add("stale");
        if (!(error instanceof Refusal || error instanceof Unreachable)) console.error(error);
      }
    };
  }

  // State: the address's hash is "view?key=value&key=value".

  let current = null;
  let pending = 0;

  function parse(hash) {
    const [name, query = ""] = hash.replace(/^#/, "").split("?");
    const view = views.get(name) ?? views.values().next().value;
    return { view, state: { ...view.defaults, ...Object.fromEntries(new URLSearchParams(query)) } };
  }

  function address(view, state) {
    const kept = Object.entries(state).filter(([key, value]) => value !== "" || view.defaults[key]);
    return `#${view.name}${kept.length ? "?" + new URLSearchParams(kept) : ""}`;
  }

  function write() {
    clearTimeout(pending);
    pending = 0;
    history.replaceState(null, "", address(current, current.state));
  }

  // `typing` keeps one entry of the history for a run of keystrokes.
  function change(changes, typing = false) {
    if (!typing) {
      if (pending) write();
      history.pushState(null, "", address(current, { ...current.state, ...changes }));
    }
    Object.assign(current.state, changes);
    if (typing) {
      clearTimeout(pending);
      pending = setTimeout(write, 200);
    }
    render();
  }

  function open() {
    clearTimeout(pending);
    pending = 0;
    const { view, state } = parse(location.hash);
    view.state = state;
    const moved = current !== null && current !== view;
    current = view;
    if (!view.panel) {
      view.frame = frame(view);
      view.show = view.build(view.frame);
      document.getElementById("main").append(view.panel = view.frame.panel);
    }
    for (const other of views.values()) {
      if (other.panel) other.panel.hidden = other !== view;
      if (other === view) other.link.setAttribute("aria-current", "page");
      else other.link.removeAttribute("aria-current");
    }
    if (moved) scrollTo(0, 0);
    render();
  }

  function render() {
    current.link.href = address(current, current.state);
    document.title = `${current.title} · truecast explorer`;
    for (const update of current.frame.bound) update(current.state);
    current.show(current.state);
  }

  function view(name, title, defaults, build) {
    views.set(name, { name, title, defaults, build, link: el("a", { href: `#${name}`, text: title }) });
  }

  function start() {
    document.querySelector("nav").append(...[...views.values()].map((each) => each.link));
    document.querySelector("[data-skip]").addEventListener("click", (event) => {
      event.preventDefault();
      document.getElementById("main").focus();
    });
    addEventListener("click", () => pending && write(), true);
    addEventListener("popstate", open);
    open();
  }

  // Controls

  let ids = 0;
  function field(label, control) {
    control.id ||= `field-${++ids}`;
    return el("div", { class: "field" }, el("label", { for: control.id, text: label }), control);
  }

  function fillSelect(control, options) {
    const chosen = control.value;
    control.replaceChildren(...options.map((option) => (option instanceof Node ? option
      : el("option", Array.isArray(option) ? { value: option[0], text: option[1] } : { text: option }))));
    control.show(chosen);
  }

  // A select holds the address's value even where its options do not have it yet.
  function select(options, onchange) {
    const control = el("select", { onchange: () => onchange(control.value) });
    control.show = (value) => {
      if (value && ![...control.options].some((option) => option.value === value)) {
        control.prepend(el("option", { text: value }));
      }
      control.value = value;
    };
    fillSelect(control, options);
    return control;
  }

  const numeric = ({ kind }) => kind !== "text" && kind !== "complex";

  async function fillTypes(control, accept) {
    const { types } = await recall({ ask: "formats" });
    const groups = { floats: [], integers: [], others: [] };
    for (const each of types.filter(accept)) {
      const kind = each.kind === "float" ? "floats" : each.kind.endsWith("integer") ? "integers" : "others";
      groups[kind].push(el("option", { text: each.name }));
    }
    fillSelect(control, Object.entries(groups).filter(([, names]) => names.length)
      .map(([label, names]) => el("optgroup", { label }, names)));
  }

  // What all views have: controls that follow keys of the state, an error, and a picture under a headline.
  function frame({ name }) {
    const alert = el("p", { role: "alert", class: "error", id: `error-${name}` });
    const title = el("h1", { id: `title-${name}` });
    const reason = el("p", { class: "reason" });
    const headline = el("div", { class: "headline", role: "status", "aria-live": "polite" }, title, reason);
    const picture = el("div", { class: "picture" }, headline);
    const controls = el("div", { class: "controls" });
    const panel = el("section", { class: `view ${name}`, "aria-labelledby": title.id }, controls, alert, picture);
    const bound = [];
    const add = (label, control) => {
      controls.append(field(label, control));
      return control;
    };
    return {
      panel, controls, title, reason, headline, picture, bound, settle: outlet(picture, alert),
      choice(key, label, options, changes = {}) {
        const control = select(options, (value) => change({ ...changes, [key]: value }));
        bound.push((state) => control.show(state[key]));
        return add(label, control);
      },
      type(key, label, accept = numeric, changes = {}) {
        const control = this.choice(key, label, [], changes);
        fillTypes(control, accept).catch(() => {});
        return control;
      },
      text(key, label, attributes = {}) {
        const control = el("input", { type: "text", spellcheck: "false", autocomplete: "off", autocapitalize: "off",
          "aria-describedby": alert.id, oninput: () => change({ [key]: control.value }, true), ...attributes });
        bound.push((state) => {
          if (control.value !== state[key]) control.value = state[key];
        });
        return add(label, control);
      },
    };
  }

  const button = (text, onclick, attributes = {}) => el("button", { type: "button", text, onclick, ...attributes });

  // A line to copy, such as a command.
  function line() {
    const text = el("code");
    const copied = el("span", { role: "status", class: "note" });
    const copy = button("Copy", () => navigator.clipboard?.writeText(text.textContent).then(
      () => { copied.textContent = "Copied."; }, () => { copied.textContent = "Select the text to copy it."; }),
    { class: "small" });
    const node = el("p", { class: "command" }, text, copy, copied);
    node.show = (words) => {
      text.textContent = words;
      copied.textContent = "";
    };
    return node;
  }

  // A chart is drawn again at each width, so that text keeps its size.
  function chart(label, paint) {
    const node = el("div", { class: "chart", role: "img", "aria-label": label });
    let data = null;
    let width = 0;
    const measured = () => Math.floor(node.getBoundingClientRect().width);
    const repaint = (wide) => {
      width = wide;
      if (data === null || width === 0) return;
      const { height, parts, label: words } = paint(data, width);
      if (words) node.setAttribute("aria-label", words);
      node.replaceChildren(draw("svg", { width, height, viewBox: `0 0 ${width} ${height}` }, parts));
    };
    new ResizeObserver(() => measured() !== width && repaint(measured())).observe(node);
    node.show = (next) => {
      data = next;
      repaint(width || measured());
    };
    return node;
  }

  // Arrow keys move between the children of a group; the group is one stop of the Tab key.
  function roving(group, items, columns = 0) {
    group.addEventListener("keydown", (event) => {
      const all = items();
      const at = all.indexOf(event.target);
      const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[event.key];
      const next = event.key === "Home" ? 0 : event.key === "End" ? all.length - 1 : at + step;
      if (at < 0 || !all[next] || next === at) return;
      event.preventDefault();
      for (const item of all) item.tabIndex = item === all[next] ? 0 : -1;
      all[next].focus();
    });
  }

  // A table of cells, through which the arrow keys move. Each row is a heading and its cells.
  function grid(kind, label, heads, rows, first = 0) {
    const node = el("table", { class: kind, role: "grid", "aria-label": label },
      el("thead", {}, el("tr", {}, el("td"), heads.map((text) => el("th", { scope: "col", text })))),
      el("tbody", {}, rows.map(([text, cells]) => el("tr", {}, el("th", { scope: "row", text }), cells))));
    const cells = rows.flatMap(([, cells]) => cells);
    roving(node, () => cells, heads.length);
    if (cells[first]) cells[first].tabIndex = 0;
    return node;
  }

  const table = (heads, rows, caption = null) => el("table", { class: "list" },
    caption && el("caption", { text: caption }),
    el("thead", {}, el("tr", {}, heads.map((text) => el("th", { scope: "col", text })))),
    el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((cell) => el("td", {}, cell))))));

  // Text

  // Citations are links where the page is part of the site, which has a permalink for each clause.
  function cited(text) {
    const site = document.querySelector("meta[name=site]")?.content;
    let page = null;
    return String(text).split(/(docs\/[\w\/-]+\.md|§[\d.]*\d)/).map((part) => {
      page = /^docs\/(.+)\.md$/.exec(part)?.[1] ?? page;
      if (!site || !page || !/^(docs\/|§)/.test(part)) return part;
      const clause = part.startsWith("§") ? `#s${part.slice(1).replaceAll(".", "-")}` : "";
      return el("a", { href: `${site}${page}.html${clause}`, text: part });
    });
  }

  const minus = (text) => String(text).replace(/^-/, "−");
  const OPENING = /^(a|at|element|from|its|no|not|one|scale|shift|the|to|two|eight|out|type|unknown)\b/;
  const capital = (text) => text[0].toUpperCase() + text.slice(1);
  const sentence = (text) =>
    (OPENING.test(text) ? capital(text) : text) + (/[.!?]$/.test(text) ? "" : ".");
  const count = (number) => Number(number).toLocaleString("en-US");
  const plural = (number, noun, nouns = `${noun}s`) => `${count(number)} ${number === 1 ? noun : nouns}`;

  const SPECIAL = { Infinity: "∞", "-Infinity": "−∞", inf: "∞", "-inf": "−∞", nan: "NaN", "-nan": "−NaN" };

  function brief(text, digits = 8, longest = 14) {
    const plain = SPECIAL[text];
    if (plain || String(text).length <= longest || !Number.isFinite(Number(text))) return plain ?? minus(text);
    const [mantissa, exponent] = Number(text).toPrecision(digits).split("e");
    const short = mantissa.includes(".") ? mantissa.replace(/\.?0+$/, "") : mantissa;
    return minus(exponent ? `${short}e${exponent.replace("+", "")}` : short);
  }

  function bytes(number) {
    const unit = Math.min(Math.floor(Math.log10(Math.max(number, 1) * 1.0005) / 3), 5);
    return `${unit === 0 ? number : (number / 1000 ** unit).toPrecision(3)} ${["B", "KB", "MB", "GB", "TB", "PB"][unit]}`;
  }

  // Bits

  function split(code, fields) {
    const names = fields.length === 1 ? ["value"] : ["sign", "exponent", "significand"];
    let left = fields.reduce((sum, each) => sum + each, 0);
    const digits = BigInt(code).toString(2).padStart(left, "0");
    return fields.map((size, index) => {
      left -= size;
      return { name: names[index], digits: digits.slice(0, -left || undefined).slice(-size), low: left, size };
    }).filter((part) => part.size);
  }

  // Rows of bits. With `flip`, each bit is a button that asks for the code with this bit changed.
  function bits(code, fields, flip = null, captions = true) {
    const parts = split(code, fields);
    const row = el("div", { class: "bits", role: flip ? "group" : "img",
      "aria-label": `${flip ? "Bits of the source" : "Bits"}: ` +
        parts.map((part) => `${part.name} ${part.digits}`).join(", ") });
    for (const part of parts) {
      const cells = [...part.digits].map((digit, index) => {
        const place = part.low + part.size - 1 - index;
        if (!flip) return el("span", { class: `bit b${digit}`, text: digit });
        return el("button", { type: "button", class: `bit b${digit}`, text: digit, tabindex: -1, "data-place": place,
          "aria-pressed": digit === "1" ? "true" : "false", "aria-label": `bit ${place}, ${part.name}`,
          onclick: () => flip(place) });
      });
      const caption = part.name === "sign" ? "sign" : `${part.name} · ${plural(part.size, "bit")}`;
      row.append(el("div", { class: `part ${part.name}` }, el("div", { class: "cells" }, cells),
        captions ? el("div", { class: "caption", "aria-hidden": flip ? null : "true", text: caption }) : null));
    }
    return row;
  }

  addEventListener("DOMContentLoaded", start);

  return {
    Refusal, ask, bits, brief, button, bytes, capital, change, chart, cited, count, draw, el, field, fillSelect, grid,
    line, marks, minus, outlet, path, plural, power, recall, rect, roving, sentence, special, split, table, view, words,
    address: (name, state) => address(views.get(name), state),
    link: (name, state, text) => el("a", { href: address(views.get(name), state), text }),
  };
})();
