"""Replay of event files through the command, against a plain count of the same lines.

    python3 benches/replay.py target/release/reticent [pairs] [--against OTHER]

300,000 events of 210 ticks and 10 states, a lateness of 10 ticks, as CSV without and with a unit and as JSON lines, and a folder of
4,000 files of 5 events. Compared, run by run, whole processes each: `reticent stream --simulate 5`, and Python's readers
counting events by tick and state (distinct units where there are units). With `--against`, another build in the place of
the count; its released lines must then be the same.
"""

import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EVENTS, TICKS, STATES, FILES = 300_000, 210, 10, 4_000

COUNT = """
import csv, json, pathlib, sys
tick = lambda t: int(t) // 10
for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    seen = {}
    with open(path) as lines:
        rows = map(json.loads, lines) if sys.argv[2] == "jsonl" else csv.DictReader(lines)
        for row in rows:
            key = tick(row["time"]), row["state"]
            seen.setdefault(key, set()).add(row["who"]) if "who" in row else seen.__setitem__(key, seen.get(key, 0) + 1)
"""


def events(folder: Path, kind: str) -> None:
    """Times within ten ticks of their order; where there are many files, in order."""
    random.seed(1)
    source = folder / "in"
    source.mkdir()
    if kind == "files":
        for i in range(FILES):
            at = i * TICKS * 10 // FILES
            rows = "".join(f"{at},s{random.randrange(STATES)}\n" for _ in range(5))
            (source / f"{i:05}.csv").write_text("time,state\n" + rows)
        return
    with open(source / ("a.jsonl" if kind == "jsonl" else "a.csv"), "w") as out:
        unit = kind != "plain"
        if kind != "jsonl":
            out.write("time,state,who\n" if unit else "time,state\n")
        for i in range(EVENTS):
            t = max(0, i * TICKS * 10 // EVENTS - random.randrange(100))
            s, who = f"s{random.randrange(STATES)}", f"u{random.randrange(50_000)}"
            if kind == "jsonl":
                out.write(f'{{"time": {t}, "state": "{s}", "who": "{who}"}}\n')
            else:
                out.write(f"{t},{s},{who}\n" if unit else f"{t},{s}\n")


def declaration(kind: str, run: str) -> str:
    states = ", ".join(f'"s{i}"' for i in range(STATES))
    unit = 'unit = "who"\n' if kind in ("units", "jsonl") else ""
    return (
        f'format = 1\nname = "replay"\nepsilon = 1\nstates = [{states}]\n'
        f'[source]\npath = "in"\nformat = "{"jsonl" if kind == "jsonl" else "csv"}"\n{unit}'
        f'[ticks]\nwidth = 10\nstart = 0\nend = {TICKS * 10}\nclock = "events"\nlateness = 100\n'
        f'[output]\nreleases = "{run}/out.jsonl"\nstate = "{run}/s.state"\nledger = "{run}/s.ledger"\ndead_letters = "{run}/bad"\n'
    )


def timed(command: list[str], folder: Path) -> float:
    start = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    words = sys.argv[1:]
    other = None
    if "--against" in words:
        at = words.index("--against")
        other = str(Path(words[at + 1]).resolve())
        del words[at : at + 2]
    binary = str(Path(words[0]).resolve())
    pairs = int(words[1]) if len(words) > 1 else 3
    for kind in ("plain", "units", "jsonl", "files"):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            events(folder, kind)

            def stream(program: str, run: str) -> float:
                (folder / "stream.toml").write_text(declaration(kind, run))
                return timed([program, "stream", "stream.toml", "--simulate", "5"], folder)

            ours, theirs = [], []
            for i in range(pairs):
                ours.append(stream(binary, f"a{i}"))
                if other is None:
                    form = "jsonl" if kind == "jsonl" else "csv"
                    theirs.append(timed([sys.executable, "-c", COUNT, "in", form], folder))
                else:
                    theirs.append(stream(other, f"b{i}"))
                    same = (folder / f"a{i}/out.jsonl").read_bytes() == (folder / f"b{i}/out.jsonl").read_bytes()
                    assert same, "the builds release different lines"
            ratios = sorted(a / b for a, b in zip(ours, theirs))
            number = FILES * 5 if kind == "files" else EVENTS
            print(
                f"{kind}: {number / statistics.median(ours):,.0f} events/s; time over the {'count' if other is None else 'other build'}: "
                f"median {statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f}) of {pairs} pairs",
                flush=True,
            )


main()
