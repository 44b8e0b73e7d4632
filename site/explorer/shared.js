"use strict";

const rect = (kind, x, y, width, height) =>
  draw("rect", { class: kind, x, y, width: Math.max(width, 0.5), height: Math.max(height, 0.5), rx: 2 });
const power = (base, exponent) =>
  [draw("tspan", { text: base }), draw("tspan", { class: "up", dy: -5, text: minus(exponent) })];
// Round numbers from `low` to `high`, fewer than `most`.
function marks(low, high, most) {
  const strides = [1, 2, 4, 5, 10, 20, 50, 100, 200, 500, 1000];
  const stride = strides.find((each) => (high - low) / each < most) ?? high - low;
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
  const fail = (why) => {
    trouble.textContent = why;
    trouble.hidden = false;
    throw new Unreachable(why);
  };
  if (!window.truecast) {
    fail("The engine did not load: engine.js is missing or damaged. Start the page with “truecast explore”, or " +
      "open the index.html of a release, and keep the files of its folder together.");
  }
  const answer = await window.truecast.ask(request).catch((error) => fail(`The engine does not answer ` +
    `(${error.message}). If you started “truecast explore”, start it again, then reload this page.`));
  trouble.hidden = true;
  if (answer.error) throw new Refusal(answer.error.message);
  return answer;
}

const remembered = new Map();
function recall(request) {
  const key = JSON.stringify(request);
  const answer = remembered.get(key) ?? ask(request);
  remembered.set(key, answer);
  answer.catch(() => remembered.delete(key));
  return answer;
}

// A view's outlet shows the newest answer. After an error the last good picture stays, dimmed.
function outlet(picture, alert, ...others) {
  const stale = (is) => [picture, ...others].forEach((part) => part.classList.toggle("stale", is));
  let newest = 0;
  picture.hidden = true;
  return async (work, show) => {
    const turn = ++newest;
    try {
      const answer = await work();
      if (turn !== newest) return;
      picture.hidden = false;
      show(answer);
      alert.textContent = "";
      stale(false);
    } catch (error) {
      if (turn !== newest) return;
      stale(true);
      if (!(error instanceof Unreachable)) alert.textContent = sentence(error.message);
      if (!(error instanceof Refusal || error instanceof Unreachable)) console.error(error);
    }
  };
}

// State: the address's hash is "view?key=value&key=value".

const views = new Map();
let current = null;
let pending = 0;

function address(name, state) {
  const { defaults } = views.get(name);
  const kept = Object.entries(state).filter(([key, value]) => value !== "" || defaults[key]);
  return `#${name}${kept.length ? "?" + new URLSearchParams(kept) : ""}`;
}

function writeAddress() {
  clearTimeout(pending);
  pending = 0;
  history.replaceState(null, "", address(current.name, current.state));
}

// `typing` keeps one entry of the history for a run of keystrokes.
function change(changes, typing = false) {
  if (pending && !typing) writeAddress();
  Object.assign(current.state, changes);
  clearTimeout(pending);
  if (typing) pending = setTimeout(writeAddress, 200);
  else history.pushState(null, "", address(current.name, current.state));
  render();
}

function readAddress() {
  clearTimeout(pending);
  pending = 0;
  const [name, query = ""] = location.hash.replace(/^#/, "").split("?");
  const next = views.get(name) ?? views.values().next().value;
  if (current && current !== next) scrollTo(0, 0);
  current = next;
  current.state = { ...current.defaults, ...Object.fromEntries(new URLSearchParams(query)) };
  if (!current.page) {
    current.page = frame(current.name);
    current.show = current.build(current.page);
    document.getElementById("main").append(current.page.panel);
  }
  for (const each of views.values()) {
    if (each.page) each.page.panel.hidden = each !== current;
    each.link.ariaCurrent = each === current ? "page" : null;
  }
  render();
}

function render() {
  const { name, title, state, page } = current;
  current.link.href = address(name, state);
  document.title = `${title} · truecast explorer`;
  for (const update of page.bound) update(state);
  current.show(state);
}

// `build` gets a frame, and gives the function that shows a state.
function view(name, title, defaults, build) {
  views.set(name, { name, title, defaults, build, link: el("a", { href: `#${name}`, text: title }) });
}

addEventListener("DOMContentLoaded", () => {
  document.querySelector("nav").append(...[...views.values()].map((each) => each.link));
  document.querySelector("[data-skip]").addEventListener("click", (event) => {
    event.preventDefault();
    document.getElementById("main").focus();
  });
  addEventListener("click", () => pending && writeAddress(), true);
  addEventListener("popstate", readAddress);
  readAddress();
});

// Controls

const button = (text, onclick, attributes = {}) => el("button", { type: "button", text, onclick, ...attributes });
const input = (attributes) =>
  el("input", { type: "text", spellcheck: "false", autocomplete: "off", autocapitalize: "off", ...attributes });
const option = (value, text = value) => el("option", { value, text });

// A select holds the address's value even where its options do not have it yet.
function setChoice(select, value) {
  const known = [...select.options].some((each) => each.value === value);
  if (value && !known) select.prepend(option(value));
  select.value = value;
}

function offer(select, options) {
  const chosen = select.value;
  select.replaceChildren(...options);
  setChoice(select, chosen);
}

const numeric = ({ kind }) => kind !== "text" && kind !== "complex";
const groupOf = ({ kind }) => (kind === "float" ? "floats" : kind.endsWith("integer") ? "integers" : "others");

async function offerTypes(select, accept) {
  const { types } = await recall({ ask: "formats" });
  const accepted = types.filter(accept);
  const groups = ["floats", "integers", "others"].map((label) => el("optgroup", { label },
    accepted.filter((each) => groupOf(each) === label).map(({ name }) => option(name))));
  offer(select, groups.filter((group) => group.children.length));
}

// What all views have: controls that follow keys of the state, an error, and a picture under a headline.
function frame(name) {
  const alert = el("p", { role: "alert", class: "error", id: `error-${name}` });
  const title = el("h1", { id: `title-${name}` });
  const reason = el("p", { class: "reason" });
  const headline = el("div", { class: "headline", role: "status", "aria-live": "polite" }, title, reason);
  const picture = el("div", { class: "picture" }, headline);
  const controls = el("div", { class: "controls" });
  const panel = el("section", { class: `view ${name}`, "aria-labelledby": title.id }, controls, alert, picture);
  const bound = [];
  const add = (label, control, kind = "field") => {
    control.id = `${name}-field-${controls.childElementCount}`;
    controls.append(el("div", { class: kind }, el("label", { for: control.id, text: label }), control));
    return control;
  };
  return {
    panel, controls, title, reason, headline, picture, bound, add, settle: outlet(picture, alert),
    choice(key, label, options, changes = {}) {
      const select = el("select", { onchange: () => change({ ...changes, [key]: select.value }) });
      offer(select, options.map((each) => option(...[each].flat())));
      bound.push((state) => setChoice(select, state[key]));
      return add(label, select);
    },
    type(key, label, accept = numeric, changes = {}) {
      const select = this.choice(key, label, [], changes);
      offerTypes(select, accept).catch(() => {});
      return select;
    },
    text(key, label, attributes = {}) {
      const control = input({ "aria-describedby": alert.id, ...attributes,
        oninput: () => change({ [key]: hyphen(control.value) }, true) });
      bound.push((state) => {
        if (control.value !== state[key]) control.value = state[key];
      });
      return add(label, control);
    },
  };
}

// A line to copy, such as a command.
function line() {
  const text = el("code");
  const copied = el("span", { role: "status", class: "note" });
  const copy = () => navigator.clipboard?.writeText(text.textContent).then(
    () => { copied.textContent = "Copied."; }, () => { copied.textContent = "Select the text to copy it."; });
  const node = el("p", { class: "command" }, text, button("Copy", copy, { class: "small" }), copied);
  node.show = (words) => {
    text.textContent = words;
    copied.textContent = "";
  };
  return node;
}

// A chart is drawn again at each width, so that text keeps its size.
function chart(label, paint) {
  const node = el("div", { class: "chart", role: "img", "aria-label": label });
  let [data, width] = [null, 0];
  const repaint = () => {
    if (data === null || width === 0) return;
    const { height, parts, label: words } = paint(data, width);
    if (words) node.setAttribute("aria-label", words);
    renew(node, [draw("svg", { width, height, viewBox: `0 0 ${width} ${height}` }, parts)]);
  };
  new ResizeObserver(([{ contentRect }]) => {
    if (Math.floor(contentRect.width) === width) return;
    width = Math.floor(contentRect.width);
    repaint();
  }).observe(node);
  node.show = (next) => {
    data = next;
    repaint();
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

// Puts nodes into `parent`. An old node of the same kind stays and takes what differs, so that the browser draws only
// that again, and the focus stays. Its listeners stay too: they read the node, not the answer that made it.
function renew(parent, nodes) {
  const old = [...parent.childNodes];
  if (old.length !== nodes.length) {
    parent.replaceChildren(...nodes);
    return;
  }
  nodes.forEach((node, at) => {
    const had = old[at];
    if (had.isEqualNode(node)) return;
    if (had.nodeName !== node.nodeName || !node.hasChildNodes()) {
      had.replaceWith(node);
      return;
    }
    for (const name of had.getAttributeNames()) if (!node.hasAttribute(name)) had.removeAttribute(name);
    for (const name of node.getAttributeNames()) had.setAttribute(name, node.getAttribute(name));
    renew(had, [...node.childNodes]);
  });
}

const link = (name, state, text) => el("a", { href: address(name, state), text });

// Text

// Citations are links where the page is part of the site, which has a permalink for each clause.
function cited(text) {
  const site = document.querySelector("meta[name=site]")?.content;
  let page = null;
  return text.split(/(docs\/[\w\/-]+\.md|§[\d.]*\d)/).map((part) => {
    page = /^docs\/(.+)\.md$/.exec(part)?.[1] ?? page;
    if (!site || !page || !/^(docs\/|§)/.test(part)) return part;
    const clause = part.startsWith("§") ? `#s${part.slice(1).replaceAll(".", "-")}` : "";
    return el("a", { href: `${site}${page}.html${clause}`, text: part });
  });
}

const minus = (text) => String(text).replace(/^-/, "−");
const hyphen = (text) => text.replaceAll("−", "-");
const OPENING = /^(a|at|element|from|its|no|not|one|scale|shift|the|to|two|eight|out|type|unknown)\b/;
const capital = (text) => text[0].toUpperCase() + text.slice(1);
const sentence = (text) => (OPENING.test(text) ? capital(text) : text) + (/[.!?]$/.test(text) ? "" : ".");
const count = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, "_");
const plural = (number, noun, nouns = `${noun}s`) => `${count(number)} ${number === 1 ? noun : nouns}`;

const NAMED = { Infinity: "∞", "-Infinity": "−∞", inf: "∞", "-inf": "−∞", nan: "NaN", "-nan": "−NaN" };

// An exact decimal in at most `longest` characters, else its first digits and a mark: cut, not rounded.
function cut(text, digits = 8, longest = 20) {
  const [, sign, whole, part = "", scaled] = /^(-?)(\d+)(?:\.(\d+))?(?:e([-+]?\d+))?$/.exec(text) ?? [];
  const first = `${whole}${part}`.search(/[1-9]/);
  // The engine rounds a number with an exponent to 17 digits.
  if (whole === undefined || first < 0 || text.length <= (scaled ? 14 : longest)) return NAMED[text] ?? minus(text);
  const all = `${whole}${part}`.slice(first).replace(/0+$/, "");
  const shown = all.length > digits ? `${all.slice(0, digits)}…` : all;
  const exponent = whole.length - 1 - first + Number(scaled ?? 0);
  const point = exponent > -6 && exponent < digits ? exponent : 0;
  const padded = point < 0 ? "0".repeat(-point) + shown : shown.padEnd(point + 1, "0");
  const [before, after] = [padded.slice(0, Math.max(point, 0) + 1), padded.slice(Math.max(point, 0) + 1)];
  return minus(`${sign}${before}${after && `.${after}`}${point === exponent ? "" : `e${exponent}`}`);
}

// A number in at most about `longest` characters, else rounded to `digits` digits.
function brief(text, digits = 8, longest = 14) {
  if (String(text).length <= longest || !Number.isFinite(Number(text))) return NAMED[text] ?? minus(text);
  const [mantissa, exponent] = Number(text).toPrecision(digits).split("e");
  const short = mantissa.includes(".") ? mantissa.replace(/\.?0+$/, "") : mantissa;
  return minus(exponent ? `${short}e${exponent.replace("+", "")}` : short);
}

// Bits

function split(code, fields) {
  const names = fields.length === 1 ? ["value"] : ["sign", "exponent", "significand"];
  let left = fields.reduce((sum, each) => sum + each, 0);
  const digits = BigInt(code).toString(2).padStart(left, "0");
  return fields.map((size, index) => {
    left -= size;
    const end = digits.length - left;
    return { name: names[index], digits: digits.slice(end - size, end), low: left, size };
  }).filter((part) => part.size);
}

// Rows of bits. With `flip`, each bit is a button that asks for the code with this bit changed.
function bits(code, fields, flip = null, captions = true) {
  const parts = split(code, fields);
  const said = parts.map(({ name, digits }) => `${name} ${digits}`).join(", ");
  const bit = (digit, place, name) => (!flip ? el("span", { class: `bit b${digit}`, text: digit })
    : button(digit, ({ target }) => flip(target.dataset.place), { class: `bit b${digit}`, tabindex: -1,
      "data-place": place, "aria-pressed": String(digit === "1"), "aria-label": `bit ${place}, ${name}` }));
  const caption = ({ name, size }) => el("div", { class: "caption", "aria-hidden": !flip && "true",
    text: name === "sign" ? "sign" : `${name} · ${plural(size, "bit")}` });
  const label = `${flip ? "Bits of the source" : "Bits"}: ${said}`;
  return el("div", { class: "bits", role: flip ? "group" : "img", "aria-label": label },
    parts.map((part) => el("div", { class: `part ${part.name}` },
      el("div", { class: "cells" }, [...part.digits].map((digit, at) =>
        bit(digit, part.low + part.size - 1 - at, part.name))),
      captions ? caption(part) : null)));
}
