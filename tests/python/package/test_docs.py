"""What the documentation of the package says: examples run, types check, every option is named."""

import doctest
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
import truecast as tc

PACKAGE = Path(tc.__file__).parent
SITE = Path(__file__).resolve().parents[3] / "site"
MODULES = sorted(
    f"truecast.{path.stem}" if path.stem != "__init__" else "truecast"
    for path in PACKAGE.glob("*.py")
    # They import what need not be installed; tests/peers/python runs them.
    if path.stem not in ("__main__", "ray", "torch")
)


@pytest.mark.parametrize("name", [*MODULES, "truecast._truecast"])
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if name == "truecast._onnx_backend":
        pytest.importorskip("onnx")
    found = doctest.testmod(importlib.import_module(name))
    assert found.failed == 0


def test_there_are_examples():
    """So that a module without docstrings does not pass unseen."""
    finder = doctest.DocTestFinder()
    examples = [test for name in MODULES for test in finder.find(importlib.import_module(name)) if test.examples]
    assert len(examples) >= 12


@pytest.mark.parametrize("name", sorted(set(tc.__all__) - {"__version__", "torch"}))
def test_everything_public_is_documented(name):
    thing = getattr(tc, name)
    assert inspect.getdoc(thing), name
    if inspect.isclass(thing):
        for member, value in vars(thing).items():
            if not member.startswith("_") and callable(getattr(value, "fget", value)):
                assert inspect.getdoc(value), f"{name}.{member}"


def test_cast_names_every_attribute():
    """The library's list of attributes, `truecast.setting`, is what the docstring says."""
    said = set(re.findall(r"``(\w+)``", inspect.getdoc(tc.cast).split("**attributes")[1].split("Returns")[0]))
    for spec in tc._truecast.spec_names():
        for name, _, _ in tc._truecast.attributes(spec):
            assert name in said, (spec, name)


def test_every_attribute_is_taken():
    import numpy as np

    for spec in tc._truecast.spec_names():
        for name, _, values in tc._truecast.attributes(spec):
            for value in values:
                try:
                    tc.cast(np.float32([1]), "f16", spec=spec, **{name: value})
                except tc.SpecError:
                    pass  # the pair does not allow it, or a NaN is refused


def test_the_site_is_built(tmp_path):
    """Every page and docstring, without a warning: links lead somewhere, names exist."""
    pytest.importorskip("sphinx")
    source, html = tmp_path / "source", tmp_path / "html"
    sphinx = ["-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "-d", tmp_path / "trees"]
    for command in ([SITE / "stage.py", source], [*sphinx, source, html], [SITE / "check_links.py", html]):
        done = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "truecast.quantize" in (html / "python/reference.html").read_text()
    assert 'id="s4-6"' in (html / "spec/onnx.html").read_text()


def test_examples_of_the_guide_run():
    import numpy as np

    names = {"np": np, "tc": tc, "x": np.array([1, 465, np.inf], np.float32)}
    found = doctest.testfile(str(SITE / "guides/python.md"), module_relative=False, globs=names)
    assert found.attempted > 5 and found.failed == 0


@pytest.mark.parametrize("module", ["", ".onnx", ".openvino", ".testing", ".tile", ".tosa"])
def test_signatures_have_types(module):
    """`help` shows every argument with its type, and keyword arguments by their names."""
    home = importlib.import_module(f"truecast{module}")
    names = tc.__all__ if not module else [name for name in vars(home) if not name.startswith("_")]
    functions = [getattr(home, name) for name in names if inspect.isroutine(getattr(home, name))]
    functions = [one for one in functions if one.__module__.startswith("truecast") and not inspect.isclass(one)]
    assert functions
    for function in functions:
        signature = inspect.signature(function)
        assert signature.return_annotation is not signature.empty, function
        for parameter in signature.parameters.values():
            assert parameter.annotation is not parameter.empty, (function, parameter)
            if parameter.kind is parameter.VAR_KEYWORD:
                assert parameter.annotation == "Unpack[Settings]", (function, parameter)
