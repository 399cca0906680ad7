"""The sub-commands of ``fontis lab`` that are written in Python; the command ``fontis`` runs them as ``python -m fontis.lab``."""
