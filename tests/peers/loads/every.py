"""Quantizes a model of every type by a few schemes, and loads the results; one record for each model and scheme."""

import collections
import fnmatch
import hashlib
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time

import torch

import controls
import kinds
import loading
import page
import structure

SCHEMES = ("bf16", "f16", "fp8-block", "ct:float-quantized", "ct:pack-quantized,bits=4,group=32",
           "ct:nvfp4-pack-quantized", "ct:mxfp4-pack-quantized")
SECONDS, MEMORY = 240, 16 << 30
# transformers compiles a thousand patterns for each model that it loads; the cache of `re` holds half as many.
re._MAXCACHE = 1 << 16
# How far a quantized tensor may be from the source's.
NEAR = 0.2


def run(options):
    """Every cell that the file of results has not, each model in a process of its own."""
    results = Results(options.results)
    names = {name: of for name, of in kinds.all_of().items() if fnmatch.fnmatchcase(name, options.family)}
    if options.sample:
        drawn = sorted(names, key=lambda name: hashlib.sha256(f"{options.sample} {name}".encode()).digest())[:30]
        names = {name: names[name] for name in drawn}
    schemes = [scheme for scheme in SCHEMES if fnmatch.fnmatchcase(scheme, options.scheme)]
    waiting, running = collections.deque(names), {}
    warm()
    while waiting or running:
        while waiting and len(running) < options.jobs:
            name = waiting.popleft()
            left = [scheme for scheme in ("build", *schemes) if (name, scheme) not in results.seen]
            if left and ("build" in left or results.seen[name, "build"] == "="):
                running[started(name, names[name], left, options, results)] = name
        if not running:
            break
        number, status = os.waitpid(-1, 0)
        name = running.pop(number)
        results.read()
        if status:
            # The record that is missing is the one that ended the process.
            left = next((scheme for scheme in ("build", *schemes) if (name, scheme) not in results.seen), None)
            if left:
                cause = "time limit" if os.WTERMSIG(status) == signal.SIGALRM else f"process ended: {status}"
                results.add(dict(model=name, scheme=left, end="not run", cause=cause))
                if left != "build":
                    waiting.appendleft(name)
    return results


def warm():
    """Loads one model before the others are forked: most patterns are the same for all, and take half a second."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        model = kinds.build("llama", None, pathlib.Path(place))
        loading.load(type(model), place)


class Results:
    """Records, one a line, in a file that several processes append to."""

    def __init__(self, path):
        self.path, self.offset, self.cells, self.seen = path, 0, {}, {}
        self.read()
        # What was not run is run again.
        self.seen = {cell: end for cell, end in self.seen.items() if end != "not run"}

    def read(self):
        if self.path.exists():
            with open(self.path) as file:
                file.seek(self.offset)
                for line in file:
                    record = json.loads(line)
                    self.cells[record["model"], record["scheme"]] = record
                    self.seen[record["model"], record["scheme"]] = record["end"]
                self.offset = file.tell()

    def add(self, record):
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.write(file, (json.dumps(record) + "\n").encode())
        os.close(file)
        self.read()


def started(name, of, left, options, results):
    number = os.fork()
    if number:
        return number
    try:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        model = Model(name, of, options.models)
        for scheme in left:
            signal.alarm(SECONDS)
            began = time.monotonic()
            try:
                found = model.build() if scheme == "build" else model.cell(scheme)
            except Exception as error:
                found = dict(end="not run", cause=f"{type(error).__name__}: {loading.first_line(error)}")
            results.add(dict(model=name, scheme=scheme, **found, seconds=round(time.monotonic() - began, 2)))
            if scheme == "build" and found["end"] != "=":
                break
    finally:
        os._exit(0)


class Model:
    """A built model and what is known of it."""

    def __init__(self, name, of, models):
        self.name, (self.kind, self.class_name) = name, of
        self.source, self.about, self.given = models / name, models / f"{name}.json", models / f"{name}.pt"
        self.facts = self.model_class = self.inputs = None

    def build(self):
        """Builds it unless it is there; "=" if the source itself loads."""
        try:
            if not self.about.exists():
                self.make()
            self.open()
        except kinds.Unbuilt as error:
            return dict(end="not built", cause=str(error))
        except loading.Wrong as wrong:
            return dict(end="not loaded", cause=str(wrong))
        facts = self.facts
        return dict(end="=", head=facts["class"], inputs=facts["inputs"], parameters=facts["parameters"])

    def make(self):
        shutil.rmtree(self.source, ignore_errors=True)
        model = kinds.build(self.kind, self.class_name, self.source)
        before = {name: item.detach() for name, item in model.state_dict().items()}
        loaded = loading.load(type(model), self.source)
        recomputed = []  # by the class when it loads, whatever the file has
        try:
            loading.compare_weights(loaded.to(torch.bfloat16).state_dict(), before)
        except loading.Wrong as wrong:
            recomputed = wrong.names
        given = None if self.name in kinds.TABLES["unsteady"] else structure.inputs(loaded)
        facts = structure.of(loaded, self.source)
        facts = {"model_type": self.kind, "class": type(model).__name__, "recomputed": recomputed,
                 "parameters": kinds.parameters(model), "inputs": sorted(given or ()), **facts}
        torch.save(given, self.given)
        self.about.write_text(json.dumps(facts))

    def open(self):
        self.facts = json.loads(self.about.read_text())
        self.model_class = kinds.class_of(self.kind, self.facts["class"])
        self.inputs = torch.load(self.given)

    def cell(self, scheme):
        if self.facts is None:
            self.open()
        with tempfile.TemporaryDirectory() as place:
            place = pathlib.Path(place)
            found = self.dense(scheme, place) if scheme in ("bf16", "f16") else self.quantized(scheme, place)
        if "INTERNAL ASSERT" in found.get("cause", ""):  # of torch, in a forked process
            found["end"] = "not run"
        return found

    def dense(self, scheme, place):
        """The folder in another type loads with the values, and says its type wherever it says one."""
        code, said = truecast("convert", self.source, place / "out", "--to", scheme)
        if code:
            return failed(f"exit {code}: {said}")
        dtype = {"bf16": torch.bfloat16, "f16": torch.float16}[scheme]
        try:
            expected = {name: item.to(dtype).float() if item.is_floating_point() else item
                        for name, item in loading.load(self.model_class, self.source).state_dict().items()
                        if name not in self.facts["recomputed"]}
            found = {name: item.float() if item.is_floating_point() else item
                     for name, item in loading.load(self.model_class, place / "out").state_dict().items()}
            loading.compare_weights(found, expected)
        except loading.Wrong as wrong:
            return failed(str(wrong), wrong)
        said = set(dtypes(json.loads((place / "out/config.json").read_text())))
        if said - {str(dtype).removeprefix("torch.")}:
            return failed(f"config.json says {sorted(said)}")
        return dict(end="=")

    def quantized(self, scheme, place):
        out, dense = place / "quantized", place / "dense"
        code, said = truecast("quantize", self.source, out, scheme)
        if code:
            return dict(end="r" if code in (2, 3) else "failed", cause=f"exit {code}: {said}")
        more = {"said": said} if said else {}
        code, said = truecast("convert", out, dense, "--to", "bf16")
        if code:
            return failed(f"back to bf16: exit {code}: {said}", **more)
        near = self.near(dense)
        if near:
            return failed(near, fault="truecast", **more)
        try:
            self.check(scheme, out, dense)
            return dict(end="=", **more)
        except loading.Wrong as wrong:
            return failed(str(wrong), wrong, **self.explained(wrong, scheme, place), **more)

    def near(self, dense):
        """What is wrong with the dequantized file beside the source's."""
        theirs = controls.tensors_of(self.source)
        ours = controls.tensors_of(dense)
        ours = ours if theirs.keys() <= ours.keys() else loading.fused(ours)
        for name, item in theirs.items():
            if name not in ours or ours[name].shape != item.shape:
                return f"dense copy: {name} is {'gone' if name not in ours else 'of another shape'}"
            if loading.same_bits(ours[name], item):
                continue
            far = (ours[name].double() - item.double()).norm() / item.double().norm().clamp(min=1e-9)
            if not far < NEAR:
                return f"dense copy: {name} is {far:.2g} of its norm off"
        return None

    def check(self, scheme, out, dense):
        # First what has fewer limits: without a GPU transformers dequantizes blocks, not all sizes of them right.
        if scheme == "fp8-block":
            loading.check_on_accelerator(self.model_class, out, dense)
        loading.check(self.model_class, self.inputs, out, dense)

    def explained(self, wrong, scheme, place):
        """Whose fault: how the same layers end if compressed-tensors writes them, as far as they are linear or experts;
        truecast's folder with the exact list of kept layers; what truecast writes if told to keep those at fault."""
        found = {"control": self.tried(lambda: self.control(scheme, place))}
        if same_kind(found["control"], str(wrong)):
            return dict(found, kept=self.tried(lambda: self.kept(wrong, scheme, place)), fault="loader")
        for name, trial in (("declared", self.declared), ("kept", self.kept)):
            found[name] = self.tried(lambda: trial(wrong, scheme, place))
            # A limit can be behind the fault: then it ends as the control does.
            if found[name][0] == "=" or same_kind(found[name], found["control"]):
                return dict(found, fault="truecast")
        return dict(found, fault="truecast" if found["control"][0] == "=" else "open")

    def tried(self, trial):
        try:
            return trial() or "="
        except loading.Wrong as wrong:
            return str(wrong)
        except Exception as error:
            return f"not made: {type(error).__name__}: {loading.first_line(error)}"

    def control(self, scheme, place):
        left = {*self.facts["head"], *self.facts["tied"], "lm_head", *self.facts["keep_in_fp32"]}
        linear = {f"{layer}.weight" for path, layer in self.facts["linear_modules"].items()
                  if path not in left and not left & set(path.split("."))}
        coded, experts = self.coded(place / "quantized"), self.experts()
        halves = {layer for name, layer in experts.items() if name not in coded and "bias" not in name}
        wanted = coded & (linear | {name for name, layer in experts.items() if layer not in halves})
        if not wanted:
            return "= (no layer)"
        done = controls.write(scheme, self.source, place / "control", place / "control-dense", wanted)
        self.ignore(place / "control", set(done))
        self.check(scheme, place / "control", place / "control-dense")

    def declared(self, _, scheme, place):
        """Truecast's folder, its list of kept layers replaced by the names in memory of linear layers without codes."""
        shutil.copytree(place / "quantized", place / "declared")
        self.ignore(place / "declared", self.coded(place / "declared"))
        self.check(scheme, place / "declared", place / "dense")

    def coded(self, folder):
        """The tensors of the source that are quantized."""
        parts = [re.fullmatch(r"(.*)_(scale|packed)\w*", name) for name in controls.tensors_of(folder)]
        return {part[1] for part in parts if part} & self.facts["classes"].keys()

    def ignore(self, folder, quantized):
        """Declares the linear layers and experts in memory that do not come from quantized tensors of the file."""
        experts = self.experts()
        kept = set(experts.values()) - {experts[name] for name in quantized if name in experts}
        kept |= {path for path, layer in self.facts["linear_modules"].items()
                 if f"{layer}.weight" not in quantized or path in self.facts["tied"]}
        controls.ignore(folder, sorted(kept))

    def experts(self):
        """Tensors of the file that are a part of a module of experts, and that module."""
        names = [name for name, kind in self.facts["classes"].items() if "Experts" in kind]
        layers = [name.rpartition(".")[0] for name in names]
        return {name: self.facts["file_to_memory"].get(layer, layer) for name, layer in zip(names, layers)}

    def kept(self, wrong, scheme, place):
        """What truecast writes if it leaves the layers alone whose tensors are wrong."""
        blamed = {name.rsplit(".", parts)[0] for name in wrong.names for parts in range(3)}
        modules = {name.rpartition(".")[0] for name in self.facts["classes"]}
        modules = {path for path in modules if self.facts["file_to_memory"].get(path, path) in blamed or path in blamed}
        patterns = sorted({re.sub(r"\.\d+\.", ".*.", path) + ".*" for path in modules})[:40]
        if not wrong.names and any("experts" in path for path in self.facts["classes"]):
            patterns = ["*experts*"]
        if not patterns:
            return "no tensor of the file"
        keep = [word for pattern in patterns for word in ("--keep", pattern)]
        code, said = truecast("quantize", self.source, place / "kept", scheme, *keep)
        if code:
            raise loading.Wrong(f"exit {code}: {said}")
        code, said = truecast("convert", place / "kept", place / "kept-dense", "--to", "bf16")
        if code:
            raise loading.Wrong(f"back to bf16: exit {code}: {said}")
        self.check(scheme, place / "kept", place / "kept-dense")
        return f"= {' '.join(patterns)}"


def same_kind(ours, theirs):
    return page.cause(ours) == page.cause(theirs)


def failed(cause, wrong=None, **more):
    return dict(end="failed", cause=cause, names=getattr(wrong, "names", [])[:8], **more)


def dtypes(config):
    for key, value in config.items():
        if isinstance(value, dict):
            yield from dtypes(value)
        elif key in ("dtype", "torch_dtype") and value:
            yield value


def truecast(*words):
    """The exit status and what was said first."""
    ran = subprocess.run([os.environ["TRUECAST_BIN"], *map(str, words)], capture_output=True, text=True, timeout=120)
    said = re.sub(r"/\S+/", "", ran.stderr.strip())
    return ran.returncode, said[:600]


def summary(records):
    """How many cells end in which way, and the causes by kind."""
    cells = [record for record in records if record["scheme"] != "build"]
    lines = collections.Counter((page.outcome(record), record["scheme"], page.cause(record["cause"]))
                                for record in cells if record["end"] != "=")
    ends = collections.Counter(map(page.outcome, cells))
    rows = [f"{count:5} {end:8} {scheme:34} {what}" for (end, scheme, what), count in lines.most_common()]
    rows += [f"      not built {record['model']}: {record['cause'][:150]}" for record in records
             if record["scheme"] == "build" and record["end"] != "="]
    return "\n".join([", ".join(f"{count} {end}" for end, count in ends.items()), *rows])
