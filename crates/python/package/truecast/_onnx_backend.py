"""A backend of ONNX (``onnx.backend.base``) that evaluates models of Cast, CastLike and Identity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
from onnx import numpy_helper
from onnx.backend.base import Backend as _Backend
from onnx.backend.base import BackendRep

from . import onnx as _operators

_OPERATORS = ("Cast", "CastLike", "Identity", "Constant")


class Unsupported(RuntimeError):
    """The model has another operator."""


def _attributes(node: onnx.NodeProto) -> dict[str, Any]:
    found = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
    return {name: value.decode() if isinstance(value, bytes) else value for name, value in found.items()}


def _evaluate(node: onnx.NodeProto, inputs: list[Any], opset: int) -> Any:
    attributes = _attributes(node)
    if node.op_type == "Cast":
        return _operators.cast(inputs[0], attributes.pop("to"), opset=opset, **attributes)
    if node.op_type == "CastLike":
        return _operators.cast_like(inputs[0], inputs[1], opset=opset, **attributes)
    if node.op_type == "Constant":
        return numpy_helper.to_array(attributes["value"])
    return inputs[0]


class Prepared(BackendRep):
    """A prepared model."""

    def __init__(self, model: onnx.ModelProto):
        self._model = model
        self._opset = next(one.version for one in model.opset_import if one.domain in ("", "ai.onnx"))

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs for these inputs, in the order of the graph."""
        graph = self._model.graph
        values = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
        names = [one.name for one in graph.input if one.name not in values]
        values.update(inputs.items() if isinstance(inputs, dict) else zip(names, inputs))
        for node in graph.node:
            values[node.output[0]] = _evaluate(node, [values[name] for name in node.input], self._opset)
        return tuple(values[one.name] for one in graph.output)


class Backend(_Backend):
    """Runs models of Cast and CastLike by truecast. It runs ONNX's own tests:

    ``onnx.backend.test.BackendTest(truecast.onnx.Backend, __name__)``
    """

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether every operator of the model is known."""
        return all(node.op_type in _OPERATORS for node in model.graph.node)

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> Prepared:
        """Reads the model."""
        unknown = sorted({node.op_type for node in model.graph.node} - set(_OPERATORS))
        if unknown:
            raise Unsupported(f"truecast converts; the model has {', '.join(unknown)}")
        return Prepared(model)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[Any] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Evaluates one node."""
        opset = kwargs.get("opset_version", onnx.defs.onnx_opset_version())
        return (_evaluate(node, list(inputs), opset),)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """The CPU only."""
        return device.split(":")[0] == "CPU"
