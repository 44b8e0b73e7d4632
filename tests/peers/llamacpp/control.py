"""GGUF files that llama.cpp's own converter makes of a folder: what truecast's file is compared with.

The converter knows the tokenizers of published models by a hash of what they give for a text. It does not know those of
`models.py`, so it is told the name of their pre-tokenizer.
"""

import logging
from contextlib import contextmanager

import conversion
import gguf
import torch
from conversion.base import ModelBase, TextModel

# Tensors of drafts of another model, which the package's module for DeepSeek names and its list of tensors lacks.
for name in ("DSPARK_CONF_PROJ", "DSPARK_MARKOV_W1", "DSPARK_MARKOV_W2"):
    setattr(gguf.MODEL_TENSOR, name, None)

TYPES = {"f32": gguf.LlamaFileType.ALL_F32, "bf16": gguf.LlamaFileType.MOSTLY_BF16,
         "f16": gguf.LlamaFileType.MOSTLY_F16, "q8_0": gguf.LlamaFileType.MOSTLY_Q8_0}


@contextmanager
def known(pre):
    def name(self, tokenizer):
        assert pre, "the converter asks for the pre-tokenizer of a vocabulary that has none"
        return pre

    asked, TextModel.get_vocab_base_pre = TextModel.get_vocab_base_pre, name
    try:
        yield
    finally:
        TextModel.get_vocab_base_pre = asked


def write(folder, path, pre, to="f32"):
    logging.getLogger("hf-to-gguf").setLevel(logging.ERROR)
    hparams = ModelBase.load_hparams(folder, False)
    kind = conversion.get_model_class(conversion.get_model_architecture(hparams, conversion.ModelType.TEXT))
    with known(pre), torch.inference_mode():
        kind(folder, TYPES[to], path).write()
    return path
