"""Load the mutant named in the environment before a test imports the store.

This is a plugin of pytest. Run `python -m pytest -p tornpage.properties.mutation.pytest_mutant` with the id of the
mutant in the environment variable TORNPAGE_MUTANT.
"""

import os

from tornpage.properties.mutation.loading import load_mutant
from tornpage.properties.mutation.mutants import mutant_of

if _wanted := os.environ.get("TORNPAGE_MUTANT", ""):
    load_mutant(mutant_of(_wanted))
