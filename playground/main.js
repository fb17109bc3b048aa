// The page: connects knobs, lessons, runs and charts.
import { CHARTS, LiveChart } from "./charts.js";
import { Knobs } from "./knobs.js";
import { loadLessons, showLesson } from "./lessons.js";
import { PacketView } from "./packets.js";
import { Player, SPEEDS, VISIBLE } from "./player.js";
import { Run } from "./run.js";
import * as scenarios from "./scenario.js";

const { element } = globalThis.aqmlab;
const at = (id) => document.getElementById(id);
const still = matchMedia("(prefers-reduced-motion: reduce)");
// Real time between two drawings of the charts [ms]: twenty per second look continuous.
const PAUSE = { moving: 50, still: 500 };

let catalogue;
let settings;
let lessons;
let knobs;
let views = [];
let drawnAt = 0;
// The arms that are shown: names of the scenario's arms, or null for its only one.
let arms = [null];
let opening = Promise.resolve();

const player = new Player({ drawn: () => draw(false), told });

// --- the picture ----------------------------------------------------------------------------------------------------

function layout() {
  const columns = element("div", { class: `arms ${arms.length > 1 ? "two" : ""}` });
  views = arms.map((_, i) => ({
    packets: new PacketView(),
    charts: CHARTS.map((kind) => new LiveChart(kind)),
    end: element("div", { "data-end": i }),
  }));
  columns.append(...views.map(({ packets }) => packets.root));
  CHARTS.forEach((_, k) => columns.append(...views.map(({ charts }) => charts[k].root)));
  columns.append(...views.map(({ end }) => end));
  at("charts").replaceChildren(...chooser(), columns);
}

// A file may have many arms; two are shown.
function chooser() {
  const known = player.runs[0]?.about?.arms ?? [];
  if (settings.text === null || known.length < 2) return [];
  return [0, 1].map((side) => {
    const options = known.map((name) => element("option", { value: name, selected: arms[side] === name }, name));
    const select = element("select", { id: `arm-${side + 1}` }, ...options);
    select.addEventListener("change", () => {
      arms[side] = select.value;
      begin({ arms });
    });
    return element("label", { class: "switch" }, side === 0 ? "Left arm" : "Right arm", select);
  });
}

function draw(always) {
  if (views.length !== player.runs.length || !player.ready) return;
  const time = performance.now();
  const whole = always || time - drawnAt > (still.matches ? PAUSE.still : PAUSE.moving) || player.ended;
  const runs = player.runs;
  at("clock").textContent = `${player.now.toFixed(3)} s`;
  if (still.matches && !whole) return;
  const width = views[0].packets.root.clientWidth;
  if (width < 100) return;
  // Charts one below the other are told apart by the names of their arms.
  const stacked = views.length > 1 && at("charts").clientWidth < 1.5 * width;
  views.forEach(({ packets }, i) => packets.draw(runs[i], width, still.matches));
  if (!whole) return;
  drawnAt = time;
  CHARTS.forEach((_, k) => {
    const top = Math.max(...views.map(({ charts }, i) => charts[k].top(runs[i])));
    const shown = views.some(({ charts }, i) => charts[k].kind.lines(runs[i]).length > 0);
    views.forEach(({ charts, packets: { name } }, i) => {
      charts[k].root.hidden = !shown;
      if (shown) charts[k].draw(runs[i], { name, named: stacked, end: runs[i].about.end_ns / 1e9, top, width });
    });
  });
}

// --- runs -----------------------------------------------------------------------------------------------------------

// Begins the scenario that the knobs describe, and repeats it up to `replay`, if given.
function begin({ replay = 0, arms: chosen = null, play = null } = {}) {
  if (play === false) player.pause();
  if (play === true) player.wanted = true;
  opening = opening.then(() => restart(replay, chosen)).catch(broken);
  return opening;
}

async function restart(replay, chosen) {
  const text = scenarios.toml(catalogue, settings);
  const seed = settings.text === null ? Number(settings.seed) : undefined;
  if (chosen !== null) arms = chosen;
  else if (settings.text === null) arms = settings.queues[1] === null ? [null] : scenarios.armNames(catalogue, settings);
  else arms = [null];
  const open = () => player.open(arms.map((arm) => ({ text, seed, arm: arm ?? undefined })), replay);
  let problem = await open();
  const about = player.runs[0].about;
  if (problem === null && settings.text !== null && chosen === null && about.arms?.length > 1) {
    arms = about.arms.slice(0, 2);
    problem = await open();
  }
  showProblems(problem?.problems ?? []);
  [0, 1].forEach((side) => knobs.blame(side, problem?.problems ?? []));
  if (problem !== null) return told();
  layout();
  player.runs.forEach((run, i) => {
    const { about: its } = run;
    views[i].packets.called(settings.text === null ? scenarios.armNames(catalogue, settings)[i] : its.arm);
    if (settings.text === null) knobs.effective(i, its.parameters);
  });
  draw(true);
  told();
  const fragment = `#${await scenarios.toFragment(settings)}`;
  // A page within a notebook has no address of its own, and some browsers refuse to change it.
  if (location.protocol !== "about:") history.replaceState(null, "", fragment);
  if (player.wanted) player.play();
}

// The state of the player in words, and what the end of the runs yields.
function told(problems = null) {
  if (problems !== null) showProblems(problems);
  at("play").textContent = player.playing ? "Pause" : "Run";
  const possible = Boolean(player.ready);
  for (const id of ["play", "step"]) at(id).disabled = !possible || (player.ended && !player.playing);
  at("restart").disabled = !possible;
  at("as-toml").disabled = at("as-python").disabled = false;
  const words = player.ended ? "The run has ended." : player.playing ? "Running." : player.ready ? "Paused." : "There is no run.";
  at("status").textContent = words + warnings();
  if (!player.ended || problems !== null) return;
  draw(true);
  player.runs.forEach((run, i) => views[i].end.replaceChildren(...summary(run)));
}

function warnings() {
  const all = player.runs.flatMap(({ about }) => about?.warnings ?? []);
  return [...new Set(all)].map((warning) => ` Note: ${warning}.`).join("");
}

// What identifies the recording, which `aqmlab run` produces from the same scenario.
function summary({ identity, events, wall, about }) {
  if (!identity || identity.problems) return [];
  const rows = Object.entries(identity.tables).map(([name, digest]) => element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, digest)));
  const speed = (about.end_ns / 1e6 / wall).toFixed(0);
  return [
    element("p", { class: "note" }, `${events} events, seed ${identity.seed}; ${speed} simulated seconds per second.`),
    element("details", { class: "digests" }, element("summary", {}, "Digests of the recording"), element("p", { class: "note" }, "aqmlab run gives the same recording, bit by bit; its manifest.json has these digests."), element("table", {}, element("tbody", {}, ...rows))),
  ];
}

function showProblems(problems) {
  at("problems").hidden = problems.length === 0;
  const words = ({ line, column, path, message }) => `${line ? `line ${line}, column ${column}: ` : ""}${path ? `${path}: ` : ""}${message}`;
  at("problems").replaceChildren(element("ul", {}, ...problems.slice(0, 20).map((problem) => element("li", {}, words(problem)))));
}

function broken(error) {
  showProblems([{ message: `the page failed: ${error.message ?? error}` }]);
  at("status").textContent = "There is no run.";
}

// --- what a person does ---------------------------------------------------------------------------------------------

function setSpeed(step) {
  const value = Math.max(0, Math.min(SPEEDS.length - 1, step));
  at("speed").value = value;
  player.speed = SPEEDS[value];
  const shown = player.speed === Infinity ? "fastest" : `${player.speed} s/s`;
  at("speed-shown").textContent = shown;
  // The same seed gives the same run, so it is repeated up to here with a look at each packet.
  if (player.ready && !player.looks && player.speed <= VISIBLE && !player.ended) begin({ replay: player.now, arms });
  at("speed").setAttribute("aria-valuetext", player.speed === Infinity ? "as fast as possible" : `${player.speed} simulated seconds per second`);
}

// A change of the rate at the running instant: the scenario gets a step there. What came before stays as it was, so the
// run is repeated up to that instant and goes on.
function rateNow(course) {
  const now = Math.max(0.001, player.now);
  const end = Number.parseFloat(settings.duration);
  Object.assign(settings, { course, from: `${Math.round(now * 1000)}ms`, until: `${Math.round(Math.min(now + 5, end) * 1000)}ms` });
  knobs.build();
  begin({ replay: now, play: true });
}

async function chooseLesson(name) {
  const lesson = lessons.lessons.find((one) => one.name === name);
  at("lessons").value = lesson ? name : "";
  showLesson(at("lesson"), lessons, name, (next) => chooseLesson(next));
  if (!lesson) return;
  const query = new URLSearchParams({ ...lesson.set, lesson: name });
  const read = await scenarios.fromFragment(catalogue, query.toString());
  take(read);
  setSpeed(lesson.speed ?? 4);
  await begin({ play: false });
}

// Applies what an address or a lesson says, and returns what was wrong with it.
function take({ settings: next, wrong }) {
  Object.assign(settings, next);
  knobs.build();
  return wrong;
}

async function openFile(file) {
  if (!file) return;
  if (file.size > scenarios.LONGEST) {
    showProblems([{ message: `${file.name} has ${file.size} bytes; a scenario of this page has at most ${scenarios.LONGEST}` }]);
    return;
  }
  await useText(await file.text());
}

async function useText(text) {
  chooseLesson("");
  settings.text = text;
  settings.lesson = null;
  knobs.build();
  await begin({ play: false });
}

function show(title, note, text, usable) {
  at("shown-title").textContent = title;
  at("shown-note").textContent = note;
  at("shown-text").value = text;
  at("shown-text").readOnly = !usable;
  at("shown-use").hidden = !usable;
  at("shown").showModal();
}

async function copy() {
  const area = at("shown-text");
  try {
    await navigator.clipboard.writeText(area.value);
  } catch {
    area.select();
  }
  at("shown-copy").textContent = "Copied";
  setTimeout(() => (at("shown-copy").textContent = "Copy"), 1500);
}

const KEYS = {
  " ": () => (player.playing ? player.pause() : player.play()),
  ".": () => player.step(),
  r: () => begin(),
  "[": () => setSpeed(Number(at("speed").value) - 1),
  "]": () => setSpeed(Number(at("speed").value) + 1),
  l: () => {
    const place = lessons.lessons.findIndex(({ name }) => name === settings.lesson);
    chooseLesson(lessons.lessons[(place + 1) % lessons.lessons.length].name);
  },
  "?": () => at("help").showModal(),
};

function listen() {
  // On a narrow page, the knobs are folded away, so that the charts come first.
  const wide = matchMedia("(min-width: 900px)");
  at("panel").open = wide.matches;
  wide.addEventListener("change", () => (at("panel").open = wide.matches));
  at("play").addEventListener("click", KEYS[" "]);
  at("step").addEventListener("click", KEYS["."]);
  at("restart").addEventListener("click", KEYS.r);
  at("keys").addEventListener("click", KEYS["?"]);
  at("help-close").addEventListener("click", () => at("help").close());
  at("speed").addEventListener("input", () => setSpeed(Number(at("speed").value)));
  at("lessons").addEventListener("change", () => chooseLesson(at("lessons").value));
  at("file").addEventListener("change", () => openFile(at("file").files[0]).then(() => (at("file").value = "")));
  at("as-toml").addEventListener("click", () => show("Scenario", "aqmlab run gives the same results, bit by bit. Changes made here can be run.", scenarios.toml(catalogue, settings), true));
  at("as-python").addEventListener("click", () => show("Python", "Runs the same scenario with the package aqmlab.", scenarios.python(scenarios.toml(catalogue, settings)), false));
  at("shown-copy").addEventListener("click", copy);
  at("shown-close").addEventListener("click", () => at("shown").close());
  at("shown-use").addEventListener("click", () => {
    at("shown").close();
    useText(at("shown-text").value);
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const { tagName, type } = event.target;
    const types = ["INPUT", "TEXTAREA", "SELECT"].includes(tagName) && type !== "range" && type !== "checkbox";
    const presses = event.key === " " && ["BUTTON", "SUMMARY", "INPUT"].includes(tagName);
    if (types || presses || !(event.key in KEYS)) return;
    event.preventDefault();
    KEYS[event.key]();
  });
  document.addEventListener("dragover", (event) => {
    event.preventDefault();
    document.body.classList.add("dropping");
  });
  document.addEventListener("dragleave", (event) => event.relatedTarget === null && document.body.classList.remove("dropping"));
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    document.body.classList.remove("dropping");
    openFile(event.dataTransfer.files[0]);
  });
  // A hidden tab does no work; it goes on when it is seen again.
  let played = false;
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      played = player.playing;
      player.pause();
    } else if (played) player.play();
  });
  globalThis.addEventListener("hashchange", async () => {
    const current = await scenarios.toFragment(settings);
    if (location.hash.slice(1) !== current) fromAddress();
  });
  let width = 0;
  new ResizeObserver(() => {
    if (at("charts").clientWidth === width) return;
    width = at("charts").clientWidth;
    draw(true);
  }).observe(at("charts"));
  still.addEventListener("change", () => draw(true));
}

async function fromAddress() {
  // A page in one file may contain the settings with which it begins.
  const given = document.querySelector('meta[name="settings"]')?.content ?? "";
  const wrong = take(await scenarios.fromFragment(catalogue, location.hash.slice(1) || given));
  showLesson(at("lesson"), lessons, settings.lesson, chooseLesson);
  at("lessons").value = lessons.lessons.some(({ name }) => name === settings.lesson) ? settings.lesson : "";
  await begin({ play: false });
  if (wrong.length > 0) showProblems(wrong.map((message) => ({ message })));
}

async function main() {
  if (typeof WebAssembly === "undefined") throw new Error("this browser has no WebAssembly");
  // Both workers start while the engine is being compiled.
  const [words, ...runs] = await Promise.all([loadLessons(), Run.begin(), Run.begin()]);
  lessons = words;
  player.runs.push(...runs);
  catalogue = await player.runs[0].catalogue();
  if (catalogue.problems) throw new Error(catalogue.problems[0].message);
  settings = scenarios.start();
  at("lessons").append(...lessons.lessons.map(({ name, title }, i) => element("option", { value: name }, `${i + 1}. ${title}`)));
  knobs = new Knobs(at("knobs"), catalogue, settings, { changed: () => begin(), now: rateNow });
  setSpeed(4);
  listen();
  await fromAddress();
  // When the first picture was there [ms].
  document.body.dataset.ready = Math.round(performance.now());
}

main().catch(broken);
