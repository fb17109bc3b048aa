// A run on the page: its worker, what its picture has received so far, and how far it is.

// Where the compiled engine is.
const ENGINE = new URL("./aqmlab.wasm", import.meta.url);
// Memory that a run may take, in bytes: what a phone can give to a page.
export const MEMORY = 400e6;
// Waiting times are counted over windows of this length [s].
const WINDOW = 0.5;

let compiling = null;

// The engine, which is compiled once, while it arrives; all workers share it.
async function compiled() {
  const answer = await fetch(ENGINE);
  if (!answer.ok) throw new Error(`the engine could not be loaded: ${answer.status} ${answer.statusText}`);
  // Some servers know no type for such files.
  const streams = answer.headers.get("content-type") === "application/wasm";
  return streams ? WebAssembly.compileStreaming(answer) : WebAssembly.compile(await answer.arrayBuffer());
}

export class Run {
  #worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
  #waiting = new Map();
  #count = 0;

  static async begin() {
    const run = new Run();
    const { problems } = await run.#call("load", { module: await (compiling ??= compiled()) });
    if (problems) throw new Error(problems[0].message);
    return run;
  }

  constructor() {
    this.#worker.onmessage = ({ data: { id, answer } }) => {
      this.#waiting.get(id)(answer);
      this.#waiting.delete(id);
    };
    this.#worker.onerror = (event) => {
      const answer = { problems: [{ message: `the worker stopped: ${event.message || "it could not be loaded"}` }] };
      for (const answered of this.#waiting.values()) answered(answer);
      this.#waiting.clear();
    };
  }

  #call(part, request = {}) {
    const id = ++this.#count;
    return new Promise((answered) => {
      this.#waiting.set(id, answered);
      this.#worker.postMessage({ id, part, ...request });
    });
  }

  catalogue() {
    return this.#call("catalogue");
  }

  // Begins a run; the answer describes it or lists problems.
  async open(request) {
    this.about = null;
    const about = await this.#call("open", { memory: MEMORY, ...request });
    if (about.problems) return about;
    const points = () => ({ t: [], y: [] });
    Object.assign(this, {
      about,
      looks: request.packets === true,
      reached: 0,
      events: 0,
      ended: false,
      wall: 0,
      held: [],
      backlog: [0, 0],
      sending: null,
      fates: [],
      totals: { drops: 0, marks: 0, departed: 0 },
      series: {
        backlog: points(),
        early: points(),
        other: points(),
        marks: points(),
        departures: points(),
        p50: points(),
        p95: points(),
        p99: points(),
        law: {},
        flows: {},
        classes: about.classes.map(() => ({ window: points(), trip: points(), goodput: points(), waiting: points() })),
      },
    });
    this.waited = about.classes.map(() => new Map());
    this.counted = 0;
    this.version = (this.version ?? 0) + 1;
    return about;
  }

  // Runs up to `until` [s], or for `slice` [ms] of real time.
  async advance(until, slice) {
    const news = await this.#call("advance", { until_ns: Math.round(until * 1e9), slice_ms: slice });
    if (!news.problems) this.#take(news);
    return news;
  }

  finish() {
    return this.#call("finish");
  }

  close() {
    this.#worker.terminate();
  }

  // Adds what is new to the series.
  #take(news) {
    const { queue, law, flows, classes } = news;
    const { series, totals } = this;
    Object.assign(this, {
      reached: news.reached_ns / 1e9,
      next: news.next_ns === null ? null : news.next_ns / 1e9,
      events: news.events,
      ended: news.ended,
      wall: this.wall + news.wall_ms,
      held: news.held,
      backlog: news.backlog,
      sending: news.sending,
      fates: news.fates,
      version: this.version + 1,
    });
    queue.t_ns.forEach((ns, i) => {
      const t = ns / 1e9;
      const span = t - (series.backlog.t.at(-1) ?? 0);
      const add = (name, value) => {
        series[name].t.push(t);
        series[name].y.push(value);
      };
      add("backlog", queue.backlog_packets[i]);
      add("early", queue.dropped_by_law_packets[i] / span);
      add("other", queue.dropped_not_by_law_packets[i] / span);
      add("marks", queue.marked_packets[i] / span);
      add("departures", (queue.departures_bytes[i] * 8) / span / 1e6);
      totals.drops += queue.dropped_by_law_packets[i] + queue.dropped_not_by_law_packets[i];
      totals.marks += queue.marked_packets[i];
      totals.departed += queue.departures_bytes[i];
    });
    for (const [name, rows] of Object.entries(law)) {
      const line = (series.law[name] ??= { t: [], y: [] });
      for (const [t, y] of rows) {
        line.t.push(t);
        line.y.push(y);
      }
    }
    for (const [flow, rows] of Object.entries(flows)) {
      const line = (series.flows[flow] ??= { t: [], y: [] });
      for (const [t, window] of rows) {
        line.t.push(t);
        line.y.push(window);
      }
    }
    classes.forEach((rows, i) => {
      const { window, trip, goodput } = series.classes[i];
      for (const [t, , mean, rtt, delivered] of rows) {
        const span = t - (window.t.at(-1) ?? 0);
        for (const [line, y] of [[window, mean], [trip, rtt * 1e3], [goodput, (delivered * 8) / span / 1e6]]) {
          line.t.push(t);
          line.y.push(y);
        }
      }
    });
    this.#countWaits(news.waited);
  }

  // Counts waiting times; at the end of a window, its percentiles become points.
  #countWaits(classes) {
    classes.forEach((pairs, i) => {
      const counts = this.waited[i];
      for (const [ns, packets] of pairs) counts.set(ns, (counts.get(ns) ?? 0) + packets);
    });
    if (this.reached - this.counted < WINDOW) return;
    const add = ({ t, y }, ns) => {
      t.push(this.reached);
      y.push(ns / 1e6);
    };
    const all = this.waited.flatMap((counts) => [...counts]);
    for (const [name, share] of [["p50", 0.5], ["p95", 0.95], ["p99", 0.99]]) add(this.series[name], percentile(all, share));
    this.waited.forEach((counts, i) => {
      add(this.series.classes[i].waiting, percentile([...counts], 0.95));
      counts.clear();
    });
    this.counted = this.reached;
  }
}

// The value below which this share of the weight lies, given pairs of values and weights; NaN if there are none.
function percentile(pairs, share) {
  const total = pairs.reduce((sum, [, weight]) => sum + weight, 0);
  let seen = 0;
  const found = pairs.sort(([a], [b]) => a - b).find(([, weight]) => (seen += weight) >= share * total);
  return found === undefined ? NaN : found[0];
}
