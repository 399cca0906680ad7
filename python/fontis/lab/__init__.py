"""The sub-commands of ``fontis lab`` in Python; ``fontis`` runs ``python -m fontis.lab``."""
