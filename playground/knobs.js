// The knobs: a form made from the parameter tables of the engine.
import { KNOBS, accepts, choosable, hasKnob, kindOf, wordsOf } from "./scenario.js";

const { element } = globalThis.aqmlab;
const GROUPS = [
  ["Network", ["rate", "course", "low", "from", "until", "delay", "buffer"]],
  ["Traffic", ["flows", "rtt", "tcp", "far", "far_rtt", "far_tcp", "web", "game", "cross", "ecn", "ack", "stack", "mss"]],
  ["Run", ["duration", "seed"]],
];

export class Knobs {
  // `changed` is called after each change, `now` with the course of the rate that is to begin now.
  constructor(root, catalogue, settings, { changed, now }) {
    Object.assign(this, { root, catalogue, settings, changed, now });
    root.addEventListener("submit", (event) => event.preventDefault());
    this.build();
  }

  build() {
    const focus = document.activeElement?.id;
    const explained = this.root.classList.contains("explained");
    const help = element("input", { type: "checkbox", id: "explain", checked: explained });
    help.addEventListener("change", () => this.root.classList.toggle("explained", help.checked));
    const parts = [element("label", { class: "switch" }, help, "Explain the knobs")];
    if (this.settings.text !== null) {
      const back = element("button", { type: "button", id: "knobs-back" }, "Back to the knobs");
      back.addEventListener("click", () => this.change("text", null));
      parts.push(element("p", {}, "The page runs a scenario in TOML, which the knobs do not change."), back);
    } else {
      const groups = GROUPS.map(([title, names]) => this.group(title, names));
      parts.push(this.queue(0), this.queue(1), ...groups);
    }
    this.root.replaceChildren(...parts);
    if (focus) document.getElementById(focus)?.focus();
  }

  change(name, value) {
    this.settings[name] = value;
    this.build();
    this.changed();
  }

  group(title, names) {
    const shown = names.map((name) => KNOBS.find((knob) => knob.name === name)).filter(({ when }) => !when || when(this.settings));
    const group = element("fieldset", {}, element("legend", {}, title), ...shown.map((knob) => this.knob(knob)));
    if (title === "Network") {
      const buttons = [["falls", "Lower the rate now"], ["outage", "Outage now"]].map(([course, label]) => {
        const button = element("button", { type: "button", id: `now-${course}` }, label);
        button.addEventListener("click", () => this.now(course));
        return button;
      });
      group.append(element("div", { class: "now" }, ...buttons));
    }
    return group;
  }

  // One of the knobs that all queues share.
  knob(knob) {
    const { name, label, slide, unit } = knob;
    const value = this.settings[name];
    const words = wordsOf(this.catalogue, knob);
    const of = knob.tcp && this.catalogue.tcp.find((param) => param.name === knob.tcp);
    const help = of ? `${of.help} (${of.source})` : knob.help;
    const id = `knob-${name}`;
    const input = words ? chooser(id, words, value) : element("input", { type: "text", id, value, spellcheck: "false" });
    const set = (next) => {
      const good = accepts(this.catalogue, knob, next);
      input.setAttribute("aria-invalid", String(!good));
      if (good && next !== this.settings[name]) this.change(name, next);
    };
    input.addEventListener("change", () => set(input.value.trim()));
    const row = this.row(input, label, "", help);
    if (slide) row.append(slider(`${id}-slide`, label, slide, unit, value, (next, done) => {
      input.value = next;
      if (done) set(next);
    }));
    return row;
  }

  row(input, label, look, help) {
    input.setAttribute("aria-describedby", `${input.id}-help`);
    input.title = help;
    return element("div", { class: "knob" }, element("label", { for: input.id, class: look }, label), input, element("small", { id: `${input.id}-help` }, help));
  }

  // The discipline of one side, with its parameters.
  queue(at) {
    const { catalogue, settings } = this;
    const queue = settings.queues[at];
    const id = `queue-${at + 1}`;
    const kinds = choosable(catalogue).map(({ name, title }) => [name, title]);
    const select = chooser(id, at === 1 ? [["", "none"], ...kinds] : kinds, queue?.kind ?? "");
    select.addEventListener("change", () => {
      settings.queues[at] = select.value === "" ? null : { kind: select.value, set: {} };
      this.build();
      this.changed();
    });
    const known = queue && kindOf(catalogue, queue.kind);
    const group = element("fieldset", { "data-queue": at + 1 }, element("legend", {}, `Queue ${at + 1}`));
    group.append(this.row(select, "Discipline", "", known ? known.summary : "no second queue"));
    if (!known) return group;
    const made = known.params.filter(hasKnob).map((param) => this.param(at, param));
    const changed = Object.keys(queue.set).length > 0;
    group.append(element("details", { open: changed || this.opened?.[at] }, element("summary", {}, `Parameters (${made.length})`), ...made));
    group.querySelector("details").addEventListener("toggle", (event) => {
      this.opened = { ...this.opened, [at]: event.target.open };
    });
    return group;
  }

  // The knob of one parameter of a discipline. Empty means the default.
  param(at, param) {
    const { set } = this.settings.queues[at];
    const id = `queue-${at + 1}-${param.name}`;
    const value = set[param.name] ?? "";
    const words = param.kind === "flag" ? ["true", "false"] : param.kind === "choice" ? param.values.split(" | ") : null;
    const absent = param.default === "required" ? "from the page" : param.default.replace(/^auto: /, "automatic: ");
    const input = words ? chooser(id, [["", `default: ${absent}`], ...words.map((word) => [word, word])], value) : element("input", { type: "text", id, value, placeholder: absent, spellcheck: "false", maxlength: 60 });
    input.addEventListener("change", () => {
      const next = input.value.trim();
      if (next === "") delete set[param.name];
      else set[param.name] = next;
      this.changed();
    });
    const unit = param.unit ? ` in ${param.unit}` : "";
    return this.row(input, param.name, "param", `${param.help}: ${param.values}${unit}; default ${absent}. ${param.source}`);
  }

  // Shows the values that apply where a knob is empty.
  effective(at, parameters) {
    for (const { path, value } of parameters) {
      const name = path.match(/^topology\.queue\.(\w+)$/)?.[1];
      const input = name && document.getElementById(`queue-${at + 1}-${name}`);
      if (input?.tagName === "INPUT") input.placeholder = value;
      else if (input) input.options[0].textContent = `default: ${value}`;
    }
  }

  // Marks the knobs that problems are about.
  blame(at, problems) {
    for (const input of this.root.querySelectorAll(`[data-queue="${at + 1}"] input, [data-queue="${at + 1}"] select`)) {
      const name = input.id.replace(/^queue-\d-/, "");
      input.setAttribute("aria-invalid", String(problems.some(({ path }) => path?.split(".").at(-1) === name)));
    }
  }
}

function chooser(id, words, value) {
  const options = words.map((word) => {
    const [key, text] = Array.isArray(word) ? word : [word, word];
    return element("option", { value: key, selected: key === value }, text);
  });
  return element("select", { id }, ...options);
}

// A logarithmic slider over a quantity in one unit; other units can be typed.
function slider(id, label, [low, high], unit, value, moved) {
  const zero = low === 0;
  const span = Math.log(zero ? high + 1 : high / low);
  const toPart = (number) => (zero ? Math.log(number + 1) : Math.log(number / low)) / span;
  const fromPart = (part) => (zero ? Math.exp(part * span) - 1 : low * Math.exp(part * span));
  const number = Number.parseFloat(value);
  const made = element("input", { type: "range", id, min: 0, max: 1000, value: Math.round(1000 * Math.min(1, Math.max(0, toPart(number)))), "aria-label": `${label}, slider` });
  const shown = () => {
    const exact = fromPart(made.value / 1000);
    return `${unit === "" || unit === "p" ? Math.round(exact) : Number(exact.toPrecision(2))}${unit}`;
  };
  made.setAttribute("aria-valuetext", value);
  made.addEventListener("input", () => {
    made.setAttribute("aria-valuetext", shown());
    moved(shown(), false);
  });
  made.addEventListener("change", () => moved(shown(), true));
  return made;
}
