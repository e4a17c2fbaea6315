"""The operators on PyTorch's tensors: on CUDA tensors where there is a device, and always on CPU tensors."""

import os
import shutil
import sys
import threading
import types
import unittest

import support

# Graphs this small compile sooner than a pool of compilers starts.
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

try:
    import torch
except ImportError:
    if support.REQUIRE_GPU:
        raise
    raise unittest.SkipTest("PyTorch is not installed: its operators are not tested")

import ptq_fp8
from ptq_fp8 import library, ops

CUDA = torch.cuda.is_available()
if support.REQUIRE_GPU and not CUDA:
    raise RuntimeError("PTQ_REQUIRE_GPU is set and PyTorch has no CUDA device")
DEVICES = ("cpu", "cuda") if CUDA else ("cpu",)
# Compiling takes the better part of a minute for each device, and is the CPU's where there is no other.
COMPILED = DEVICES[-1:]
TYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
HIDDEN = (1076, 1368)
needs_cuda = unittest.skipUnless(CUDA, "PyTorch has no CUDA device")


def precise(x, guard):
    """(codes, scales) in precise math, computed by PyTorch on the CPU."""
    wide = x.cpu().float()
    largest = torch.where(wide.isnan(), torch.zeros(()), wide.abs()).amax(1, keepdim=True)
    # By tensors: division by a number may be turned into a product.
    scale = largest / torch.full_like(largest, 448)
    inverse = torch.ones_like(scale) / scale
    if guard:
        inverse = torch.where(scale == 0, torch.zeros(()), inverse)
    value = wide * inverse
    value = torch.where(value.isnan(), torch.full((), 448.0), value.clamp(-448, 448))
    return value.to(torch.float8_e4m3fn).view(torch.uint8), scale


def precise_static(x, scale):
    """(codes, the scale) in precise math with a scale that is given, as ``precise``."""
    inverse = torch.ones(1) / scale.cpu()
    value = x.cpu().float() * inverse
    value = torch.where(value.isnan(), torch.full((), 448.0), value.clamp(-448, 448))
    return value.to(torch.float8_e4m3fn).view(torch.uint8), scale.cpu()


def on_cpu(x, config):
    """(codes, scales) by the library's CPU implementation, in the math mode and for the SM count of a config."""
    x = x.cpu().contiguous()
    q, s = torch.empty(x.shape, dtype=torch.uint8), torch.empty(x.size(0), 1)
    quantizer = ptq_fp8.Quantizer("cpu", config[1], config[2])
    name = next(name for name, dtype in TYPES.items() if dtype == x.dtype)
    quantizer.per_token_quant_fp8(name, x.data_ptr(), q.data_ptr(), s.data_ptr(), *x.shape)
    return q, s


def config(device):
    """(backend, math, SM count) of a device's quantizer."""
    device = torch.device(device, torch.cuda.current_device()) if device == "cuda" else torch.device(device)
    return ops._run(device, lambda quantizer, stream: quantizer.config())


def outputs(x, rows_out=None, dtype=torch.float8_e4m3fn):
    """Outputs that hold what no result is: NaN codes and a negative NaN."""
    rows_out = x.size(0) if rows_out is None else rows_out
    q = torch.full((rows_out, x.size(1)), 0xFF, dtype=torch.uint8, device=x.device).view(dtype)
    s = torch.full((rows_out, 1), -1, dtype=torch.int32, device=x.device).view(torch.float32)
    return q, s


def inputs(rows, hidden, dtype, device):
    """Random rows of every magnitude, and some that are special, the same on every device."""
    generator = torch.Generator().manual_seed(rows * hidden)
    x = torch.randn(rows, hidden, generator=generator) * torch.exp2(
        torch.randint(-12, 13, (rows, 1), generator=generator).float()
    )
    x[0] = 0
    if rows > 4:
        x[1, 3] = float("nan")
        x[2, 5] = float("inf")
        x[3] = -0.0
    return x.to(dtype).to(device)


class Case(unittest.TestCase):
    def assertBits(self, actual, expected, words=""):
        """Both outputs, byte for byte."""
        for name, a, e in zip(("codes", "scales"), actual, expected):
            a, e = a.detach().cpu().contiguous().view(torch.uint8), e.detach().cpu().contiguous().view(torch.uint8)
            self.assertEqual(a.shape, e.shape, f"{words} {name}")
            if not torch.equal(a, e):
                at = (a != e).nonzero()[0].tolist()
                self.fail(f"{words} {name}: {int((a != e).sum())} bytes differ, the first at {at}")


class PerToken(Case):
    def test_bits(self):
        """Element types × hidden × both dispatches of the reference, with zero rows."""
        for device in DEVICES:
            sm_count = config(device)[2]
            for dtype in TYPES.values():
                for hidden in HIDDEN:
                    for rows in (1, 37, 16 * sm_count - 1, 16 * sm_count):
                        with self.subTest(device=device, dtype=dtype, hidden=hidden, rows=rows):
                            x = inputs(rows, hidden, dtype, device)
                            q, s = outputs(x)
                            before = q.data_ptr(), s.data_ptr()
                            self.assertIsNone(ptq_fp8.per_token_quant_fp8(x, q, s))
                            self.assertEqual((q.data_ptr(), s.data_ptr()), before)
                            if device == "cuda":
                                self.assertBits((q, s), on_cpu(x, config(device)))
                            if config(device)[1] == "precise":
                                self.assertBits((q, s), precise(x, guard=rows >= 16 * sm_count))

    def test_precise_bits(self):
        """Precise math, whatever the device's is."""
        for device in DEVICES:
            backend = "cpu" if device == "cpu" else "auto"
            if device == "cuda":
                ptq_fp8.load()
            quantizer = ptq_fp8.Quantizer(backend, "precise")
            for name, dtype in TYPES.items():
                for dispatch in ("cta", "warp"):
                    x = inputs(37, 1076, dtype, device)
                    q, s = outputs(x)
                    addresses = (x.data_ptr(), q.data_ptr(), s.data_ptr())
                    stream = torch.cuda.current_stream().cuda_stream if device == "cuda" else 0
                    quantizer.per_token_quant_fp8(name, *addresses, *x.shape, dispatch=dispatch, stream=stream)
                    self.assertBits((q, s), precise(x, guard=dispatch == "warp"), f"{device} {name} {dispatch}")

    def test_golden(self):
        """Every byte that the reference wrote on an H200."""
        golden = support.golden()
        for device in DEVICES:
            backend, stream = "cpu", 0
            maths = ("fast", "precise")
            if device == "cuda":
                ptq_fp8.load()
                backend, stream = "auto", torch.cuda.current_stream().cuda_stream
                maths = maths if torch.cuda.get_device_capability() == (9, 0) else ("precise",)
            for math in maths:
                quantizer = ptq_fp8.Quantizer(backend, math)
                for name, dtype in TYPES.items():
                    for hidden in support.GOLDEN_HIDDEN:
                        group = f"{name}_h{hidden}"
                        shape, data = golden[f"{group}/input"]
                        x = torch.frombuffer(bytearray(data), dtype=dtype).reshape(shape).to(device)
                        for dispatch in ("cta", "warp"):
                            want = [
                                torch.frombuffer(bytearray(golden[f"{group}/{operand}_{math}_{dispatch}"][1]), dtype=kind)
                                for operand, kind in (("q", torch.uint8), ("s", torch.float32))
                            ]
                            want = want[0].reshape(shape), want[1].reshape(-1, 1)
                            q, s = outputs(x)
                            addresses = (x.data_ptr(), q.data_ptr(), s.data_ptr())
                            quantizer.per_token_quant_fp8(name, *addresses, *shape, dispatch=dispatch, stream=stream)
                            self.assertBits((q, s), want, f"{device} {group} {math} {dispatch}")

    def test_zero_rows(self):
        """Below the threshold the reference's CTA kernel writes 0x7E, from it up its warp kernel writes 0."""
        for device in DEVICES:
            sm_count = config(device)[2]
            for dtype in TYPES.values():
                for rows, code in ((3, 0x7E), (16 * sm_count, 0)):
                    x = torch.zeros(rows, 1076, dtype=dtype, device=device)
                    q, s = outputs(x)
                    ptq_fp8.per_token_quant_fp8(x, q, s)
                    self.assertTrue((q.view(torch.uint8) == code).all(), (device, dtype, rows))
                    self.assertTrue((s.view(torch.int32) == 0).all(), (device, dtype, rows))

    def test_midpoints(self):
        """Halfway between two codes, the even one: a row whose scale is 1 holds the midpoints as they are."""
        codes = torch.arange(0, 0x7F, dtype=torch.uint8)
        values = codes.view(torch.float8_e4m3fn).float()
        middles = (values[:-1] + values[1:]) / 2
        even = torch.where(codes[:-1] % 2 == 0, codes[:-1], codes[1:])
        for device in DEVICES:
            for dtype in TYPES.values():
                for sign, bit in ((1, 0), (-1, 0x80)):
                    row = torch.cat([torch.full((2,), 448.0), sign * middles]).to(dtype)
                    self.assertTrue(torch.equal(row.float()[2:], sign * middles), "midpoints are exact")
                    want = torch.cat([torch.full((2,), 0x7E, dtype=torch.uint8), even | bit])
                    x = row.repeat(3, 1).to(device)
                    q, s = outputs(x)
                    ptq_fp8.per_token_quant_fp8(x, q, s)
                    self.assertBits((q, s), (want.repeat(3, 1), torch.ones(3, 1)), f"{device} {dtype}")

    def test_padded_tail(self):
        """17 rows for 1: the tail keeps its bytes."""
        for device in DEVICES:
            for hidden in HIDDEN:
                x = inputs(1, hidden, torch.bfloat16, device) + 1
                q, s = outputs(x, rows_out=17)
                ptq_fp8.per_token_quant_fp8(x, q, s)
                self.assertTrue((q[1:].view(torch.uint8) == 0xFF).all() and (s[1:].view(torch.int32) == -1).all())
                self.assertBits((q[:1], s[:1]), on_cpu(x, config(device)))

    def test_no_rows(self):
        for device in DEVICES:
            x = torch.empty(0, 1076, device=device)
            q, s = outputs(x, rows_out=2)
            ptq_fp8.per_token_quant_fp8(x, q, s)
            self.assertTrue((q.view(torch.uint8) == 0xFF).all() and (s.view(torch.int32) == -1).all())

    def test_codes_as_bytes_and_scales_of_one_dimension(self):
        for device in DEVICES:
            x = inputs(5, 36, torch.float16, device)
            q, s = outputs(x)
            ptq_fp8.per_token_quant_fp8(x, q, s)
            bytes_q, flat_s = outputs(x, dtype=torch.uint8)
            ptq_fp8.per_token_quant_fp8(x, bytes_q, flat_s.view(5))
            self.assertBits((bytes_q, flat_s), (q, s))

    def test_inference_mode(self):
        """As engines run: with tensors made under it and before."""
        for device in DEVICES:
            x = inputs(5, 1368, torch.bfloat16, device)
            for early in (True, False):
                q, s = outputs(x)
                with torch.inference_mode():
                    if not early:
                        x = x.clone()
                        q, s = outputs(x)
                    ptq_fp8.per_token_quant_fp8(x, q, s)
                    also = ptq_fp8.scaled_fp8_quant(x, use_per_token_if_dynamic=True)
                for actual in ((q, s), also):
                    self.assertBits(actual, on_cpu(x, config(device)), f"{device} {early}")

    def test_refused(self):
        """What the kernels cannot take is an error that names it, and nothing is written."""
        for device in DEVICES:
            x = inputs(2, 36, torch.float32, device)
            q, s = outputs(x)
            column = torch.empty(36, 2, device=device).t()
            for error, words, arguments in (
                (TypeError, "input is torch.float64", (x.double(), q, s)),
                (TypeError, "input is torch.int32", (x.int(), q, s)),
                (TypeError, "output_q is torch.float8_e5m2", (x, q.view(torch.float8_e5m2), s)),
                (TypeError, "output_q is torch.float32", (x, torch.empty_like(x), s)),
                (TypeError, "output_s is torch.float64", (x, q, s.double())),
                (ValueError, "input has 1 dimensions", (x[0], q, s)),
                (ValueError, "output_q has 3 dimensions", (x, q[None], s)),
                (ValueError, "output_q has 32 columns", (x, q[:, :32], s)),
                (ValueError, "output_s has shape", (x, q, s[:1])),
                (ValueError, "output_s has shape", (x, q, s.repeat(1, 2)[:, :1])),
                (ValueError, "input has strides", (column, q, s)),
                (ValueError, "input has strides", (x[:1].expand(2, 36), q, s)),
                (library.PtqError, "rows", (torch.cat([x, x]), q, s)),
                (library.PtqError, "multiple of 4", (x[:, :34].contiguous(), q[:, :34].contiguous(), s)),
            ):
                with self.subTest(device=device, words=words), self.assertRaisesRegex(error, words):
                    ptq_fp8.per_token_quant_fp8(*arguments)
            self.assertTrue((q.view(torch.uint8) == 0xFF).all() and (s.view(torch.int32) == -1).all())

    def test_strided_rows(self):
        """Rows of a wider tensor: with their strides, or refused by a library that does not know them; never other bytes."""
        for device in DEVICES:
            x = inputs(7, 72, torch.float16, device)[:, :36]
            q, s = outputs(x)
            try:
                ptq_fp8.per_token_quant_fp8(x, q, s)
            except library.PtqError as error:
                self.assertEqual(error.status, library.STATUS_UNSUPPORTED)
                self.assertIn("x_row_stride", str(error))
            else:
                self.assertBits((q, s), on_cpu(x, config(device)))


class Scaled(Case):
    def test_per_token(self):
        for device in DEVICES:
            for dtype in TYPES.values():
                for padding in (None, 0, 1, 17):
                    x = inputs(5, 1368, dtype, device)
                    q, s = ptq_fp8.scaled_fp8_quant(x, num_token_padding=padding, use_per_token_if_dynamic=True)
                    rows_out = max(5, padding or 0)
                    self.assertEqual((q.dtype, tuple(q.shape)), (torch.float8_e4m3fn, (rows_out, 1368)))
                    self.assertEqual((s.dtype, tuple(s.shape)), (torch.float32, (rows_out, 1)))
                    self.assertBits((q[:5], s[:5]), on_cpu(x, config(device)), f"{device} {dtype} {padding}")

    def test_per_tensor(self):
        """One scale for the tensor, computed and given: SGLang's per-tensor kernels never guard a zero scale."""
        for device in DEVICES:
            math = config(device)[1]
            for dtype in TYPES.values():
                for rows, hidden, padding in ((1, 4, None), (5, 1368, 17), (37, 1076, None), (3, 7, None)):
                    x = inputs(rows, hidden, dtype, device) if rows > 1 else torch.ones(rows, hidden, dtype=dtype, device=device)
                    for scale in (None, torch.full((1,), 0.37, device=device)):
                        words = f"{device} {dtype} {rows} {hidden} {scale}"
                        q, s = ptq_fp8.scaled_fp8_quant(x, scale, padding)
                        self.assertEqual((q.dtype, tuple(q.shape)), (torch.float8_e4m3fn, (max(rows, padding or 0), hidden)))
                        self.assertBits((q[:rows], s), self.one_scale(x, scale, config(device)), words)
                        if scale is not None:
                            self.assertIs(s, scale)
                        if math == "precise":
                            flat = x.reshape(1, -1)
                            want_q, want_s = precise(flat, False) if scale is None else precise_static(flat, scale)
                            self.assertBits((q[:rows], s), (want_q.view(rows, hidden), want_s.view(1)), words)
                        own = torch.ops.ptq_fp8.scaled_fp8_quant(x, scale, padding)
                        self.assertBits((own[0][:rows], own[1]), (q[:rows], s), words)

    def one_scale(self, x, scale, config):
        """By the library's CPU implementation."""
        rows, hidden = x.shape
        x, s = x.cpu(), torch.zeros(1) if scale is None else scale.cpu().clone()
        q = torch.empty(rows, hidden, dtype=torch.uint8)
        name = next(name for name, dtype in TYPES.items() if dtype == x.dtype)
        addresses = (x.data_ptr(), q.data_ptr(), s.data_ptr())
        quantizer = ptq_fp8.Quantizer("cpu", config[1], config[2])
        quantizer.scaled_fp8_quant(name, "per_tensor" if scale is None else "static", *addresses, rows, hidden)
        return q, s

    def test_refused(self):
        with self.assertRaisesRegex(TypeError, "torch.float64"):
            ptq_fp8.scaled_fp8_quant(torch.empty(2, 4, dtype=torch.float64))
        with self.assertRaisesRegex(ValueError, "3 dimensions"):
            ptq_fp8.scaled_fp8_quant(torch.empty(2, 4, 4))


class Compile(Case):
    """The operators inside one compiled graph."""

    def backends(self, device):
        yield "aot_eager"
        # Inductor needs compilers and headers that a machine may lack: whether it works shows without our operators.
        try:
            torch.compile(lambda x: x * 2 + 1, backend="inductor")(torch.ones(8, device=device))
        except Exception as error:
            reason = (str(error).splitlines() or [repr(error)])[0]
            print(f"skipped: torch.compile by inductor on {device}, which does not work here: {reason}", file=sys.stderr)
        else:
            yield "inductor"

    def run_compiled(self, function):
        for device in COMPILED:
            for backend in self.backends(device):
                torch._dynamo.reset()
                compiled = torch.compile(function, fullgraph=True, backend=backend)
                for rows in (3, 5, 8):
                    x = inputs(rows, 1368, torch.bfloat16, device)
                    with self.subTest(device=device, backend=backend, rows=rows):
                        self.assertBits(compiled(x), on_cpu(x + 1, config(device)))

    def test_per_token(self):
        def function(x):
            x = x + 1
            q = torch.empty(x.shape, dtype=torch.float8_e4m3fn, device=x.device)
            s = torch.empty(x.size(0), 1, dtype=torch.float32, device=x.device)
            torch.ops.ptq_fp8.per_token_quant_fp8(x, q, s)
            return q, s

        self.run_compiled(function)

    def test_per_token_into_arguments(self):
        """What the caller sees of a tensor that the graph was given."""
        function = torch.compile(lambda x, q, s: ptq_fp8.per_token_quant_fp8(x, q, s), fullgraph=True, backend="aot_eager")
        for device in COMPILED:
            x = inputs(5, 1076, torch.float16, device)
            q, s = outputs(x, rows_out=17)
            function(x, q, s)
            self.assertBits((q[:5], s[:5]), on_cpu(x, config(device)))
            self.assertTrue((q[5:].view(torch.uint8) == 0xFF).all() and (s[5:].view(torch.int32) == -1).all())

    def test_scaled(self):
        self.run_compiled(lambda x: ptq_fp8.scaled_fp8_quant(x + 1, use_per_token_if_dynamic=True))

    def test_scaled_by_one_scale(self):
        """With a scale that is given, and one that is computed, the eager results."""
        for device in COMPILED:
            for backend in self.backends(device):
                torch._dynamo.reset()
                function = lambda x, scale: ptq_fp8.scaled_fp8_quant(x + 1, scale, 9)
                compiled = torch.compile(function, fullgraph=True, backend=backend)
                for rows in (3, 5, 12):
                    x = inputs(rows, 1368, torch.bfloat16, device)
                    for scale in (None, torch.full((1,), 0.37, device=device)):
                        (q, s), (want_q, want_s) = compiled(x, scale), function(x, scale)
                        self.assertEqual(q.size(0), max(rows, 9))
                        self.assertBits((q[:rows], s), (want_q[:rows], want_s), f"{device} {backend} {rows}")

    def test_opcheck(self):
        for device in DEVICES:
            x = inputs(5, 36, torch.bfloat16, device)
            # Bytes: the check compares tensors in ways that FP8 tensors do not offer.
            q, s = torch.zeros(17, 36, dtype=torch.uint8, device=device), torch.zeros(17, 1, device=device)
            torch.library.opcheck(torch.ops.ptq_fp8.per_token_quant_fp8.default, (x, q, s))
            for is_static in (False, True):
                arguments = (x, q, torch.ones(1, device=device), is_static)
                torch.library.opcheck(torch.ops.ptq_fp8.per_tensor_quant_fp8.default, arguments)
            torch.library.opcheck(
                torch.ops.ptq_fp8.scaled_fp8_quant.default,
                (x, None, None, True),
                # Its result is FP8, which the other checks cannot compare.
                test_utils=("test_schema", "test_autograd_registration", "test_faketensor"),
            )


@needs_cuda
class Cuda(Case):
    def test_stream(self):
        """The call waits for what its stream does before it, and for nothing else."""
        stream = torch.cuda.Stream()
        first, second = inputs(64, 1368, torch.bfloat16, "cuda"), inputs(64, 1368, torch.bfloat16, "cuda") * 3
        x = first.clone()
        q, s = outputs(x)
        # What a first call takes is no waiting.
        ptq_fp8.per_token_quant_fp8(x, q, s)
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(1_000_000_000)
            x.copy_(second)
            ptq_fp8.per_token_quant_fp8(x, q, s)
        self.assertFalse(stream.query(), "the call waited")
        stream.synchronize()
        self.assertBits((q, s), on_cpu(second, config("cuda")))

    def test_graph(self):
        """Captured once, replayed with other data."""
        ptq_fp8.load()
        x = inputs(37, 1076, torch.float16, "cuda")
        q, s = outputs(x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            ptq_fp8.per_token_quant_fp8(x, q, s)
            q2, s2 = ptq_fp8.scaled_fp8_quant(x, use_per_token_if_dynamic=True)
            q3, s3 = ptq_fp8.scaled_fp8_quant(x)
        for factor in (1, 3):
            other = inputs(37, 1076, torch.float16, "cuda") * factor
            x.copy_(other)
            for tensor in (q, q2, q3):
                tensor.view(torch.uint8).fill_(0xFF)
            for tensor in (s, s2, s3):
                tensor.view(torch.int32).fill_(-1)
            graph.replay()
            torch.cuda.synchronize()
            want = on_cpu(other, config("cuda"))
            self.assertBits((q, s), want)
            self.assertBits((q2, s2), want)
            self.assertBits((q3, s3), ptq_fp8.scaled_fp8_quant(other))

    def test_fresh_thread(self):
        """A thread that has not used CUDA yet."""
        x = inputs(5, 1076, torch.float32, "cuda")
        q, s = outputs(x)
        torch.cuda.synchronize()
        raised = []

        def work():
            try:
                ptq_fp8.per_token_quant_fp8(x, q, s)
            except Exception as error:
                raised.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        torch.cuda.synchronize()
        self.assertEqual(raised, [])
        self.assertBits((q, s), on_cpu(x, config("cuda")))

    def test_devices_are_told_apart(self):
        x = inputs(2, 36, torch.float32, "cuda")
        q, s = outputs(x)
        with self.assertRaisesRegex(ValueError, "output_q is on cpu"):
            ptq_fp8.per_token_quant_fp8(x, q.cpu(), s)
        with self.assertRaisesRegex(ValueError, "output_s is on cpu"):
            ptq_fp8.per_token_quant_fp8(x, q, s.cpu())


class Sglang(unittest.TestCase):
    """Routing, with modules that stand for SGLang's."""

    def test_install(self):
        names = ["sgl_kernel", "sglang", "sglang.srt", "sglang.srt.layers", "sglang.srt.layers.quantization"]
        names += ["sglang.srt.layers.quantization.fp8_kernel", "sglang.user"]
        modules = {name: types.ModuleType(name) for name in names}
        for module in modules.values():
            module.__path__ = []
        kernel, user = modules["sglang.srt.layers.quantization.fp8_kernel"], modules["sglang.user"]
        modules["sgl_kernel"].sgl_per_token_quant_fp8 = theirs = lambda *arguments: None
        kernel.sgl_per_token_quant_fp8 = user.sgl_per_token_quant_fp8 = theirs
        kernel.scaled_fp8_quant = lambda *arguments: None
        other = user.scaled_fp8_quant = lambda *arguments: None
        before = {name: sys.modules.get(name) for name in names}
        try:
            sys.modules.update(modules)
            replaced = ptq_fp8.install()
        finally:
            for name, module in before.items():
                if module is None:
                    del sys.modules[name]
                else:
                    sys.modules[name] = module
        self.assertEqual(len(replaced), 4, replaced)
        for module in (modules["sgl_kernel"], kernel, user):
            self.assertIs(module.sgl_per_token_quant_fp8, ptq_fp8.per_token_quant_fp8)
        self.assertIs(kernel.scaled_fp8_quant, ptq_fp8.scaled_fp8_quant)
        self.assertIs(user.scaled_fp8_quant, other)

    @unittest.skipIf("sgl_kernel" in sys.modules, "SGLang is loaded")
    def test_nothing_to_install(self):
        if shutil.which("sglang") is None and not any(os.path.isdir(os.path.join(p, "sgl_kernel")) for p in sys.path):
            self.assertEqual(ptq_fp8.install(), [])


class Readme(unittest.TestCase):
    def test_example_runs(self):
        with open(support.path("python", "README.md")) as file:
            program = file.read().split("```python\n")[1].split("```")[0]
        exec(compile(program, "python/README.md", "exec"), {})


if __name__ == "__main__":
    unittest.main()
