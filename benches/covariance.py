"""A private covariance release against numpy's plain X'X of the same rows, both in memory, pair by pair in one run.

    cargo build --release -p reticent-statistics --example covariance_speed
    python3 benches/covariance.py target/release/examples/covariance_speed [rows] [columns] [pairs]

Needs numpy. Rows are uniform in [-1, 1]. The peer is one call, x.T @ x; ours clamps, rounds, sums exactly, adds noise, and
computes the means, covariance, repair and correlation.
"""
import os
import statistics
import subprocess
import sys
import tempfile
import time

# The peer chooses its own kernels.
for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OPENBLAS_NUM_THREADS"):
    os.environ.pop(name, None)

import numpy as np

binary = sys.argv[1]
n, d, pairs = (int(a) for a in (sys.argv[2:] + ["1000000", "20", "9"][len(sys.argv) - 2:]))
x = np.random.Generator(np.random.PCG64(20180417)).uniform(-1, 1, (n, d))
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "rows.f64")
    x.astype("<f8").tofile(path)
    child = subprocess.Popen([binary, path, str(d)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline().strip() == "ready"


def used():
    """Processor seconds of the example."""
    with open(f"/proc/{child.pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ours():
    before = used()
    child.stdin.write("\n")
    child.stdin.flush()
    seconds = float(child.stdout.readline())
    return seconds, used() - before


def peer():
    start, processor = time.perf_counter(), time.process_time()
    product = x.T @ x
    assert np.isfinite(product).all()
    return time.perf_counter() - start, time.process_time() - processor


ours(), peer()
wall, work = [], []
for _ in range(pairs):
    (a, used_a), (b, used_b) = ours(), peer()
    wall.append((a, b))
    work.append((used_a, used_b))
    print(f"ours {a:.3f} s, numpy {b:.3f} s, ratio {a / b:.2f}; processor time {used_a:.2f} s to {used_b:.2f} s", flush=True)
ratios = [a / b for a, b in wall]
print(f"{n} x {d}: median ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}); "
      f"of the fastest runs {min(a for a, _ in wall) / min(b for _, b in wall):.2f}; "
      f"of processor time in all {sum(a for a, _ in work) / sum(b for _, b in work):.2f}")
child.stdin.close()
