// Goodput against queueing delay: one mark per run, one ellipse per cell; up and to the left is better.
(function (page) {
  "use strict";
  if (page.report === undefined || page.report.data.tradeOff.length === 0) return;
  const { AXES, Figure, NONE, arms, caseText, cellAt, data, marker, settings } = page.report;

  // The range of mean goodput over the labels of an axis. By default, each label of the axis with the largest
  // range has a panel with its own scales.
  function reach(axis) {
    const means = data.axes[axis].labels.map((_, label) => {
      const of = data.cells.flatMap(({ at }, i) => (at[axis] === label && data.tradeOff[i] ? data.tradeOff[i].runs : []));
      return of.reduce((sum, run) => sum + run[2], 0) / of.length;
    });
    const known = means.filter(Number.isFinite);
    return Math.max(...known, 0) - Math.min(...known, Infinity);
  }
  const widest = data.axes.map((_, i) => i).sort((a, b) => reach(b) - reach(a))[0];

  new Figure(
    "trade-off",
    { by: data.axes.length > 1 ? String(widest) : NONE, same: false },
    (figure) => [
      figure.axisChooser("by", "A panel for each", { none: true }),
      ...figure.held([figure.choice.by], { every: true }),
      figure.choice.by === NONE || data.axes.length === 0 ? null : figure.tick("same", "same scale in all panels"),
    ],
    draw,
  );

  function clouds(figure, panel) {
    const cases = figure.cases(new Map([[figure.choice.by, panel.label]]));
    return arms().flatMap((arm) =>
      cases.flatMap((at) => {
        const cell = cellAt(at, arm);
        const cloud = cell === undefined ? null : data.tradeOff[cell];
        return cloud === null ? [] : [{ arm, at, cell, ...cloud }];
      }),
    );
  }

  function draw(figure) {
    const panels = figure.panels(data.axes.length ? figure.choice.by : NONE);
    const all = panels.map((panel) => clouds(figure, panel));
    const range = (of, column) => page.domain(of.flatMap(({ runs }) => runs.map((run) => run[column])), false);
    const size = figure.panelSize(panels.length, 300);
    const rows = [[...AXES, "arm", "seed", "queueing_delay_mean_ms", "goodput_mbit_s"]];
    panels.forEach((panel, i) => {
      const of = figure.choice.same ? all.flat() : all[i];
      const [[x0, x1], [y0, y1]] = [range(of, 1), range(of, 2)];
      const chart = new page.Chart({
        ...size,
        height: size.height + 40,
        title: panel.title,
        label: `Goodput against mean queueing delay ${panel.title}`,
        left: 50,
        across: "mean queueing delay [ms]",
        up: "goodput [Mbit/s]",
        x: (from, to) => page.linear(x0, x1, from, to),
        y: (from, to) => page.linear(y0, y1, from, to),
      });
      all[i].forEach((cloud) => drawCloud(chart, cloud, rows));
      figure.body.append(chart.svg);
    });
    figure.note(
      "One mark per run, and the 1-sigma ellipse of each cell around its mean (RFC 7928, section 2.7)." +
        " Up and to the left is better.",
    );
    return rows;
  }

  function drawCloud(chart, { arm, at, cell, runs, ellipse }, rows) {
    const name = data.arms[arm].name;
    runs.forEach(([seed, x, y]) => {
      const point = marker(arm, chart.x(x), chart.y(y), 3);
      point.setAttribute("opacity", 0.45);
      chart.plot.append(point);
      chart.mark(chart.x(x), chart.y(y), `${name}, ${caseText(at)}, seed ${seed}\n${x} ms, ${y} Mbit/s`);
      rows.push([...settings(at), name, seed, x, y]);
    });
    if (ellipse === null) return;
    chart.plot.append(outline(chart, ellipse, data.arms[arm].color));
    const [x, y] = ellipse;
    const means = ["queueing_delay_mean_s", "goodput_bps"].map((metric) => data.estimates[metric][cell][3]);
    chart.mark(chart.x(x), chart.y(y), [`${name}, ${caseText(at)}`, ...means].join("\n"));
  }

  // Scaled to pixels, an ellipse remains an ellipse, but its long and short axes turn, so it is drawn point
  // by point.
  function outline(chart, [centreX, centreY, long, short, degrees], color) {
    const turn = (degrees * Math.PI) / 180;
    const points = Array.from({ length: 48 }, (_, i) => {
      const [u, v] = [long * Math.cos((i * Math.PI) / 24), short * Math.sin((i * Math.PI) / 24)];
      const x = centreX + u * Math.cos(turn) - v * Math.sin(turn);
      const y = centreY + u * Math.sin(turn) + v * Math.cos(turn);
      return [chart.x(x).toFixed(1), chart.y(y).toFixed(1)].join();
    });
    return page.svg("polygon", { points: points.join(" "), stroke: color, class: "ellipse" });
  }
})(window.aqmlab);
