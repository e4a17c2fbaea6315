"""What the tests share: the package's folder on the path, the recorded bytes of the reference, and what must not be skipped."""

import json
import os
import struct
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python"))

# As everywhere in this project: a test that needs a GPU then fails where it would be skipped.
REQUIRE_GPU = os.environ.get("PTQ_REQUIRE_GPU", "") not in ("", "0")

GOLDEN_HIDDEN = (4, 8, 36, 512, 1076, 1368)
DTYPES = ("f16", "bf16", "f32")


def path(*parts):
    """A file of the repository, or of the folder that PTQ_TEST_DATA names in its stead."""
    return os.path.join(os.environ.get("PTQ_TEST_DATA") or ROOT, *parts)


def golden():
    """Name → (shape, bytes) of tests/golden/sglang_h200.safetensors; its README says what they are."""
    with open(path("tests", "golden", "sglang_h200.safetensors"), "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    header.pop("__metadata__")
    return {name: (tuple(t["shape"]), data[slice(*t["data_offsets"])]) for name, t in header.items()}
