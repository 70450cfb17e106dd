// A worker of the page whose commands are awaited.

export class Client {
  constructor(file, onProgress = () => {}, name = "") {
    this.worker = new Worker(new URL(file, import.meta.url), { type: "module", name });
    this.onProgress = onProgress;
    this.waiting = new Map();
    this.next = 0;
    this.worker.onmessage = ({ data }) => {
      if (data.progress) return this.onProgress(data.progress);
      const { resolve, reject } = this.waiting.get(data.id);
      this.waiting.delete(data.id);
      if (data.error) reject(Object.assign(new Error(data.error.message), { details: data.error.details }));
      else resolve(data.value);
    };
    this.worker.onerror = (event) => {
      for (const { reject } of this.waiting.values()) reject(new Error(event.message || "the worker could not be started"));
      this.waiting.clear();
    };
  }

  call(name, argument, transfer = []) {
    return new Promise((resolve, reject) => {
      this.waiting.set(++this.next, { resolve, reject });
      this.worker.postMessage({ id: this.next, name, argument }, transfer);
    });
  }

  end() {
    this.worker.terminate();
  }
}
