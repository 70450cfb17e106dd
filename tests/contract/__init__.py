"""The contract: what every way of running a model gives.

A *way* is a backend (python, numpy, wgpu, wasm, native) and how it is used (ways.py): eager; compiled; with open sizes;
saved and loaded, also in JavaScript and the Pythons of a tab (Pyodide, MicroPython's WebAssembly); under MicroPython;
as a session; and for ONNX models `emberlet.onnxruntime`, `onnx_backend`, `emberlet run` and `Predictor`. For every way
and every case, a function, a layer, a drawn program, a drawn module, a
session or a model, this holds:

1. **Values.** The results have the shapes, dtypes and values of the reference, at the dtype's own precision
   (reference.py): NumPy's in float64, PyTorch's, or onnxruntime's.
2. **Errors.** What eager NumPy refuses is refused, by an error of the same class with the same words.
3. **Results** belong to the caller. Overwriting, keeping or freeing one changes no other result, now or later.
4. **Inputs** belong to the caller. No call changes one, and changing one after the call changes nothing.
5. **Calls** are independent: a second call, with other values, from two threads, or after an interrupt or an error
   gives what the first call with these values would have given.
6. **Memory** is flat: a thousand calls take what ten take.

A way may be left out for one of ways.REASONS only, and each is counted. So is what keeps a plan from having open sizes;
an error of Python's among these breaks the contract, though the results are right without such a plan.

properties.py checks 1 to 5 for one case on one way; test_memory.py checks 6. The kinds of cases are in kinds/, one file
each, with the interface of fuzz/differential: what breaks the contract is shrunk to a program that can be pasted. A new
backend belongs into ways.BACKENDS; a new way of running is a function in ways.py; both then have to pass

    python3 dev.py fuzz contract

While cases run, core/host/thresholds.py lowers the sizes at which the product changes its algorithm, so that small
arrays take the paths of large ones, fills memory that was not written yet with NaN or large integers, and watches the
memory behind the buffers of modules.
"""
