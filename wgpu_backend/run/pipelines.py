"""The pipelines of a plan, compiled side by side where the platform can."""

import sys

from ..device import must_await


def prepare(device, kernels):
    """Compile each (name, source) on parallel threads, if the platform has threads. Returns {source: what
    `Device.pipeline` returns}; what is missing, and errors, are left to it."""
    if sys.platform == "emscripten" or must_await():
        return {}
    from .side_by_side import compile_kernels

    return compile_kernels(device, kernels)


def pipelines_of(device, kernels):
    """`Device.pipeline` for each (name, source), compiled in parallel; a browser reports errors here."""
    if sys.platform != "emscripten":
        found = prepare(device, kernels)
        return [found.get(source) or device.pipeline(name, source) for name, source in kernels]
    found, started = _started(device, kernels)
    faulty = None
    for name, source, promise in started:
        try:
            found[source] = device.keep(source, promise.sync_wait())
        except Exception as error:
            faulty = faulty or (name, source, error)
    if faulty:
        try:
            device.queue.on_submitted_work_done_sync()
        except Exception as error:
            faulty = faulty[:2] + (error,)
        raise device.refused(*faulty)
    return [found[source] for _, source in kernels]


async def pipelines_async(device, kernels):
    """`pipelines_of`, awaited."""
    found, started = _started(device, kernels)
    faulty = None
    for name, source, promise in started:
        try:
            found[source] = device.keep(source, await promise)
        except Exception as error:
            faulty = faulty or (name, source, error)
    if faulty:
        try:
            # A browser reports the compiler's message separately from the pipeline's failure; fetched here, it is
            # not raised by the next wait for the device.
            await device.queue.on_submitted_work_done_async()
        except Exception as error:
            faulty = faulty[:2] + (error,)
        raise device.refused(*faulty)
    return [found[source] for _, source in kernels]


def _started(device, kernels):
    """({source: pipeline} of those already compiled, [(name, source, promise)] of the others)."""
    found = {}
    started = {}
    for name, source in kernels:
        if source not in found and source not in started:
            compiled = device.pipelines.get(source)
            if compiled is not None:
                found[source] = compiled
                continue
            try:
                module = device.module(name, source)
                promise = device.raw.create_compute_pipeline_async(
                    label=name, layout="auto", compute={"module": module, "entry_point": "main"}
                )
            except Exception as error:
                raise device.refused(name, source, error)
            started[source] = (name, source, promise)
    return found, list(started.values())
