"""The page of results."""

import re
from importlib.metadata import version

HEAD = """# What loads where

Made by `tests/peers/loads/run --page docs/loads.md`; not to be edited. {cells} folders were written by
`truecast convert SRC DST --scheme NAME` without another option, from small models with random weights, and given to the
programs that people load them with.

- **transformers** {transformers} with compressed-tensors {compressed}, on a CPU: `from_pretrained`, no parameter missing,
  unexpected or newly initialized, every weight and the outputs bit for bit those of the dense model
  (`truecast convert DST DENSE --to bf16`), whose inputs are quantized as the scheme says. For fp8-block, fp8-tensor and
  mxfp8 also the modules that transformers makes on a GPU are filled, and their codes and scales compared.
- **vLLM** {vllm}: its model classes and loaders on a CPU, with stand-ins for the kernels: every parameter of linear
  layers and experts is written by the loader, and every linear layer has the dense model's weight, fused layers
  included.

`=` equal; a letter: a limit of the loader, below; `-` truecast refuses to write it, and says what to do; `.` not
applicable, or the program does not load the dense model here; `WRONG` a defect of truecast.
"""

LIMITS = """
## Limits

In transformers the same model, quantized and written by compressed-tensors {compressed} itself, ends in the same way (the
same error for the same tensors, or the same tensors wrong). In vLLM the parameters that the running package makes have
no place for the tensors, or it says that it takes no such sizes.

| | schemes | models | what happens |
|---|---|---|---|
"""

REST = """
## Others

- ComfyUI's formats (`comfy:*`) are for single files of image models: no program here loads them.
- transformers {transformers} has no quantizer called modelopt.
- diffusers 0.42.1 refuses the declarations of all schemes here but `comfy:*`, which have none: it leaves out their
  scales, so the values are wrong. `modelopt:FP8_PER_CHANNEL_PER_TOKEN` is what it calls fp8r: `from_single_file` with
  `BFLQuantizationConfig` loads a file of it, `from_pretrained` does not. Seen with a small Flux transformer.
"""


TYPES = """
## Every type of model

`tests/peers/loads/run --all` makes a small model with random weights of every model type that transformers {transformers}
registers ({built} models of {types} types; {unbuilt} types could not be built), converts each with a few schemes and no
other option, and checks it in transformers as above; where no usual inputs fit, values only ({blind} models).

| to | `=` | refused | limit of the loader | open | not run | `WRONG` |
|---|---|---|---|---|---|---|
{rows}
A limit: the same model, quantized by compressed-tensors itself, ends in the same way. Open: it does not, and truecast's
folder does not load with other layers kept either. `WRONG`: it loads if compressed-tensors writes it, or if the list of
kept layers or `--keep` names others.

| how | to | models | what happens |
|---|---|---|---|
{causes}"""


def write(path, results=None, records=None):
    """Writes the page again: the cells of `results`, those of `records`, each in its part; the other part stays."""
    heading = TYPES.split("\n")[1]
    first, found, rest = (path.read_text() if path.exists() else "").partition(f"\n{heading}\n")
    path.write_text((first if results is None else text(results)) + (found + rest if records is None else types(records)))


def types(records):
    """The part about every type, for records of cells."""
    builds = [record for record in records if record["scheme"] == "build"]
    built = [record for record in builds if record["end"] == "="]
    cells, ends, causes = [record for record in records if record["scheme"] != "build"], {}, {}
    for record in cells:
        end = outcome(record)
        row = ends.setdefault(record["scheme"], dict.fromkeys(("=", "refused", "limit", "open", "not run", "WRONG"), 0))
        row[end] += 1
        if end != "=":
            schemes, models = causes.setdefault((end, cause(record["cause"])), (set(), set()))
            schemes.add(record["scheme"])
            models.add(record["model"])
    rows = "".join(f"| `{scheme}` | " + " | ".join(map(str, row.values())) + " |\n" for scheme, row in ends.items())
    lines = "".join(f"| {end} | {', '.join(f'`{name}`' for name in sorted(schemes))} | {some(models)} | {what} |\n"
                    for (end, what), (schemes, models) in
                    sorted(causes.items(), key=lambda row: (row[0][0], -len(row[1][1]))))
    return TYPES.format(transformers=version("transformers"), built=len(built), rows=rows, causes=lines,
                        types=len({record["model"].split("@")[0] for record in built}), unbuilt=len(builds) - len(built),
                        blind=sum(not record["inputs"] for record in built))


def outcome(record):
    if record["end"] != "failed":
        return "refused" if record["end"] == "r" else record["end"]
    return {"loader": "limit", "open": "open"}.get(record.get("fault"), "WRONG")


def some(models):
    return f"{len(models)}: {', '.join(sorted(models)[:4])}{', ..' if len(models) > 4 else ''}"


def cause(what):
    """A message without the names and numbers of one model."""
    what = re.sub(r"exit \d: truecast: \S+: ", "", what.split("; name the")[0].splitlines()[0])
    what = re.sub(r".*quantizes no tensor.*", "the scheme quantizes no tensor", what)
    what = re.sub(r"(missing|unexpected|mismatched) keys: .*\.(\w+)$", r"\1 keys: \2", what)
    what = re.sub(r"(weights differ|outputs differ).*", r"\1", what)
    what = re.sub(r"(?:[\w*]+\.)+([\w*]+)", r"\1", what)
    return re.sub(r"\d[\d.e+-]*", "N", what)[:150].replace("|", "\\|")


def text(results):
    """The page for results by (program, family, scheme)."""
    releases = dict(transformers=version("transformers"), compressed=version("compressed-tensors"), vllm=version("vllm"))
    parts, limits = [HEAD.format(cells=len({key[1:] for key, found in results.items() if not found.startswith("refused")}), **releases)], {}
    for program in ("transformers", "vLLM"):
        parts.append(table(program, {key[1:]: found for key, found in results.items() if key[0] == program}, limits))
    rows = "".join(f"| {letter} | {', '.join(f'`{name}`' for name in sorted(schemes))} | {', '.join(families)} "
                   f"| {program}: {what} |\n" for (program, what), (letter, schemes, families) in limits.items())
    return "".join(parts) + LIMITS.format(**releases) + rows + REST.format(**releases)


def table(program, results, limits):
    families = list(dict.fromkeys(family for family, _ in results))
    schemes = list(dict.fromkeys(scheme for _, scheme in results))
    lines = [f"\n## {program}\n\n| scheme | " + " | ".join(families) + " |\n|---|" + "---|" * len(families) + "\n"]
    for scheme in schemes:
        marks = [mark(program, family, scheme, results.get((family, scheme), "not run"), limits) for family in families]
        lines.append(f"| `{scheme}` | " + " | ".join(marks) + " |\n")
    return "".join(lines)


def mark(program, family, scheme, found, limits):
    word, _, what = found.partition(": ")
    if word != "limit":
        return {"equal": "=", "refused": "-", "not run": "."}.get(word, "WRONG")
    letter, schemes, families = limits.setdefault((program, general(what)), (chr(ord("a") + len(limits)), set(), []))
    schemes.add(scheme)
    if family not in families:
        families.append(family)
    return letter


def general(what):
    """A message without the names and numbers of one model."""
    what = re.sub(r": \d+ of \d+: \S+, by \S+ of its norm", ", experts by their global scale", what)
    what = re.sub(r": \d+, such as .*", " of the zero points", what)
    what = re.sub(r":? model\.\S+$", "", what)
    what = re.sub(r"\(\d+\)", "(M)", what, count=1)
    what = re.sub(r"\(\d+\)", "(M/32)", what)
    return re.sub(r"\(\d+, \d+\)", "(M, K)", what).rstrip(".").replace("|", "\\|")
