"""One-pass releases over a Parquet file against DataFusion's aggregates of the same columns, pair by pair in one run.

    cargo build --release -p reticent-engine --example scan_speed
    python3 benches/scan.py target/release/examples/scan_speed [pairs]

The quick form of the package bench-scan: the peer comes ready built (pip install datafusion==55.0.0). The
example writes the file (10 million rows) and scans it whenever a line arrives.
"""
import statistics
import subprocess
import sys
import time

from datafusion import SessionContext

binary = sys.argv[1]
pairs = int(sys.argv[2]) if len(sys.argv) > 2 else 9
child = subprocess.Popen([binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
path = child.stdout.readline().strip()
context = SessionContext()
context.register_parquet("t", path)


def ours():
    child.stdin.write("\n")
    child.stdin.flush()
    return float(child.stdout.readline())


def peer(queries):
    start = time.perf_counter()
    for sql in queries:
        context.sql(sql).collect()
    return time.perf_counter() - start


# The same statistics in two statements, and in one statement (which has to carry sums per group).
TWO = ["select age, count(*) from t group by age", "select sum(income), sum(hours) from t"]
ONE = ["select age, count(*), sum(income), sum(hours) from t group by age"]
ours(), peer(TWO), peer(ONE)
two, one = [], []
for _ in range(pairs):
    a, b, c = ours(), peer(TWO), peer(ONE)
    two.append(a / b)
    one.append(a / c)
    print(f"ours {a:.3f} s, DataFusion {b:.3f} s in two statements, {c:.3f} s in one; ratios {two[-1]:.2f}, {one[-1]:.2f}", flush=True)
print(f"median ratio {statistics.median(two):.2f} ({min(two):.2f} to {max(two):.2f}); "
      f"against one statement {statistics.median(one):.2f}")
child.stdin.close()
