"""What `truecast promote` says, as tables that can be compared with a package.

An outcome is a canonical type name, with `*` if the result is weak, or the code of a refusal (docs/spec/openvino.md §2.5).
"""

UNKNOWN, REFUSED = "TC-PRM-08", "TC-PRM-09"
NUMBERS = {"py:bool": True, "py:int": 1, "py:float": 1.0}


def outcome(row: dict) -> str:
    return row["error"] if "error" in row else row["dtype"] + "*" * row["weak"]


def table(truecast, *options) -> dict[tuple[str, str], str]:
    """The whole matrix by the system's names of both operands."""
    rows = truecast.json("promote", "--table", *options)["rows"]
    assert rows
    return {(row["lhs"], row["rhs"]): outcome(row) for row in rows}


def by_system(truecast, lhs: str, rhs: str, *options) -> dict[tuple[str, str], str]:
    """Every system and mode for one pair. Unlike a table this reaches Python numbers."""
    rows = truecast.json("promote", lhs, rhs, "--system", "all", *options)["results"]
    return {(row["system"], row["mode"]): outcome(row) for row in rows}
