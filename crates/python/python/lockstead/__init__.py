"""lockstead for Python: locks between processes, and what waits for what.

`lockstead.shared` has the locks. `patch_multiprocessing` puts them under programs that use
multiprocessing's. `dump` and `watch` show who waits for whom in a running program.
"""

from lockstead._patch import patch_multiprocessing, unpatch_multiprocessing

__all__ = ["Watch", "dump", "patch_multiprocessing", "unpatch_multiprocessing", "watch"]
__version__ = "0.1.0"


def __getattr__(name):
    # What starts the command is imported when it is asked for: few processes of many do.
    if name in ("Watch", "dump", "watch"):
        from lockstead import _tool

        return getattr(_tool, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return [*globals(), "Watch", "dump", "watch"]
