"""Options have one table, that of the command: what Python takes has its names and defaults."""

import inspect

import pytest
import truecast as tc
from truecast import _truecast

# What the command says about printing, which reports do in Python; threads are of the process (`set_num_threads`).
PRINTED = {"report", "fail-on", "sort", "worst", "summary", "threads"}
LISTS = {"rule", "keep", "quantize", "keep-preset", "filter", "share-global"}
# Python has no bare switches that turn something off.
INVERTED = {"no-sidecars"}


def attributes():
    """What belongs to specifications: `**attributes` in Python."""
    of_all = {name for spec in _truecast.spec_names() for name, *_ in _truecast.attributes(spec)}
    return {name.replace("_", "-") for name in of_all}


@pytest.mark.parametrize(
    "function, printed",
    [
        (tc.convert, PRINTED),
        (tc.verify, {"threads", "force"}),
        (tc.compare, PRINTED | {"force"}),
        (tc.inspect, {"sort", "threads"}),
    ],
)
def test_names_and_defaults_are_those_of_the_command(function, printed):
    has = {
        name: parameter.default
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is not parameter.VAR_KEYWORD and name not in ("src", "dst", "a", "b", "path", "progress")
    }
    expected = {}
    for name, keyword, default, is_switch, is_list, *_ in _truecast.arguments(function.__name__):
        if name in printed | attributes():
            continue
        if is_list:
            assert name in LISTS
            expected[keyword] = ()
        elif is_switch:
            expected[keyword] = name in INVERTED
        else:
            expected[keyword] = default
    assert set(has) == set(expected)
    for name, default in expected.items():
        same = str(has[name]) == default if isinstance(default, str) else has[name] == default
        assert same, (name, has[name], default)


def test_every_attribute_of_the_command_is_one_of_python():
    own = {"pairs", "sizes", "level", "threads", "best-of", "spec"}
    assert {name for name, *_ in _truecast.arguments("bench")} - own <= attributes()


def test_unknown_options_are_unknown_attributes(tmp_path):
    with pytest.raises(tc.UsageError, match="json"):
        tc.convert(tmp_path / "a.npy", tmp_path / "b.npy", "bf16", json=True)
