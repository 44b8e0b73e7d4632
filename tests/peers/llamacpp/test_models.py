"""What `truecast convert FOLDER OUT.gguf` writes, beside the converter's file, transformers and llama.cpp."""

import numpy as np
import pytest
import transformers
from llama import Model
from models import CONTROLLED, ROWS, SPLITTING, TEXT
from shared import each, read, truecast
from test_control import FALLBACK, distance

# The converter makes a title of the folder's name, and counts parameters. It writes the version of quantization always.
OTHERS = {"general.name", "general.size_label", "general.quantization_version", "truecast.options"}
# Scores in the order of merges (README.md).
ORDER = "tokenizer.ggml.scores"
WAYS = {"f32": ["--to", "f32"], "bf16": ["--to", "bf16"], "f16": ["--to", "f16"], "q8_0": ["--scheme", "gguf:Q8_0"]}


@pytest.fixture(scope="session")
def written(folder, tmp_path_factory):
    """truecast's file."""
    made = {}

    def make(row, to):
        if (row.name, to) not in made:
            path = tmp_path_factory.mktemp("truecast") / f"{row.name}-{to}.gguf"
            truecast("convert", folder(row), path, *WAYS[to])
            made[row.name, to] = path
        return made[row.name, to]

    return make


@each(CONTROLLED + SPLITTING)
def test_keys(row, written, controls):
    mine, its = (read(make(row, "f32"))[0] for make in (written, controls))
    names = (mine.keys() | its.keys()) - OTHERS - ({ORDER} if row == FALLBACK else set())
    names -= {"general.file_type"} if row.is_mxfp4 else set()
    assert {name: mine.get(name) for name in names} == {name: its.get(name) for name in names}


# Experts in MXFP4 stay MXFP4 in the converter's file; truecast writes the type that was asked for.
DENSE = [row for row in CONTROLLED if not row.is_mxfp4]


@each(DENSE)
@pytest.mark.parametrize("to", WAYS)
def test_types(row, to, written, controls):
    mine, its = (read(make(row, to))[0] for make in (written, controls))
    assert mine["general.file_type"] == its["general.file_type"]


@each(DENSE)
@pytest.mark.parametrize("to", WAYS)
def test_tensors(row, to, written, controls):
    mine, its = (read(make(row, to))[1] for make in (written, controls))
    assert {name: tensor[:2] for name, tensor in mine.items()} == {name: tensor[:2] for name, tensor in its.items()}
    assert not [name for name in its if mine[name][2] != its[name][2]]


@each(ROWS)
def test_logits(row, written, reference):
    ids, expected = reference(row)
    with Model(written(row, "f32")) as model:
        assert distance(model.logits(ids)[:, : expected.shape[1]], expected) < row.distance


@each(DENSE)
@pytest.mark.parametrize("to", [to for to in WAYS if to != "f32"])
def test_logits_of_narrower_types(row, to, written, controls, reference):
    ids, _ = reference(row)
    found = []
    for make in (written, controls):
        with Model(make(row, to)) as model:
            found.append(model.logits(ids))
    assert np.array_equal(*found)


@each(ROWS + SPLITTING)
def test_tokens(row, written, folder):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder(row))
    with Model(written(row, "f32")) as model:
        assert model.tokenize(TEXT) == tokenizer(TEXT).input_ids
        assert model.tokenize(TEXT, special=False) == tokenizer(TEXT, add_special_tokens=False).input_ids
