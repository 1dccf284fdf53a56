"""A private logistic fit against scikit-learn's plain one: same rows, same penalty, pair by pair in one run.

    cargo build --release -p reticent-mechanisms --example logistic_file
    python3 benches/logistic.py target/release/examples/logistic_file [rows] [columns] [pairs]

Needs numpy and scikit-learn. Covariates x ~ N(0, I)/(1.5 sqrt d), rows longer than 1 scaled to 1; outcome from a
logistic model with coefficients 3 sqrt d times a unit direction and intercept -.5.
"""
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

# The peer chooses its own kernels.
for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(name, None)

import numpy as np
from sklearn.linear_model import LogisticRegression

binary = sys.argv[1]
n, d, pairs = (int(a) for a in (sys.argv[2:] + ["1000000", "50", "5"][len(sys.argv) - 2:]))


def rows():
    rng = np.random.Generator(np.random.PCG64(20180417))
    direction = rng.standard_normal(d)
    beta = 3 * np.sqrt(d) * direction / np.linalg.norm(direction)
    x = rng.standard_normal((n, d)) / (1.5 * np.sqrt(d))
    x /= np.maximum(1, np.linalg.norm(x, axis=1))[:, None]
    y = (rng.random(n) < 1 / (1 + np.exp(0.5 - x @ beta))).astype(float)
    return x, y


def ours(path):
    def used():
        u = resource.getrusage(resource.RUSAGE_CHILDREN)
        return u.ru_utime + u.ru_stime

    before = used()
    run = subprocess.run([binary, path, str(d)], capture_output=True, text=True, check=True)
    return *(float(w) for w in run.stdout.split()), used() - before


def peer(x, y):
    start, processor = time.perf_counter(), time.process_time()
    fit = LogisticRegression(C=0.4).fit(x, y)
    return time.perf_counter() - start, int(fit.n_iter_[0]), time.process_time() - processor


x, y = rows()
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "rows.f64")
    np.column_stack([x, y]).astype("<f8").tofile(path)
    ours(path)
    fits, wholes, peaks, works = [], [], [], []
    for _ in range(pairs):
        total, reading, peak, work = ours(path)
        other, steps, other_work = peer(x, y)
        fits.append((total - reading) / other)
        wholes.append(total / other)
        peaks.append(peak)
        works.append(work / other_work)
        print(f"ours {total:.2f} s (reading {reading:.2f}), scikit-learn {other:.2f} s ({steps} steps), "
              f"ratio {fits[-1]:.2f}, with reading {wholes[-1]:.2f}, processor time {work:.2f} s to {other_work:.2f} s, peak {peak:.2f} of the design", flush=True)
print(f"{n} x {d}: median ratio {statistics.median(fits):.2f} ({min(fits):.2f} to {max(fits):.2f}), "
      f"with our reading of the file {statistics.median(wholes):.2f}, "
      f"of processor time with reading {statistics.median(works):.2f}, peak memory {max(peaks):.2f} of the f64 design")
