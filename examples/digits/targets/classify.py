"""Classify images with the generated model and report the logits, the times and the loaded files.

This one file runs on every target: CPython, MicroPython (Unix, 32-bit ARM, Wasm) and Pyodide. It therefore uses only
features that MicroPython has.

    python classify.py JOB.json

The job names folders to import from, the module, the backend, the weights (None: they are in the module), and a file
of images, 64 bytes each, 0..16. The answer is one line of JSON; logits travel as the hexadecimal of their float32
bytes, so that the targets' ways of printing floats do not matter.
"""

import array
import binascii
import json
import sys
import time

PIXELS = 64


def clock():
    """Milliseconds from some start."""
    if hasattr(time, "ticks_us"):
        return time.ticks_us() / 1000
    return time.perf_counter() * 1000


def read_images(path, count):
    """`count` images of `path`, each 1×1×8×8 nested lists of floats 0..1, as the model takes them."""
    with open(path, "rb") as file:
        data = file.read(count * PIXELS)
    images = []
    for start in range(0, len(data), PIXELS):
        image = data[start : start + PIXELS]
        images.append([[[[image[8 * y + x] / 16 for x in range(8)] for y in range(8)]]])
    return images


def load_model(job):
    """The generated model with its weights, on the backend that the job names."""
    Digits = __import__(job["module"]).Digits
    if job["weights"] is None:
        return Digits.from_embedded(backend=job["backend"])
    return Digits.from_file(job["weights"], backend=job["backend"])


def shipped(packages):
    """The size in bytes and the number of the loaded source files of these top-level packages."""
    import os

    total = files = 0
    for name in list(sys.modules):
        path = getattr(sys.modules[name], "__file__", None)
        if path and name.split(".")[0] in packages:
            total += os.stat(path)[6]
            files += 1
    return {"bytes": total, "files": files}


def memory():
    """Bytes of memory, if the platform reports them: the most so far, or on MicroPython the bytes in use now."""
    if sys.implementation.name == "micropython":
        import gc

        return gc.mem_alloc()
    if sys.platform == "emscripten":
        import pyodide_js

        return pyodide_js._module.HEAPU8.length
    try:  # Linux, where getrusage includes the process that started this one
        with open("/proc/self/status", encoding="utf-8") as status:
            return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    except OSError:
        pass
    try:
        import resource
    except ImportError:  # Windows
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def adapter(job):
    """The name of the GPU in use, or None on other backends."""
    if job["backend"] != "wgpu":
        return None
    import emberlet

    return emberlet.get_backend("wgpu").device.raw.adapter.summary


class Run:
    """A running job, one image per call, so that a host of Python can call it again and again.

    MicroPython in WebAssembly collects its garbage only between such calls.
    """

    def __init__(self, job):
        for folder in job["path"]:
            sys.path.insert(0, folder)
        self.job = job
        self.images = read_images(job["images"], job["count"])
        self.times = []
        self.logits = array.array("f")
        self.model = None
        self.memory = 0

    def forward(self, image):
        """The logits of an image (1, 1, 8, 8) as a tensor; the model is loaded first, if it is not."""
        import emberlet

        if self.model is None:
            self.model = load_model(self.job)
        return self.model(emberlet.asarray(image, dtype=emberlet.float32, backend=self.job["backend"]))

    def step(self):
        """Classify the next image."""
        image = self.images[len(self.times)]
        start = clock()
        logits = self.forward(image).tolist()[0]
        self.note(clock() - start, logits)

    async def step_async(self):
        """Classify the next image where a GPU's results can only be awaited."""
        image = self.images[len(self.times)]
        start = clock()
        if self.model is None:
            from emberlet.wgpu_backend.device import open_device_async

            await open_device_async()
        logits = self.forward(image)
        logits.backend.realize(logits)  # submits the work; awaiting would do that too, but hide the memory
        self.memory = max(self.memory, memory() or 0)
        data = await logits.to_data_async()
        logits = data.to_list()[0]
        self.note(clock() - start, logits)

    def note(self, milliseconds, logits):
        self.memory = max(self.memory, memory() or 0)
        self.times.append(milliseconds)
        self.logits.extend(array.array("f", logits))

    def answer(self):
        """The results, as JSON."""
        later = sorted(self.times[1:])
        version = ".".join([str(n) for n in sys.implementation.version[:3]])
        return json.dumps(
            {
                "logits": binascii.hexlify(bytes(self.logits)).decode(),
                "first": self.times[0],
                "steady": later[len(later) // 2] if later else None,
                "memory": self.memory or None,
                "shipped": shipped(self.job["ships"]),
                "adapter": adapter(self.job),
                "python": sys.implementation.name + " " + version,
            }
        )


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        run = Run(json.load(file))
    for _ in run.images:
        run.step()
    print(run.answer())


if __name__ == "__main__":
    main()
