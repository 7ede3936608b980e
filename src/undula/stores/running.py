"""Where tasks run: on threads of this process, on processes of this machine, or on an existing cluster.

A :class:`TaskRunner` calls a function with many items at once. Few of them wait at a time, so that neither
this process nor a scheduler holds more than it needs.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from multiprocessing.pool import ThreadPool
from queue import Empty, SimpleQueue
from threading import Event, Lock, Semaphore, Thread
from typing import Any

from ..engines.threads import MAX_THREADS, get_num_threads
from ..errors import ArgumentError, SchedulerError
from ..io.files import import_optional, short_message

__all__ = ["ClusterRunner", "Finished", "TaskRunner", "ThreadRunner", "task_runner"]

# Called with the number of an item, and what the function returned or raised.
Finished = Callable[[int, Any], None]

CONNECT_TIMEOUT_S = 10
MAX_JOINED = 16
POLL_S = 1.0
POLL_GRAPH_S = 0.05
RESULT_TIMEOUT_S = 30
WAITING_PER_THREAD = 3  # Tasks that a cluster holds for each of its threads, so that none has to wait.


class TaskRunner(ABC):
    """Base class: calls functions with many items, and computes graphs of Dask."""

    @abstractmethod
    def run(self, function: Callable[[Any], Any], items: Sequence[Any], finished: Finished) -> None:
        """Call a function with each item, and ``finished`` in this thread as results come in.

        If ``finished`` raises an error, items that have not begun are dropped.
        """

    @abstractmethod
    def compute(self, values: Sequence[Any], finished: Finished) -> None:
        """Compute delayed values of Dask, and call ``finished`` in this thread as results come in."""


def _nothing(parts: Any) -> None:
    """Depend on parts, and return nothing."""


class ThreadRunner(TaskRunner):
    """Threads of this process, as many as :func:`undula.get_num_threads` returns.

    Parameters
    ----------
    limit : int, optional
        The largest number of threads, each of which needs memory for the block that it works on.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit

    @property
    def threads(self) -> int:
        """The number of threads."""
        return min(get_num_threads(), self.limit or MAX_THREADS)

    def run(self, function: Callable[[Any], Any], items: Sequence[Any], finished: Finished) -> None:
        """Call a function with each item.

        After an error, tasks that have begun are finished; after an interrupt, they are left behind.
        """
        numbers, lock, stopped = iter(range(len(items))), Lock(), Event()
        results: SimpleQueue[tuple[int, Any]] = SimpleQueue()
        waiting = Semaphore(2 * self.threads)  # Results that nobody has taken, and tasks that run.

        def work() -> None:
            while True:
                waiting.acquire()
                with lock:
                    number = None if stopped.is_set() else next(numbers, None)
                if number is None:
                    waiting.release()
                    return
                try:
                    result = function(items[number])
                except BaseException as error:
                    result = error
                results.put((number, result))

        def stop() -> None:
            stopped.set()
            waiting.release(1 + len(threads))

        threads = [
            Thread(target=work, name="undula-stores", daemon=True)
            for _ in range(min(self.threads, len(items)))
        ]
        try:
            for thread in threads:
                thread.start()
            left = len(items)
            while left:
                try:  # The timeout lets an interrupt through on systems where waiting would block it.
                    number, result = results.get(timeout=POLL_S)
                except Empty:
                    continue
                waiting.release()
                finished(number, result)
                left -= 1
        except Exception:  # Whatever fails, no thread is left when it is raised.
            stop()
            for thread in threads:
                thread.join()
            raise
        finally:
            stop()

    def compute(self, values: Sequence[Any], finished: Finished) -> None:
        """Compute delayed values on Dask's scheduler of threads.

        They are joined by a tree of tasks that return nothing. Without it, Dask reads most of what
        neighbouring values share before it computes any of them.
        """
        from dask.base import compute
        from dask.callbacks import Callback
        from dask.delayed import delayed

        numbers = {value.key: number for number, value in enumerate(values)}

        def posttask(key: Any, result: Any, graph: Any, state: Any, worker: Any) -> None:
            if key in numbers:
                finished(numbers[key], result)

        join, joined = delayed(_nothing, pure=False), list(values)
        while len(joined) > 1:
            joined = [join(joined[k : k + MAX_JOINED]) for k in range(0, len(joined), MAX_JOINED)]
        # Its threads are daemons: they do not keep a process that was interrupted until their tasks end.
        pool = ThreadPool(self.threads)
        try:
            with Callback(posttask=posttask):
                compute(*joined, scheduler="threads", pool=pool, traverse=False)
        except Exception:  # As above.
            pool.terminate()
            pool.join()
            raise
        finally:
            pool.close()


class ClusterRunner(TaskRunner):
    """The workers of a cluster of Dask.

    Parameters
    ----------
    client : distributed.Client
    address : str
        What errors call the scheduler.
    """

    def __init__(self, client: Any, address: str) -> None:
        self.client, self.address = client, address

    def run(self, function: Callable[[Any], Any], items: Sequence[Any], finished: Finished) -> None:
        """Call a function with each item; the tasks of a worker that is lost run on others."""
        import distributed

        numbers = deque(range(len(items)))
        limit = WAITING_PER_THREAD * max(1, self._threads()) + 1
        pending: dict[Any, int] = {}
        try:
            while numbers or pending:
                self._check()
                while numbers and len(pending) < limit:
                    number = numbers.popleft()
                    pending[self.client.submit(function, items[number], pure=False)] = number
                try:
                    with self.client.as_current():
                        done = distributed.wait(list(pending), POLL_S, "FIRST_COMPLETED").done
                except TimeoutError:
                    continue
                for future in done:
                    number = pending.pop(future)
                    try:
                        result = future.exception(RESULT_TIMEOUT_S) or future.result(RESULT_TIMEOUT_S)
                    except (CancelledError, TimeoutError):  # The worker that had the result was lost.
                        self._check()
                        numbers.append(number)
                    else:
                        finished(number, result)
        finally:
            self._cancel(pending)

    def compute(self, values: Sequence[Any], finished: Finished) -> None:
        """Compute delayed values; all of them are sent at once, since they share what they depend on.

        ``finished`` gets None in place of results, so that none is fetched from a worker that may be lost.
        """
        numbers = list(range(len(values)))
        while numbers:
            left = self._compute(values, numbers, finished)
            if len(left) == len(numbers):
                raise SchedulerError(f"the scheduler {self.address} has lost the tasks that were sent to it")
            numbers = left

    def _compute(self, values: Sequence[Any], numbers: Sequence[int], finished: Finished) -> list[int]:
        """Compute some of the values, and return the numbers of those that were lost with a worker."""
        import distributed

        self._check()
        futures = self.client.compute([values[number] for number in numbers])
        places = {future.key: number for future, number in zip(futures, numbers, strict=True)}
        left = dict.fromkeys(numbers)
        try:
            with self.client.as_current():
                completed = distributed.as_completed(futures)
            while not completed.is_empty():
                self._check()
                if not completed.has_ready():
                    time.sleep(POLL_GRAPH_S)
                    continue
                for future in completed.next_batch(block=False):
                    number = places[future.key]
                    if future.status == "error":
                        finished(number, future.exception(RESULT_TIMEOUT_S))
                    # A result that is lost again was there, and that is all that a task has to show.
                    elif future.status != "cancelled":
                        finished(number, None)
                        left.pop(number)
        finally:
            self._cancel(futures)
        return list(left)

    def _threads(self) -> int:
        return sum(self.client.nthreads().values())

    def _check(self) -> None:
        if self.client.status != "running":
            raise SchedulerError(f"the scheduler {self.address} was lost")

    def _cancel(self, futures: Any) -> None:
        if futures and self.client.status == "running":
            with suppress(Exception):  # The error that led here is the one to report.
                self.client.cancel(list(futures))


@contextmanager
def task_runner(
    scheduler: str | None = None, workers: int | None = None, runner: TaskRunner | None = None
) -> Iterator[TaskRunner]:
    """Yield what runs tasks.

    Parameters
    ----------
    scheduler : str, optional
        Address of the scheduler of a cluster, such as ``tcp://10.0.0.1:8786``.
    workers : int, optional
        Number of processes to start on this machine. Without both, threads of this process are used.
    runner : TaskRunner, optional
        What runs tasks already, instead of both.
    """
    if runner is not None:
        yield runner
        return
    if scheduler is None and workers is None:
        yield ThreadRunner()
        return
    if scheduler is not None and workers is not None:
        raise ArgumentError("expected either a scheduler or a number of workers, got both")
    if workers is not None and workers < 1:
        raise ArgumentError(f"the number of workers must be at least 1, got {workers}")
    distributed = import_optional("distributed", "scale")
    if workers is not None:
        cluster = distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50
        )
        with cluster, distributed.Client(cluster) as client:
            yield ClusterRunner(client, "of this machine")
        return
    try:
        # A client that gets such an address waits for it again when it is deleted.
        if not str(scheduler).startswith("inproc://"):
            distributed.comm.get_address_host_port(scheduler)
        client = distributed.Client(scheduler, timeout=CONNECT_TIMEOUT_S, set_as_default=False)
    except (OSError, ValueError, TypeError, MemoryError) as error:
        # What another kind of server answers is taken for the length of a message, larger than any memory.
        is_other = isinstance(error, MemoryError)
        reason = "what answers there is no Dask scheduler" if is_other else short_message(error)
        raise SchedulerError(f"cannot reach the scheduler {scheduler}: {reason}") from None
    try:
        if not client.nthreads():
            raise SchedulerError(f"the scheduler {scheduler} has no workers; start some first")
        yield ClusterRunner(client, str(scheduler))
    finally:
        with suppress(Exception):  # A scheduler that was lost cannot say goodbye.
            client.close(timeout=POLL_S)
