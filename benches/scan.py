"""One-pass releases over a Parquet file against DataFusion's aggregates of the same columns, pair by pair in one run.

    cargo build --release -p reticent-engine --example scan_speed
    python3 benches/scan.py target/release/examples/scan_speed [pairs]

The peer comes ready built (pip install datafusion==55.0.0). The
example writes the file (10 million rows) and scans it whenever a line arrives.
"""
import os
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


def used():
    """Processor seconds of the example, in ticks of the kernel."""
    with open(f"/proc/{child.pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ours():
    before = used()
    child.stdin.write("\n")
    child.stdin.flush()
    seconds = float(child.stdout.readline())
    return seconds, used() - before


def peer(queries):
    start, processor = time.perf_counter(), time.process_time()
    for sql in queries:
        context.sql(sql).collect()
    return time.perf_counter() - start, time.process_time() - processor


# The same statistics in two statements, and in one statement (which has to carry sums per group).
TWO = ["select age, count(*) from t group by age", "select sum(income), sum(hours) from t"]
ONE = ["select age, count(*), sum(income), sum(hours) from t group by age"]
ours(), peer(TWO), peer(ONE)
two, one, work = [], [], []
for _ in range(pairs):
    (a, used_a), (b, used_b), (c, _) = ours(), peer(TWO), peer(ONE)
    two.append(a / b)
    one.append(a / c)
    work.append(used_a / used_b)
    print(f"ours {a:.3f} s, DataFusion {b:.3f} s in two statements, {c:.3f} s in one; ratios {two[-1]:.2f}, {one[-1]:.2f}; "
          f"processor time {used_a:.2f} s to {used_b:.2f} s", flush=True)
print(f"median ratio {statistics.median(two):.2f} ({min(two):.2f} to {max(two):.2f}), against one statement "
      f"{statistics.median(one):.2f}; of processor time {statistics.median(work):.2f}")
child.stdin.close()
