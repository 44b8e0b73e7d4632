"use strict";

// Elements of the explorer and of reports. Text of files only becomes text nodes.

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
  fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);

const path = (kind, d) => draw("path", { class: kind, d });
const words = (x, y, text, kind = "", anchor = "middle") =>
  draw("text", { x, y, class: kind, "text-anchor": anchor }, text);
const scroller = (label) => el("div", { class: "scroller", tabindex: 0, role: "region", "aria-label": label });

function bytes(size) {
  if (!Number.isFinite(size)) return "?";
  let [n, unit] = [size, 0];
  for (; n >= 999.5 && unit < 4; unit++) n /= 1024;
  const decimals = !unit || n >= 99.95 ? 0 : n >= 9.995 ? 1 : 2;
  // A tie goes to the even digit, as in the command's text.
  const scaled = n * 10 ** decimals;
  const rounded = scaled % 1 === 0.5 ? 2 * Math.round(scaled / 2) : Math.round(scaled);
  return `${(rounded / 10 ** decimals).toFixed(decimals)} ${["B", "KiB", "MiB", "GiB", "TiB"][unit]}`;
}
