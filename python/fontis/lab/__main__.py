"""Flags in, calls out."""

import argparse
import sys
from collections.abc import Sequence

from fontis._native import FontisError, UsageError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a sub-command; gives the exit code: 0 done, 1 failed, 2 wrong usage."""
    parser = argparse.ArgumentParser(prog="fontis lab", description="The laboratory in Python.", allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    try:
        from fontis.lab import figure, report, sweep

        for module in (sweep, figure, report):
            module.add(commands)
        args = parser.parse_args(arguments)
        args.run(args)
    except UsageError as error:
        return _fail(error, 2)
    except (FontisError, ImportError, OSError) as error:
        return _fail(error, 1)
    except KeyboardInterrupt:
        return _fail("interrupted; what is finished is kept, and the same command goes on", 1)
    return 0


def _fail(error: object, code: int) -> int:
    print(f"fontis: {error}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
