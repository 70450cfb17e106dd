"""The functions of bridge.py in JavaScript: an expression, evaluated if the page did not import it as a module."""

# MicroPython's state breaks if JavaScript throws into it, and passes None as null, which WebGPU takes for 0 or "null"
# rather than for "not given": hence `safe`. Its memory is not exported either, but the driver of a device file gets it:
# bytes are sent by writing to that file and fetched by reading from it, without a copy in between.
SCRIPT = """(() => {
  const errors = [];
  const report = (error) => { if (errors.length < 16) errors.push(error); };
  const safe = (call) => (...args) => {
    try {
      return call(...args.map((arg) => arg ?? undefined));
    } catch (error) {
      report(error);
      return null;
    }
  };
  const told = ({ name, constructor, message }) => `${name ?? constructor.name}: ${message}`;
  const take = (state) => {
    const all = [...errors.splice(0), ...(state?.errors.splice(0) ?? []), ...(state?.lost ? [state.lost] : [])];
    return all.length ? told(all[0]) : null;
  };

  const channel = new MessageChannel();
  const waiting = [];
  channel.port1.onmessage = () => waiting.shift()();
  const turn = () => new Promise((resolve) => { waiting.push(resolve); channel.port2.postMessage(null); });

  // A promise that never fails: of [value, null], or of [null, what went wrong]. With a device's state, what went wrong
  // on it before counts too.
  const outcome = async (state, work) => {
    let value = null;
    let failed = null;
    try {
      value = await work();
    } catch (error) {
      failed = told(error);
    }
    if (state) {
      await turn(); // error events come as tasks of their own
      if (failed && !state.errors.length) await new Promise((resolve) => setTimeout(resolve)); // the loss, later still
      failed = take(state) ?? failed;
    }
    return failed ? [null, failed] : [value, null];
  };

  let receive = () => {};
  let send = () => new Uint8Array();
  let source = new Uint8Array();
  const driver = {
    open: (stream) => { stream.seekable = false; },
    close: () => {},
    write: (stream, memory, start, length) => {
      safe(receive)(new Uint8Array(memory.buffer, memory.byteOffset + start, length));
      return length;
    },
    read: (stream, memory, start, length) => {
      const bytes = send().subarray(0, length);
      new Uint8Array(memory.buffer, memory.byteOffset + start, length).set(bytes);
      return bytes.length;
    },
  };

  const functions = {
    mount: (path) => {
      const { FS } = globalThis.Module;
      const number = FS.makedev(64, 64);
      FS.registerDevice(number, driver);
      FS.mkdev(path, number);
    },
    take,
    available: () => Boolean(globalThis.navigator?.gpu),
    secure: () => globalThis.isSecureContext === true,
    requestAdapter: (powerPreference, forceFallbackAdapter) =>
      outcome(null, () => navigator.gpu.requestAdapter({ powerPreference, forceFallbackAdapter })),
    info: ({ info }) =>
      [info.vendor, info.architecture, info.device, info.description, info.isFallbackAdapter === true],
    features: ({ features }) => [...features],
    languageFeatures: () => [...(navigator.gpu.wgslLanguageFeatures ?? [])],
    // Numbers arrive as 32-bit integers.
    limits: ({ limits }) => {
      const found = [];
      for (const name in limits) found.push([name, Math.min(limits[name], 0x7fffffff)]);
      return found;
    },
    requestDevice: (adapter, names, given) =>
      outcome(null, () => {
        const requiredLimits = {};
        for (const name in adapter.limits) requiredLimits[name] = adapter.limits[name];
        Object.assign(requiredLimits, JSON.parse(given));
        return adapter.requestDevice({ requiredFeatures: JSON.parse(names), requiredLimits });
      }),
    watch: (device) => {
      const state = { errors: [], lost: null, device, spare: [] };
      device.addEventListener("uncapturederror", ({ error }) => {
        if (state.errors.length < 16) state.errors.push(error);
      });
      device.lost.then(({ reason, message }) => { state.lost = { name: `Device lost (${reason})`, message }; });
      return state;
    },
    queue: ({ queue }) => queue,
    destroy: (object) => object.destroy(),

    createBuffer: (device, label, size, usage) => device.createBuffer({ label, size, usage }),
    createMapped: (device, label, size, usage) => {
      const buffer = device.createBuffer({ label, size, usage, mappedAtCreation: true });
      const range = new Uint8Array(buffer.getMappedRange());
      receive = (bytes) => range.set(bytes);
      return buffer;
    },
    unmap: (buffer) => buffer.unmap(),
    aimNowhere: () => { receive = () => {}; },
    aimAt: (queue, buffer, offset) => { receive = (bytes) => queue.writeBuffer(buffer, offset, bytes); },
    read: (state, buffer, offset, size) =>
      outcome(state, async () => {
        const { device, spare } = state;
        const at = spare.findIndex((staging) => staging.size >= size);
        // As large as what it reads from, so that it serves later calls of larger sizes.
        const room = Math.max(size, Math.min(buffer.size, 1 << 20));
        const usage = GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST;
        const staging = at < 0 ? device.createBuffer({ size: room, usage }) : spare.splice(at, 1)[0];
        const encoder = device.createCommandEncoder();
        encoder.copyBufferToBuffer(buffer, offset, staging, 0, size);
        device.queue.submit([encoder.finish()]);
        await staging.mapAsync(GPUMapMode.READ, 0, size);
        return staging;
      }),
    readFrom: (staging, size) => { send = () => new Uint8Array(staging.getMappedRange(0, size)); },
    doneReading: ({ spare }, staging) => {
      staging.unmap();
      if (spare.length < 2 && staging.size <= 1 << 24) spare.push(staging);
      else staging.destroy();
    },
    dropSpare: ({ spare }) => { for (const staging of spare.splice(0)) staging.destroy(); },
    workDone: (state) => outcome(state, () => state.device.queue.onSubmittedWorkDone()),

    createShaderModule: (device, label, code) => device.createShaderModule({ label, code }),
    messages: async (module) =>
      (await module.getCompilationInfo()).messages.map(({ type, lineNum, linePos, message }) =>
        [type, lineNum, linePos, message]),
    createPipeline: (device, label, module, entryPoint) =>
      device.createComputePipeline({ label, layout: "auto", compute: { module, entryPoint } }),
    createPipelineAsync: (device, label, module, entryPoint) =>
      outcome(null, () =>
        device.createComputePipelineAsync({ label, layout: "auto", compute: { module, entryPoint } })),
    layoutOf: (pipeline, index) => pipeline.getBindGroupLayout(index),
    createBindGroup: (device, label, layout, ...flat) => {
      const entries = [];
      for (let i = 0; i < flat.length; i += 4) {
        const [binding, buffer, offset, size] = flat.slice(i, i + 4);
        entries.push({ binding, resource: { buffer, offset, size } });
      }
      return device.createBindGroup({ label, layout, entries });
    },
    createEncoder: (device, label) => device.createCommandEncoder({ label }),
    beginPass: (encoder, label) => encoder.beginComputePass({ label }),
    setPipeline: (pass, pipeline) => pass.setPipeline(pipeline),
    setBindGroup: (pass, index, group) => pass.setBindGroup(index, group),
    dispatch: (pass, x, y, z) => pass.dispatchWorkgroups(x, y, z),
    end: (pass) => pass.end(),
    copy: (encoder, source, from, target, to, size) => encoder.copyBufferToBuffer(source, from, target, to, size),
    clear: (encoder, buffer, offset, size) => encoder.clearBuffer(buffer, offset, size),
    finish: (encoder, label) => encoder.finish({ label }),
    submit: (queue, ...commands) => queue.submit(commands),

    // WebAssembly, for processors (wasm/micropython.py).
    aimAtModule: () => { receive = (bytes) => { source = bytes.slice(); }; },
    validModule: () => WebAssembly.validate(source),
    makeModule: () => new WebAssembly.Module(source),
    makeInstance: (module) => {
      const { memory, run, expand } = new WebAssembly.Instance(module).exports;
      expand?.();
      return { run, bytes: new Uint8Array(memory.buffer) };
    },
    memorySize: ({ bytes }) => bytes.length,
    aimAtMemory: ({ bytes }, at) => { receive = (given) => bytes.set(given, at); },
    readMemory: ({ bytes }, at, length) => { send = () => bytes.subarray(at, at + length); },
    runInstance: ({ run }) => { run(); return true; },
    makeThreaded: ({ Threaded, ofFile, threadsHere }, pages, most) => {
      if (threadsHere(most) < 2) return null;
      const made = pages ? new Threaded(new WebAssembly.Module(source), pages, most) : ofFile(source, most);
      return { made, run: () => made.run(), bytes: new Uint8Array(made.memory.buffer) };
    },
    threadsOf: ({ made }) => made.threads,
    releaseThreads: ({ made }) => made.release(),
  };
  for (const name in functions) functions[name] = safe(functions[name]);
  return functions;
})()"""
