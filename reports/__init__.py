"""Numbers, plots and HTML pages of runs, from result tables only.

Importing this package loads neither plots nor pages.
"""
