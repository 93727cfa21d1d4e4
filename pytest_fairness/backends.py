"""Computation of large data in chunks: in this process, in several processes, or on a cluster.

Chunks depend on the data only and not on the number of processes, so that all backends give the same results.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.util import find_spec
from itertools import chain, islice
from typing import Any, ClassVar, TypeVar

from pytest_fairness.chunks import chunks_of
from pytest_fairness.errors import FairnessError

ChunkT = TypeVar("ChunkT")
ResultT = TypeVar("ResultT")

CHUNKS_OF_A_PROCESS = 8
"""Number of chunks in memory at a time, for each process."""
WITHOUT_DASHBOARD: dict[str, Any] = {"dashboard_address": None, "scheduler_kwargs": {"dashboard_address": ":0"}}
"""Options of a local Dask cluster: no dashboard, and any free port for the scheduler's HTTP server.

The default port of this server, 8787, gives a warning if another cluster on the machine uses it.
"""


class Processes(ABC):
    """Processes that compute chunks.

    Attributes:
        count: number of processes.
    """

    count: int

    def share(self, value: Any) -> Any:
        """Return an object that stands for a value that all chunks need; pass it to `results` as `shared`.

        By default this is the value itself. A subclass may send the value to the processes, and return a reference.
        """
        return value

    @abstractmethod
    def results(
        self, function: Callable[..., ResultT], chunks: Sequence[ChunkT], shared: Sequence[Any]
    ) -> list[ResultT]:
        """Return `function(chunk, *shared)` of each chunk, in the order of the chunks."""

    @abstractmethod
    def close(self) -> None:
        """Release the processes; a subclass may leave them running."""


class JoblibProcesses(Processes):
    """A process for each core of this machine."""

    def __init__(self) -> None:
        import joblib

        self._parallel = joblib.Parallel(n_jobs=-1, backend="loky", max_nbytes=None)
        self.count = joblib.effective_n_jobs(-1)

    def results(
        self, function: Callable[..., ResultT], chunks: Sequence[ChunkT], shared: Sequence[Any]
    ) -> list[ResultT]:
        """Return `function(chunk, *shared)` of each chunk; joblib keeps the processes for the next call."""
        from joblib import delayed

        results: list[ResultT] = self._parallel(delayed(function)(chunk, *shared) for chunk in chunks)
        return results

    def close(self) -> None:
        """Leave the processes to joblib, which ends them after some minutes or at the end of this process."""


class DaskProcesses(Processes):
    """Workers of a Dask cluster: of the scheduler in Dask's configuration or, without one, of a new local cluster."""

    def __init__(self) -> None:
        import dask.config
        from distributed import Client

        address = dask.config.get("scheduler-address", None)
        local = {} if address else {"threads_per_worker": 1, **WITHOUT_DASHBOARD}
        self._client: Any = Client(set_as_default=False, **local)
        self.count = max(1, sum(self._client.nthreads().values()))

    def share(self, value: Any) -> Any:
        """Send the value to the workers once, and return a reference to it."""
        return self._client.scatter([value], hash=False)[0]

    def results(
        self, function: Callable[..., ResultT], chunks: Sequence[ChunkT], shared: Sequence[Any]
    ) -> list[ResultT]:
        """Return `function(chunk, *shared)` of each chunk, computed by the workers."""
        futures = [self._client.submit(function, self.share(chunk), *shared, pure=False) for chunk in chunks]
        results: list[ResultT] = self._client.gather(futures)
        return results

    def close(self) -> None:
        """Disconnect from the cluster, and end the cluster if `__init__` has started it."""
        self._client.close()


class RayProcesses(Processes):
    """Workers of the Ray cluster in use by this process or, without one, of the cluster that `ray.init` provides."""

    def __init__(self) -> None:
        import ray

        self._ray, self._connected_here = ray, not ray.is_initialized()
        if self._connected_here:
            ray.init(include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        self.count = max(1, int(ray.cluster_resources().get("CPU", 1)))

    def share(self, value: Any) -> Any:
        """Put the value into Ray's object store once, and return a reference to it."""
        return self._ray.put(value)

    def results(
        self, function: Callable[..., ResultT], chunks: Sequence[ChunkT], shared: Sequence[Any]
    ) -> list[ResultT]:
        """Return `function(chunk, *shared)` of each chunk, computed by the workers."""
        remote = self._ray.remote(function)
        results: list[ResultT] = self._ray.get([remote.remote(chunk, *shared) for chunk in chunks])
        return results

    def close(self) -> None:
        """Undo `__init__`: disconnect from a cluster to which it connected, and end a cluster that it started."""
        if self._connected_here:
            self._ray.shutdown()


PROCESSES: dict[str, tuple[type[Processes], str]] = {
    "joblib": (JoblibProcesses, "joblib"),
    "dask": (DaskProcesses, "distributed"),
    "ray": (RayProcesses, "ray"),
}
"""Class of each backend, and the package that it needs."""


def require_package(name: str) -> None:
    """Raise `FairnessError` if the package of a backend is not installed."""
    if name != "none" and find_spec(package := PROCESSES[name][1]) is None:
        raise FairnessError(
            f"fairness_backend = {name} needs the package {package}. Install it: "
            f'`pip install "pytest-fairness[{name}]"`, or remove the setting.'
        )


class Backend:
    """Backend that the computations of this process use until the backend is closed.

    The processes are started for the first computation with more than one chunk.

    Args:
        name: a key of `PROCESSES`; or `none`, for which no processes are started and `current` stays unchanged.

    Class attributes:
        current: the backend in use; `None` if computations run in this process.

    Raises:
        FairnessError: the package of the backend is not installed.
    """

    current: ClassVar[Backend | None] = None

    def __init__(self, name: str) -> None:
        self._name = name
        self._opened: Processes | None = None
        if name != "none":
            require_package(name)
            self._outer, Backend.current = Backend.current, self

    @property
    def processes(self) -> Processes:
        """Return the processes; the first call starts them."""
        if self._opened is None:
            self._opened = PROCESSES[self._name][0]()
        return self._opened

    def map(
        self, function: Callable[..., ResultT], chunks: Iterable[ChunkT], shared: Sequence[Any]
    ) -> Iterator[tuple[ChunkT, ResultT]]:
        """Yield each chunk and its result, in order; a single chunk is computed in this process."""
        rest = iter(chunks)
        first = list(islice(rest, 2))
        if len(first) < 2:
            yield from ((chunk, function(chunk, *shared)) for chunk in first)
            return
        processes = self.processes
        sent = [processes.share(value) for value in shared]
        for part in chunks_of(chain(first, rest), CHUNKS_OF_A_PROCESS * processes.count):
            yield from zip(part, processes.results(function, part, sent), strict=True)

    def close(self) -> None:
        """Release the processes, if any were started; computations then use the backend that was in use before."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None
        if Backend.current is self:
            Backend.current = self._outer


def map_chunks(
    function: Callable[..., ResultT], chunks: Iterable[ChunkT], *shared: Any
) -> Iterator[tuple[ChunkT, ResultT]]:
    """Yield each chunk with `function(chunk, *shared)`, in the order of the chunks.

    Args:
        function: function at the top level of a module, whose result depends on its arguments only.
        chunks: parts of the data, each large enough to be worth sending to another process.
        *shared: further arguments of `function`, the same for all chunks.
    """
    if Backend.current is None:
        return ((chunk, function(chunk, *shared)) for chunk in chunks)
    return Backend.current.map(function, chunks, shared)
