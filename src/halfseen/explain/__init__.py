"""Why a model answers as it does: what each column adds, what is missing, how far a row is.

Columns are compared with those of typical rows, which are made of the source's quantiles that a
model's schema holds: no row of anybody is kept for it.
"""
