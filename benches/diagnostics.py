"""Three diagnostics of a million scored records against the predictions alone.

    python3 benches/diagnostics.py target/release/reticent [pairs]

One CSV file of a million records, ten numeric columns and two outcomes. Compared, pair by pair, whole processes each:
a ROC curve, a binned residual plot and a residual plot of released models (one plan, one report), with
(1) a plan that computes every record's predicted probability and adds them up, (2) `reticent predict`, which writes them.
"""

import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from math import exp
from pathlib import Path

ROWS, COLUMNS = 1_000_000, 10


def data(folder: Path) -> None:
    random.seed(1)
    weights = [random.gauss(0, 1) for _ in range(COLUMNS)]
    names = [f"x{i}" for i in range(COLUMNS)]
    with open(folder / "t.csv", "w") as out:
        out.write(",".join([*names, "y", "z"]) + "\n")
        for _ in range(ROWS):
            x = [round(random.uniform(-1, 1), 4) for _ in names]
            eta = sum(a * b for a, b in zip(x, weights))
            y = int(random.random() < 1 / (1 + exp(-eta)))
            z = round(eta + random.gauss(0, 1), 4)
            out.write(",".join(map(str, [*x, y, z])) + "\n")
    columns = "".join(f'[columns.{n}]\ntype = "real"\nlower = -1\nupper = 1\n' for n in names)
    (folder / "d.toml").write_text(
        'version = 1\nid = "d"\ndata_version = "1"\nsource = { path = "t.csv", format = "csv" }\n'
        f'neighbours = "add_remove"\nunit = "row"\nsize_hint = {ROWS}\n'
        '[budget]\nepsilon = "100000"\ndelta = "1e-6"\n[ledger]\npath = "d.ledger"\nauto_register = true\n'
        + columns
        + '[columns.y]\ntype = "integer"\nlower = 0\nupper = 1\n[columns.z]\ntype = "real"\nlower = -20\nupper = 20\n'
    )


def plan(folder: Path, name: str, releases: list[str]) -> None:
    text = "".join(f'[[release]]\nepsilon = "1"\n{r}\n' for r in releases)
    (folder / f"{name}.toml").write_text(f'version = 1\ndataset = "d.toml"\n{text}')


def timed(folder: Path, command: list[str]) -> tuple[float, float]:
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with open(folder / "stdout", "w") as out:
        subprocess.run(command, cwd=folder, check=True, stdout=out, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - start, used


def main() -> None:
    binary = str(Path(sys.argv[1]).resolve())
    pairs = int(sys.argv[2]) if len(sys.argv) > 2 else 9
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data(folder)
        sum_of = " + ".join(f"x{i}" for i in range(COLUMNS))
        fits = [
            f'id = "log"\nkind = "logistic"\nformula = "y ~ {sum_of}"',
            f'id = "lin"\nkind = "linear"\ndelta = "1e-7"\nformula = "z ~ {sum_of}"',
        ]
        plan(folder, "fit", fits)
        timed(folder, [binary, "run", "fit.toml"])
        released = json.loads((folder / "out/fit/release.json").read_text())
        terms = released["releases"][0]["value"]["terms"]
        score = " + ".join(
            f"({t['estimate']})" + ("" if t["name"] == "(Intercept)" else f" * {t['name']}") for t in terms
        )
        ratios: dict[str, list[tuple[float, float]]] = {"sum of predictions": [], "predict": []}
        model = "out/fit/release.json#"
        for i in range(pairs):
            fresh = f"repeat = {i}"
            kinds = [("roc", "log"), ("binned_residuals", "log"), ("residuals", "lin")]
            plan(folder, f"a{i}", [f'id = "{k}"\nkind = "{k}"\nmodel = "{model}{m}"\n{fresh}' for k, m in kinds])
            plan(folder, f"b{i}", [f'id = "s"\nkind = "sum"\nof = "1 / (1 + exp(0 - ({score})))"\n{fresh}'])
            ours = timed(folder, [binary, "run", f"a{i}.toml"])
            others = {
                "sum of predictions": timed(folder, [binary, "run", f"b{i}.toml"]),
                "predict": timed(folder, [binary, "predict", f"{model}log", "t.csv"]),
            }
            for what, other in others.items():
                ratios[what].append((ours[0] / other[0], ours[1] / other[1]))
        for what, found in ratios.items():
            wall, used = ([f[k] for f in found] for k in (0, 1))
            print(
                f"{what}: wall {statistics.median(wall):.2f} ({min(wall):.2f} to {max(wall):.2f}), "
                f"processor {statistics.median(used):.2f}, {pairs} pairs"
            )


main()
