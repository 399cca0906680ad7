"""``fontis lab sweep``."""

import argparse
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

from fontis import UsageError

EXAMPLES = """\
examples:
  Four points of a grid, each five times, with their confidence intervals:
    fontis lab sweep scenarios/basic/fifo.toml --grid topology.rtt=10ms,50ms --grid topology.loss=0,1% --reps 5
  The same on a Dask cluster:
    fontis lab sweep scenarios/basic/fifo.toml --grid topology.rtt=10ms,50ms --cluster tcp://scheduler:8786

What is there is not run again: an interrupted sweep goes on where it stopped.
Exit codes: 0 if all is done, 1 if it failed, 2 for wrong usage."""


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Say what there is to say on the command line."""
    parser = commands.add_parser(
        "sweep",
        help="run a scenario over a grid of settings",
        description="Run a scenario over a grid of settings, into one Parquet dataset that grows as runs finish.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run)
    parser.add_argument("scenario", metavar="SCENARIO", help="a file, or the id of a scenario")
    grid = "sweep a key over these values, beside what the scenario sweeps; may be given again"
    parser.add_argument("--grid", action="append", default=[], metavar="KEY=VALUE,...", help=grid)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="set a key; may be given again")
    parser.add_argument("--variant", action="append", metavar="NAME", help="this variant only; may be given again")
    parser.add_argument("--reps", type=int, metavar="N", help="repetitions, each with its own seed")
    parser.add_argument("--seed", type=int, metavar="N", help="the first repetition's seed")
    parser.add_argument("--quick", action="store_true", help="the quick variant of a scenario that has one")
    parser.add_argument("--folder", metavar="DIR", help="where results go [default: sweeps/ID]")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--threads", type=int, metavar="N", help="threads [default: one for each core]")
    where.add_argument("--processes", type=int, metavar="N", help="processes in place of threads")
    where.add_argument("--cluster", metavar="ADDRESS", help="a Dask scheduler, as in tcp://host:8786")
    parser.add_argument("--metric", default="goodput", metavar="NAME", help="what the table shows [default: goodput]")
    parser.add_argument("--subject", default="all", metavar="NAME", help="of what [default: all]")
    out = "also write all metrics of all runs as one file, Parquet or CSV by its ending"
    parser.add_argument("--output", metavar="FILE", help=out)


def run(args: argparse.Namespace) -> None:
    """Sweep, and show a table."""
    from fontis.sweeps import sweep, write_summary

    for name in ("reps", "threads", "processes"):
        if getattr(args, name) is not None and getattr(args, name) < 1:
            raise UsageError(f"--{name} must be at least 1")
    grid = {key: values.split(",") for key, values in map(_assignment, args.grid)}
    executor = _executor(args)
    try:
        done = sweep(
            args.scenario,
            grid,
            args.reps,
            executor,
            folder=args.folder,
            set=dict(map(_assignment, args.set)),
            variants=args.variant,
            quick=args.quick,
            seed=args.seed,
        )
    finally:
        if hasattr(executor, "shutdown") and not args.cluster:
            executor.shutdown(cancel_futures=True)
    if args.output:
        write_summary(done, args.output)
    print(f"{args.metric} of {args.subject}: means, with their 95 % confidence intervals")
    show(done.statistics(args.metric, args.subject).to_pydict())
    print(f"{len(done.points)} runs, {done.kept} of them from before, in {done.folder}")


def _executor(args: argparse.Namespace) -> Any:
    if args.threads:
        return ThreadPoolExecutor(args.threads)
    if args.processes:
        return ProcessPoolExecutor(args.processes)
    if args.cluster:
        try:
            from distributed import Client
        except ImportError as error:
            raise ImportError("a cluster needs Dask: pip install 'fontis[cluster]', or distributed alone") from error
        connect: Any = Client
        return connect(args.cluster)
    return None


def _assignment(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"{text!r}: write KEY=VALUE, as in topology.rtt=100ms")
    return key.strip(), value.strip()


def show(columns: dict[str, list[Any]]) -> None:
    """Print columns as a table."""

    def cell(value: Any) -> str:
        return f"{value:.4g}" if isinstance(value, float) else str(value)

    shown = {name: values for name, values in columns.items() if any(value != "" for value in values)}
    rows = [list(shown), *([cell(value) for value in row] for row in zip(*shown.values(), strict=True))]
    widths = [max(len(row[at]) for row in rows) for at in range(len(shown))]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
