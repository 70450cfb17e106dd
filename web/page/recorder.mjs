// Collects a number of sound samples, outside the page's thread; again and again where asked.

class Recorder extends AudioWorkletProcessor {
  constructor({ processorOptions: { count, again = false } }) {
    super();
    this.again = again;
    this.samples = new Float32Array(count);
    this.found = 0;
  }

  process([[samples]]) {
    if (samples) {
      const part = samples.subarray(0, this.samples.length - this.found);
      this.samples.set(part, this.found);
      this.found += part.length;
    }
    if (this.found < this.samples.length) return true;
    this.port.postMessage(this.samples);
    this.found = 0;
    return this.again;
  }
}

registerProcessor("recorder", Recorder);
