"""Agreement of word vectors with people: Spearman correlation on WordSim-353 and MEN.

    python benchmarks/vectors.py --data FOLDER [--vectors FILE]

The folder holds wordsim353.txt and men3k.txt. A pair is known when both its words have a vector;
the correlation is over the known pairs. Prints and writes results/vectors.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from scipy.stats import spearmanr  # no stubs are published

from tres_scrapy.topic.classifier import WordVectors

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"
PAIRS = {"WordSim-353": ("wordsim353.txt", 0.60), "MEN": ("men3k.txt", 0.62)}
MOST_MEGABYTES = 10


def correlation(vectors: WordVectors, file: Path) -> tuple[float, int, int]:
    """Return the rank correlation with people's scores, and the numbers of known and all pairs."""
    lines = file.read_text(encoding="utf-8").lower().splitlines()
    pairs = [line.split("\t") for line in lines]
    known = [pair for pair in pairs if pair[0] in vectors and pair[1] in vectors]
    first, second = (vectors.unit(words) for words in list(zip(*known, strict=True))[:2])
    found = spearmanr((first * second).sum(axis=1), [float(pair[2]) for pair in known])
    return float(found.statistic), len(known), len(pairs)


def report(file: Path, data: Path) -> list[str]:
    """Return the lines of the report on one file of vectors."""
    vectors = WordVectors.load(file)
    words, dimensions = vectors.matrix.shape
    lines = [
        "# Word vectors",
        "",
        f"Made by `python benchmarks/vectors.py` of `{file.name}`: {words} words of {dimensions} "
        "dimensions.",
        "",
        "| figure | value | goal | known pairs |",
        "|---|---|---|---|",
    ]
    for name, (pairs, goal) in PAIRS.items():
        rho, known, total = correlation(vectors, data / pairs)
        lines.append(f"| {name} (Spearman) | {rho:.3f} | >= {goal:.2f} | {known} of {total} |")
    lines.append(f"| size (MB) | {file.stat().st_size / 1e6:.1f} | <= {MOST_MEGABYTES} | |")
    return lines


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True)
    shipped = ROOT / "models" / "vectors" / "english.npz"
    parser.add_argument("--vectors", type=Path, default=shipped)
    options = parser.parse_args()
    lines = report(options.vectors, options.data)
    print(*lines, sep="\n")
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "vectors.md").write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
