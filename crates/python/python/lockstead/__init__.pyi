from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal, overload

from lockstead.shared import _Deaths

__version__: str

def patch_multiprocessing(on_owner_death: _Deaths = ..., *, queues: bool = False) -> None: ...
def unpatch_multiprocessing() -> None: ...
@overload
def dump(
    pid: int | None = None, *, all: bool = False, json: Literal[False] = False, timeout: float = 60
) -> str: ...
@overload
def dump(
    pid: int | None = None, *, all: bool = False, json: Literal[True], timeout: float = 60
) -> dict[str, Any]: ...

class Watch:
    def __init__(self, report: Callable[[str], object], interval: float, pid: int | None) -> None: ...
    def stop(self) -> None: ...
    def __enter__(self) -> Watch: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

def watch(
    report: Callable[[str], object] = ..., *, interval: float = 5.0, pid: int | None = None
) -> Watch: ...
