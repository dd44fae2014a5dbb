#!/usr/bin/python3
"""Plots throughput over message size from the JSON reports of `erar bench`, one panel for each."""
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402 (the backend is chosen before)
from matplotlib.ticker import FuncFormatter, NullLocator  # noqa: E402

from backend_style import clear_frame, conditions_text, size_text, styles_of, wrap  # noqa: E402
from bench_reports import run  # noqa: E402

def measured_rows(report, backend):
    """Rows that can be on a logarithmic plot, by size."""
    rows = [row for row in report["rows"] if row["backend"] == backend and row["bytes"] > 0]
    return sorted((row for row in rows if row["time_us_p50"]), key=lambda row: row["bytes"])


def plot_backend(axes, rows, style):
    sizes = [row["bytes"] for row in rows]
    # GB/s = bytes / us / 1000, as the report's own algbw_GBps.
    slowest = [row["bytes"] / row["time_us_max"] / 1e3 for row in rows]
    fastest = [row["bytes"] / row["time_us_min"] / 1e3 for row in rows]
    axes.fill_between(sizes, slowest, fastest, color=style["color"], alpha=0.18, linewidth=0)
    axes.plot(sizes, [row["algbw_GBps"] for row in rows], linewidth=1.8, markersize=5, **style)


def write_ratios(axes, report):
    """eRAR's gain at each size, along the lower edge of the panel."""
    tcp = {row["bytes"]: row["time_us_p50"] for row in measured_rows(report, "tcp")}
    for row in measured_rows(report, "erar"):
        if row["bytes"] not in tcp:
            continue
        ratio = tcp[row["bytes"]] / row["time_us_p50"]
        axes.text(row["bytes"], 0.02, f"{ratio:.1f}x", transform=axes.get_xaxis_transform(),
                  ha="center", va="bottom", fontsize=8, color="#333333")


def plot_panel(axes, report):
    context = report["context"]
    backends = list(dict.fromkeys(row["backend"] for row in report["rows"]))
    styles = styles_of(backends)
    sizes = set()
    for backend in backends:
        rows = measured_rows(report, backend)
        sizes.update(row["bytes"] for row in rows)
        if rows:
            plot_backend(axes, rows, styles[backend])
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(sorted(sizes))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(size_text))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.tick_params(axis="x", labelrotation=45, labelsize=8)
    axes.grid(True, which="major", color="#dddddd", linewidth=0.7)
    clear_frame(axes)
    write_ratios(axes, report)
    axes.set_title(f"{context['dtype']}, {context['buffers']} buffers\n"
                   f"MTU {context['mtu']}, offloads {context['offloads']}", fontsize=10)
    axes.set_xlabel("message size (bytes, 1024-based units)")


def subtitle_of(contexts, width_inches):
    """Conditions, those that all panels share."""
    return wrap((conditions_text(contexts[0]),
                 "line: median, band: slowest to fastest operation, "
                 "numbers below: TCP's median time over eRAR's"), width_inches)


def plot(reports, output):
    width_inches = max(6.5, 0.6 + 4.6 * len(reports))
    figure, panels = plt.subplots(1, len(reports), figsize=(width_inches, 5.2), sharey=True,
                                  squeeze=False)
    for axes, report in zip(panels[0], reports):
        plot_panel(axes, report)
    panels[0][0].set_ylabel("algbw: size / time of the allreduce (GB/s)")
    panels[0][0].legend(loc="upper left", frameon=False)
    low, high = panels[0][0].get_ylim()
    panels[0][0].set_ylim(low / 2, high)  # room for the ratios
    figure.suptitle("Allreduce throughput, TCP and eRAR on the same links", fontsize=13)
    subtitle = subtitle_of([report["context"] for report in reports], width_inches)
    figure.text(0.5, 0.925, subtitle, ha="center", va="top", fontsize=8, color="#333333")
    figure.tight_layout(rect=(0, 0, 1, 0.945 - 0.028 * len(subtitle.splitlines())))
    figure.savefig(output, dpi=150)


if __name__ == "__main__":
    sys.exit(run(__doc__, plot))
