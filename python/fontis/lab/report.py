"""``fontis lab report``."""

import argparse

from fontis import UsageError

EXAMPLES = """\
examples:
  The site, in the folder site; open site/index.html:
    fontis lab report
  One file to send to somebody:
    fontis lab report --single dfcp.html
  The dissertation alone:
    fontis lab report dfcp-000
  The claims on FLD_TCP and fairness:
    fontis lab report --book fld

What is recorded in the folder of claims is shown; nothing is run.
Exit codes: 0 if it is made, 1 if it failed, 2 for wrong usage."""


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Say what there is to say on the command line."""
    parser = commands.add_parser(
        "report",
        help="make the site that shows each paper's figures beside its claims",
        description="Make a static site: a page for each paper, each figure beside what is claimed about it.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run)
    parser.add_argument("works", nargs="*", metavar="WORK", help="papers, as in dfcp-000 [default: all of the book]")
    parser.add_argument("--book", default="dfcp", metavar="NAME", help="whose claims [default: dfcp]")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--folder", default="site", metavar="DIR", help="where the site goes [default: site]")
    where.add_argument("--single", metavar="FILE", help="one HTML file that needs nothing beside it")
    where.add_argument("--tables", metavar="DIR", help="write summary tables of all books in Markdown instead")


def run(args: argparse.Namespace) -> None:
    """Make the site, the file, or the tables."""
    from fontis import figures, report

    known = {figure.work for figure in figures.figures() if figure.work.split("-")[0] == args.book}
    for work in args.works:
        if work not in known:
            raise UsageError(f"there is no paper {work!r}; there are {', '.join(sorted(known))}")
    if args.tables:
        for path in report.tables(args.tables):
            print(path)
        return
    site = report.Site(args.single or args.folder, single=bool(args.single))
    print(report.build(site, args.book, args.works))
