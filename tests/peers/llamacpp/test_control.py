"""The control itself: llama.cpp loads the converter's file and computes what transformers does."""

import numpy as np
import pytest
import transformers
from llama import Model
from models import CONTROLLED, MODELS, SPLITTING, TEXT

FALLBACK = MODELS["llama_fallback"]


def distance(a, b):
    """Largest difference, as a part of the largest logit."""
    return np.abs(a - b).max() / np.abs(b).max()


@pytest.mark.parametrize("row", CONTROLLED, ids=lambda row: row.name)
def test_llama_computes_what_transformers_computes(row, controls, reference):
    ids, expected = reference(row)
    assert expected.std() > 0.1, "the logits say nothing"
    with Model(controls(row, "f32")) as model:
        found = model.logits(ids)
    assert distance(found[:, : expected.shape[1]], expected) < row.distance


@pytest.mark.parametrize("row", [row for row in CONTROLLED + SPLITTING if row != FALLBACK], ids=lambda row: row.name)
def test_llama_finds_the_tokens_of_transformers(row, controls, folder):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder(row))
    with Model(controls(row, "f32")) as model:
        assert model.tokenize(TEXT) == tokenizer(TEXT).input_ids


def test_scores_that_are_equal_merge_in_another_order(controls, folder):
    """Of a vocabulary without `tokenizer.model` the converter writes no order of merges. truecast does."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder(FALLBACK))
    with Model(controls(FALLBACK, "f32")) as model:
        assert model.tokenize(TEXT) != tokenizer(TEXT).input_ids
