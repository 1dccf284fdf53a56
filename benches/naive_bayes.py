"""A private naive Bayes fit on short texts against scikit-learn's plain BernoulliNB, pair by pair in one run.

    cargo build --release -p reticent-statistics --example naive_bayes_speed
    python3 benches/naive_bayes.py target/release/examples/naive_bayes_speed [texts] [words] [slots] [pairs]

Needs numpy, scipy and scikit-learn. Both have the texts in memory as numbers of distinct words: ours as slots, the peer as a CSR
matrix of 0/1, which is its own form; neither tokenises. Word numbers are drawn in proportion to 1/rank (a third of the places from
the other end of the list in class 1), texts have at most so many words, and words drawn twice count once. Ours counts, adds noise at
epsilon = 1, and reads the classifier back; the peer's call is `BernoulliNB(binarize=None).fit`. Exact counts are compared first.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
from scipy import sparse
from sklearn.naive_bayes import BernoulliNB

binary = sys.argv[1]
defaults = ["1000000", "10000", "10", "9"]
n, words, slots, pairs = (int(a) for a in sys.argv[2:] + defaults[len(sys.argv) - 2:])

rng = np.random.Generator(np.random.PCG64(20180417))
weights = 1 / np.arange(1, words + 1)
ends = np.cumsum(weights / weights.sum())
y = rng.integers(0, 2, n).astype(np.uint32)
drawn = np.minimum(np.searchsorted(ends, rng.random((n, slots))), words - 1)
flipped = (rng.random((n, slots)) < 1 / 3) & (y == 1)[:, None]
drawn = np.sort(np.where(flipped, words - 1 - drawn, drawn), axis=1)
again = np.zeros_like(drawn, dtype=bool)
again[:, 1:] = drawn[:, 1:] == drawn[:, :-1]
texts = np.where(again, words, drawn).astype("<u4")
kept = ~again
x = sparse.csr_matrix(
    (np.ones(int(kept.sum())), drawn[kept].astype(np.int32), np.concatenate([[0], np.cumsum(kept.sum(axis=1))])),
    shape=(n, words),
)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "texts.u32")
    np.column_stack([y.astype("<u4"), texts]).tofile(path)
    child = subprocess.Popen([binary, path, str(words), str(slots)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline().strip() == "ready"


def ask(line):
    child.stdin.write(line + "\n")
    child.stdin.flush()
    return child.stdout.readline()


def used():
    """Processor seconds of the example."""
    with open(f"/proc/{child.pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ours():
    before = used()
    seconds = float(ask(""))
    return seconds, used() - before


def peer():
    start, processor = time.perf_counter(), time.process_time()
    fit = BernoulliNB(binarize=None).fit(x, y)
    assert np.isfinite(fit.feature_log_prob_).all()
    return time.perf_counter() - start, time.process_time() - processor


exact = json.loads(ask("exact"))
ours_counts = np.array([exact[f"w{w}"] for w in range(words)], dtype=float).T
assert (ours_counts == BernoulliNB(binarize=None).fit(x, y).feature_count_).all(), "the two count differently"
ours(), peer()
wall, work = [], []
for _ in range(pairs):
    (a, used_a), (b, used_b) = ours(), peer()
    wall.append((a, b))
    work.append((used_a, used_b))
    print(f"ours {a:.3f} s, scikit-learn {b:.3f} s, ratio {a / b:.2f}; processor time {used_a:.2f} s to {used_b:.2f} s", flush=True)
ratios = [a / b for a, b in wall]
print(f"{n} texts, {words} words, {slots} slots, {x.nnz / n:.1f} words per text: median ratio {statistics.median(ratios):.2f} "
      f"({min(ratios):.2f} to {max(ratios):.2f}); of the fastest runs {min(a for a, _ in wall) / min(b for _, b in wall):.2f}; "
      f"of processor time in all {sum(a for a, _ in work) / sum(b for _, b in work):.2f}")
child.stdin.close()
