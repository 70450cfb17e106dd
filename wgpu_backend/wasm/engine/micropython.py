"""The browser's own engine, called from MicroPython: bytes travel through a device file."""

from emberlet.errors import BackendError

from .probes import NO_SIMD, RELAXED, SIMD


def _page():
    try:
        from ...micropython import bridge
    except ImportError as error:
        raise BackendError("this MicroPython has no WebAssembly: only its build for browsers does ({})".format(error))
    return bridge


def _valid(source):
    page = _page()
    page.bridge.aimAtModule()
    page.port.write(source)
    return page.bridge.validModule()


def available():
    """Raise BackendError if this browser's WebAssembly has no SIMD, and outside browsers."""
    if not _valid(SIMD):
        raise BackendError(NO_SIMD)


def relaxed():
    """Whether this browser has relaxed SIMD."""
    return _valid(RELAXED)


class compiled:
    """A compiled module. Each instance has its own memory."""

    def __init__(self, source):
        available()
        page = _page()
        page.bridge.aimAtModule()
        page.port.write(source)
        self.module = page.bridge.makeModule()
        if self.module is None:
            raise ValueError("the browser refuses it: {}".format(page.bridge.take(None)))

    def instance(self):
        page = _page()
        found = page.bridge.makeInstance(self.module)
        if found is None:
            raise BackendError(
                "the module has no memory or its data do not fit there: {}".format(page.bridge.take(None))
            )
        return _Instance(page, found)


def threaded(source, pages, most):
    """An instance on several threads of a module or, without `pages`, of a compiled model; None if only one thread is
    available."""
    try:
        import emberlet_threads as threads  # the page registers threads.mjs
    except ImportError:
        return None
    page = _page()
    page.bridge.aimAtModule()
    page.port.write(source)
    found = page.bridge.makeThreaded(threads, pages, most)
    if found is None:
        page.bridge.take(None)  # one thread needs less memory, and its error says what is wrong with the module
        return None
    return _Threaded(page, found)


class _Instance:
    """A memory and the function that runs the plan on it."""

    def __init__(self, page, instance):
        self._page = page
        self._instance = instance

    def write(self, at, data):
        self._page.bridge.aimAtMemory(self._instance, at)
        self._page.port.write(data)

    def read(self, at, nbytes):
        data = bytearray(nbytes)
        if nbytes:
            self._page.bridge.readMemory(self._instance, at, nbytes)
            self._page.port.readinto(data)
        return data

    def run(self):
        if not self._page.bridge.runInstance(self._instance):
            raise BackendError("the module stopped: {}".format(self._page.bridge.take(None)))

    def nbytes(self):
        """The size of the memory in bytes."""
        return self._page.bridge.memorySize(self._instance)

    def release(self):
        """Does nothing: the memory is freed with the instance."""


class _Threaded(_Instance):
    """A memory shared by several threads, and the functions that run the plan on it."""

    def threads(self):
        """The number of threads of the next run."""
        return self._page.bridge.threadsOf(self._instance)

    def release(self):
        """Free the memory in all threads."""
        self._page.bridge.releaseThreads(self._instance)
