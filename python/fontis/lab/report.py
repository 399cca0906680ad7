"""``fontis lab report``."""

import argparse


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Say what there is to say on the command line."""
