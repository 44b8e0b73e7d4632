"""Markdown tables, aligned so that they can be read in a terminal too, and what they are about."""

import platform
import textwrap

GIB = 1 << 30


def table(columns: list[str], rows: list[list[str]], text_columns: int) -> str:
    """The first `text_columns` columns hold text, the others numbers."""
    widths = [max(len(line[i]) for line in [columns, *rows]) for i in range(len(columns))]
    widths = [max(width, 3) for width in widths]

    def line(cells: list[str]) -> str:
        padded = (c.ljust(w) if i < text_columns else c.rjust(w) for i, (c, w) in enumerate(zip(cells, widths)))
        return f"| {' | '.join(padded)} |"

    rule = ["-" * w if i < text_columns else "-" * (w - 1) + ":" for i, w in enumerate(widths)]
    return "\n".join([line(columns), line(rule), *map(line, rows)]) + "\n"


def title(cpuinfo: str, level: str) -> str:
    """Which CPU ran at which level, in the form that overview.py reads; `cpuinfo` is the text of /proc/cpuinfo."""
    lines = (line.partition(":") for line in cpuinfo.splitlines())
    fields = {name.strip(): value.strip() for name, _, value in lines}
    name = fields.get("model name", platform.machine())
    family, model = (fields.get(field, "unknown") for field in ("cpu family", "model"))
    is_virtual = " hypervisor" in fields.get("flags", "")
    return f"{name}, family {family}, model {model}, level {level}" + (" (virtual machine)" if is_virtual else "")


def page(title: str, facts: dict[str, str], *parts: str) -> str:
    """The page of a CPU and level."""
    return "\n".join([f"# {title}\n", table(["", ""], [[*fact] for fact in facts.items()], 2), *parts])


def paragraph(text: str) -> str:
    """Lines of at most 120 characters; links and code stay whole."""
    lines = textwrap.wrap(text, 120, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines) + "\n\n"


def size(n: int) -> str:
    return f"{n / GIB:.1f} GiB" if n >= GIB else f"{n / (1 << 20):g} MiB"


def own_tables(own: dict, threads: int) -> str:
    """Throughput of `truecast bench`: one thread by size, then out of cache by level and threads."""

    def by_pair(rows: list[dict], is_l2: bool = False) -> dict:
        return {(row["src"], row["dst"]): row for row in rows if (row["size"] == "l2") == is_l2}

    l2, dram, llc = by_pair(own["one"], is_l2=True), by_pair(own["one"]), by_pair(own["llc"])
    columns = ["from", "to", "route", "L2", "ratio", "LLC", "ratio", "counting", "of LLC", "DRAM", "ratio", "memcpy"]
    rows = []
    for pair, row in dram.items():
        cells = [*pair, row["route"]]
        cells += [f"{l2[pair]['gbps']:.1f}", f"{l2[pair]['of_limit']:.2f}"]
        cells += [f"{llc[pair]['gbps']:.1f}", f"{llc[pair]['of_limit']:.2f}"]
        cells += [f"{llc[pair]['counts_gbps']:.1f}", f"{llc[pair]['counts_ratio']:.2f}"]
        cells += [f"{row['gbps']:.1f}", f"{row['of_limit']:.2f}", f"{row['ratio']:.2f}"]
        rows.append(cells)
    text = (
        "## One thread\n\n"
        + paragraph(
            "GB/s of `truecast bench`, and the ratio to the limit in the same run: the fastest plain pass that reads and "
            "writes as much in the same buffers (docs/kernels.md §13); *memcpy*: the ratio to memcpy of as many bytes. "
            "*counting* is the LLC column with every count and error measure of a report."
        )
        + table(columns, rows, 3)
    )
    levels = {level: by_pair(rows) for level, rows in own["levels"].items()}
    several = by_pair(own.get("all", []))
    ordered = sorted(levels, key=["baseline", "avx2", "avx512"].index)
    columns = ["from", "to", *(heading for level in ordered for heading in (level, "ratio"))]
    columns += [f"{threads} threads", "ratio"] if several else []
    rows = []
    for pair in dram:
        cells = list(pair)
        for row in [levels[level][pair] for level in ordered] + ([several[pair]] if several else []):
            cells += [f"{row['gbps']:.1f}", f"{row['of_limit']:.2f}"]
        rows.append(cells)
    return (
        text + "\n## Out of cache, by level and threads\n\n"
        "GB/s of `truecast bench`, arrays out of cache, and the ratio to the limit with as many threads; levels have one.\n\n"
        + table(columns, rows, 2)
    )


def peers_table(rows: list[dict], peers: dict[str, object], threads: int) -> str:
    """Elements per second of everyone on the same arrays."""

    def elements(row: dict, name: str) -> str:
        seconds = row["seconds"].get(name)
        return "-" if seconds is None else f"{row['elements'] / seconds / 1e9:.2f}"

    def speedup(row: dict, name: str) -> str:
        seconds = row["seconds"].get(name)
        return "-" if seconds is None else f"{seconds / row['seconds']['truecast']:.2f}"

    columns = ["from", "to", "GB/s", "of memcpy", "truecast"]
    for peer in peers.values():
        columns += [peer.title, "speed-up"]
    cells = []
    for row in rows:
        own = row["seconds"]["truecast"]
        line = [row["src"], row["dst"], f"{row['bytes'] / own / 1e9:.1f}", f"{row['seconds']['memcpy'] / own:.2f}"]
        line.append(elements(row, "truecast"))
        for name in peers:
            line += [elements(row, name), speedup(row, name)]
        cells.append(line)
    return (
        f"## Beside other libraries, {threads} thread{'s' if threads > 1 else ''}, out of cache\n\n"
        + paragraph(
            "10^9 elements per second, everyone on the same arrays in the same run "
            "([benches/peers](../README.md)), and GB/s of truecast with the ratio to memcpy. *speed-up*: the "
            "time of the library to its left divided by that of truecast; `-`: it does not convert the pair."
        )
        + table(columns, cells, 2)
    )
