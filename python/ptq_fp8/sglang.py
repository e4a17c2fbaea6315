"""Routes SGLang to this package."""

import importlib
import sys

from . import ops

# Who defines what; other modules import these names from there.
_ROUTES = [
    ("sgl_kernel", "sgl_per_token_quant_fp8", ops.per_token_quant_fp8),
    ("sglang.srt.layers.quantization.fp8_kernel", "scaled_fp8_quant", ops.scaled_fp8_quant),
]


def install():
    """Makes SGLang quantize with this package, in this process, and returns the names that it replaced.

    Call it before or after SGLang is imported, in every process that quantizes. What is not installed is left alone.
    """
    replaced = []
    for owner, name, ours in _ROUTES:
        try:
            theirs = getattr(importlib.import_module(owner), name)
        except (ImportError, AttributeError):
            continue
        # Whoever has imported the name already holds the function itself.
        for module_name, module in list(sys.modules.items()):
            if module_name.split(".")[0] in ("sgl_kernel", "sglang") and getattr(module, "__dict__", {}).get(name) is theirs:
                setattr(module, name, ours)
                replaced.append(f"{module_name}.{name}")
    return replaced
