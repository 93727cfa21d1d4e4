"""Computation of large data in chunks: in this process, in several processes, or on a cluster.

Chunks depend on the data only and not on the number of processes, so that all backends give the same results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from importlib.util import find_spec
from itertools import chain, islice
from typing import Any, ClassVar, TypeVar

from pytest_fairness.errors import FairnessError

# Computation of large data in chunks: in this process, in several processes, or on a cluster.
#
# Chunks depend on the data only and not on the number of processes, so that all backends give the same results.

ChunkT = TypeVar("ChunkT")
ResultT = TypeVar("ResultT")

CHUNKS_OF_A_PROCESS = 8
"""Number of chunks in memory at a time, for each process."""
WITHOUT_DASHBOARD: dict[str, Any] = {"dashboard_address": None, "scheduler_kwargs": {"dashboard_address": ":0"}}
"""Options of a local Dask cluster: no dashboard, and any free port for the scheduler's HTTP server.

The default port of this server, 8787, gives a warning if another cluster on the machine uses it.
"""


PACKAGES = {"joblib": "joblib", "dask": "distributed", "ray": "ray"}
"""Package that each backend needs."""


def require_package(name: str) -> None:
    """Raise `FairnessError` if the package of a backend is not installed."""
    if name != "none" and find_spec(package := PACKAGES[name]) is None:
        raise FairnessError(
            f"fairness_backend = {name} needs the package {package}. Install it: "
            f'`pip install "pytest-fairness[{name}]"`, or remove the setting.'
        )


class Backend:
    """Backend that the computations of this process use until the backend is closed.

    The processes are started for the first computation with more than one chunk.

    Args:
        name: a key of `PACKAGES`; or `none`, for which no processes are started and `current` stays unchanged.

    Class attributes:
        current: the backend in use; `None` if computations run in this process.

    Raises:
        FairnessError: the package of the backend is not installed.
    """

    current: ClassVar[Backend | None] = None

    def __init__(self, name: str) -> None:
        self._name = name
        self._opened = ExitStack()
        if name != "none":
            require_package(name)
            self._outer, Backend.current = Backend.current, self

    @cached_property
    def _processes(self) -> tuple[Any, int]:
        """Joblib's `Parallel` with the started processes, and the number of processes."""
        import joblib

        options: dict[str, Any] = {}
        if self._name == "dask":
            options["client"] = self._opened.enter_context(_dask_client())
        elif self._name == "ray":
            self._opened.enter_context(_ray_cluster())
        with joblib.parallel_config("loky" if self._name == "joblib" else self._name, n_jobs=-1, **options):
            # Joblib keeps the processes of `loky` for some minutes, or until this process ends.
            parallel = self._opened.enter_context(joblib.Parallel(max_nbytes=None))
            return parallel, joblib.effective_n_jobs()

    def map(
        self, function: Callable[..., ResultT], chunks: Iterable[ChunkT], shared: Sequence[Any]
    ) -> Iterator[tuple[ChunkT, ResultT]]:
        """Yield each chunk and its result, in order; a single chunk is computed in this process."""
        rest = iter(chunks)
        first = list(islice(rest, 2))
        if len(first) < 2:
            yield from ((chunk, function(chunk, *shared)) for chunk in first)
            return
        from joblib import delayed

        parallel, count = self._processes
        for part in chunks_of(chain(first, rest), CHUNKS_OF_A_PROCESS * count):
            yield from zip(part, parallel(delayed(function)(chunk, *shared) for chunk in part), strict=True)

    def close(self) -> None:
        """Release the processes, if any were started; computations then use the backend that was in use before."""
        self._opened.close()
        self.__dict__.pop("_processes", None)
        if Backend.current is self:
            Backend.current = self._outer


def _dask_client() -> Any:
    """Return a client of the scheduler in Dask's configuration or, without one, of a new local cluster."""
    import dask.config
    from distributed import Client

    local = {} if dask.config.get("scheduler-address", None) else {"threads_per_worker": 1, **WITHOUT_DASHBOARD}
    return Client(set_as_default=False, **local)


@contextmanager
def _ray_cluster() -> Iterator[None]:
    """Connect to the Ray cluster in use by this process or, without one, to the cluster that `ray.init` provides."""
    import ray
    from ray.util.joblib import register_ray

    register_ray()
    if ray.is_initialized():
        yield
        return
    ray.init(include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        yield
    finally:
        ray.shutdown()


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


# Lists of a limited size, for data that is not processed all at once.

T = TypeVar("T")


def chunks_of(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield the items in lists of this size; the last list may be shorter."""
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk
