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
