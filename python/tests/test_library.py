"""The C ABI through ctypes, on the CPU: needs nothing but the library."""

import ctypes
import os
import re
import unittest

import support
from ptq_fp8 import library
from ptq_fp8.library import PtqError, Quantizer


def address(memory):
    return ctypes.addressof(memory)


class Header(unittest.TestCase):
    """The numbers in Python are those of the header."""

    def setUp(self):
        try:
            with open(support.path("capi", "include", "ptq_fp8.h")) as file:
                self.header = file.read()
        except FileNotFoundError:
            self.skipTest("the header is not here")

    def test_numbers(self):
        values = {name: int(value) for name, value in re.findall(r"^\s*(PTQ_\w+) = (\d+),$", self.header, re.M)}
        for prefix, table in [
            ("PTQ_DTYPE_", library.DTYPES),
            ("PTQ_BACKEND_", library.BACKENDS),
            ("PTQ_MATH_", library.MATHS),
            ("PTQ_ZERO_ROWS_", library.ZERO_ROWS),
            ("PTQ_DISPATCH_", library.DISPATCHES),
            ("PTQ_GRANULARITY_", library.GRANULARITIES),
        ]:
            expected = {name[len(prefix) :].lower(): v for name, v in values.items() if name.startswith(prefix)}
            self.assertEqual(table, expected, prefix)
        self.assertEqual(values["PTQ_STATUS_UNSUPPORTED"], library.STATUS_UNSUPPORTED)
        self.assertEqual(values["PTQ_STATUS_NO_CONTEXT"], library.STATUS_NO_CONTEXT)
        version = tuple(int(n) for n in re.findall(r"^#define PTQ_VERSION_\w+ (\d+)$", self.header, re.M))
        self.assertEqual(version, library.VERSION)

    def test_structs(self):
        types = {"size_t": ctypes.c_size_t, "uint32_t": ctypes.c_uint32, "uint64_t": ctypes.c_uint64, "float": ctypes.c_float}
        for name, struct in [
            ("ptq_config", library.Config),
            ("ptq_per_token_args", library.PerTokenArgs),
            ("ptq_scaled_args", library.ScaledArgs),
            ("ptq_output_shape", library.OutputShape),
        ]:
            body = re.search(r"typedef struct \{([^}]*)\} " + name + ";", self.header).group(1)
            fields = re.findall(r"^\s*(?:const )?(\w+) (\*?)(\w+);$", body, re.M)
            expected = [(field, ctypes.c_void_p if pointer else types[kind]) for kind, pointer, field in fields]
            self.assertEqual(struct._fields_, expected, name)


class Bytes(unittest.TestCase):
    """Every byte that the reference wrote on an H200."""

    def test_golden(self):
        golden = support.golden()
        for math in ("fast", "precise"):
            quantizer = Quantizer("cpu", math, 132)
            self.assertEqual(quantizer.config(), ("cpu", math, 132))
            for dtype in support.DTYPES:
                for hidden in support.GOLDEN_HIDDEN:
                    group = f"{dtype}_h{hidden}"
                    (rows, columns), x = golden[f"{group}/input"]
                    self.assertEqual(columns, hidden)
                    for dispatch in ("cta", "warp"):
                        with self.subTest(group=group, math=math, dispatch=dispatch):
                            want_q = golden[f"{group}/q_{math}_{dispatch}"][1]
                            want_s = golden[f"{group}/s_{math}_{dispatch}"][1]
                            self.compare(quantizer, dtype, x, rows, hidden, dispatch, want_q, want_s)

    def compare(self, quantizer, dtype, x, rows, hidden, dispatch, want_q, want_s):
        poison = lambda want: bytes(byte ^ 0xFF for byte in want)
        tail = b"\xa5" * (16 * hidden)
        x_ = ctypes.create_string_buffer(x, len(x))
        for scaled in (False, True):
            q = ctypes.create_string_buffer(poison(want_q) + tail, len(want_q) + len(tail))
            s = ctypes.create_string_buffer(poison(want_s) + tail[:64], len(want_s) + 64)
            if scaled:
                operands = (address(x_), address(q), address(s), rows, hidden, rows + 16)
                quantizer.scaled_fp8_quant(dtype, "per_token", *operands, dispatch=dispatch)
            else:
                operands = (address(x_), address(q), address(s), rows, hidden, rows + 16)
                quantizer.per_token_quant_fp8(dtype, *operands, dispatch=dispatch)
            self.assertTrue(q.raw == want_q + tail, "codes")
            self.assertTrue(s.raw == want_s + tail[:64], "scales")


class Errors(unittest.TestCase):
    """Names and numbers that the wrapper refuses itself, and the library's own words."""

    def setUp(self):
        self.quantizer = Quantizer("cpu", "precise")

    def test_names(self):
        for make in (
            lambda: Quantizer("gpu"),
            lambda: Quantizer("cpu", "exact"),
            lambda: self.quantizer.load("f64"),
            lambda: self.quantizer.per_token_quant_fp8("f8", 0, 0, 0, 0, 4),
            lambda: self.quantizer.per_token_quant_fp8("f32", 0, 0, 0, 0, 4, zero_rows="keep"),
            lambda: self.quantizer.per_token_quant_fp8("f32", 0, 0, 0, 0, 4, dispatch="block"),
            lambda: self.quantizer.scaled_fp8_quant("f32", "per_block", 0, 0, 0, 0, 4),
        ):
            with self.assertRaisesRegex(ValueError, "expected one of"):
                make()

    def test_sizes(self):
        for sm_count in (-1, 1 << 32):
            with self.assertRaisesRegex(ValueError, rf"sm_count is {sm_count}, expected 0 to 2\*\*32 - 1"):
                Quantizer("cpu", sm_count=sm_count)
        for rows, hidden in ((-1, 4), (1, -4), (1 << 64, 4)):
            with self.assertRaisesRegex(ValueError, "expected 0 to"):
                self.quantizer.per_token_quant_fp8("f32", 64, 64, 64, rows, hidden)

    def test_library(self):
        with self.assertRaisesRegex(PtqError, "`hidden` is 6") as raised:
            self.quantizer.per_token_quant_fp8("f32", 64, 128, 192, 1, 6)
        self.assertEqual(library.load().ptq_status_message(raised.exception.status)[:9], b"the shape")
        with self.assertRaisesRegex(PtqError, "`x` is null"):
            self.quantizer.per_token_quant_fp8("f32", 0, 128, 192, 1, 4)
        self.assertEqual(library.scaled_fp8_output_shape("per_token", 1, 1076, 17), (17, 1076, 17))
        self.assertEqual(library.scaled_fp8_output_shape("per_tensor", 3, 1076), (3, 1076, 1))

    def test_closed(self):
        self.quantizer.close()
        with self.assertRaisesRegex(PtqError, "no live ptq_quantizer"):
            self.quantizer.load("f32")

    def test_path(self):
        named = os.environ.get("PTQ_LIB")
        try:
            os.environ["PTQ_LIB"] = "/nowhere/libptq_fp8.so"
            with self.assertRaisesRegex(OSError, "/nowhere/libptq_fp8.so"):
                library.load.__wrapped__()
        finally:
            if named is None:
                del os.environ["PTQ_LIB"]
            else:
                os.environ["PTQ_LIB"] = named


if __name__ == "__main__":
    unittest.main()
