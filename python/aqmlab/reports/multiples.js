// Backlog over time, one small chart per arm or, with a single arm, per label of an axis; all have the same scales.
(function (page) {
  "use strict";
  if (page.report === undefined || page.report.data.courses === null) return;
  const { AXES, Figure, arms, caseText, cellAt, data, settings } = page.report;
  const { runs, warmup, end } = data.courses;
  const longest = data.axes.map((_, i) => i).sort((a, b) => data.axes[b].labels.length - data.axes[a].labels.length)[0];
  const alone = data.arms.length === 1 && longest !== undefined;

  function build() {
    const first = data.cells[data.courses.first];
    return new Figure(
      "multiples",
      Object.fromEntries(first.at.map((label, i) => [`held-${i}`, String(label)])),
      (figure) => figure.held(alone ? [String(longest)] : []),
      draw,
    );
  }

  // The runs shown, each with its title.
  function chosen(figure) {
    const known = new Map(runs.map((run) => [run.cell, run]));
    const found = alone
      ? data.axes[longest].labels.map((text, label) => {
          const at = figure.cases(new Map([[String(longest), label]]))[0];
          return [cellAt(at, 0), `${data.axes[longest].short} ${text}`];
        })
      : arms().map((arm) => [cellAt(figure.cases(new Map())[0], arm), data.arms[arm].name]);
    return found.flatMap(([cell, title]) => (known.get(cell)?.tables.queue.length ? [{ cell, title, run: known.get(cell) }] : []));
  }

  function draw(figure) {
    const shown = chosen(figure);
    const [low, high] = page.domain(shown.flatMap(({ run }) => [...run.tables.queue[0].backlog]), false);
    const columns = Math.max(1, Math.min(shown.length, Math.floor(figure.width / 170), 4));
    const width = Math.max(150, Math.floor((figure.width - 12 * (columns - 1)) / columns));
    const rows = [[...AXES, "arm", "seed", "time_s", "backlog_packets"]];
    shown.forEach(({ cell, title, run }) => {
      const { at, arm } = data.cells[cell];
      const { name, color } = data.arms[arm];
      const [{ t, backlog }] = run.tables.queue;
      const chart = new page.Chart({
        width,
        tall: 64,
        title,
        label: `Backlog in packets over time, ${[name, caseText(at)].filter(Boolean).join(", ")}`,
        left: 34,
        upright: true,
        x: (left, right) => page.linear(0, end, left, right),
        y: (bottom, top) => page.linear(low, high, bottom, top),
      });
      const { top, bottom } = chart.box;
      chart.plot.append(page.svg("line", { x1: chart.x(warmup), x2: chart.x(warmup), y1: top, y2: bottom, class: "moment" }));
      const points = [...t.keys()].map((i) => `${chart.x(t[i]).toFixed(1)},${chart.y(backlog[i]).toFixed(1)}`);
      chart.plot.append(page.svg("polyline", { points: points.join(" "), stroke: color, class: "course" }));
      t.forEach((time, i) => {
        chart.mark(chart.x(time), chart.y(backlog[i]), `${title}\n${Number(time.toPrecision(5))} s: ${Number(backlog[i].toPrecision(4))} packets`);
        rows.push([...settings(at), name, run.seed, time, backlog[i]]);
      });
      figure.body.append(chart.svg);
    });
    const seed = shown.length > 0 ? `, seed ${shown[0].run.seed}` : "";
    figure.note(`Packets waiting, over the seconds of the run${seed}; the dotted line marks the end of the warm-up.`);
    return rows;
  }

  page.ready = page.ready.then(build);
})(window.aqmlab);
