// What the figures of a report share: the data of the page, the arms shown, and the selectors of axes.
(function (page) {
  "use strict";
  const holder = document.getElementById("report-data");
  if (holder === null) return;
  const data = JSON.parse(holder.textContent);
  const NONE = "-";
  const EVERY = "*";
  const shown = new Set(data.arms.keys());
  const figures = [];
  const places = new Map(data.cells.map((cell, i) => [[...cell.at, cell.arm].join(), i]));

  const metric = (name) => data.metrics.find((entry) => entry.name === name);
  const titled = ({ label, unit }) => (unit ? `${label} [${unit}]` : label);
  const metrics = () => data.metrics.map((entry) => [entry.name, titled(entry)]);
  // The number of an arm's cell at these labels (one label number per axis); undefined if there is none.
  const cellAt = (at, arm) => places.get([...at, arm].join());

  function caseText(at) {
    return data.axes.map((axis, i) => `${axis.short} ${axis.labels[at[i]]}`).join(", ");
  }

  function settings(at) {
    return data.axes.map((axis, i) => axis.labels[at[i]]);
  }

  const AXES = data.axes.map((axis) => axis.name);
  // The metric that figures show first.
  const FIRST = data.first;

  // One figure: its selectors, its drawing and the rows of its download. `draw` returns those rows.
  class Figure {
    constructor(name, choice, controls, draw) {
      this.root = document.querySelector(`[data-figure="${name}"]`);
      if (this.root === null) return;
      Object.assign(this, { name, choice, controls, draw, width: 0 });
      this.bar = page.element("div", { class: "controls" });
      this.body = page.element("div", { class: "panels" });
      this.root.append(this.bar, this.body);
      figures.push(this);
      this.redraw();
      // Drawings are in pixels, so they are redrawn when the width changes.
      new ResizeObserver(() => {
        const width = this.body.clientWidth;
        if (width > 0 && Math.abs(width - this.width) > 4) this.redraw();
      }).observe(this.body);
    }

    // Applies a choice and redraws. The selector that was used keeps the focus; a selector that already shows
    // the chosen axis gets the axis that was replaced.
    choose(key, value) {
      const other = ["x", "y", "by"].find((one) => one !== key && this.choice[one] === value);
      if (key === "x" && other !== undefined) this.choice[other] = this.choice[key];
      this.choice[key] = value;
      this.redraw(key);
    }

    redraw(used) {
      this.width = this.body.clientWidth;
      this.bar.replaceChildren(...this.controls(this).filter((control) => control !== null));
      const button = page.element("button", { type: "button", class: "csv" }, "CSV");
      button.title = "Save the numbers shown in this figure";
      button.addEventListener("click", () => csvFile.save(this.name, this.rows));
      this.bar.append(button);
      this.body.replaceChildren();
      this.rows = this.draw(this);
      if (used !== undefined) this.bar.querySelector(`[data-key="${CSS.escape(used)}"]`)?.focus();
    }

    chooser(key, label, options) {
      const made = page.chooser(label, options, String(this.choice[key]), (value) => this.choose(key, value));
      made.querySelector("select").dataset.key = key;
      return made;
    }

    tick(key, label) {
      const made = page.tick(label, this.choice[key], (value) => this.choose(key, value));
      made.querySelector("input").dataset.key = key;
      return made;
    }

    // Makes a selector whose values are the numbers of axes. If another selector has taken the chosen axis,
    // the first option is chosen.
    axisChooser(key, label, { taken = [], none = false } = {}) {
      const free = data.axes.map((axis, i) => [String(i), axis.short]).filter(([i]) => !taken.includes(i));
      const options = none ? [[NONE, "nothing"], ...free] : free;
      if (options.length < 2 && none) return null;
      if (!options.some(([value]) => value === this.choice[key])) this.choice[key] = options[0][0];
      return this.chooser(key, label, options);
    }

    // Makes the selectors that fix the labels of the other axes.
    held(taken, { every = false } = {}) {
      return data.axes.flatMap((axis, i) => {
        if (taken.includes(String(i))) return [];
        const key = `held-${i}`;
        if (this.choice[key] === undefined) this.choice[key] = every ? EVERY : "0";
        const labels = axis.labels.map((text, label) => [String(label), text]);
        return [this.chooser(key, axis.short, every ? [[EVERY, "all"], ...labels] : labels)];
      });
    }

    // Returns all cases that have the labels in `fixed` (by axis number) and the selected labels on all other axes.
    cases(fixed) {
      let found = [[]];
      data.axes.forEach((axis, i) => {
        const chosen = fixed.has(String(i)) ? fixed.get(String(i)) : this.choice[`held-${i}`];
        const labels = chosen === EVERY ? [...axis.labels.keys()] : [Number(chosen)];
        found = found.flatMap((at) => labels.map((label) => [...at, label]));
      });
      return found;
    }

    // The panels of an axis: one per label, with a title; if there is no such axis, one panel without a title.
    panels(axis) {
      if (axis === NONE) return [{ label: null, title: "" }];
      const { short, labels } = data.axes[Number(axis)];
      return labels.map((text, label) => ({ label, title: `${short} ${text}` }));
    }

    // The width and height of each panel if this many panels are side by side.
    panelSize(count, least = 250) {
      const columns = Math.max(1, Math.min(count, 4, Math.floor(this.width / least)));
      const width = Math.max(220, Math.min(720, Math.floor((this.width - 12 * (columns - 1)) / columns)));
      return { width, height: Math.round(Math.min(330, Math.max(210, width * 0.66))) };
    }

    note(text) {
      this.body.append(page.element("p", { class: "note" }, text));
    }
  }

  // The legend: arms that are not ticked are not drawn.
  document.querySelectorAll("input[data-arm]").forEach((box) => {
    box.addEventListener("change", () => {
      if (box.checked) shown.add(Number(box.dataset.arm));
      else shown.delete(Number(box.dataset.arm));
      figures.forEach((figure) => figure.redraw());
    });
  });

  const arms = () => [...data.arms.keys()].filter((arm) => shown.has(arm));

  // Draws a shape of unit size at a position.
  function shape(mark, color, x, y, size) {
    const transform = `translate(${x} ${y}) scale(${size * 1.15})`;
    return page.svg("path", { d: mark, transform, fill: color, class: "mark" });
  }

  const marker = (arm, x, y, size) => shape(data.arms[arm].mark, data.arms[arm].color, x, y, size);

  function curve(arm, points) {
    const { color, dash } = data.arms[arm];
    const line = page.svg("polyline", { points: points.map((p) => p.join()).join(" "), stroke: color, class: "curve" });
    if (dash.length > 0) line.setAttribute("stroke-dasharray", dash.join(" "));
    return line;
  }

  function area(arm, upper, lower) {
    const outline = [...upper, ...lower.toReversed()].map((p) => p.join()).join(" ");
    return page.svg("polygon", { points: outline, fill: data.arms[arm].color, class: "band" });
  }

  const tools = { area, arms, caseText, cellAt, curve, marker, metric, metrics, settings, shape, titled };
  // Set once all figures are drawn.
  page.ready = Promise.resolve();
  page.report = { AXES, EVERY, FIRST, Figure, NONE, data, figures, ...tools };
})(window.aqmlab);
