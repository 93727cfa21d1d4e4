"""Map over chunks of large data: in this process, or by joblib in several processes or on a cluster.

Chunks depend on the data only and not on the number of processes, so that all backends give the same results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import cached_property
from importlib.util import find_spec
from itertools import chain, islice
from typing import Any, ClassVar, TypeVar

from pytest_fairness.errors import FairnessError

T = TypeVar("T")
ResultT = TypeVar("ResultT")

CHUNKS_OF_A_PROCESS = 8
"""Number of chunks in memory at a time, for each process."""
WITHOUT_DASHBOARD: dict[str, Any] = {"dashboard_address": None, "scheduler_kwargs": {"dashboard_address": ":0"}}
"""Options of a local Dask cluster: no dashboard, and any free port for the scheduler's HTTP server.

The default port of this server, 8787, gives a warning if another cluster on the machine uses it.
"""
PACKAGES = {"joblib": "joblib", "dask": "distributed", "ray": "ray"}
"""Package that each backend needs."""


class Backend:
    """Backend of joblib that `map_chunks` uses until it is closed; processes start when they are first needed.

    Raises:
        FairnessError: the package of the backend is not installed.
    """

    current: ClassVar[Backend | None] = None

    def __init__(self, name: str) -> None:
        require_package(name)
        self._name, self._outer, self._opened = name, Backend.current, ExitStack()
        Backend.current = self

    @cached_property
    def processes(self) -> tuple[Any, int]:
        """Joblib's `Parallel` with the started processes, and their number."""
        import joblib

        options: dict[str, Any] = {}
        if self._name == "dask":
            import dask.config
            from distributed import Client

            local = {} if dask.config.get("scheduler-address", None) else {"threads_per_worker": 1, **WITHOUT_DASHBOARD}
            options["client"] = self._opened.enter_context(Client(set_as_default=False, **local))
        elif self._name == "ray":
            from ray.util.joblib import register_ray

            register_ray()
        with joblib.parallel_config("loky" if self._name == "joblib" else self._name, n_jobs=-1, **options):
            return self._opened.enter_context(joblib.Parallel(max_nbytes=None)), joblib.effective_n_jobs()

    def close(self) -> None:
        """Release the processes; computations then use the backend that was in use before."""
        self._opened.close()
        self.__dict__.pop("processes", None)
        if Backend.current is self:
            Backend.current = self._outer


def require_package(name: str) -> None:
    """Raise `FairnessError` if the package of a backend is not installed."""
    if name != "none" and find_spec(package := PACKAGES[name]) is None:
        raise FairnessError(
            f"fairness_backend = {name} needs the package {package}. Install it: "
            f'`pip install "pytest-fairness[{name}]"`, or remove the setting.'
        )


def map_chunks(function: Callable[[T], ResultT], chunks: Iterable[T]) -> Iterator[ResultT]:
    """Yield the results in the order of the chunks, as `map` does; a single chunk is computed in this process.

    The function is one at the top level of a module, or a `partial` of one. Each chunk is large enough to be worth
    sending to another process.
    """
    rest = iter(chunks)
    first = list(islice(rest, 2))
    if Backend.current is None or len(first) < 2:
        yield from map(function, chain(first, rest))
        return
    from joblib import delayed

    parallel, count = Backend.current.processes
    for part in chunks_of(chain(first, rest), CHUNKS_OF_A_PROCESS * count):
        yield from parallel(map(delayed(function), part))


def chunks_of(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield the items in lists of this size; the last list may be shorter."""
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk
