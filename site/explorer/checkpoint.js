"use strict";

{
  const base64 = (blob, name) => new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => reject(new Refusal(`${name}: it cannot be read; of a folder, give one of its files`));
    reader.readAsDataURL(blob);
  });

  // The engine says how much of the file's beginning it needs; that much is read, and no more.
  async function readHeader(file) {
    const { name, size } = file;
    let [read, answer] = [0, null];
    do {
      read = answer?.need ?? 0;
      answer = await ask({ ask: "header", name, size, bytes: await base64(file.slice(0, read), name) });
    } while (answer.need > read);
    if (answer.need !== undefined) throw new Refusal(`${name}: the header does not end`);
    return { ...answer, name, size, read };
  }

  // Tensors of a model of the shape of gpt-oss-20b: name, type, dimensions. Those with a # are in each of 24 layers.
  const EXAMPLE = `
    lm_head.weight BF16 201088 2880, model.embed_tokens.weight BF16 201088 2880, model.norm.weight BF16 2880,
    #.mlp.experts.gate_up_proj_blocks U8 32 5760 90 16, #.mlp.experts.gate_up_proj_scales U8 32 5760 90,
    #.mlp.experts.gate_up_proj_bias BF16 32 5760, #.mlp.experts.down_proj_blocks U8 32 2880 90 16,
    #.mlp.experts.down_proj_scales U8 32 2880 90, #.mlp.experts.down_proj_bias BF16 32 2880,
    #.self_attn.q_proj.weight BF16 4096 2880, #.self_attn.q_proj.bias BF16 4096,
    #.self_attn.k_proj.weight BF16 512 2880, #.self_attn.k_proj.bias BF16 512,
    #.self_attn.v_proj.weight BF16 512 2880, #.self_attn.v_proj.bias BF16 512,
    #.self_attn.o_proj.weight BF16 2880 4096, #.self_attn.o_proj.bias BF16 2880, #.self_attn.sinks BF16 64,
    #.mlp.router.weight BF16 32 2880, #.mlp.router.bias BF16 32, #.input_layernorm.weight BF16 2880,
    #.post_attention_layernorm.weight BF16 2880`;

  // The header of that model, without its data.
  function example() {
    const tensors = {};
    let at = 0;
    for (const entry of EXAMPLE.trim().split(/,\s+/)) {
      const [name, dtype, ...dimensions] = entry.split(" ");
      const shape = dimensions.map(Number);
      const size = shape.reduce((product, each) => product * each, dtype === "BF16" ? 2 : 1);
      for (let layer = 0; layer < (name.startsWith("#") ? 24 : 1); layer += 1) {
        tensors[name.replace("#", `model.layers.${layer}`)] = { dtype, shape, data_offsets: [at, at += size] };
      }
    }
    const header = new TextEncoder().encode(JSON.stringify(tensors));
    const file = new Blob([new BigUint64Array([BigInt(header.length)]), header]);
    return { name: "example.safetensors", size: file.size + at, slice: (from, to) => file.slice(from, to) };
  }

  const total = (list) => list.reduce((sum, each) => sum + each.bytes, 0);
  const share = (part, whole) => `${((100 * part) / whole).toFixed(1)}%`;

  function tree(tensors) {
    const root = { name: "", bytes: total(tensors), children: new Map() };
    for (const tensor of tensors) {
      let node = root;
      for (const name of tensor.name.split(".")) {
        if (!node.children.has(name)) node.children.set(name, { name, bytes: 0, children: new Map() });
        node = node.children.get(name);
        node.bytes += tensor.bytes;
      }
    }
    return root;
  }

  // Treemap: two halves of about the same size beside each other along the longer side, and so on in each half.
  function divide(nodes, { x, y, width, height }) {
    if (nodes.length < 2) return nodes.map((node) => ({ node, x, y, width, height }));
    const whole = total(nodes);
    let [half, taken] = [nodes[0].bytes, 1];
    while (taken < nodes.length - 1 && half + nodes[taken].bytes <= whole / 2) half += nodes[taken++].bytes;
    const part = half / whole;
    const [first, second] = width < height
      ? [{ x, y, width, height: height * part }, { x, y: y + height * part, width, height: height * (1 - part) }]
      : [{ x, y, width: width * part, height }, { x: x + width * part, y, width: width * (1 - part), height }];
    return [...divide(nodes.slice(0, taken), first), ...divide(nodes.slice(taken), second)];
  }
  const tiles = (node, box) => divide([...node.children.values()].filter((child) => child.bytes > 0)
    .sort((a, b) => b.bytes - a.bytes), box);

  const fits = (text, room) => (text.length * 7.4 + 10 <= room ? text : "");
  const box = (at, kind) => rect(kind, at.x + 0.5, at.y + 0.5, at.width - 1.5, at.height - 1.5);
  const named = ({ x, y, height }, text, kind) => (height > 18 ? words(x + 5, y + 14, text, kind, "start") : null);

  function nest(node, { x, y, width, height }, depth) {
    const inner = { x: x + 3, y: y + 19, width: width - 6, height: height - 22 };
    if (depth === 0 || inner.width < 24 || inner.height < 12) return [];
    return tiles(node, inner).map((tile) => [box(tile, "inset"), named(tile, fits(tile.node.name, tile.width), ""),
      nest(tile.node, tile, depth - 1)]);
  }

  function paintMap({ node, path, open }, width) {
    const height = Math.min(500, Math.max(300, width * 0.42));
    const parts = tiles(node, { x: 0, y: 0, width, height }).map((tile, index) => {
      const child = tile.node;
      const said = `${child.name}: ${bytes(child.bytes)}, ${share(child.bytes, node.bytes)}`;
      const text = fits(`${child.name} ${bytes(child.bytes)}`, tile.width) || fits(child.name, tile.width);
      const hue = /^\d+$/.test(child.name) ? 0 : index % 4;
      return draw("a", { href: open([...path, child.name].join(".")), "aria-label": `Open ${said}` },
        draw("title", { text: said }), box(tile, `tile hue${hue}`), nest(child, tile, 4), named(tile, text, "strong"));
    });
    return { height, parts };
  }

  // Tensors of the same type and shape in repeated layers.
  const pattern = (name) => name.replace(/(^|\.)\d+(?=\.|$)/g, "$1*");
  const groups = (tensors) => [...Map.groupBy(tensors, (each) => `${pattern(each.name)} ${each.dtype} ${each.shape}`)]
    .map(([, list]) => ({ ...list[0], number: list.length, bytes: total(list) })).sort((a, b) => b.bytes - a.bytes);

  const breakable = (name) => name.split(/(?<=[._])/).flatMap((part) => [part, el("wbr")]);

  function build({ panel, controls, title, reason, picture, settle }) {
    const chooser = el("input", { type: "file", accept: ".safetensors,.gguf,.json", id: "checkpoint-file",
      onchange: () => take(chooser.files) });
    const showExample = () => change({ example: "1", path: "", served: "" });
    const back = button("Show the example", showExample, { class: "small" });
    const progress = el("span", { role: "status" });
    controls.classList.add("files");
    controls.append(
      el("label", { for: chooser.id, text: "Drop a .safetensors, .gguf or config.json here, or choose one" }),
      chooser, progress,
      el("p", { class: "note" }, "Nothing is uploaded. Only the header is read, on this machine: names, types and " +
        "shapes of the tensors. A link holds no file."), back);
    const warnings = el("ul", { class: "warnings" });
    const command = line();
    const losses = el("p", { class: "note" }, "Its report is a page: what the conversion lost, and in which tensors. " +
      "For two files that exist, ", el("code", { text: "truecast compare A B --report losses.html" }),
    " makes such a page.");
    const metadata = el("details");
    const types = el("div", { class: "types" });
    const crumbs = el("nav", { class: "crumbs", "aria-label": "Module" });
    const map = chart("Bytes by module", paintMap);
    map.setAttribute("role", "group");
    const tensorsTitle = el("h2");
    const list = scroller("Tensors");
    const inside = el("div", {}, types, el("h2", { text: "Bytes by module" }), crumbs, map, tensorsTitle, list);
    const body = el("div", { hidden: true },
      warnings, el("h2", { text: "Next" }), command, losses, metadata, inside);
    picture.append(body);
    title.textContent = "What is in a checkpoint";
    let held = null;

    function take(files) {
      if (!files.length) return;
      progress.textContent = `Reading ${files[0].name} …`;
      settle(() => readHeader(files[0]).finally(() => { progress.textContent = ""; }), (answer) => {
        held = { answer, root: tree(answer.tensors), from: "file" };
        change({ example: "", path: "", served: "" });
        if (files.length > 1) reason.textContent += ` Only the first of ${files.length} files is shown.`;
      });
    }
    for (const name of ["dragenter", "dragover", "dragleave", "drop"]) {
      panel.addEventListener(name, (event) => {
        event.preventDefault();
        controls.classList.toggle("over", ["dragenter", "dragover"].includes(name));
        if (name === "drop") take(event.dataTransfer.files);
      });
    }

    function showTypes({ tensors, bytes: whole }) {
      const sizes = [...Map.groupBy(tensors, (each) => each.dtype)].map(([name, list]) => [name, total(list)]);
      types.replaceChildren(...sizes.sort((a, b) => b[1] - a[1]).map(([name, size]) => {
        const bar = el("i");
        bar.style.width = share(size, whole);
        return el("p", {}, el("b", { text: name }), el("span", { class: "bar" }, bar),
          el("span", { text: `${bytes(size)}, ${share(size, whole)}` }));
      }));
    }

    // Draws the module of the address, and gives its name.
    function showMap(root, state) {
      let [node, parent] = [root, null];
      const found = [];
      for (const step of state.path ? state.path.split(".") : []) {
        if (!node.children.has(step)) break;
        [node, parent] = [node.children.get(step), node];
        found.push(step);
      }
      const open = (path) => address("checkpoint", { ...state, path });
      crumbs.replaceChildren(...["all", ...found].flatMap((step, index) => [index ? " › " : "", index === found.length
        ? el("b", { text: step }) : el("a", { href: open(found.slice(0, index).join(".")), text: step })]),
      ` · ${bytes(node.bytes)}`);
      const whole = node.children.size > 0 || !parent;
      map.show({ node: whole ? node : parent, path: whole ? found : found.slice(0, -1), open });
      return found.join(".");
    }

    function show({ answer, root }, state) {
      const { name, tensors, parameters, scheme, unscaled } = answer;
      title.textContent = parameters
        ? `${name}: ${count(parameters)} parameters, ${answer.bits_per_weight.toFixed(2)} bits a weight` : name;
      const plain = unscaled ? `Weights of type ${unscaled}, without scales.` : "Not quantized.";
      reason.textContent = [scheme ? `Scheme: ${scheme}.` : answer.warnings.length ? "" : plain,
        tensors.length ? `${plural(tensors.length, "tensor")}, ${bytes(answer.bytes)} of data.` : "",
        `Read: the first ${bytes(answer.read)} of ${bytes(answer.size)}.`].filter(Boolean).join(" ");
      warnings.replaceChildren(...answer.warnings.map((text) => el("li", { text: sentence(text) })));
      command.show(answer.command);
      losses.hidden = !answer.command.includes("--report");
      body.hidden = false;
      metadata.hidden = answer.metadata.length === 0;
      const short = ([key, value]) => [breakable(key), value.length > 300 ? `${value.slice(0, 300)} …` : value];
      metadata.replaceChildren(
        el("summary", { text: `${plural(answer.metadata.length, "entry", "entries")} of metadata` }),
        table(["key", "value"], answer.metadata.map(short)));
      inside.hidden = tensors.length === 0;
      if (inside.hidden) return;
      showTypes(answer);
      const module = showMap(root, state);
      const kept = groups(tensors.filter((each) => !module || `${each.name}.`.startsWith(`${module}.`)));
      tensorsTitle.textContent = `Tensors${module ? ` of ${module}` : ""}, largest group first`;
      const rows = kept.slice(0, 500).map((group) => [breakable(group.number > 1 ? pattern(group.name) : group.name),
        bytes(group.bytes), count(group.number), group.dtype, group.shape.join(" × ")]);
      list.replaceChildren(table(["name", "bytes", "tensors", "type", "shape"], rows),
        kept.length > 500 ? el("p", { text: `${count(kept.length - 500)} more groups are not listed.` }) : "");
    }

    const sources = { served: () => ask({ ask: "file" }), example: () => readHeader(example()) };
    return (state) => {
      const from = state.served ? "served" : state.example ? "example" : "file";
      back.hidden = from === "example";
      if (!back.hidden) picture.hidden = false;
      if (held?.from === from) show(held, state);
      else if (sources[from]) {
        settle(sources[from], (answer) => {
          held = { answer, root: tree(answer.tensors), from };
          show(held, state);
        });
      }
    };
  }

  view("checkpoint", "Checkpoint", { example: "1", path: "", served: "" }, build);
}
