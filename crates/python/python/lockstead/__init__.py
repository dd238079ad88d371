"""lockstead for Python: locks between processes, and what waits for what.

`lockstead.shared` has the locks. `patch_multiprocessing` puts them under programs that use
multiprocessing's. `dump` and `watch` show who waits for whom in a running program.
"""

from lockstead._patch import patch_multiprocessing, unpatch_multiprocessing
from lockstead._tool import Watch, dump, watch

__all__ = ["Watch", "dump", "patch_multiprocessing", "unpatch_multiprocessing", "watch"]
__version__ = "0.1.0"
