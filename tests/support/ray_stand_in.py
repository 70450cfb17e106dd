"""A stand-in for Ray that notes what it is asked for and runs actors in this process."""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import emberlet.batch
import pytest


class Remote:
    """A method of an actor that runs at once."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.remote = method


class Actor:
    """An object of a class with `ray.remote`, in this process."""

    def __init__(self, made: Any) -> None:
        self._made = made

    def __getattr__(self, name: str) -> Remote:
        return Remote(getattr(self._made, name))


class Context:
    """ray.data.DataContext."""

    current_one: Any = None

    def copy(self) -> Context:
        return Context()

    @staticmethod
    def get_current() -> Context:
        return Context()

    @classmethod
    @contextmanager
    def current(cls, context: Context) -> Iterator[None]:
        cls.current_one = context
        try:
            yield
        finally:
            cls.current_one = None


class Ray(types.ModuleType):
    """Ray, as far as scoring uses it."""

    def __init__(self) -> None:
        super().__init__("ray")
        self.running = False
        self.started: list[dict[str, Any]] = []
        self.environment: dict[str, str] = {}
        self.stopped = 0
        self.resources = {"CPU": 10.0, "GPU": 2.0}
        self.failure: Exception | None = None
        self.gets: list[Any] = []
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.data = types.ModuleType("ray.data")
        self.exceptions = SimpleNamespace(RayError=LookupError)
        self.written: Exception | None = None
        self.sent: list[tuple[str, str]] = []
        self.cloudpickle = SimpleNamespace(
            register_pickle_by_value=lambda module: self.sent.append(("+", module.__name__)),
            unregister_pickle_by_value=lambda module: self.sent.append(("-", module.__name__)),
        )

    def is_initialized(self) -> bool:
        return self.running

    def init(self, **options: Any) -> None:
        self.started.append(options)
        self.environment = dict(os.environ)
        os.write(2, b"noise of a library")
        if self.failure is not None:
            raise self.failure

    def shutdown(self) -> None:
        self.stopped += 1

    def cluster_resources(self) -> dict[str, float]:
        return self.resources

    def get(self, value: Any, timeout: float | None = None) -> Any:
        self.gets.append(timeout)
        return value

    def remote(self, num_cpus: float) -> Callable[[Any], Any]:
        assert num_cpus == 0

        def wrap(kind: Any) -> Any:
            kind.remote = lambda *args: Actor(kind(*args))
            return kind

        return wrap


@pytest.fixture
def ray_stand_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A stand-in for Ray, and ray_parts imported with it."""
    fake = Ray()

    class Data:
        def map_batches(self, *args: Any, **options: Any) -> Data:
            fake.calls.append(("map_batches", args, options))
            return self

        def write_parquet(self, *args: Any, **options: Any) -> None:
            fake.calls.append(("write_parquet", args, {**options, "context": Context.current_one}))
            if fake.written is not None:
                raise fake.written

    def read_datasource(*args: Any, **options: Any) -> Data:
        fake.calls.append(("read_datasource", args, options))
        return Data()

    class Config(SimpleNamespace):
        def __init__(self, column: str, path: str, **options: Any) -> None:
            super().__init__(column=column, path=path, **options)

    strategy = lambda **options: SimpleNamespace(**options)  # noqa: E731
    fake.data.__dict__.update(
        read_datasource=read_datasource, DataContext=Context, ActorPoolStrategy=strategy, Datasource=object
    )
    modules = {
        "ray": fake, "ray.data": fake.data,
        "ray.data.checkpoint": SimpleNamespace(CheckpointConfig=Config),
        "ray.data.block": SimpleNamespace(BlockMetadata=SimpleNamespace),
        "ray.data.datasource": SimpleNamespace(ReadTask=lambda read, about, **more: (read, about, more)),
    }  # fmt: skip
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    known = sys.modules.pop("emberlet.batch.ray_parts", None)
    held = vars(emberlet.batch).pop("ray_parts", None)
    yield fake
    sys.modules.pop("emberlet.batch.ray_parts", None)
    vars(emberlet.batch).pop("ray_parts", None)
    if known is not None:
        sys.modules["emberlet.batch.ray_parts"] = known
        vars(emberlet.batch)["ray_parts"] = held or known
