#!/usr/bin/env python3
"""The CPU implementation beside PyTorch, alternated in one run.

    python3 benches/torch_cpu.py [--rows N] [--hidden N] [--rounds N] [--threads N ...]

Needs PyTorch 2, a C++ compiler for torch.compile, and cargo. Per element type and number of threads it times, by turns,
ours into the same buffers and into new ones, which is what PyTorch does, the same expression compiled by torch.compile, and
the same in eager mode; then ours in fast math, which PyTorch does not have. All give the same bytes in precise math, which
is checked. Prints a record for `cargo xtask bench-report`; with PTQ_RECORD=FILE also writes it there. The machine should
have nothing else to do.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

# Threads that wait for their next task by spinning would take the cores of whoever's turn it is.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch
import torch._inductor.config

ROOT = pathlib.Path(__file__).resolve().parent.parent
ELEMENTS = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
COLUMNS = ["element", "rows", "hidden", "math", "threads", "subject", "ms"]
E4M3_MAX = 448.0


def expression(x):
    """Precise math mode; no row of the input has scale zero."""
    x = x.float()
    s = x.abs().amax(dim=-1, keepdim=True) / E4M3_MAX
    q = (x * (1.0 / s)).clamp(-E4M3_MAX, E4M3_MAX).to(torch.float8_e4m3fn)
    return q, s


def as_bytes(tensor):
    return tensor.contiguous().view(torch.uint8).numpy().tobytes()


class Ours:
    """The example program `time_cpu`, which waits between calls."""

    def __init__(self, folder, element, x, math, threads):
        source, self.output = folder / "x", folder / "out"
        source.write_bytes(as_bytes(x))
        command = ["cargo", "run", "--quiet", "--locked", "--release", "--example", "time_cpu", "--"]
        command += [element, *map(str, x.shape), math, str(source), str(self.output)]
        environment = {**os.environ, "RAYON_NUM_THREADS": str(threads)}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.child = subprocess.Popen(command, cwd=ROOT, env=environment, **pipes)
        if self.child.stdout.readline() != "ready\n":
            sys.exit("time_cpu did not start; its own messages are above")

    def call(self, how):
        """Seconds."""
        self.child.stdin.write(how + "\n")
        self.child.stdin.flush()
        return int(self.child.stdout.readline()) / 1e9

    def close(self):
        self.child.stdin.close()
        if self.child.wait() != 0:
            sys.exit("time_cpu failed; its own messages are above")


def torch_call(function, x):
    """Seconds. The result lives until the clock is read, as a caller's would."""
    start = time.perf_counter()
    result = function(x)
    seconds = time.perf_counter() - start
    del result
    return seconds


def check(name, result, expected):
    q, s = result
    if as_bytes(q) + as_bytes(s) != expected:
        sys.exit(f"{name} gives other bytes than ours: the comparison means nothing")


def by_turns(subjects, rounds):
    """Median milliseconds of each, after one round that does not count."""
    times = {name: [] for name in subjects}
    for _ in range(rounds + 1):
        for name, call in subjects.items():
            times[name].append(call())
    return {name: statistics.median(seconds[1:]) * 1e3 for name, seconds in times.items()}


def measure(folder, element, shape, threads, rounds):
    """(math, subject, milliseconds) of one element type on so many threads."""
    torch.set_num_threads(threads)
    # torch.compile writes the number of threads into its code.
    torch._dynamo.reset()
    torch._inductor.config.cpp.threads = threads
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(shape, generator=generator).to(ELEMENTS[element])
    compiled = torch.compile(expression, dynamic=False)
    ours = Ours(folder, element, x, "precise", threads)
    expected = ours.output.read_bytes()
    check("PyTorch in eager mode", expression(x), expected)
    check("torch.compile", compiled(x), expected)
    subjects = {
        "ours": lambda: ours.call("reuse"),
        "ours new outputs": lambda: ours.call("allocate"),
        "torch.compile": lambda: torch_call(compiled, x),
    }
    for name, millis in by_turns(subjects, rounds).items():
        yield "precise", name, millis
    # Apart: it takes so long that the caches are cold for whoever comes after it.
    eager = {"eager": lambda: torch_call(expression, x)}
    for name, millis in by_turns(eager, max(rounds // 10, 3)).items():
        yield "precise", name, millis
    fast = Ours(folder, element, x, "fast", threads)
    pair = by_turns({"precise": lambda: ours.call("reuse"), "fast": lambda: fast.call("reuse")}, rounds)
    yield "fast", "ours", pair["fast"]
    yield "precise", "ours beside fast", pair["precise"]
    ours.close()
    fast.close()


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(": ", 1)[1]
    return "unknown"


def commit():
    said = os.environ.get("PTQ_COMMIT")
    if said:
        return said
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    described = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return described.stdout.strip() or "unknown"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--hidden", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=51)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    arguments = parser.parse_args()
    record = os.environ.get("PTQ_RECORD")
    if record and pathlib.Path(record).exists():
        sys.exit(f"{record} exists; name another PTQ_RECORD")
    lines = [
        "# record: cpu",
        f"# cpu: {processor()}, {os.cpu_count()} threads",
        f"# torch: {torch.__version__}",
        f"# rounds: {arguments.rounds}",
        f"# commit: {commit()}",
        ",".join(COLUMNS),
    ]
    print("\n".join(lines), flush=True)
    shape = (arguments.rows, arguments.hidden)
    for threads in arguments.threads:
        for element in ELEMENTS:
            with tempfile.TemporaryDirectory() as folder:
                for math, subject, millis in measure(pathlib.Path(folder), element, shape, threads, arguments.rounds):
                    values = [element, *shape, math, threads, subject, f"{millis:.4f}"]
                    lines.append(",".join(map(str, values)))
                    print(lines[-1], flush=True)
    if record:
        partial = pathlib.Path(record + ".partial")
        partial.write_text("\n".join(lines) + "\n")
        partial.rename(record)


if __name__ == "__main__":
    main()
