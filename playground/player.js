// Runs side by side in simulated time: each frame, all of them advance to the same instant.
import { Run } from "./run.js";

// Simulated seconds per second; the last is as fast as possible.
export const SPEEDS = [0.001, 0.01, 0.1, 0.5, 1, 5, 20, 100, Infinity];
// Up to this speed, single packets can be seen; a run that does not look at them takes half the time.
export const VISIBLE = 5;
// Real time that a run may take per frame [ms]: at a given speed, and as fast as possible.
const [SLICE, LONG_SLICE] = [12, 40];
// Simulated time by which runs may be apart while they are as fast as possible [s].
const APART = 4;

export class Player {
  runs = [];
  playing = false;
  speed = 1;
  // Whether the runs look at single packets.
  looks = false;
  // Whether to play once the runs are open.
  wanted = false;
  ready = false;
  // Up to here, a run is repeated as fast as possible.
  replay = 0;
  #generation = 0;

  // `drawn` is called after each part of the runs, `told` when the state changes.
  constructor({ drawn, told }) {
    Object.assign(this, { drawn, told });
  }

  get now() {
    return Math.min(...this.runs.map(({ reached, ended, about }) => (ended ? Math.max(reached, about.end_ns / 1e9) : reached)));
  }

  get ended() {
    return this.runs.length > 0 && this.runs.every(({ ended }) => ended);
  }

  // Opens a run per request. Returns the problems of the first request that has any.
  async open(requests, replay = 0) {
    const generation = ++this.#generation;
    this.wanted ||= this.playing;
    this.playing = false;
    this.ready = false;
    while (this.runs.length > requests.length) this.runs.pop().close();
    while (this.runs.length < requests.length) this.runs.push(await Run.begin());
    const packets = this.speed <= VISIBLE;
    const answers = await Promise.all(requests.map((request, i) => this.runs[i].open({ ...request, packets })));
    if (generation !== this.#generation) return null;
    const bad = answers.findIndex(({ problems }) => problems);
    this.replay = replay;
    if (bad >= 0) {
      this.pause();
      return { at: bad, problems: answers[bad].problems };
    }
    this.ready = true;
    this.looks = packets;
    return null;
  }

  play() {
    if (!this.ready) this.wanted = true;
    if (this.playing || !this.ready || this.ended) return;
    this.wanted = false;
    this.playing = true;
    this.told();
    this.last = performance.now();
    const generation = this.#generation;
    requestAnimationFrame((time) => this.#frame(time, generation));
  }

  pause() {
    this.wanted = false;
    if (!this.playing) return;
    this.playing = false;
    this.told();
  }

  // Goes to the next instant at which anything happens in any of the runs.
  async step() {
    this.pause();
    const open = this.runs.filter(({ ended }) => !ended);
    if (!this.ready || open.length === 0) return;
    const at = Math.min(...open.map(({ next, reached }) => next ?? reached));
    await this.#advance(at, Infinity);
  }

  async #frame(time, generation) {
    if (!this.playing) return;
    const passed = Math.min(0.1, Math.max(0.001, (time - this.last) / 1000));
    this.last = time;
    const { now, replay } = this;
    const repeats = now < replay;
    const fast = repeats || this.speed === Infinity;
    const until = fast ? Math.min(now + APART, repeats ? replay : Infinity) : now + passed * this.speed;
    await this.#advance(until, fast ? LONG_SLICE : SLICE);
    if (generation !== this.#generation && this.playing) this.last = performance.now();
    requestAnimationFrame((next) => this.#frame(next, this.#generation));
  }

  async #advance(until, slice) {
    const generation = this.#generation;
    const open = this.runs.filter(({ ended, reached }) => !ended && reached <= until);
    const answers = await Promise.all(open.map((run) => run.advance(until, slice)));
    if (generation !== this.#generation) return;
    const bad = answers.find(({ problems }) => problems);
    if (bad) {
      this.ready = false;
      this.pause();
      this.told(bad.problems);
      return;
    }
    this.drawn();
    if (this.ended) {
      this.pause();
      const ends = await Promise.all(this.runs.map((run) => run.finish()));
      if (generation !== this.#generation) return;
      this.runs.forEach((run, i) => (run.identity = ends[i]));
      this.told();
    }
  }
}
