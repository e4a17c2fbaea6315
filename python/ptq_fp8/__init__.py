"""Per-token FP8 (E4M3) quantization of PyTorch tensors, bit-exact with SGLang, by libptq_fp8.

Importing the package registers the operators ``torch.ops.ptq_fp8.*`` and gives them as functions. ``library`` is the C ABI
alone, which works without PyTorch.
"""

from importlib.util import find_spec

from . import library
from .library import PtqError, Quantizer

__all__ = ["PtqError", "Quantizer", "library"]

if find_spec("torch") is not None:
    from .ops import load, per_tensor_quant_fp8, per_token_quant_fp8, scaled_fp8_quant
    from .sglang import install

    __all__ += ["install", "load", "per_tensor_quant_fp8", "per_token_quant_fp8", "scaled_fp8_quant"]
else:

    def __getattr__(name):
        raise AttributeError(f"ptq_fp8.{name} needs PyTorch, which is not installed; without it there is ptq_fp8.library")
