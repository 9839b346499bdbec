"""`python -m controlplane`; see `cli.py`."""

import sys

from controlplane.cli import main

sys.exit(main())
