"""libptq_fp8 through ctypes: ``ptq_fp8.h`` with Python's names, on bare addresses.

The library is the file that the environment variable PTQ_LIB names, else ``libptq_fp8.so`` beside this file.
"""

import ctypes
import functools
import os
from ctypes import c_char_p, c_float, c_int, c_int32, c_size_t, c_uint32, c_uint64, c_void_p

# The numbers are those of ptq_fp8.h; a test compares them.
VERSION = (0, 1)
STATUS_UNSUPPORTED = 8
STATUS_NO_CONTEXT = 11
DTYPES = {"f16": 1, "bf16": 2, "f32": 3}
BACKENDS = {"auto": 0, "aot": 1, "jit": 2, "cpu": 3}
MATHS = {"auto": 0, "fast": 1, "precise": 2}
ZERO_ROWS = {"legacy": 0, "guarded": 1}
DISPATCHES = {"auto": 0, "warp": 1, "cta": 2}
GRANULARITIES = {"per_token": 1, "per_tensor": 2, "static": 3}


class PtqError(RuntimeError):
    """A call that failed: the library's message, and its ``status``, a number of ``ptq_status``."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class _Struct(ctypes.Structure):
    """A struct that begins with its own size."""

    def __init__(self, **fields):
        super().__init__(struct_size=ctypes.sizeof(self), **fields)


class Config(_Struct):
    """``ptq_config``."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("backend", c_uint32),
        ("math", c_uint32),
        ("sm_count", c_uint32),
        ("reserved", c_uint32),
    ]


class PerTokenArgs(_Struct):
    """``ptq_per_token_args``."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("dtype", c_uint32),
        ("zero_rows", c_uint32),
        ("dispatch", c_uint32),
        ("reserved", c_uint32),
        ("x", c_void_p),
        ("q", c_void_p),
        ("s", c_void_p),
        ("rows", c_uint64),
        ("hidden", c_uint64),
        ("rows_out", c_uint64),
        ("x_row_stride", c_uint64),
        ("q_row_stride", c_uint64),
        ("scale_upper_bound", c_float),
        ("min_scale", c_float),
        ("device_rows", c_void_p),
        ("stream", c_void_p),
    ]


class ScaledArgs(_Struct):
    """``ptq_scaled_args``."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("dtype", c_uint32),
        ("granularity", c_uint32),
        ("zero_rows", c_uint32),
        ("dispatch", c_uint32),
        ("x", c_void_p),
        ("q", c_void_p),
        ("s", c_void_p),
        ("rows", c_uint64),
        ("hidden", c_uint64),
        ("num_token_padding", c_uint64),
        ("stream", c_void_p),
    ]


class OutputShape(_Struct):
    """``ptq_output_shape``."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("rows_out", c_uint64),
        ("hidden", c_uint64),
        ("scales", c_uint64),
    ]


def _path():
    named = os.environ.get("PTQ_LIB")
    if named:
        return named
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libptq_fp8.so")
    if os.path.exists(beside):
        return beside
    raise OSError(f"there is no {beside}; copy libptq_fp8.so there (cargo build --release -p ptq-capi), or name it in PTQ_LIB")


@functools.lru_cache(maxsize=None)
def load():
    """The library, loaded once."""
    path = _path()
    library = ctypes.CDLL(path)
    library.ptq_version.restype = c_uint32
    version = library.ptq_version()
    if (version >> 16, version & 0xFFFF) != VERSION:
        raise OSError(f"{path} is version {version >> 16}.{version & 0xFFFF}, expected {VERSION[0]}.{VERSION[1]}")
    handle = c_void_p
    for name, arguments in {
        "ptq_quantizer_create": [ctypes.POINTER(Config), ctypes.POINTER(handle)],
        "ptq_quantizer_destroy": [handle],
        "ptq_quantizer_config": [handle, ctypes.POINTER(Config)],
        "ptq_load": [handle, c_uint32],
        "ptq_per_token_quant_fp8": [handle, ctypes.POINTER(PerTokenArgs)],
        "ptq_scaled_fp8_quant": [handle, ctypes.POINTER(ScaledArgs)],
        "ptq_scaled_fp8_output_shape": [c_uint32, c_uint64, c_uint64, c_uint64, ctypes.POINTER(OutputShape)],
    }.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, c_int
    library.ptq_status_message.argtypes, library.ptq_status_message.restype = [c_int32], c_char_p
    library.ptq_last_error_message.argtypes, library.ptq_last_error_message.restype = [], c_char_p
    return library


def _check(status):
    if status:
        raise PtqError(status, load().ptq_last_error_message().decode())


def _number(table, field, name):
    if name not in table:
        raise ValueError(f"{field} is {name!r}, expected one of {', '.join(table)}")
    return table[name]


def _count(field, value, bits=64):
    """A number as C takes it: ctypes would cut a larger or a negative one."""
    if not 0 <= value < 1 << bits:
        raise ValueError(f"{field} is {value}, expected 0 to 2**{bits} - 1")
    return value


def scaled_fp8_output_shape(granularity, rows, hidden, num_token_padding=0):
    """(rows_out, hidden, scales) of the outputs of ``Quantizer.scaled_fp8_quant``."""
    shape = OutputShape()
    counts = [_count("rows", rows), _count("hidden", hidden), _count("num_token_padding", num_token_padding)]
    granularity = _number(GRANULARITIES, "granularity", granularity)
    _check(load().ptq_scaled_fp8_output_shape(granularity, *counts, ctypes.byref(shape)))
    return shape.rows_out, shape.hidden, shape.scales


class Quantizer:
    """``ptq_quantizer``. On a device it belongs to the CUDA context that is current when it is made."""

    def __init__(self, backend="auto", math="auto", sm_count=0):
        self._handle = None
        config = Config(
            backend=_number(BACKENDS, "backend", backend),
            math=_number(MATHS, "math", math),
            sm_count=_count("sm_count", sm_count, 32),
        )
        handle = c_void_p()
        self._library = load()
        _check(self._library.ptq_quantizer_create(ctypes.byref(config), ctypes.byref(handle)))
        self._handle = handle

    def close(self):
        """Destroys it; later calls fail."""
        if self._handle is not None:
            _check(self._library.ptq_quantizer_destroy(self._handle))

    def __del__(self):
        if self._handle is not None:
            # It may be closed already, which is an error that matters to nobody here.
            self._library.ptq_quantizer_destroy(self._handle)

    def config(self):
        """(backend, math, sm_count) that it came to; backend "cpu" if it is the CPU."""
        config = Config()
        _check(self._library.ptq_quantizer_config(self._handle, ctypes.byref(config)))
        name = lambda table, number: next(name for name, known in table.items() if known == number)
        return name(BACKENDS, config.backend), name(MATHS, config.math), config.sm_count

    def load(self, dtype):
        """Loads the kernels for a dtype, as the first call would: before a graph is captured."""
        _check(self._library.ptq_load(self._handle, _number(DTYPES, "dtype", dtype)))

    def per_token_quant_fp8(
        self,
        dtype,
        x,
        q,
        s,
        rows,
        hidden,
        rows_out=None,
        *,
        x_row_stride=0,
        q_row_stride=0,
        scale_upper_bound=0.0,
        min_scale=0.0,
        device_rows=0,
        zero_rows="legacy",
        dispatch="auto",
        stream=0,
    ):
        """``ptq_per_token_quant_fp8``: x, q, s, device_rows and stream are addresses, sizes count elements."""
        args = PerTokenArgs(
            dtype=_number(DTYPES, "dtype", dtype),
            zero_rows=_number(ZERO_ROWS, "zero_rows", zero_rows),
            dispatch=_number(DISPATCHES, "dispatch", dispatch),
            x=x,
            q=q,
            s=s,
            rows=_count("rows", rows),
            hidden=_count("hidden", hidden),
            rows_out=_count("rows_out", rows if rows_out is None else rows_out),
            x_row_stride=_count("x_row_stride", x_row_stride),
            q_row_stride=_count("q_row_stride", q_row_stride),
            scale_upper_bound=scale_upper_bound,
            min_scale=min_scale,
            device_rows=device_rows,
            stream=stream,
        )
        _check(self._library.ptq_per_token_quant_fp8(self._handle, ctypes.byref(args)))

    def scaled_fp8_quant(
        self,
        dtype,
        granularity,
        x,
        q,
        s,
        rows,
        hidden,
        num_token_padding=0,
        *,
        zero_rows="legacy",
        dispatch="auto",
        stream=0,
    ):
        """``ptq_scaled_fp8_quant``: x, q, s and stream are addresses, sizes count elements."""
        args = ScaledArgs(
            dtype=_number(DTYPES, "dtype", dtype),
            granularity=_number(GRANULARITIES, "granularity", granularity),
            zero_rows=_number(ZERO_ROWS, "zero_rows", zero_rows),
            dispatch=_number(DISPATCHES, "dispatch", dispatch),
            x=x,
            q=q,
            s=s,
            rows=_count("rows", rows),
            hidden=_count("hidden", hidden),
            num_token_padding=_count("num_token_padding", num_token_padding),
            stream=stream,
        )
        _check(self._library.ptq_scaled_fp8_quant(self._handle, ctypes.byref(args)))
