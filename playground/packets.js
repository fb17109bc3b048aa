// The packets in the queue, drawn one by one: the head is at the right, where the link begins.
import { COLORS } from "./charts.js";

const page = globalThis.aqmlab;
// Height of a packet in pixels, and room around the lanes.
const [HEIGHT, EDGE, LINK] = [18, 8, 90];
// Real time for which a dropped packet is seen to fall [ms].
const FALL = 900;
// Disciplines that keep flows apart: each flow has a lane of its own.
const BY_FLOW = ["fq", "fq_codel", "fq_pie", "sfq", "cake"];
const MOST_LANES = 6;

export class PacketView {
  constructor() {
    this.canvas = page.element("canvas", { class: "packets", role: "img" });
    this.words = page.element("p", { class: "note words" });
    this.title = page.element("h2", { class: "arm-name" });
    this.root = page.element("figure", { class: "packet-view" }, this.title, this.canvas, this.words);
    this.falling = [];
    this.seen = -1;
  }

  // Sets the name of the arm.
  called(name) {
    this.name = name;
    this.title.textContent = name;
  }

  // With `still`, nothing moves between two pictures.
  draw(run, width, still) {
    const { about, held, backlog, sending, reached } = run;
    const lanes = this.lanes(run);
    const height = 2 * EDGE + lanes.length * (HEIGHT + 4) + 40;
    const sharp = globalThis.devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * sharp) || this.canvas.height !== Math.round(height * sharp)) {
      Object.assign(this.canvas, { width: Math.round(width * sharp), height: Math.round(height * sharp) });
      this.canvas.style.width = `${width}px`;
      this.canvas.style.height = `${height}px`;
    }
    const pen = this.canvas.getContext("2d");
    pen.setTransform(sharp, 0, 0, sharp, 0, 0);
    pen.clearRect(0, 0, width, height);
    const ink = getComputedStyle(this.canvas).color;
    const line = getComputedStyle(this.canvas).borderColor;
    const rate = about.links[about.link].rate_bps;
    // What the packet in transmission has left to send shifts the queue, so that it moves evenly.
    let progress = 1;
    if (sending && !still) progress = Math.min(1, ((reached - sending[0] / 1e9) * rate) / (8 * sending[1][2]));
    const room = width - LINK - EDGE;
    // A wide buffer is drawn with narrow packets.
    const wide = Math.max(3, Math.min(20, room / Math.max(8, Math.ceil(this.most(backlog[0]) / lanes.length))));
    const middle = EDGE + (lanes.length * (HEIGHT + 4)) / 2;
    const place = lanes.map(() => 0);
    pen.strokeStyle = line;
    lanes.forEach((_, i) => pen.strokeRect(EDGE, EDGE + i * (HEIGHT + 4), room, HEIGHT));
    if (!run.looks) {
      pen.fillStyle = COLORS[5];
      pen.fillRect(EDGE + room - Math.min(room, backlog[0] * wide), EDGE + 1, Math.min(room, backlog[0] * wide), HEIGHT - 2);
    }
    for (const packet of held) {
      const lane = lanes.length === 1 ? 0 : Math.max(0, lanes.indexOf(packet[0]));
      const shift = lanes.length === 1 ? (1 - progress) * wide : 0;
      const x = EDGE + room - (place[lane] + 1) * wide - shift;
      place[lane] += 1;
      if (x < EDGE) continue;
      box(pen, packet, x, EDGE + lane * (HEIGHT + 4) + 1, wide - 1, HEIGHT - 2, ink);
    }
    pen.fillStyle = line;
    pen.fillRect(EDGE + room, middle - 2, LINK - EDGE, 4);
    if (sending && progress < 1) box(pen, sending[1], EDGE + room + progress * (LINK - 24), middle - HEIGHT / 2, 16, HEIGHT - 2, ink);
    this.fall(pen, run, room, lanes.length * (HEIGHT + 4) + EDGE, ink, still);
    const packets = backlog[0] === 1 ? "1 packet" : `${backlog[0]} packets`;
    this.canvas.setAttribute("aria-label", `${this.name}: ${packets} in the queue`);
    const some = held.length < backlog[0] ? `, the first ${held.length} drawn` : "";
    const hidden = run.looks ? some : ", not drawn one by one at this speed";
    this.words.textContent = `${packets}, ${Math.round(backlog[1] / 1000)} kB${hidden}; ${run.totals.drops} dropped, ${run.totals.marks} marked so far`;
  }

  // The scale follows the largest backlog so far.
  most(packets) {
    this.largest = Math.max(this.largest ?? 0, packets);
    return this.largest;
  }

  lanes({ about, held }) {
    if (!BY_FLOW.includes(about.links[about.link].queue)) return [0];
    const flows = [...new Set(held.map(([flow]) => flow))].sort((a, b) => a - b).slice(0, MOST_LANES);
    this.kept = flows.length >= (this.kept?.length ?? 0) ? flows : this.kept;
    return this.kept.length === 0 ? [0] : this.kept;
  }

  // Dropped packets fall out of the queue; at high speed only the latest are seen.
  fall(pen, run, room, top, ink, still) {
    const now = performance.now();
    if (run.version !== this.seen) {
      this.seen = run.version;
      run.fates.slice(-6).forEach(([mark, , packet], i) => {
        if (mark === 0) this.falling.push({ packet, from: now, x: EDGE + 4 + 22 * i });
      });
      run.fates = [];
    }
    this.falling = this.falling.filter(({ from }) => now - from < FALL).slice(-24);
    for (const { packet, from, x } of this.falling) {
      const age = still ? 0.3 : (now - from) / FALL;
      pen.globalAlpha = 1 - age;
      box(pen, packet, x, top + age * 24, 12, 12, "#d00000");
      pen.globalAlpha = 1;
    }
    if (this.falling.length > 0) {
      pen.fillStyle = ink;
      pen.font = "12px system-ui, sans-serif";
      pen.fillText("dropped", EDGE + 4 + 22 * 6, top + 18);
    }
  }
}

// One packet: its flow's colour, a frame if it carries a mark, narrow if it is short.
function box(pen, [flow, , bytes, marked, back], x, y, wide, tall, ink) {
  const short = bytes < 200 ? 0.55 : 1;
  pen.fillStyle = COLORS[flow % COLORS.length];
  pen.fillRect(x, y + (tall * (1 - short)) / 2, Math.max(1, wide), tall * short);
  if (marked || back) {
    pen.strokeStyle = ink;
    pen.lineWidth = marked ? 2 : 1;
    pen.strokeRect(x + 0.5, y + 0.5, Math.max(1, wide - 1), tall - 1);
    pen.lineWidth = 1;
  }
}
