// What this package throws: one sentence for people to read, with details as its cause. A wrong argument is a TypeError
// or a RangeError, too, as of JavaScript's own functions.

const OURS = Symbol.for("emberlet.error"); // also of another copy of this file, such as a bundler makes

export class EmberletError extends Error {
  // A class has one parent only, so that the classes below are no subclasses.
  static [Symbol.hasInstance](error) {
    return Boolean(error?.[OURS]) && (this === EmberletError || this.prototype.isPrototypeOf(error));
  }
}

export class EmberletTypeError extends TypeError {}

export class EmberletRangeError extends RangeError {}

for (const { prototype } of [EmberletError, EmberletTypeError, EmberletRangeError]) Object.defineProperty(prototype, OURS, { value: true });
Object.defineProperty(EmberletError.prototype, "name", { value: "EmberletError", writable: true, configurable: true });
