// A worker with one run. It answers every message with one message that has the same `id`.
import { Engine } from "./engine.js";

// Events between two looks at the clock: a fraction of a millisecond.
const CHUNK = 4000;
// Lists per class that continue from one chunk to the next.
const LISTS = ["classes", "waited"];

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
    let all = null;
    for (;;) {
      const news = engine.ask({ do: "advance", until_ns, most: CHUNK });
      if (news.problems) return news;
      all = all === null ? news : joined(all, news);
      const reached = news.ended || news.next_ns > until_ns;
      if (reached || performance.now() - begun > slice_ms) break;
    }
    const whole = !all.ended && all.next_ns > until_ns;
    return { ...all, reached_ns: whole ? until_ns : all.now_ns, wall_ms: performance.now() - begun };
  },

  finish: () => engine.ask({ do: "finish" }),
};

function joined(first, second) {
  const made = { ...second };
  for (const name of LISTS) made[name] = first[name].map((rows, i) => rows.concat(second[name][i]));
  made.fates = first.fates.concat(second.fates);
  for (const table of ["queue", "law", "flows"]) {
    made[table] = { ...first[table] };
    for (const [name, column] of Object.entries(second[table])) made[table][name] = (first[table][name] ?? []).concat(column);
  }
  return made;
}

onmessage = async ({ data: { id, part, ...request } }) => {
  try {
    postMessage({ id, answer: await parts[part](request) });
  } catch (error) {
    // A trap: the module cannot be used any longer.
    const message = `the engine stopped: ${error instanceof Error ? error.message : error}`;
    postMessage({ id, answer: { problems: [{ message }] } });
  }
};
