"""``fontis lab figure``."""

import argparse
import sys
from pathlib import Path

from fontis import FontisError, UsageError

EXAMPLES = """\
examples:
  Figure 4.1 of the dissertation, as SVG, PDF and PNG in the folder figures:
    fontis lab figure dfcp-000-f4.1
  All figures of the report of 2011 for which there are results:
    fontis lab figure dfcp-002 --format svg
  What there is:
    fontis lab figure --list

Exit codes: 0 if all is drawn, 1 if something could not be, 2 for wrong usage."""


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Say what there is to say on the command line."""
    parser = commands.add_parser(
        "figure",
        help="draw figures of papers from recorded runs",
        description="Draw figures of papers from recorded runs, with published values where the text gives them.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run)
    parser.add_argument(
        "figures", nargs="*", metavar="FIGURE", help="an identifier, as in dfcp-000-f4.1, or a work, as in dfcp-000"
    )
    parser.add_argument("--list", action="store_true", help="list the figures: redrawn, or why not")
    parser.add_argument("--run", dest="runs", action="store_true", help="run what is missing first; some runs take minutes")
    parser.add_argument("--format", action="append", choices=("svg", "pdf", "png"), help="may be given again [default: all]")
    parser.add_argument("--folder", default="figures", metavar="DIR", help="where figures go [default: figures]")


def run(args: argparse.Namespace) -> None:
    """Draw, or list."""
    from fontis import figures, plots

    if args.list:
        for figure in figures.figures():
            print(f"{figure.id:<16} {figure.title or 'not redrawn: ' + figure.why}")
        return
    if not args.figures:
        raise UsageError("name a figure, as in dfcp-000-f4.1; --list says which there are")
    wanted = [figure for name in args.figures for figure in figures.find(name)]
    folder = Path(args.folder)
    failures = 0
    for figure in wanted:
        try:
            drawn = figures.draw(figure, run=args.runs)
        except FontisError as error:
            print(f"fontis: {error}", file=sys.stderr)
            failures += 1
            continue
        except UsageError as error:
            # Of a whole work, those that are not redrawn are no failure.
            if len(wanted) == 1:
                raise
            print(error)
            continue
        folder.mkdir(parents=True, exist_ok=True)
        for kind in args.format or plots.FORMATS:
            print(plots.save(drawn, folder / f"{figure.id}.{kind}"))
        there, all_of_it = figures.coverage(figure)
        if there < all_of_it:
            print(f"fontis: {figure.id}: {there} of {all_of_it} runs are recorded; --run makes the others", file=sys.stderr)
    if failures:
        raise FontisError(f"{failures} of {len(wanted)} figures could not be drawn")
