"""Models in the formats of other libraries: `onnx`, `treelite`; and rows as these read them: `codes`."""

from distboost.export.coding import codes
from distboost.export.onnx_model import onnx
from distboost.export.treelite_model import treelite

__all__ = ["codes", "onnx", "treelite"]
