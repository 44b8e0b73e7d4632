"""The table by which a model's opset is raised, against the operator schemas of the onnx package.

docs/spec/onnx.md §3.11 says when a new version of an operator keeps the meaning of a node; here the rule is applied to
the schemas, and the result must be the table that truecast has. Not here: conversions of models.
"""

from collections import defaultdict

import onnx.defs
from command import ROOT

TABLE = ROOT / "crates" / "core" / "src" / "spec" / "onnx" / "changes.txt"

# Versions whose signature is compatible although the meaning is not.
UNMARKED = {
    "GroupNormalization": [21],  # scale and bias per channel, before per group
    "PRelu": [7],  # the slope is broadcast from the last dimension, before from the channels
    "RoiAlign": [16],  # the default of the new attribute is not what version 10 did
    "Split": [18],  # equal parts have to be asked for
}


def _attribute(attribute):
    return str(attribute.type), attribute.default_value.SerializeToString()


def _takes(schema, parameter):
    """The types that an input or output may have."""
    for constraint in schema.type_constraints:
        if constraint.type_param_str == parameter.type_str:
            return set(constraint.allowed_type_strs)
    return {parameter.type_str}


def _extends(old, new, was, now):
    """Whether parameters only gained types, optional ones at the end, or became optional."""
    optional = onnx.defs.OpSchema.FormalParameterOption.Optional
    for a, b in zip(was, now, strict=False):
        if a.option != b.option and b.option != optional or not _takes(old, a) <= _takes(new, b):
            return False
    return len(now) >= len(was) and all(extra.option == optional for extra in now[len(was) :])


def _keeps_meaning(old, new):
    if new.deprecated:
        return False
    if not _extends(old, new, old.inputs, new.inputs) or not _extends(old, new, old.outputs, new.outputs):
        return False
    for name, attribute in old.attributes.items():
        other = new.attributes.get(name)
        if other is None or _attribute(other) != _attribute(attribute) or other.required and not attribute.required:
            return False
    return not any(a.required for name, a in new.attributes.items() if name not in old.attributes)


def expected() -> dict[str, list[int]]:
    history = defaultdict(dict)
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            history[schema.name][schema.since_version] = schema
    table = {}
    for name, schemas in history.items():
        versions = sorted(schemas)
        pairs = zip(versions, versions[1:], strict=False)
        changes = {new for old, new in pairs if not _keeps_meaning(schemas[old], schemas[new])}
        table[name] = sorted(changes | set(UNMARKED.get(name, [])))
    return table


def test_the_table_follows_from_the_schemas():
    lines = [line for line in TABLE.read_text().splitlines() if not line.startswith("#")]
    rows = {line.split()[0]: [int(v) for v in line.split()[1:]] for line in lines}
    assert list(rows) == sorted(rows) and len(rows) == len(lines)
    assert rows == expected()
