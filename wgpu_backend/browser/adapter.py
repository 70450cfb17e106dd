"""The entry point and the adapter: navigator.gpu."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import wgpu.utils.device
from pyodide.ffi import jsnull
from wgpu import classes, enums

from .bridge import bridge
from .device import GPUDevice
from .errors import unsupported
from .promise import GPUPromise, rejected
from .queue import GPUQueue


class GPU(classes.GPU):
    """`wgpu.gpu` in a browser."""

    def request_adapter_async(
        self,
        *,
        feature_level: str = "core",
        power_preference: str | None = None,
        force_fallback_adapter: bool = False,
        canvas: object = None,
    ) -> GPUPromise[GPUAdapter]:
        """An adapter of `navigator.gpu`. `canvas` is ignored, since every adapter of a browser can present.

        Raises (in the promise) RuntimeError when the browser has no WebGPU, or no adapter that fits.
        """
        try:
            gpu = self._navigator_gpu()
        except RuntimeError as error:
            return rejected("request_adapter", error)
        js = bridge.requestAdapter(gpu, feature_level, power_preference, bool(force_fallback_adapter))
        return GPUPromise("request_adapter", self._adapter, js=js)

    def request_adapter_sync(
        self,
        *,
        feature_level: str = "core",
        power_preference: str | None = None,
        force_fallback_adapter: bool = False,
        canvas: object = None,
    ) -> GPUAdapter:
        """The same, but blocking."""
        return self.request_adapter_async(
            feature_level=feature_level,
            power_preference=power_preference,
            force_fallback_adapter=force_fallback_adapter,
            canvas=canvas,
        ).sync_wait()

    def enumerate_adapters_async(self) -> GPUPromise[list[GPUAdapter]]:
        """The distinguishable adapters: a browser lists none, but offers one for high performance and one for low
        power."""
        try:
            gpu = self._navigator_gpu()
        except RuntimeError as error:
            return rejected("enumerate_adapters", error)
        return GPUPromise("enumerate_adapters", self._distinct, js=bridge.requestAdapters(gpu))

    def enumerate_adapters_sync(self) -> list[GPUAdapter]:
        """The same, but blocking."""
        return self.enumerate_adapters_async().sync_wait()

    get_canvas_context = unsupported("GPU.get_canvas_context")

    @property
    def wgsl_language_features(self) -> set[str]:
        """The WGSL language extensions of this browser."""
        return set(bridge.languageFeatures(self._navigator_gpu()))

    def _navigator_gpu(self) -> Any:
        gpu = bridge.gpu()
        if gpu is None or gpu is jsnull:
            if not bridge.secure():
                raise RuntimeError(
                    "this page has no WebGPU because it is not a secure context: serve it over https or from "
                    "http://localhost"
                )
            raise RuntimeError("this browser has no WebGPU (navigator.gpu is missing)")
        return gpu

    def _adapter(self, js: Any) -> GPUAdapter:
        if js is jsnull or js is None:
            raise RuntimeError(
                "this browser has WebGPU but gave no adapter: the GPU may be blocked or its driver missing "
                "(see chrome://gpu or about:support)"
            )
        return GPUAdapter(js, set(bridge.features(js)), _limits(js), _info(js))

    def _distinct(self, js: Iterable[Any]) -> list[GPUAdapter]:
        found: list[GPUAdapter] = []
        for adapter in js:
            candidate = self._adapter(adapter)
            if all(candidate.info != other.info for other in found):
                found.append(candidate)
        return found


class GPUAdapter(classes.GPUAdapter):
    """An adapter of the browser."""

    def request_device_async(
        self,
        *,
        label: str = "",
        required_features: Iterable[str] = (),
        required_limits: dict[str, int | None] | None = None,
        default_queue: Any = None,
    ) -> GPUPromise[GPUDevice]:
        """A device with these features, and with the adapter's own limits unless `required_limits` names others.

        That is wgpu-py's rule on the desktop; a page that asks for nothing would get WebGPU's much lower defaults.

        Raises:
            KeyError: A feature or limit does not exist. In the promise, a TypeError or GPUInternalError: The adapter
            does not have it.
        """
        features = [self._feature(name) for name in required_features]
        limits = dict(self._limits)
        for name, value in (required_limits or {}).items():
            if value is not None:
                limits[self._limit(name)] = value
        flat = [part for name, value in limits.items() for part in (_camel(name), value)]
        js = bridge.requestDevice(self._internal, label, bridge.list(*features), *flat)
        return GPUPromise("request_device", lambda device: self._device(label, device), js=js)

    def _device(self, label: str, js: Any) -> GPUDevice:
        queue = GPUQueue("", js.queue, None)
        return GPUDevice(label, js, self, set(bridge.features(js)), _limits(js), queue)

    def _feature(self, name: str) -> str:
        name = _kebab(name.replace("_", "-"))
        if name not in self._features and name not in set(enums.FeatureName):
            raise KeyError(f"unknown feature {name!r}; this adapter has {', '.join(sorted(self._features))}")
        return name

    def _limit(self, name: str) -> str:
        for candidate in (name, name.replace("_", "-"), _kebab(name)):
            if candidate in self._limits:
                return candidate
        raise KeyError(f"unknown limit {name!r}; this adapter has {', '.join(self._limits)}")

    @property
    def summary(self) -> str:
        """A one-line name, from what the browser discloses: perhaps only the vendor and architecture."""
        info = self._adapter_info
        name = info["device"] or info["description"] or f"{info['vendor']} {info['architecture']}".strip() or "unnamed"
        return f"{name} ({info['adapter_type']}) via {info['backend_type']}"


async def get_default_device_async(**adapter: Any) -> GPUDevice:
    """wgpu-py's default device, made without suspending Python: afterwards `wgpu.utils.get_default_device()` returns it
    at once, even where `_sync` methods cannot work. Arguments are those of `request_adapter_async`; they are ignored if
    the device already exists.
    """
    helper = wgpu.utils.device.helper
    if helper._the_device is None:
        found = await wgpu.gpu.request_adapter_async(**{**helper._adapter_kwargs, **adapter})
        details = dict(helper._device_kwargs)
        wanted = set(details.pop("preferred_features", ())) & found.features
        details["required_features"] = set(details.get("required_features", ())) | wanted
        helper._the_device = await found.request_device_async(**details)
    return helper._the_device


def _limits(js: Any) -> dict[str, int]:
    return {_kebab(name): int(value) for name, value in sorted(bridge.limits(js).to_py())}


def _info(js: Any) -> classes.GPUAdapterInfo:
    reported = {name: value for name, value in bridge.info(js).to_py() if value is not None}
    # Some browsers report `backend` and `type` only in developer mode.
    kind = reported.get("type") or ("CPU" if reported.get("isFallbackAdapter") else "unknown")
    info = classes.GPUAdapterInfo(
        {name: reported.get(name, "") for name in ("vendor", "architecture", "device", "description")}
    )
    info["adapter_type"] = kind
    info["backend_type"] = reported.get("backend") or "WebGPU"
    for name in ("subgroupMinSize", "subgroupMaxSize"):
        if name in reported:
            info[_kebab(name).replace("-", "_")] = reported[name]
    return info


def _kebab(name: str) -> str:
    return re.sub(r"\d?[A-Z]", lambda match: "-" + match[0].lower(), name)


def _camel(name: str) -> str:
    return re.sub(r"-(\d?[a-z])", lambda match: match[1].upper(), name)
