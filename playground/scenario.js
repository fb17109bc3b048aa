// What the knobs say, as a scenario for `aqmlab run`, as Python, and in the address of the page.

// The knobs that all disciplines share. `form` is checked before a value reaches a scenario; the engine checks the rest.
// `slide` gives the ends of a logarithmic slider, in `unit`.
const QUANTITY = /^\d+(\.\d+)?[A-Za-z]*$/;
const COUNT = /^\d{1,5}$/;
export const KNOBS = [
  { name: "rate", label: "Rate", start: "10Mbit", form: QUANTITY, slide: [0.1, 200], unit: "Mbit", help: "rate of the bottleneck" },
  { name: "course", label: "Course of the rate", start: "constant", words: ["constant", "falls", "outage"], help: "constant; or it falls to a lower rate, or to zero, and comes back" },
  { name: "low", label: "Lower rate", start: "2Mbit", form: QUANTITY, help: "rate while it is low", when: (s) => s.course === "falls" },
  { name: "from", label: "From", start: "20s", form: QUANTITY, help: "when the rate falls", when: (s) => s.course !== "constant" },
  { name: "until", label: "Until", start: "30s", form: QUANTITY, help: "when the rate comes back", when: (s) => s.course !== "constant" },
  { name: "delay", label: "Delay", start: "10ms", form: QUANTITY, slide: [0.1, 300], unit: "ms", help: "propagation delay of the bottleneck, one way" },
  { name: "buffer", label: "Buffer", start: "200p", form: QUANTITY, slide: [5, 2000], unit: "p", help: "room in the queue: packets (p), bytes (B, kB) or bandwidth-delay products (bdp)" },
  { name: "flows", label: "Downloads", start: "8", form: COUNT, slide: [0, 100], unit: "", help: "TCP flows that always have something to send" },
  { name: "rtt", label: "Their round-trip time", start: "60ms", form: QUANTITY, slide: [21, 500], unit: "ms", help: "base round-trip time of these flows, of web users, of the game and of UDP" },
  { name: "tcp", label: "Their congestion control", start: "reno", tcp: "congestion", help: "" },
  { name: "far", label: "More downloads", start: "0", form: COUNT, slide: [0, 100], unit: "", help: "a second group of TCP flows" },
  { name: "far_rtt", label: "Their round-trip time", start: "160ms", form: QUANTITY, slide: [21, 500], unit: "ms", help: "base round-trip time of the second group", when: (s) => s.far !== "0" },
  { name: "far_tcp", label: "Their congestion control", start: "reno", tcp: "congestion", help: "", when: (s) => s.far !== "0" },
  { name: "web", label: "Web users", start: "0", form: COUNT, slide: [0, 200], unit: "", help: "people who fetch web pages of 2025 and read them for 5 s on average" },
  { name: "game", label: "Game", start: "no", words: ["no", "yes"], help: "packets of 100 B, 60 per second, that do not react to the queue" },
  { name: "cross", label: "UDP", start: "0Mbit", form: QUANTITY, help: "UDP traffic at a constant rate that does not react to the queue; 0Mbit is none" },
  { name: "ecn", label: "ECN", start: "no", words: ["no", "yes"], help: "flows negotiate explicit congestion notification, and queues that can mark do" },
  { name: "ack", label: "Acknowledge each segment", start: "no", words: ["no", "yes"], help: "receivers acknowledge every segment instead of every other one" },
  { name: "stack", label: "TCP profile", start: "modern", profile: true, help: "what else TCP does: as in the RFCs, in today's systems, in ns-2, ..." },
  { name: "mss", label: "Segment size", start: "1448B", form: QUANTITY, help: "payload of a full segment" },
  { name: "duration", label: "Duration", start: "60s", form: QUANTITY, help: "simulated time of the run" },
  { name: "seed", label: "Seed", start: "1", form: /^\d{1,9}$/, help: "of all draws: the same seed gives the same run" },
];
// Longest scenario that the address or a file may hold, in characters.
export const LONGEST = 100_000;

export function start() {
  const settings = Object.fromEntries(KNOBS.map(({ name, start }) => [name, start]));
  return { ...settings, queues: [{ kind: "droptail", set: {} }, { kind: "red", set: {} }], text: null, lesson: null };
}

export const kindOf = (catalogue, kind) => catalogue.disciplines.find(({ name }) => name === kind);

// Parameters for which there is a knob; the others can only be set in a scenario file.
export const hasKnob = ({ kind }) => !["list", "table", "discipline"].includes(kind);

// Disciplines that have required parameters without a knob, such as those that contain others, need a scenario file.
export function choosable(catalogue) {
  const lacks = (param) => param.default === "required" && !(hasKnob(param) && param.name in REQUIRED);
  return catalogue.disciplines.filter(({ params }) => !params.some(lacks));
}
// What the page gives to required parameters.
const REQUIRED = { limit: (s) => s.buffer, rate: (s) => s.rate };

const text = (value) => JSON.stringify(value);

// A value in the notation of a scenario: numbers and flags are bare, everything else is quoted.
function written(param, value) {
  if (value === "auto") return text(value);
  const bare = ["whole number", "number", "flag"].includes(param.kind) && /^(true|false|-?\d+(\.\d+)?(e-?\d+)?)$/.test(value);
  return bare ? value : text(value);
}

function queueToml(catalogue, settings, { kind, set }) {
  const known = kindOf(catalogue, kind);
  const all = { ...set };
  for (const param of known.params) {
    if (param.name in all) continue;
    if (param.name === "limit" && param.kind === "size") all.limit = settings.buffer;
    else if (param.default === "required") all[param.name] = REQUIRED[param.name](settings);
    else if (param.name === "ecn" && param.kind === "flag") all.ecn = String(settings.ecn === "yes");
  }
  const pairs = known.params.filter(({ name }) => name in all).map((param) => `${param.name} = ${written(param, all[param.name])}`);
  return `{ ${[`kind = ${text(kind)}`, ...pairs].join(", ")} }`;
}

function rateToml({ rate, course, low, from, until }) {
  if (course === "constant") return text(rate);
  const fallen = course === "outage" ? "0bit" : low;
  return `[["0s", ${text(rate)}], [${text(from)}, ${text(fallen)}], [${text(until)}, ${text(rate)}]]`;
}

// The names of the arms: those of the disciplines, told apart if both are the same.
export function armNames(catalogue, settings) {
  const names = settings.queues.filter(Boolean).map(({ kind }) => kindOf(catalogue, kind).title);
  return names[0] === names[1] ? names.map((name, i) => `${name} ${i + 1}`) : names;
}

// The scenario in TOML, with an arm per queue.
export function toml(catalogue, settings) {
  if (settings.text !== null) return settings.text;
  const queues = settings.queues.filter(Boolean);
  const ecn = settings.ecn === "yes" ? ", ecn = true" : "";
  const ack = settings.ack === "yes" ? ", ack_every = 1" : "";
  const tcp = (congestion) => `{ profile = ${text(settings.stack)}, congestion = ${text(congestion)}, mss = ${text(settings.mss)}${ack}${ecn} }`;
  const classes = [];
  const add = (name, kind, lines) => classes.push(["", "[[traffic]]", `name = "${name}"`, `kind = "${kind}"`, ...lines]);
  const bulk = (name, count, rtt, congestion) => {
    if (Number(count) === 0) return;
    add(name, "bulk", [`count = ${count}`, `rtt = ${text(rtt)}`, `start = { uniform = ["0s", "2s"] }`, `tcp = ${tcp(congestion)}`]);
  };
  bulk("downloads", settings.flows, settings.rtt, settings.tcp);
  bulk("more", settings.far, settings.far_rtt, settings.far_tcp);
  if (Number(settings.web) > 0) {
    add("web", "pages", ['from = "right"', 'to = "left"', `users = ${settings.web}`, 'think = { exponential = "5s" }', `rtt = ${text(settings.rtt)}`, 'start = { uniform = ["0s", "2s"] }', `tcp = ${tcp(settings.tcp)}`]);
  }
  if (settings.game === "yes") add("game", "cbr", ['rate = "48kbit"', 'size = "100B"', `rtt = ${text(settings.rtt)}`]);
  if (Number.parseFloat(settings.cross) > 0) add("udp", "cbr", [`rate = ${text(settings.cross)}`, 'size = "1000B"', `rtt = ${text(settings.rtt)}`]);
  const names = armNames(catalogue, settings);
  const arms = queues.slice(1).length === 0 ? [] : queues.map((queue, i) => `\n[[arm]]\nname = ${text(names[i])}\ntopology.queue = ${queueToml(catalogue, settings, queue)}`);
  return [
    `title = ${text(`Playground: ${names.join(" and ")}`)}`,
    `duration = ${text(settings.duration)}`,
    'warmup = "2s"',
    `seed = ${settings.seed}`,
    "runs = 1",
    'record = { queues = "50ms", flows = "100ms" }',
    "",
    "[topology]",
    'kind = "dumbbell"',
    `rate = ${rateToml(settings)}`,
    `delay = ${text(settings.delay)}`,
    'access_rate = "1Gbit"',
    'reverse_rate = "1Gbit"',
    `queue = ${queueToml(catalogue, settings, queues[0])}`,
    'reverse_queue = { kind = "droptail", limit = "1000p" }',
    ...classes.flat(),
    ...arms,
    "",
  ].join("\n");
}

// The same as Python.
export function python(scenario) {
  const quoted = scenario.replaceAll("\\", "\\\\").replaceAll('"""', '\\"\\"\\"');
  return `import pathlib\n\nimport aqmlab\n\npathlib.Path("playground.toml").write_text("""\\\n${quoted}""", encoding="utf-8")\nresult = aqmlab.run("playground.toml")\nprint(result.table())\n`;
}

// The part of the address after #, which holds what differs from the start.
export async function toFragment(settings) {
  const query = new URLSearchParams();
  if (settings.text !== null) {
    query.set("toml", await squeezed(settings.text));
    return query.toString();
  }
  for (const { name, start } of KNOBS) if (settings[name] !== start) query.set(name, settings[name]);
  settings.queues.forEach((queue, i) => {
    query.set(`q${i + 1}`, queue === null ? "" : queue.kind);
    for (const [name, value] of Object.entries(queue?.set ?? {})) query.set(`q${i + 1}.${name}`, value);
  });
  if (settings.lesson) query.set("lesson", settings.lesson);
  return query.toString();
}

// Reads an address. Nothing in it is evaluated: a value reaches the scenario only as a quoted string, a number or one of
// a list of words. Returns the settings and what was wrong with the address.
export async function fromFragment(catalogue, fragment) {
  const settings = start();
  const wrong = [];
  const query = new URLSearchParams(fragment.slice(0, 2 * LONGEST));
  if (query.has("toml")) {
    try {
      settings.text = await unsqueezed(query.get("toml"));
    } catch {
      wrong.push("the address holds no readable scenario");
    }
    return { settings, wrong };
  }
  for (const [key, value] of query) {
    const problem = apply(catalogue, settings, key, value);
    if (problem) wrong.push(`the address has ${text(key.slice(0, 40))}, ${problem}`);
  }
  return { settings, wrong };
}

// Applies one part of an address; returns what is wrong with it.
function apply(catalogue, settings, key, value) {
  const knob = KNOBS.find(({ name }) => name === key);
  if (knob) return accepts(catalogue, knob, value) ? void (settings[key] = value) : `whose value ${text(value.slice(0, 40))} is not accepted`;
  if (key === "lesson") return /^[a-z_]{1,40}$/.test(value) ? void (settings.lesson = value) : "which names no lesson";
  const [, place, name] = key.match(/^q([12])(?:\.(\w{1,40}))?$/) ?? [];
  if (place === undefined) return "which is no knob";
  const at = Number(place) - 1;
  if (name === undefined) {
    if (value === "" && at === 1) return void (settings.queues[1] = null);
    if (!choosable(catalogue).some((known) => known.name === value)) return `and ${text(value.slice(0, 40))} is no discipline of this page`;
    return void (settings.queues[at] = { kind: value, set: {} });
  }
  const queue = settings.queues[at];
  const param = queue && kindOf(catalogue, queue.kind).params.find((known) => known.name === name);
  if (!param || !hasKnob(param)) return "which is no parameter of that queue";
  if (value.length > 60) return "whose value is too long";
  return void (queue.set[name] = value);
}

export function accepts(catalogue, knob, value) {
  const words = wordsOf(catalogue, knob);
  if (words) return words.includes(value);
  return value.length <= 20 && knob.form.test(value);
}

// The words that a knob accepts; null if it accepts others.
export function wordsOf(catalogue, { words, tcp, profile }) {
  if (profile) return catalogue.profiles;
  if (tcp) return catalogue.tcp.find(({ name }) => name === tcp).values.split(" | ");
  return words ?? null;
}

async function squeezed(content) {
  const stream = new Blob([content]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const packed = new Uint8Array(await new Response(stream).arrayBuffer());
  return btoa(Array.from(packed, (byte) => String.fromCharCode(byte)).join("")).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

async function unsqueezed(letters) {
  const packed = Uint8Array.from(atob(letters.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
  const reader = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  const parts = [];
  let length = 0;
  // A few bytes can unpack to very many: reading stops at the limit.
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    length += part.value.length;
    if (length > LONGEST) throw new Error("too long");
    parts.push(part.value);
  }
  return new Blob(parts).text();
}
