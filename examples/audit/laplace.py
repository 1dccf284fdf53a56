"""A count with Laplace noise, and one with half the noise it needs, for `reticent audit`."""
import math, os, random, sys

rows = [line for line in sys.stdin if line.strip()][1:]  # a header, then one record per line
scale = 0.5 if "--half" in sys.argv else 1.0             # epsilon 1 needs scale 1
for _ in range(int(os.environ.get("RETICENT_RUNS", "1"))):
    u = random.SystemRandom().random() - 0.5
    noise = -scale * math.copysign(1, u) * math.log(1 - 2 * abs(u))
    print(round(len(rows) + noise))                      # rounded: the last bits would tell
