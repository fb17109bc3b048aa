// A worker with one run. It answers every message with one message that has the same `id`.
import { Engine } from "./engine.js";

// Events between two looks at the clock: a fraction of a millisecond.
const CHUNK = 4000;

let module = null;
let engine = null;

const parts = {
  load(request) {
    ({ module } = request);
    engine = new Engine(module);
    return {};
  },

  catalogue: () => engine.ask({ do: "catalogue" }),

  open(request) {
    engine = new Engine(module);
    return engine.ask({ ...request, do: "open" });
  },

  // Runs up to `until_ns`, or for `slice_ms` of real time.
  advance({ until_ns, slice_ms }) {
    const begun = performance.now();
    let reached = false;
    while (!reached && performance.now() - begun <= slice_ms) {
      const part = engine.ask({ do: "advance", until_ns, most: CHUNK });
      if (part.problems) return part;
      reached = part.ended || part.next_ns > until_ns;
    }
    const news = engine.ask({ do: "look" });
    const whole = reached && !news.ended;
    return { ...news, reached_ns: whole ? until_ns : news.now_ns, wall_ms: performance.now() - begun };
  },

  finish: () => engine.ask({ do: "finish" }),
};

onmessage = async ({ data: { id, part, ...request } }) => {
  try {
    postMessage({ id, answer: await parts[part](request) });
  } catch (error) {
    // A trap: the module cannot be used any longer.
    const message = `the engine stopped: ${error instanceof Error ? error.message : error}`;
    postMessage({ id, answer: { problems: [{ message }] } });
  }
};
