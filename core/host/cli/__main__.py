"""`python -m emberlet.host.cli COMMAND …`."""

import sys

from . import main

sys.exit(main())
