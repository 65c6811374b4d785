"""Models in the formats of other libraries: `onnx`, `treelite`."""

from distboost.export.onnx_model import onnx
from distboost.export.treelite_model import treelite

__all__ = ["onnx", "treelite"]
