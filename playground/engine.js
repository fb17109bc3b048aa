// The engine: a WebAssembly module without imports that is asked in JSON and answers in JSON.

const encoder = new TextEncoder();
const decoder = new TextDecoder();

// One instance of the module. A run keeps its plan until its instance is gone, so each run has an instance.
export class Engine {
  constructor(module) {
    this.exports = new WebAssembly.Instance(module, {}).exports;
    this.session = this.exports.begin();
  }

  ask(request) {
    const text = encoder.encode(JSON.stringify(request));
    const { allocate, ask, memory, release } = this.exports;
    const at = allocate(text.length);
    new Uint8Array(memory.buffer, at, text.length).set(text);
    const place = ask(this.session, at, text.length);
    const [start, length] = [Number(place & 0xffffffffn), Number(place >> 32n)];
    const answer = JSON.parse(decoder.decode(new Uint8Array(memory.buffer, start, length)));
    release(at, text.length);
    release(start, length);
    return answer;
  }
}
