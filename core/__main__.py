"""`python -m emberlet COMMAND …`: the command line, where its script is not on the path."""

import sys

from .host.cli import main

sys.exit(main())
