"""Types of arguments: what type checkers are told is what the library knows."""

import re
import subprocess
import sys
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np
import pytest
import truecast as tc
from truecast import _names, _truecast, typing

ROOT = Path(__file__).resolve().parents[3]
# Without versions.
SPECS = [name for name in _truecast.spec_names() if "@" not in name]


def understood(name):
    try:
        return bool(_truecast.type_name(name))
    except tc.DTypeError:
        return False


def test_names_of_types():
    """Canonical ones, and those of every ecosystem with and without its prefix, but ambiguous ones."""
    names = {(prefix, name) for one in tc.dtypes() for prefix, all in one.names.items() for name in all}
    known = {name for _, name in names} | {f"{prefix}:{name}" for prefix, name in names}
    canonical = _truecast.type_names()
    assert list(get_args(_names.CanonicalName)) == canonical
    assert set(get_args(_names.DTypeName)) == {*filter(understood, known), *canonical}


def test_names_of_specifications():
    assert list(get_args(_names.Specification)) == _truecast.spec_names()


def words(hint):
    """The words that an argument may be."""
    return {word for word in get_args(hint) if isinstance(word, str)} | {
        word for part in get_args(hint) for word in words(part)
    }


def test_settings_have_the_words_of_the_library():
    hints = get_type_hints(typing.Settings, vars(typing))
    known = {}
    for spec in SPECS:
        for name, _, values in _truecast.attributes(spec):
            known.setdefault(name, set()).update(values)
    assert set(hints) == set(known)
    # Profiles are put together, and options of Tile IR have values.
    for name in set(known) - {"profile", "tile_option"}:
        assert words(hints[name]) == known[name], name


@pytest.mark.parametrize(
    "name, call",
    [
        ("mx_scale", lambda: tc.convert("a.npy", "b.npy", scheme="mxfp4", mx_scale="?")),
        ("scale_search", lambda: tc.convert("a.npy", "b.npy", scheme="mxfp4", scale_search="?")),
        ("nonfinite", lambda: tc.convert("a.npy", "b.npy", scheme="mxfp4", nonfinite="?")),
        ("relayout", lambda: tc.convert("a.npy", "b.npy", scheme="mxfp4", relayout="?")),
        ("nibbles", lambda: tc.convert("a.npy", "b.npy", "f32", nibbles="?")),
    ],
)
def test_options_have_the_words_of_the_library(name, call):
    """The error lists them."""
    hints = get_type_hints(typing.Common, {**vars(typing), "np": np}, {"np": np})
    with pytest.raises(tc.UsageError, match=name) as found:
        call()
    said = str(found.value).split("expected")[1].split(";")[0]
    assert set(re.findall(r"\w+", said)) - {"or"} == words(hints[name])


def test_presets_are_those_of_the_library():
    for name in get_args(typing.Preset):
        with pytest.raises(tc.UsageError, match="belongs to|exist|no such|opening|No such"):
            tc.convert("a.npy", "b.npy", "f32", keep_preset=name)
    with pytest.raises(tc.UsageError, match="".join(f"(?=.*{name})" for name in get_args(typing.Preset))):
        tc.convert("a.npy", "b.npy", "f32", keep_preset="?")


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """What mypy says in strict mode of programs, and whether it found nothing."""
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml")]
    # Of the repository: mypy does not read what is installed as the program to be checked.
    package = ROOT / "crates" / "python" / "package" / "truecast"
    command += ["--cache-dir", str(tmp_path_factory.mktemp("mypy")), str(package)]

    def check(*programs):
        done = subprocess.run([*command, *map(str, programs)], capture_output=True, text=True, cwd=ROOT)
        return done.stdout, done.returncode == 0

    return check


def test_right_uses_have_no_errors(checked):
    """The package itself, a program that uses it, and the examples that need nothing else."""
    examples = ("cast_array", "check_kernel", "compare_promotion", "convert_checkpoint")
    examples = [ROOT / "examples" / "python" / f"{name}.py" for name in examples]
    said, is_right = checked(Path(__file__).parent / "typed_program.py", *examples)
    assert is_right, said


def test_every_wrong_use_is_an_error(checked):
    program = Path(__file__).parent / "typed_wrong.py"
    said, _ = checked(program)
    wrong = {n for n, line in enumerate(program.read_text().splitlines(), 1) if line.endswith("# wrong")}
    found = re.findall(rf"^[^\n]*{program.name}:(\d+): error", said, re.MULTILINE)
    longest = max(re.findall(rf"[^\n]*{program.name}:\d+: [^\n]*", said), key=len)
    assert len(longest) < 4000, longest
    assert {int(line) for line in found} == wrong and len(wrong) > 30, said[:2000]


@pytest.mark.parametrize("call", ['tc.cast(w, "f8e4m3")', 'tc.finfo("f8e4m3")', 'tc.vectors("f8e4m3", "f16")'])
def test_a_misspelled_type_is_a_line(checked, tmp_path, call):
    """And not the list of all names, for each overload."""
    (tmp_path / "program.py").write_text(f"import numpy as np\nimport truecast as tc\n\nw = np.zeros(3)\n{call}\n")
    said, _ = checked(tmp_path / "program.py")
    errors, (summary,) = said.splitlines()[:-1], said.splitlines()[-1:]
    assert len(errors) == 1 and len(errors[0]) < 200 + len(str(tmp_path)) and summary.startswith("Found 1 error"), said
    assert 'incompatible type "Literal[\'f8e4m3\']"; expected "TypeLike' in errors[0]
