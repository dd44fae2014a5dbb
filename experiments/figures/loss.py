#!/usr/bin/python3
"""Plots throughput over the loss rate of the links, from JSON reports of `erar bench --loss`."""
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402 (the backend is chosen before)
from matplotlib.ticker import FuncFormatter  # noqa: E402

from backend_style import clear_frame, conditions_text, size_text, styles_of, wrap  # noqa: E402
from bench_reports import run  # noqa: E402


def points_of(reports, backend):
    """(place on the axis, row) of the backend at each loss, None where it failed."""
    for place, report in enumerate(reports):
        for row in report["rows"]:
            if row["backend"] == backend:
                yield place, row if row["time_us_p50"] else None


def plot_backend(axes, points, style):
    measured = [(place, row) for place, row in points if row]
    places = [place for place, _ in measured]
    # Median, and the slowest to the fastest operation: busbw goes with 1 / time.
    medians = [row["busbw_GBps"] * 1e3 for _, row in measured]
    slowest = [row["busbw_GBps"] * 1e3 * row["time_us_p50"] / row["time_us_max"]
               for _, row in measured]
    fastest = [row["busbw_GBps"] * 1e3 * row["time_us_p50"] / row["time_us_min"]
               for _, row in measured]
    axes.fill_between(places, slowest, fastest, color=style["color"], alpha=0.18, linewidth=0)
    axes.plot(places, medians, linewidth=1.8, markersize=5, **style)


def write_ratios(axes, reports):
    """eRAR's gain at each loss, along the lower edge."""
    tcp = {place: row for place, row in points_of(reports, "tcp")}
    for place, row in points_of(reports, "erar"):
        if not row or place not in tcp:
            continue
        text = (f"{tcp[place]['time_us_p50'] / row['time_us_p50']:.1f}x" if tcp[place]
                else "TCP failed")
        axes.text(place, 0.02, text, transform=axes.get_xaxis_transform(), ha="center",
                  va="bottom", fontsize=8, color="#333333")


def plot(reports, output):
    reports = sorted(reports, key=lambda report: report["context"]["loss"])
    figure, axes = plt.subplots(figsize=(8.2, 5.4))
    backends = list(dict.fromkeys(row["backend"] for report in reports for row in report["rows"]))
    for backend, style in styles_of(backends).items():
        plot_backend(axes, list(points_of(reports, backend)), style)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xticks(range(len(reports)),
                    [f"{100 * report['context']['loss']:g} %" for report in reports])
    axes.grid(True, which="major", color="#dddddd", linewidth=0.7)
    clear_frame(axes)
    write_ratios(axes, reports)
    low, high = axes.get_ylim()
    axes.set_ylim(low / 2, high)  # room for the ratios
    axes.legend(loc="upper right", frameon=False)
    first = reports[0]
    context = first["context"]
    axes.set_xlabel("frames lost on each link, at the receiver's side (steps not to scale)")
    axes.set_ylabel("busbw of the allreduce (MB/s)")
    figure.suptitle(f"Allreduce of {size_text(first['rows'][0]['bytes'])} over links that lose frames",
                    fontsize=13)
    iterations = ", ".join(f"{report['context']['iters']}" for report in reports)
    text = wrap((conditions_text(context),
                 f"{context['dtype']}, {context['buffers']} buffers, MTU {context['mtu']}, offloads "
                 f"{context['offloads']}; both meet the same boxes and seeds; {iterations} operations",
                 "line: median, band: slowest to fastest operation, "
                 "numbers below: TCP's median time over eRAR's"), 8.2)
    figure.text(0.5, 0.925, text, ha="center", va="top", fontsize=8, color="#333333")
    figure.tight_layout(rect=(0, 0, 1, 0.945 - 0.028 * len(text.splitlines())))
    figure.savefig(output, dpi=150)


def check(report):
    if len({row["bytes"] for row in report["rows"]}) > 1:
        raise ValueError("has more than one size")
    if not report["context"]["fault_boxes"]:
        raise ValueError("was measured without fault boxes (--loss)")


if __name__ == "__main__":
    sys.exit(run(__doc__, plot, check))
