#!/usr/bin/python3
"""Plots the largest errors of sums from the JSON report of `erar numerics`, one panel per input."""
import argparse
import json
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402 (the backend is chosen before)
from matplotlib.ticker import FuncFormatter, NullLocator  # noqa: E402

from backend_style import clear_frame  # noqa: E402

# Okabe and Ito's colours, which colour-blind readers tell apart; markers and dashes for grey print.
STYLES = {
    "erar": {"label": "eRAR", "color": "#0072B2", "marker": "o", "linestyle": "-"},
    "erar-compressed": {"label": "eRAR, compressed to 16 bits", "color": "#009E73", "marker": "^",
                        "linestyle": "-."},
    "float32-ring": {"label": "ring of float32 additions", "color": "#D55E00", "marker": "s",
                     "linestyle": "--"},
    "scaled-int32": {"label": "int32, scaled by 1e8", "color": "#CC79A7", "marker": "D",
                     "linestyle": ":"},
}


def points_of(rows, method):
    """(ranks, relative error) pairs; an error of zero has no place on a logarithmic axis."""
    mine = sorted((row for row in rows if row["method"] == method), key=lambda row: row["ranks"])
    return [(row["ranks"], row["largest_error"] / row["largest_sum"]) for row in mine
            if row["largest_error"] > 0 and row["largest_sum"] > 0]


def plot_panel(axes, rows, title):
    for method, style in STYLES.items():
        points = points_of(rows, method)
        # An empty line still gives the legend its entry.
        axes.plot([ranks for ranks, _ in points], [error for _, error in points], linewidth=1.6,
                  markersize=5, **style)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(sorted({row["ranks"] for row in rows}))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.grid(True, which="major", color="#dddddd", linewidth=0.7)
    clear_frame(axes)
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("ranks")


def plot(report, output):
    rows = report["rows"]
    inputs = list(dict.fromkeys(row["input"] for row in rows))
    figure, panels = plt.subplots(1, len(inputs), figsize=(max(6.5, 0.8 + 2.4 * len(inputs)), 4.6),
                                  sharey=True, squeeze=False)
    for axes, name in zip(panels[0], inputs):
        plot_panel(axes, [row for row in rows if row["input"] == name], name)
    panels[0][0].set_ylabel("largest error / largest sum")
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=len(labels), frameon=False, fontsize=9)
    context = report["context"]
    figure.suptitle("Largest error of float32 sums against the exact sum\n", fontsize=13)
    figure.text(0.5, 0.925, f"{context['count']} elements, seed {context['seed']}, "
                f"erar {context['commit']}; errors of zero are not shown",
                ha="center", va="top", fontsize=8, color="#333333")
    figure.tight_layout(rect=(0, 0.06, 1, 0.96))
    figure.savefig(output, dpi=150)


def read_report(path):
    report = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    if not any(row["largest_error"] > 0 and row["largest_sum"] > 0 for row in report["rows"]):
        raise ValueError("no row has an error to show")
    for field in ("count", "seed", "commit"):
        report["context"][field]  # KeyError where it is another command's
    return report


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", help="JSON file that `erar numerics --json` wrote")
    parser.add_argument("--output", required=True, help="the PNG file to write")
    arguments = parser.parse_args()
    try:
        report = read_report(arguments.report)
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"numerics.py: {arguments.report}: {error}", file=sys.stderr)
        return 1
    plot(report, arguments.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
