// Small charts in SVG: scales, axes, and marks that the pointer and arrow keys reach.
// Every figure of a report is drawn here: a dozen panels or ten thousand points take less than a tenth of a second,
// the keyboard reaches every mark, and printed lines are sharp. This file knows nothing about cases or arms.
window.aqmlab = (function () {
  "use strict";
  const SVG = "http://www.w3.org/2000/svg";
  // Pixels below the plot for the labels of the axis.
  const [LEVEL, TURNED] = [24, 62];
  // Approximate height of a line of text, and width of its letters.
  const [LINE, LETTER] = [16, 6.3];
  // Size of the names in a plot, as in the style sheet.
  const NAME_SIZE = 12;
  let clips = 0;
  let pen;

  // Makes elements; strings are inserted as text, never as markup.
  function element(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value === true) made.setAttribute(key, "");
      else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  }

  function svg(name, attributes, ...children) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  // Scales map values to pixels; `ticks` are values with their labels.
  function linear(low, high, from, to) {
    const span = high - low || 1;
    const scale = (value) => from + ((value - low) / span) * (to - from);
    // Labels one above the other (pixels count downward) need less room than labels side by side.
    scale.ticks = linearTicks(low, high, Math.max(2, Math.floor(Math.abs(to - from) / (to < from ? 28 : 56))));
    scale.invert = (pixel) => low + ((pixel - from) / (to - from)) * span;
    return scale;
  }

  function logarithmic(low, high, from, to) {
    const [a, b] = [Math.log10(low), Math.log10(high)];
    const scale = (value) => from + ((Math.log10(Math.max(value, low)) - a) / (b - a || 1)) * (to - from);
    scale.ticks = logTicks(low, high);
    return scale;
  }

  function band(labels, from, to) {
    const step = (to - from) / Math.max(labels.length, 1);
    const scale = (index) => from + (index + 0.5) * step;
    scale.step = step;
    scale.ticks = labels.map((text, value) => ({ value, text }));
    return scale;
  }

  function linearTicks(low, high, most) {
    const raw = (high - low || 1) / most;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = power * [1, 2, 5, 10].find((factor) => factor * power >= raw * 0.999);
    const places = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    const ticks = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) {
      ticks.push({ value: i * step, text: (i * step).toFixed(Math.min(places, 8)) });
    }
    // A low chart may have room for two ticks only, and their step may exceed its range.
    return ticks.length < 2 && high > low && most < 64 ? linearTicks(low, high, 2 * most) : ticks;
  }

  function logTicks(low, high) {
    const decades = Math.log10(high) - Math.log10(low);
    const factors = decades < 2 ? [1, 2, 5] : [1];
    const ticks = [];
    for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++) {
      for (const factor of factors) {
        const value = factor * 10 ** e;
        if (value >= low * 0.999 && value <= high * 1.001) ticks.push({ value, text: String(Number(value.toPrecision(1))) });
      }
    }
    return ticks;
  }

  // The range of an axis that shows all of the given values; it includes zero unless the values are far from zero.
  function domain(values, log) {
    const shown = values.filter((v) => v !== null && Number.isFinite(v) && (!log || v > 0));
    if (shown.length === 0) return log ? [0.1, 1] : [0, 1];
    let [low, high] = [Math.min(...shown), Math.max(...shown)];
    if (log) return low === high ? [low / 2, high * 2] : [low / 1.1, high * 1.1];
    if (low > 0 && low < 0.6 * high) low = 0;
    if (high < 0 && high > 0.6 * low) high = 0;
    const room = (high - low || Math.abs(high) || 1) * 0.06;
    return [low === 0 ? 0 : low - room, high === 0 ? 0 : high + room];
  }

  // One chart: axes, a group to draw into, and marks with text.
  class Chart {
    // `height` is the height of the whole chart; `tall`, which may be given instead, is the height of the plot
    // alone. `legend` has entries { text, color, dash, mark }; `across` and `up` are the names of the axes. With
    // `upright`, the pointer selects the mark that is nearest along x.
    constructor({ width, height, tall, title, label, x, y, left, legend = [], across = "", up = "", upright = false }) {
      this.x = x(left, width - 10);
      // Labels wider than their space are rotated.
      const step = this.x.step || (width - 10 - left) / Math.max(this.x.ticks.length, 1);
      this.turned = Math.max(...this.x.ticks.map((t) => t.text.length), 0) * 6 > step - 6;
      const rows = legendRows(legend, width - left - 10);
      const begin = title ? 22 : 8;
      const top = begin + LINE * (rows.length + (up ? 1 : 0));
      const below = (this.turned ? TURNED : LEVEL) + (across ? LINE : 0);
      const whole = height ?? top + tall + below;
      Object.assign(this, { marks: [], current: -1, upright, box: { left, right: width - 10, top, bottom: whole - below } });
      this.svg = svg("svg", { width, height: whole, viewBox: `0 0 ${width} ${whole}`, class: "plot", tabindex: 0, role: "group" });
      this.svg.setAttribute("aria-label", `${label}. Arrow keys move from mark to mark.`);
      if (title) {
        this.svg.append(svg("text", { x: left, y: 14, class: "panel-title" }, ...fitted(title, (width - left) / 7)));
      }
      rows.forEach((row, i) => this.svg.append(...legendRow(row, left, begin + LINE * i + 6)));
      if (up) this.svg.append(svg("text", { x: 2, y: top - 7 }, up));
      if (across) this.svg.append(svg("text", { x: (left + width - 10) / 2, y: whole - 4, "text-anchor": "middle" }, across));
      this.y = y(this.box.bottom, this.box.top);
      this.plot = svg("g");
      this.svg.append(this.axes(), this.plot);
      this.listen();
    }

    axes() {
      const { left, right, top, bottom } = this.box;
      const group = svg("g", { class: "axes" });
      for (const { value, text } of this.y.ticks) {
        const y = this.y(value);
        group.append(svg("line", { x1: left, x2: right, y1: y, y2: y }));
        group.append(svg("text", { x: left - 6, y: y + 4, "text-anchor": "end" }, ...fitted(text, (left - 8) / 6.2)));
      }
      for (const { value, text } of this.x.ticks) {
        const x = this.x(value);
        if (!this.x.step) group.append(svg("line", { x1: x, x2: x, y1: top, y2: bottom }));
        const place = this.turned
          ? { transform: `translate(${x + 4} ${bottom + 12}) rotate(-35)`, "text-anchor": "end" }
          : { x, y: bottom + 15, "text-anchor": "middle" };
        group.append(svg("text", place, ...fitted(text, this.turned ? 11 : 40)));
      }
      return group;
    }

    // Clips the drawing, so that nothing is drawn beyond the axes.
    clip() {
      const { left, right, top, bottom } = this.box;
      const id = `clip-${(clips += 1)}`;
      // A line along an edge is drawn in its full width.
      const area = svg("rect", { x: left, y: top - 1, width: right - left, height: bottom - top + 2 });
      this.svg.prepend(svg("clipPath", { id }, area));
      this.plot.setAttribute("clip-path", `url(#${id})`);
    }

    // Dragging over the plot selects an interval of the x axis; a double click selects the whole axis (null).
    // On a touch screen, a finger still scrolls the page.
    zooms(chosen) {
      const { left, right, top, bottom } = this.box;
      const at = (event) => Math.min(right, Math.max(left, event.clientX - this.svg.getBoundingClientRect().left));
      const shade = svg("rect", { y: top, height: bottom - top, class: "chosen" });
      let from = null;
      this.svg.addEventListener("pointerdown", (event) => {
        if (event.pointerType === "touch" || event.button !== 0) return;
        from = at(event);
        this.svg.setPointerCapture(event.pointerId);
      });
      this.svg.addEventListener("pointermove", (event) => {
        if (from === null) return;
        shade.setAttribute("x", Math.min(from, at(event)));
        shade.setAttribute("width", Math.abs(at(event) - from));
        this.svg.append(shade);
      });
      this.svg.addEventListener("pointerup", (event) => {
        const ends = [from, at(event)].sort((a, b) => a - b);
        shade.remove();
        if (from !== null && ends[1] - ends[0] > 4) chosen(ends.map(this.x.invert));
        from = null;
      });
      this.svg.addEventListener("dblclick", () => chosen(null));
      this.svg.classList.add("zooms");
    }

    // Adds a mark: a position with text, which the pointer and the keys can reach.
    mark(x, y, text) {
      this.marks.push({ x, y, text });
    }

    // Writes names beside places of the plot, so that no name covers another one, and as few marks as possible.
    // Each has `at`, a place in the units of the axes, or `pixel`, a text, and a bar of its arm's colour (a mark
    // would look like a run); those that come first are placed first. A name for which there is no room is left out: its mark still shows it.
    labels(wanted) {
      const points = this.marks.map(({ x, y }) => [x, y]);
      const placed = [];
      for (const { at, pixel, text, color, class: look } of wanted) {
        const [x, y] = pixel ?? [this.x(at[0]), this.y(at[1])];
        const spot = freeSpot(x, y, widthOf(text) + (color ? 12 : 4), this.box, placed, points);
        if (spot === null) continue;
        placed.push(spot);
        const [nearX, nearY] = [clamp(x, spot.left, spot.right), clamp(y, spot.top, spot.bottom)];
        if (!pixel && Math.hypot(nearX - x, nearY - y) > 12) {
          this.svg.append(svg("line", { x1: x, y1: y, x2: nearX, y2: nearY, stroke: color, class: "leader" }));
        }
        if (color) {
          this.svg.append(svg("rect", { x: spot.left + 3, y: spot.top + 2, width: 4, height: spot.bottom - spot.top - 4, fill: color }));
        }
        const begin = spot.left + (color ? 10 : 2);
        this.svg.append(svg("text", { x: begin, y: spot.bottom - 3.5, class: look }, text));
      }
      return placed;
    }

    listen() {
      this.svg.addEventListener("pointermove", (event) => this.nearest(event));
      this.svg.addEventListener("pointerdown", (event) => this.nearest(event));
      this.svg.addEventListener("pointerleave", () => this.leave());
      this.svg.addEventListener("blur", () => this.leave());
      this.svg.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (event.key === "Escape") this.leave();
        if (step === undefined || this.marks.length === 0) return;
        event.preventDefault();
        this.show((this.current + step + this.marks.length) % this.marks.length);
      });
    }

    nearest(event) {
      const frame = this.svg.getBoundingClientRect();
      const [x, y] = [event.clientX - frame.left, event.clientY - frame.top];
      let [best, least] = [-1, 40 ** 2];
      this.marks.forEach((mark, i) => {
        const distance = (mark.x - x) ** 2 + (this.upright ? 0 : (mark.y - y) ** 2);
        if (distance < least) [best, least] = [i, distance];
      });
      if (best < 0) this.leave();
      else if (best !== this.current) this.show(best);
    }

    show(index) {
      this.leave();
      this.current = index;
      const { x, y, text } = this.marks[index];
      this.ring = svg("circle", { cx: x, cy: y, r: 6, class: "ring" });
      this.svg.append(this.ring);
      this.shown?.(this.marks[index]);
      const frame = this.svg.getBoundingClientRect();
      tip(text, frame.left + x, frame.top + y);
    }

    leave() {
      if (this.ring) this.ring.remove();
      this.ring = null;
      this.current = -1;
      this.shown?.(null);
      tip("");
    }
  }

  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

  // The width of a text in the font of the charts' names.
  function widthOf(text) {
    if (pen === undefined) {
      pen = document.createElement("canvas").getContext("2d");
      pen.font = `600 ${NAME_SIZE}px ${getComputedStyle(document.body).fontFamily}`;
    }
    return pen.measureText(text).width;
  }

  // The free rectangle nearest to a place: of those around it, the one that covers the fewest points.
  function freeSpot(x, y, width, box, placed, points) {
    let [best, least] = [null, Infinity];
    for (const distance of [6, 12, 20, 30, 44, 62, 84, 110, 140]) {
      for (let i = 0; i < 16; i++) {
        const [across, down] = [Math.cos((i * Math.PI) / 8), Math.sin((i * Math.PI) / 8)];
        const left = x + across * (distance + width / 2) - width / 2;
        const top = y + down * (distance + LINE / 2) - LINE / 2;
        const spot = { left, right: left + width, top, bottom: top + LINE };
        if (left < box.left || spot.right > box.right || top < box.top || spot.bottom > box.bottom) continue;
        if (placed.some((other) => overlap(spot, other))) continue;
        const covered = points.filter(([px, py]) => px > left - 3 && px < spot.right + 3 && py > top - 3 && py < spot.bottom + 3);
        const cost = distance + 5 * covered.length;
        if (cost < least) [best, least] = [spot, cost];
      }
    }
    return best;
  }

  const overlap = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

  // The entries of a legend, arranged in rows of a given width.
  function legendRows(legend, width) {
    const rows = [];
    let used = Infinity;
    for (const entry of legend) {
      const wide = 44 + LETTER * entry.text.length;
      if (used + wide > width) {
        rows.push([]);
        used = 0;
      }
      rows.at(-1).push({ ...entry, at: used });
      used += wide;
    }
    return rows;
  }

  function legendRow(row, left, y) {
    return row.flatMap(({ text, color, dash, mark, at }) => {
      const line = svg("line", { x1: left + at, x2: left + at + 22, y1: y, y2: y, stroke: color, "stroke-width": 2 });
      if (dash?.length) line.setAttribute("stroke-dasharray", dash.join(" "));
      const shape = mark && svg("path", { d: mark, transform: `translate(${left + at + 11} ${y}) scale(4)`, fill: color });
      const words = svg("text", { x: left + at + 26, y: y + 4 }, text);
      return [...(dash === null ? [] : [line]), ...(mark ? [shape] : []), words];
    });
  }

  // Text, or as much of it as fits; hovering then shows all of it.
  function fitted(text, most) {
    if (text.length <= most) return [text];
    return [svg("title", {}, text), `${text.slice(0, Math.max(1, Math.floor(most) - 1))}…`];
  }

  // The one tooltip of the page, which screen readers read out.
  function tip(text, x = 0, y = 0) {
    let box = document.getElementById("tip");
    if (box === null) {
      box = element("div", { id: "tip", role: "status", "aria-live": "polite" });
      document.body.append(box);
    }
    box.textContent = text;
    box.hidden = text === "";
    if (box.hidden) return;
    const { width, height } = box.getBoundingClientRect();
    const left = x + 14 + width > window.innerWidth ? x - 14 - width : x + 14;
    box.style.left = `${Math.max(4, left)}px`;
    box.style.top = `${y - height - 10 < 4 ? y + 14 : y - height - 10}px`;
  }

  // A list to choose from; options are [value, text].
  function chooser(label, options, chosen, changed) {
    const select = element("select", {}, ...options.map(([value, text]) => element("option", { value }, text)));
    select.value = chosen;
    select.addEventListener("change", () => changed(select.value));
    return element("label", {}, `${label} `, select);
  }

  function tick(label, checked, changed) {
    const box = element("input", { type: "checkbox", checked });
    box.addEventListener("change", () => changed(box.checked));
    return element("label", {}, box, ` ${label}`);
  }

  return { Chart, band, chooser, domain, element, linear, logarithmic, svg, tick };
})();
