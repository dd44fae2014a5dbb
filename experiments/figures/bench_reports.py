"""The command line of scripts that plot several reports of `erar bench`."""
import argparse
import json
import pathlib
import sys


def read_report(path):
    """ValueError: it cannot be plotted."""
    report = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    if not any(row["time_us_p50"] for row in report["rows"]):
        raise ValueError("no row has a time")
    return report


def run(description, plot, check=lambda report: None):
    """Calls plot(reports, output) with those that can be read and pass the check; the others are
    named. Returns the exit status."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("reports", nargs="+", help="JSON files that `erar bench --json` wrote")
    parser.add_argument("--output", required=True, help="the PNG file to write")
    arguments = parser.parse_args()
    reports = []
    for path in arguments.reports:
        try:
            report = read_report(path)
            check(report)
            reports.append(report)
        except (OSError, ValueError, KeyError, TypeError) as error:
            print(f"{parser.prog}: {path} left out: {error}", file=sys.stderr)
    if not reports:
        return 1
    plot(reports, arguments.output)
    return 0
