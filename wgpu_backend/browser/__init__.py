"""wgpu-py in a browser tab: `import emberlet.wgpu_backend.browser`, and wgpu-py's compute API runs on `navigator.gpu`.

wgpu-py can be imported under Pyodide, but the backend that it picks there (`js_webgpu`) is a stub. This package
implements that backend for compute: it subclasses wgpu-py's own classes, so that code written against wgpu-py runs
unchanged, its helpers (`get_default_device`, `compute_with_buffers`) included. Importing it installs it.

Both of wgpu-py's ways to wait work. The `_sync` methods suspend Python while the browser goes on, if it can (JavaScript
Promise Integration, with Python entered through `runPythonAsync` or `callPromising`); the `_async` methods work
everywhere. Rendering and textures are not supported and raise an error. See docs/browser.md.

Source: https://gpuweb.github.io/gpuweb/ (the Web API), https://wgpu-py.readthedocs.io (the Python one).
"""

from __future__ import annotations

import sys

if sys.platform != "emscripten":
    raise ImportError(
        "emberlet.wgpu_backend.browser puts wgpu-py on a browser's navigator.gpu and so runs under Pyodide only; "
        "elsewhere wgpu-py has its own native backend: import wgpu and use it directly"
    )

from .adapter import GPU, GPUAdapter, get_default_device_async
from .device import GPUDevice
from .errors import DeviceLostError
from .install import install

__all__ = ["GPU", "DeviceLostError", "GPUAdapter", "GPUDevice", "get_default_device_async", "gpu", "install"]

gpu = install()
