import control
import models
import pytest


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Makes the folder of a model once."""
    made = {}

    def make(row):
        if row.name not in made:
            made[row.name] = models.write(row, tmp_path_factory.mktemp(row.name))
        return made[row.name]

    return make


@pytest.fixture(scope="session")
def reference(folder):
    """Tokens and the logits of transformers for them."""
    made = {}

    def make(row):
        if row.name not in made:
            ids = models.tokens(row)
            made[row.name] = ids, models.logits(folder(row), ids)
        return made[row.name]

    return make


@pytest.fixture(scope="session")
def controls(folder, tmp_path_factory):
    """The converter's file."""
    made = {}

    def make(row, to):
        if (row.name, to) not in made:
            path = tmp_path_factory.mktemp("control") / f"{row.name}-{to}.gguf"
            made[row.name, to] = control.write(folder(row), path, row.pre, to)
        return made[row.name, to]

    return make
