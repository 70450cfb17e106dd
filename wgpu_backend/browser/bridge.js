// The JavaScript half of the backend: one function a call, arguments by position, so that a call from Python crosses
// once and builds no object on the way. Python's None arrives as undefined, which WebGPU reads as "not given".
(() => {
  // Errors that no scope caught, and the loss of the device, wait here until Python next waits for this device.
  const watch = (device) => {
    const state = { errors: [], dropped: 0, lost: null, device };
    state.listener = ({ error }) => {
      if (state.errors.length < 16) state.errors.push(error);
      else state.dropped += 1;
    };
    device.addEventListener("uncapturederror", state.listener);
    device.lost.then((info) => (state.lost = info));
    return state;
  };

  const failure = (name, message, reason) => Object.assign(new Error(message), { name, reason });

  const take = (state) => {
    if (state.errors.length) {
      const [first, ...more] = state.errors.splice(0);
      const count = more.length + state.dropped;
      state.dropped = 0;
      const rest = count ? `\n(and ${count} more error${count > 1 ? "s" : ""} after this one)` : "";
      return failure(first.constructor.name, first.message + rest);
    }
    return state.lost && failure("DeviceLostError", state.lost.message, state.lost.reason);
  };

  // One turn of the event loop: browsers dispatch error events as tasks, after the promises of the same batch.
  const channel = new MessageChannel();
  const waiting = [];
  channel.port1.onmessage = () => waiting.shift()();
  const turn = () =>
    new Promise((resolve) => {
      waiting.push(resolve);
      channel.port2.postMessage(null);
    });

  // A promise of work on the device that fails with the first error the device met. On failure `undo` cleans up; it is
  // told whether the work itself was done.
  const guard = async (state, promise, undo) => {
    let value;
    let failed = null;
    try {
      value = await promise;
    } catch (error) {
      failed = error;
    }
    await turn();
    if (failed && !state.errors.length) await new Promise((resolve) => setTimeout(resolve)); // the loss comes later still
    const error = take(state) ?? failed;
    if (!error) return value;
    undo?.(!failed);
    throw error;
  };

  const bytesOf = (data, use) => {
    const view = data.getBuffer("u8");
    try {
      use(view.data);
    } finally {
      view.release();
    }
  };

  const origins = new WeakMap(); // adapter -> how it was asked for
  const requestAdapter = async (gpu, options) => {
    const adapter = await gpu.requestAdapter(options);
    if (adapter) origins.set(adapter, { gpu, options, used: false });
    return adapter;
  };

  const record = (flat) => {
    const entries = {};
    for (let i = 0; i < flat.length; i += 2) entries[flat[i]] = flat[i + 1];
    return entries;
  };

  const stage = (module, entryPoint, constants) => ({ module, entryPoint, constants });
  const pipeline = (label, layout, ...compute) => ({ label, layout, compute: stage(...compute) });
  const writes = (querySet, beginningOfPassWriteIndex, endOfPassWriteIndex) =>
    querySet && { querySet, beginningOfPassWriteIndex, endOfPassWriteIndex };

  return {
    list: (...items) => items,
    record: (...flat) => record(flat),

    // Adapters and devices
    gpu: () => globalThis.navigator?.gpu,
    secure: () => globalThis.isSecureContext === true,
    requestAdapter: (gpu, featureLevel, powerPreference, forceFallbackAdapter) =>
      requestAdapter(gpu, { featureLevel, powerPreference, forceFallbackAdapter }),
    limits: (owner) => {
      const entries = [];
      for (const name in owner.limits) entries.push([name, owner.limits[name]]);
      return entries;
    },
    features: (owner) => [...owner.features],
    info: ({ info }) =>
      ["vendor", "architecture", "device", "description", "backend", "type", "isFallbackAdapter",
        "subgroupMinSize", "subgroupMaxSize"].map((name) => [name, info[name]]),
    requestAdapters: async (gpu) => {
      const preferences = ["high-performance", "low-power"];
      const found = preferences.map((powerPreference) => requestAdapter(gpu, { powerPreference }));
      return (await Promise.all(found)).filter(Boolean);
    },
    languageFeatures: (gpu) => [...(gpu.wgslLanguageFeatures ?? [])],
    requestDevice: async (adapter, label, requiredFeatures, ...limits) => {
      // An adapter makes one device and is used up; wgpu-py's makes as many as it is asked for.
      const { gpu, options, used } = origins.get(adapter);
      origins.get(adapter).used = true;
      const fresh = used ? await gpu.requestAdapter(options) : adapter;
      return fresh.requestDevice({ label, requiredFeatures, requiredLimits: record(limits) });
    },
    watch,
    unwatch: (state) => state.device.removeEventListener("uncapturederror", state.listener),
    onError: (state, callback) => {
      state.unhandle?.();
      state.unhandle = null;
      if (!callback) return state.device.addEventListener("uncapturederror", state.listener);
      const handler = ({ error }) => callback(error.constructor.name, error.message);
      state.device.removeEventListener("uncapturederror", state.listener);
      state.device.addEventListener("uncapturederror", handler);
      state.unhandle = () => state.device.removeEventListener("uncapturederror", handler);
    },
    lost: (device) => device.lost.then(({ reason, message }) => [reason, message]),
    destroy: (object) => object.destroy(),
    pushErrorScope: (device, filter) => device.pushErrorScope(filter),
    popErrorScope: (device) =>
      device.popErrorScope().then((error) => (error ? [error.constructor.name, error.message] : [])),

    // Buffers
    createBuffer: (device, label, size, usage, mappedAtCreation) =>
      device.createBuffer({ label, size, usage, mappedAtCreation }),
    createBufferWithData: (device, label, size, usage, data) => {
      const buffer = device.createBuffer({ label, size, usage, mappedAtCreation: true });
      bytesOf(data, (bytes) => new Uint8Array(buffer.getMappedRange()).set(bytes));
      buffer.unmap();
      return buffer;
    },
    mapAsync: (state, buffer, mode, offset, size) =>
      guard(state, buffer.mapAsync(mode, offset, size), (mapped) => mapped && buffer.unmap()),
    mappedRange: (buffer, offset, size) => new Uint8Array(buffer.getMappedRange(offset, size)),
    bytesOfStaging: (buffer) => new Uint8Array(buffer.getMappedRange()),
    part: (bytes, start, end) => bytes.subarray(start, end),
    put: (range, start, data) => bytesOf(data, (bytes) => range.set(bytes, start)),
    unmap: (buffer) => buffer.unmap(),

    // The queue
    writeBuffer: (queue, buffer, offset, data, start, size) =>
      bytesOf(data, (bytes) => queue.writeBuffer(buffer, offset, bytes, start, size)),
    writeSmall: (queue, buffer, offset, bytes) => queue.writeBuffer(buffer, offset, bytes),
    submit: (queue, ...commandBuffers) => queue.submit(commandBuffers),
    workDone: (state, queue) => guard(state, queue.onSubmittedWorkDone()),
    readBuffer: (state, buffer, offset, size) => {
      const { device } = state;
      const staging = device.createBuffer({ size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
      const encoder = device.createCommandEncoder();
      encoder.copyBufferToBuffer(buffer, offset, staging, 0, size);
      device.queue.submit([encoder.finish()]);
      return guard(
        state,
        staging.mapAsync(GPUMapMode.READ).then(() => staging),
        () => staging.destroy(),
      );
    },

    // Shaders, layouts, groups, pipelines
    createShaderModule: (device, label, code) => device.createShaderModule({ label, code }),
    compilationInfo: (module) =>
      module.getCompilationInfo().then(({ messages }) =>
        messages.map(({ type, message, lineNum, linePos, offset, length }) =>
          [type, message, lineNum, linePos, offset, length])),
    createBindGroupLayout: (device, label, ...flat) => {
      const entries = [];
      for (let i = 0; i < flat.length; i += 5) {
        const [binding, visibility, type, hasDynamicOffset, minBindingSize] = flat.slice(i, i + 5);
        entries.push({ binding, visibility, buffer: { type, hasDynamicOffset, minBindingSize } });
      }
      return device.createBindGroupLayout({ label, entries });
    },
    createBindGroup: (device, label, layout, ...flat) => {
      const entries = [];
      for (let i = 0; i < flat.length; i += 4) {
        const [binding, buffer, offset, size] = flat.slice(i, i + 4);
        entries.push({ binding, resource: { buffer, offset, size } });
      }
      return device.createBindGroup({ label, layout, entries });
    },
    createPipelineLayout: (device, label, immediateSize, ...bindGroupLayouts) =>
      device.createPipelineLayout({ label, immediateSize, bindGroupLayouts }),
    createComputePipeline: (device, ...description) => device.createComputePipeline(pipeline(...description)),
    createComputePipelineAsync: (state, ...description) =>
      state.device.createComputePipelineAsync(pipeline(...description)),
    bindGroupLayoutOf: (pipeline, index) => pipeline.getBindGroupLayout(index),
    createQuerySet: (device, label, type, count) => device.createQuerySet({ label, type, count }),

    // Commands
    createCommandEncoder: (device, label) => device.createCommandEncoder({ label }),
    beginComputePass: (encoder, label, ...timestamps) =>
      encoder.beginComputePass({ label, timestampWrites: writes(...timestamps) }),
    clearBuffer: (encoder, buffer, offset, size) => encoder.clearBuffer(buffer, offset, size),
    copyBufferToBuffer: (encoder, source, from, destination, to, size) =>
      encoder.copyBufferToBuffer(source, from, destination, to, size),
    resolveQuerySet: (encoder, ...rest) => encoder.resolveQuerySet(...rest),
    finish: (encoder, label) => encoder.finish({ label }),
    setPipeline: (pass, pipeline) => pass.setPipeline(pipeline),
    setBindGroup: (pass, index, group) => pass.setBindGroup(index, group),
    setBindGroupOffsets: (pass, index, group, ...offsets) => pass.setBindGroup(index, group, offsets),
    setImmediates: (pass, offset, data, start, size) =>
      bytesOf(data, (bytes) => pass.setImmediates(offset, bytes, start, size)),
    dispatch: (pass, x, y, z) => pass.dispatchWorkgroups(x, y, z),
    dispatchIndirect: (pass, buffer, offset) => pass.dispatchWorkgroupsIndirect(buffer, offset),
    end: (pass) => pass.end(),
    pushDebugGroup: (encoder, label) => encoder.pushDebugGroup(label),
    popDebugGroup: (encoder) => encoder.popDebugGroup(),
    insertDebugMarker: (encoder, label) => encoder.insertDebugMarker(label),
  };
})();
