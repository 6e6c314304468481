"""Torture: kills, faults, power cuts, damaged files, hostile tables and hostile requests.

    PYTHONPATH=benchmarks python -m torture --seconds 60 --seed 0

Each class of cases gets the same time. A case survives if nothing is lost, nothing is accepted with
another answer, and what is refused is refused with a sentence of halfseen's own (over HTTP: with a
status of class 4xx). The input of a case that fails is kept in ``--failures``; that of a case that
ends this very process stays in its temporary folder.
"""
