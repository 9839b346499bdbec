import sys

from ci.change import main

sys.exit(main())
