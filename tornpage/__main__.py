"""`python -P -m tornpage`: the same as the command `tornpage`."""

import sys

from tornpage.guard import main

if __name__ == "__main__":
    sys.exit(main())
