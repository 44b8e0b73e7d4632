"use strict";

{
  const COMMON = ["bool", "u8", "i8", "i16", "i32", "i64", "f8e4m3fn", "f8e5m2", "f16", "bf16", "f32", "f64"];
  const kind = (name) => (name === null ? "refused" : name === "bool" ? "truth"
    : /^[ui]\d+$/.test(name) ? "integer" : "floating");

  function build(page) {
    const systems = [page.choice("system", "System", []), page.choice("other", "Compared with", [])];
    page.choice("all", "Types", [["", "common"], ["1", "all"]]);
    const matrix = el("div", { class: "scroller" });
    const readout = el("p", { class: "readout", role: "status", "aria-live": "polite" });
    page.picture.append(readout, matrix);

    const at = ({ types }, table, row, column) => table[types.indexOf(row)]?.[types.indexOf(column)];
    const named = ({ system, version, mode }) => `${system} ${version}${mode && ` (mode “${mode}”)`}`;

    function show({ mine, theirs, whole }) {
      const names = mine.types.filter((name) => whole || COMMON.includes(name));
      const compared = mine.system !== theirs.system;
      let [different, shared] = [0, 0];

      function cell(row, column) {
        const [result, second] = [mine, theirs].map((system) => at(system, system.rows, row, column));
        const said = (system, type) => `${system.system} ${type ?? `refuses: ${at(system, system.why, row, column)}`}`;
        const known = second !== undefined;
        const differs = compared && known && second !== result;
        const first = names.indexOf(row) <= names.indexOf(column); // each pair of types has two cells
        shared += first && known;
        different += first && differs;
        const text = `${row} with ${column}: ${said(mine, result)}` +
          (!compared ? "" : !known ? `; ${theirs.system} does not know both types`
            : differs ? `; ${said(theirs, second)}` : `; ${theirs.system} agrees`);
        const tell = () => { readout.textContent = text; };
        return el("td", { class: `cell ${kind(result)}${differs ? " differs" : ""}`, tabindex: -1, role: "gridcell",
          "aria-label": text, onfocus: tell, onmouseenter: tell }, result ?? "–",
        differs ? el("small", { text: `≠ ${second ?? "–"}` }) : null);
      }

      const rows = names.map((row) => [row, names.map((column) => cell(row, column))]);
      matrix.replaceChildren(grid("matrix", `Promotion in ${mine.system}`, names, rows));
      page.title.textContent = compared
        ? `${mine.system} and ${theirs.system} differ for ${plural(different, "pair")} of types`
        : `The common type of two types in ${mine.system}`;
      page.reason.textContent = `${[mine, ...(compared ? [theirs] : [])].map(named).join("; ")}. ` +
        "Each cell is the type of an operation on the types of its row and its column; – is refused." +
        (compared ? ` ≠ is what ${theirs.system} gives. Both know ${plural(shared, "pair")}.` : "");
      readout.textContent = "Point at a cell, or move with the arrow keys, to read it.";
    }

    return (state) => page.settle(async () => {
      const { systems: names } = await recall({ ask: "systems" });
      for (const control of systems) offer(control, names.map((name) => option(name)));
      const [mine, theirs] = await Promise.all([state.system, state.other].map((system) =>
        recall({ ask: "promotion", system })));
      return { mine, theirs, whole: state.all === "1" };
    }, show);
  }

  view("promotion", "Promotion", { system: "numpy", other: "torch", all: "" }, build);
}
