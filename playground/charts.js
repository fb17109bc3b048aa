// Charts that grow with a run. Axes, scales and marks are those of the reports (chart.js, which sets `aqmlab`).

const page = globalThis.aqmlab;
const { svg, element } = page;
export const COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#7f7f7f"];
const [BLUE, RED, GREEN, , ORANGE] = COLORS;

// Lines of a chart differ by colour and by dashes.
const DASHES = [[], [6, 2], [2, 2]];
const line = (label, points, color, more = {}) => ({ label, points, color, dash: [], width: 1.6, ...more });

// Values of laws that are drawn as probabilities; of the others, the first one below is drawn.
const CHANCES = ["p", "max_p", "p_classic", "p_scalable"];
const STATES = ["price", "count", "virtual_queue", "drain_rate", "delay", "tokens", "drop_rate", "monitored", "known"];

function lawLines({ series: { law } }) {
  const chances = CHANCES.filter((name) => name in law);
  const shown = chances.length > 0 ? chances : STATES.filter((name) => name in law).slice(0, 1);
  return shown.map((name, i) => line(name, law[name], [BLUE, ORANGE, RED, GREEN][i], { dash: i === 0 ? [] : [6, 3] }));
}

// Each chart takes its lines from the series of a run.
export const CHARTS = [
  {
    name: "backlog",
    title: "Backlog [packets]",
    lines: ({ series: { backlog, law } }) => [line("backlog", backlog, BLUE), ...(law.avg ? [line("average", law.avg, RED, { dash: [6, 2], width: 2 })] : [])],
  },
  {
    name: "waiting",
    title: "Waiting time in the queue [ms]",
    lines: ({ series: { p50, p95, p99 } }) => [line("99 %", p99, RED, { dash: [2, 2] }), line("95 %", p95, ORANGE, { dash: [6, 2] }), line("median", p50, BLUE)],
  },
  {
    name: "waiting_by_class",
    title: "Waiting time by class, 95 % [ms]",
    lines: ({ series: { classes }, about }) => (classes.length < 2 ? [] : classes.map(({ waiting }, i) => line(about.classes[i].name, waiting, COLORS[i], { dash: DASHES[i % 3] }))),
  },
  { name: "law", title: "What the law computes", lines: lawLines },
  {
    name: "drops",
    title: "Drops and marks [packets/s]",
    lines: ({ series: { early, other, marks } }) => [line("marks", marks, GREEN, { dash: [2, 2] }), line("no room", other, RED, { dash: [6, 2] }), line("by the law", early, ORANGE)],
  },
  {
    name: "windows",
    title: "Congestion windows [segments]",
    lines: ({ series: { flows, classes }, about }) => [
      ...Object.values(flows).map((points) => line("a flow", points, COLORS[5], { width: 1, faint: true })),
      ...classes.map(({ window }, i) => line(`mean of ${about.classes[i].name}`, window, COLORS[i])).filter(({ points }) => points.t.length > 0),
    ],
  },
  {
    name: "goodput",
    title: "Goodput [Mbit/s]",
    lines: ({ series: { departures, classes }, about }) => [
      line("the link, with headers", departures, COLORS[7], { dash: [2, 2], width: 1 }),
      ...classes.map(({ goodput }, i) => line(about.classes[i].name, goodput, COLORS[i])).filter(({ points }) => points.t.length > 0),
    ],
  },
  {
    name: "trip",
    title: "Smoothed round-trip time [ms]",
    lines: ({ series: { classes }, about }) => classes.map(({ trip }, i) => line(about.classes[i].name, trip, COLORS[i])).filter(({ points }) => points.t.length > 0),
  },
];

// A chart of one run, which keeps its axes until they no longer fit.
export class LiveChart {
  constructor(kind) {
    Object.assign(this, { kind, drawn: null, key: "" });
    this.holder = element("div", { class: "holder" });
    this.tools = element("div", { class: "tools" });
    this.table = element("details", {}, element("summary", {}, "Table"), element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `${kind.title}, table` }));
    this.root = element("figure", { class: "chart", "data-chart": kind.name }, this.holder, this.tools, this.table);
    for (const [name, save] of [["SVG", saveSvg], ["PNG", savePng]]) {
      const button = element("button", { type: "button", title: `Save this chart as ${name}`, "aria-label": `Save ${kind.title} as ${name}` }, name);
      button.addEventListener("click", () => this.drawn && save(this.drawn.svg, kind.name));
      this.tools.append(button);
    }
    this.table.addEventListener("toggle", () => this.fillTable());
  }

  // The largest value of the lines, for axes that several charts share.
  top(run) {
    return Math.max(0, ...this.kind.lines(run).map(({ points }) => largest(points)));
  }

  // `name` is that of the arm, which is part of the title if the chart is `named`.
  draw(run, { name, named, end, top, width }) {
    this.run = run;
    const lines = this.kind.lines(run);
    if (lines.length === 0) {
      // The other arm has such lines.
      this.key = "";
      this.drawn = null;
      this.holder.replaceChildren(element("p", { class: "note" }, `${this.kind.title}: ${name} has none.`));
      return;
    }
    const high = rounded(top);
    const key = [width, end, high, name, named, lines.map(({ label }) => label)].join();
    if (key !== this.key) {
      this.key = key;
      this.frame(lines, { name, named, end, high, width });
    }
    const { x, y, box } = this.drawn;
    lines.forEach((one, i) => this.paths[i].setAttribute("d", path(one.points, x, y, box)));
    if (this.table.open && Date.now() - (this.filled ?? 0) > 1000) this.fillTable();
  }

  // Draws axes and legend, and an empty path per line.
  frame(lines, { name, named, end, high, width }) {
    const legend = [];
    for (const { label, color, dash } of lines) if (!legend.some(({ text }) => text === label)) legend.push({ text: label, color, dash });
    const chart = new page.Chart({
      width,
      tall: 120,
      title: named ? `${name}: ${this.kind.title}` : this.kind.title,
      label: `${this.kind.title}, ${name}. The table below the chart has its numbers`,
      left: 46,
      legend,
      across: "",
      upright: true,
      x: (left, right) => page.linear(0, end, left, right),
      y: (bottom, upper) => page.linear(0, high, bottom, upper),
    });
    chart.clip();
    this.paths = lines.map(({ color, dash, width: thick, faint }) => {
      const made = svg("path", { stroke: color, class: "course", "stroke-width": thick, fill: "none" });
      if (faint) made.setAttribute("opacity", 0.45);
      if (dash.length > 0) made.setAttribute("stroke-dasharray", dash.join(" "));
      chart.plot.append(made);
      return made;
    });
    // Marks are made when the pointer or a key asks for one: a run adds points all the time.
    const remember = () => {
      chart.marks.length = 0;
      this.addMarks(chart);
    };
    chart.svg.addEventListener("pointermove", remember, { capture: true });
    chart.svg.addEventListener("keydown", remember, { capture: true });
    this.holder.replaceChildren(chart.svg);
    this.drawn = chart;
  }

  addMarks(chart) {
    for (const [t, ...values] of this.rows(100)) {
      const said = values.map((value, i) => `${this.columns[i]} ${value}`).join("\n");
      const first = Number.isFinite(values[0]) ? values[0] : 0;
      chart.mark(chart.x(t), chart.y(first), `${t} s\n${said}`);
    }
  }

  // At most `most` rows: the time and a value per line. Lines of single flows are left out.
  rows(most) {
    const lines = this.kind.lines(this.run).filter(({ faint, points }) => !faint && points.t.length > 0);
    this.columns = lines.map(({ label }) => label);
    const longest = lines.reduce((best, { points }) => (points.t.length > best.length ? points.t : best), []);
    const step = Math.max(1, Math.ceil(longest.length / most));
    const at = lines.map(() => 0);
    return longest.filter((_, i) => i % step === 0).map((t) => [
      Number(t.toPrecision(5)),
      ...lines.map(({ points }, k) => {
        while (at[k] + 1 < points.t.length && points.t[at[k] + 1] <= t) at[k]++;
        return Number(points.y[at[k]].toPrecision(4));
      }),
    ]);
  }

  fillTable() {
    if (!this.table.open || !this.run) return;
    this.filled = Date.now();
    const rows = this.rows(60);
    const head = element("tr", {}, ...["time [s]", ...this.columns].map((text) => element("th", { scope: "col" }, text)));
    const body = rows.map(([t, ...values]) => element("tr", {}, element("th", { scope: "row" }, String(t)), ...values.map((value) => element("td", {}, Number.isFinite(value) ? String(value) : ""))));
    const made = element("table", {}, element("caption", {}, this.kind.title), element("thead", {}, head), element("tbody", {}, ...body));
    this.table.lastElementChild.replaceChildren(made);
  }
}

function largest({ y }) {
  let most = 0;
  for (const value of y) if (value > most) most = value;
  return most;
}

// The next number of 1, 1.5, 2, 3, 4, 6, 8 times a power of ten: axes change seldom while a run grows.
function rounded(top) {
  if (!(top > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(top));
  return power * [1, 1.5, 2, 3, 4, 6, 8, 10].find((factor) => factor * power >= top);
}

// A path with at most two points per pixel column: the smallest and the largest value there.
function path({ t, y }, x, across, { left, right }) {
  const begin = t.length > 2 * (right - left);
  if (!begin) return joined(t.map((time, i) => [x(time), across(y[i])]));
  const points = [];
  let [column, low, high] = [-1, 0, 0];
  const close = () => column >= 0 && points.push([column, low], [column, high]);
  for (let i = 0; i < t.length; i++) {
    if (!Number.isFinite(y[i])) continue;
    const [at, value] = [Math.round(x(t[i])), across(y[i])];
    if (at !== column) {
      close();
      [column, low, high] = [at, value, value];
    } else if (value > low) low = value;
    else if (value < high) high = value;
  }
  close();
  return joined(points);
}

function joined(points) {
  let made = "";
  let gap = true;
  for (const [x, y] of points) {
    if (Number.isFinite(y)) made += `${gap ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}`;
    gap = !Number.isFinite(y);
  }
  return made;
}

// The chart as a file: with the colours that it has on the page, whatever program opens it.
function standalone(original) {
  const made = original.cloneNode(true);
  const copies = [...made.querySelectorAll("*")];
  [...original.querySelectorAll("*")].forEach((node, i) => {
    const look = getComputedStyle(node);
    for (const name of ["fill", "stroke", "font-size", "font-weight"]) copies[i].setAttribute(name, look.getPropertyValue(name));
  });
  made.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  made.setAttribute("font-family", getComputedStyle(document.body).fontFamily.replaceAll('"', "'"));
  const ground = getComputedStyle(document.body).backgroundColor;
  made.prepend(svg("rect", { width: "100%", height: "100%", fill: ground }));
  return new XMLSerializer().serializeToString(made);
}

export function download(content, type, name) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = element("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

function saveSvg(chart, name) {
  download(standalone(chart), "image/svg+xml", `${name}.svg`);
}

async function savePng(chart, name) {
  const url = URL.createObjectURL(new Blob([standalone(chart)], { type: "image/svg+xml" }));
  const image = new Image();
  image.src = url;
  await image.decode();
  URL.revokeObjectURL(url);
  const canvas = element("canvas", { width: 2 * image.width, height: 2 * image.height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => download(blob, "image/png", `${name}.png`), "image/png");
}
