"""The operators ``torch.ops.ptq_fp8.*``, on CUDA tensors and on CPU tensors, without copies.

On a CUDA tensor an operator runs in the current stream of the tensor's device and waits for nothing. A graph may capture
it once its device has been used, or ``load`` called.
"""

import threading
from typing import Optional, Tuple

import torch

from .library import DTYPES, STATUS_NO_CONTEXT, PtqError, Quantizer

FP8 = torch.float8_e4m3fn
_NAMES = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32"}
_DEVICES = ("cpu", "cuda")

_quantizers = {}
_lock = threading.Lock()


def _quantizer(device):
    """The quantizer of a device, with all its kernels loaded."""
    known = _quantizers.get(device)
    if known is not None:
        return known
    with _lock:
        if device not in _quantizers:
            made = Quantizer(backend="cpu") if device.type == "cpu" else Quantizer()
            if device.type != "cpu" and made.config()[0] == "cpu":
                raise RuntimeError(f"no kernel for {device}, or PTQ_BACKEND is cpu: CUDA tensors need a GPU backend")
            for dtype in DTYPES:
                made.load(dtype)
            _quantizers[device] = made
        return _quantizers[device]


def _run(device, call):
    """``call(quantizer, stream)`` on a device, in its current stream."""
    if device.type == "cpu":
        return call(_quantizer(device), 0)
    with torch.cuda.device(device):
        stream = torch.cuda.current_stream(device).cuda_stream
        try:
            return call(_quantizer(device), stream)
        except PtqError as error:
            if error.status != STATUS_NO_CONTEXT:
                raise
        # On a thread that has not used the CUDA runtime yet, no context is current. This call makes it so.
        torch.cuda.mem_get_info(device)
        return call(_quantizer(device), stream)


def load(device="cuda"):
    """Loads the kernels for a device, which the first call would do otherwise."""
    device = torch.device(device)
    if device.type == "cuda":
        torch.cuda.init()
        if device.index is None:
            device = torch.device("cuda", torch.cuda.current_device())
    _run(device, lambda quantizer, stream: None)


def _dtype(input):
    if input.dtype not in _NAMES:
        raise TypeError(f"input is {input.dtype}, expected one of {', '.join(map(str, _NAMES))}")
    return _NAMES[input.dtype]


def _check_outputs(input, output_q, output_s):
    _dtype(input)
    if output_q.dtype not in (FP8, torch.uint8):
        raise TypeError(f"output_q is {output_q.dtype}, expected {FP8}, or torch.uint8 for its codes")
    if output_s.dtype != torch.float32:
        raise TypeError(f"output_s is {output_s.dtype}, expected torch.float32")
    for name, tensor in (("output_q", output_q), ("output_s", output_s)):
        if tensor.device != input.device:
            raise ValueError(f"{name} is on {tensor.device}, expected {input.device}, where input is")
    for name, tensor in (("input", input), ("output_q", output_q)):
        if tensor.dim() != 2:
            raise ValueError(f"{name} has {tensor.dim()} dimensions, expected 2: [tokens, hidden]; reshape it")


def _check_sizes(input, output_q, output_s, scales):
    if output_q.size(1) != input.size(1):
        raise ValueError(f"output_q has {output_q.size(1)} columns, expected {input.size(1)}, as input")
    if output_s.numel() != scales or not output_s.is_contiguous():
        raise ValueError(f"output_s has shape {tuple(output_s.shape)}, expected {scales} contiguous scales")


def _row_stride(name, tensor):
    """Elements between the starts of two rows."""
    rows, hidden = tensor.shape
    if rows <= 1 and tensor.stride(1) == 1:
        return hidden
    if tensor.stride(1) != 1 or tensor.stride(0) < hidden:
        raise ValueError(f"{name} has strides {tensor.stride()}, expected rows of adjacent elements; make it contiguous()")
    return tensor.stride(0)


@torch.library.custom_op("ptq_fp8::per_token_quant_fp8", mutates_args=("output_q", "output_s"), device_types=_DEVICES)
def per_token_quant_fp8(input: torch.Tensor, output_q: torch.Tensor, output_s: torch.Tensor) -> None:
    """Quantizes each row of input[tokens, hidden] with a scale of its own, as SGLang's ``sgl_per_token_quant_fp8``.

    output_q[tokens_out, hidden]: codes, float8_e4m3fn or uint8. output_s[tokens_out, 1] or [tokens_out]: float32, so that
    output_q * output_s is about input. Rows of the outputs beyond ``tokens`` are not touched.
    """
    _check_outputs(input, output_q, output_s)
    rows_out = output_q.size(0)
    _check_sizes(input, output_q, output_s, rows_out)
    x_row_stride, q_row_stride = _row_stride("input", input), _row_stride("output_q", output_q)
    _run(
        input.device,
        lambda quantizer, stream: quantizer.per_token_quant_fp8(
            _dtype(input),
            input.data_ptr(),
            output_q.data_ptr(),
            output_s.data_ptr(),
            *input.shape,
            rows_out,
            x_row_stride=x_row_stride,
            q_row_stride=q_row_stride,
            stream=stream,
        ),
    )


@per_token_quant_fp8.register_fake
def _(input, output_q, output_s):
    _check_outputs(input, output_q, output_s)


@torch.library.custom_op("ptq_fp8::per_tensor_quant_fp8", mutates_args=("output_q", "output_s"), device_types=_DEVICES)
def per_tensor_quant_fp8(
    input: torch.Tensor, output_q: torch.Tensor, output_s: torch.Tensor, is_static: bool
) -> None:
    """Quantizes input[tokens, hidden] with the one scale in output_s[1], which it computes first unless ``is_static``.

    As SGLang's ``sgl_per_tensor_quant_fp8``. Rows of output_q beyond ``tokens`` are not touched.
    """
    _check_outputs(input, output_q, output_s)
    _check_sizes(input, output_q, output_s, 1)
    for name, tensor in (("input", input), ("output_q", output_q)):
        if not tensor.is_contiguous():
            raise ValueError(f"{name} has strides {tensor.stride()}, expected a contiguous tensor; make it contiguous()")
    _run(
        input.device,
        lambda quantizer, stream: quantizer.scaled_fp8_quant(
            _dtype(input),
            "static" if is_static else "per_tensor",
            input.data_ptr(),
            output_q.data_ptr(),
            output_s.data_ptr(),
            *input.shape,
            output_q.size(0),
            stream=stream,
        ),
    )


@per_tensor_quant_fp8.register_fake
def _(input, output_q, output_s, is_static):
    _check_outputs(input, output_q, output_s)


def _codes(input, num_token_padding):
    """Memory for the codes of ``input``, with at least as many rows."""
    _dtype(input)
    if input.dim() != 2:
        raise ValueError(f"input has {input.dim()} dimensions, expected 2: [tokens, hidden]; reshape it")
    rows, hidden = input.shape
    # 0 is none, as in the reference.
    rows_out = max(rows, num_token_padding) if num_token_padding else rows
    return input.new_empty((rows_out, hidden), dtype=FP8)


def _scales(output, use_per_token_if_dynamic):
    if use_per_token_if_dynamic:
        return output.new_empty((output.size(0), 1), dtype=torch.float32)
    # It is a maximum that starts at 0.
    return output.new_zeros(1, dtype=torch.float32)


@torch.library.custom_op("ptq_fp8::scaled_fp8_quant", mutates_args=(), device_types=_DEVICES)
def _scaled_fp8_quant(
    input: torch.Tensor,
    scale: Optional[torch.Tensor] = None,
    num_token_padding: Optional[int] = None,
    use_per_token_if_dynamic: bool = False,
) -> Tuple[torch.Tensor, torch.Tensor]:
    output = _codes(input, num_token_padding)
    if scale is not None:
        # An operator must not return what it was given.
        scale = scale.clone()
        per_tensor_quant_fp8(input, output, scale, True)
        return output, scale
    scale = _scales(output, use_per_token_if_dynamic)
    if use_per_token_if_dynamic:
        per_token_quant_fp8(input, output, scale)
    else:
        per_tensor_quant_fp8(input, output, scale, False)
    return output, scale


@_scaled_fp8_quant.register_fake
def _(input, scale=None, num_token_padding=None, use_per_token_if_dynamic=False):
    output = _codes(input, num_token_padding)
    if scale is not None:
        return output, torch.empty_like(scale)
    return output, _scales(output, use_per_token_if_dynamic)


def scaled_fp8_quant(input, scale=None, num_token_padding=None, use_per_token_if_dynamic=False):
    """(codes, scale) of input[tokens, hidden], as SGLang's ``scaled_fp8_quant``.

    With ``scale[1]`` given, quantizes with it and returns it; else computes one for each token or one for the tensor. The
    codes have at least ``num_token_padding`` rows; those beyond the input's hold anything.
    """
    if scale is None:
        return _scaled_fp8_quant(input, None, num_token_padding, use_per_token_if_dynamic)
    output = _codes(input, num_token_padding)
    per_tensor_quant_fp8(input, output, scale, True)
    return output, scale
