// Lines in panels: a metric against an axis, and the distribution of queueing delay; one line per arm.
(function (page) {
  "use strict";
  if (page.report === undefined) return;
  const { AXES, FIRST, Figure, NONE, area, arms, caseText, cellAt, curve, data, marker, metric, metrics, settings, titled } =
    page.report;

  // The numbers of the two axes with the most labels, as strings, because the selectors have string values.
  const bySize = data.axes.map((_, i) => i).sort((a, b) => data.axes[b].labels.length - data.axes[a].labels.length);
  const [longest, next] = [String(bySize[0] ?? NONE), bySize.length > 1 ? String(bySize[1]) : NONE];

  const scaled = (low, high, log) => (from, to) => (log ? page.logarithmic : page.linear)(low, high, from, to);
  const leftOf = (ticks) => 14 + 6.4 * Math.max(...ticks.map((t) => t.text.length), 1);

  // Space for the labels of a vertical axis.
  function margin([low, high], log, height) {
    return leftOf(scaled(low, high, log)(height - 30, 20).ticks);
  }

  if (data.axes.length > 0) {
    new Figure(
      "panels",
      { metric: FIRST, x: longest, by: next, log: false, same: true },
      (figure) => [
        figure.chooser("metric", "Metric", metrics()),
        figure.axisChooser("x", "against"),
        figure.axisChooser("by", "a panel for each", { taken: [figure.choice.x], none: true }),
        ...figure.held([figure.choice.x, figure.choice.by]),
        figure.tick("log", "logarithmic"),
        figure.choice.by === NONE ? null : figure.tick("same", "same scale in all panels"),
      ],
      drawPanels,
    );
  }

  // The estimates of an arm along an axis: [label, cell, [mean, half, n, text]].
  function along(figure, arm, panel) {
    const { x, by, metric: name } = figure.choice;
    return data.axes[Number(x)].labels.flatMap((_, label) => {
      const fixed = new Map([[by, panel.label], [x, label]]);
      const cell = cellAt(figure.cases(fixed)[0], arm);
      const found = cell === undefined ? null : data.estimates[name][cell];
      return found === null ? [] : [{ label, cell, mean: found[0], half: found[1], n: found[2], text: found[3] }];
    });
  }

  function drawPanels(figure) {
    const { metric: name, x, log, same } = figure.choice;
    const shown = metric(name);
    const panels = figure.panels(figure.choice.by);
    const lines = panels.map((panel) => arms().map((arm) => ({ arm, points: along(figure, arm, panel) })));
    const ends = (of) => of.flatMap(({ points }) => points.flatMap((p) => [p.mean, p.mean - p.half, p.mean + p.half]));
    const whole = page.domain(ends(lines.flat()), log);
    const size = figure.panelSize(panels.length);
    const rows = [[...AXES, "arm", "metric", "unit", "mean", "half_width_95", "n"]];
    panels.forEach((panel, i) => {
      const range = same ? whole : page.domain(ends(lines[i]), log);
      const chart = new page.Chart({
        ...size,
        title: panel.title,
        label: `${titled(shown)} against ${data.axes[Number(x)].short} ${panel.title}`,
        left: margin(range, log, size.height),
        x: (from, to) => page.band(data.axes[Number(x)].labels, from, to),
        y: scaled(range[0], range[1], log),
      });
      const bottom = Math.min(...range);
      lines[i].forEach(({ arm, points }) => {
        drawLine(chart, arm, points, log ? bottom : -Infinity);
        points.forEach((p) => {
          const [{ at }, of] = [data.cells[p.cell], data.arms[arm].name];
          chart.mark(chart.x(p.label), chart.y(p.mean), `${of}, ${caseText(at)}\n${shown.label} ${p.text}, n = ${p.n}`);
          rows.push([...settings(at), of, name, shown.unit, p.mean, p.half, p.n]);
        });
      });
      figure.body.append(chart.svg);
    });
    figure.note(
      `Mean over seeds of ${titled(shown)} against ${data.axes[Number(x)].short}; bands are 95 % Student t intervals.` +
        " The values of the axis are evenly spaced.",
    );
    return rows;
  }

  function drawLine(chart, arm, points, floor) {
    const at = (p, value) => [chart.x(p.label), chart.y(Math.max(value, floor))];
    const sure = points.filter((p) => p.half !== null);
    if (sure.length > 1) {
      chart.plot.append(area(arm, sure.map((p) => at(p, p.mean + p.half)), sure.map((p) => at(p, p.mean - p.half))));
    }
    // A single point has no band, so its interval is drawn as a line.
    if (sure.length === 1) {
      const [p] = sure;
      chart.plot.append(curve(arm, [at(p, p.mean - p.half), at(p, p.mean + p.half)]));
    }
    chart.plot.append(curve(arm, points.map((p) => at(p, p.mean))));
    points.forEach((p) => chart.plot.append(marker(arm, ...at(p, p.mean), 3.2)));
  }

  new Figure(
    "cdf",
    { by: longest, log: false, same: false },
    (figure) => [
      figure.axisChooser("by", "A panel for each", { none: true }),
      ...figure.held([figure.choice.by]),
      figure.tick("log", "logarithmic"),
      figure.choice.by === NONE || data.axes.length === 0 ? null : figure.tick("same", "same scale in all panels"),
    ],
    drawCdf,
  );

  function drawCdf(figure) {
    const { by, log, same } = figure.choice;
    const panels = figure.panels(data.axes.length ? by : NONE);
    const cells = panels.map(({ label }) =>
      arms()
        .map((arm) => [arm, cellAt(figure.cases(new Map([[by, label]]))[0], arm)])
        .filter(([, cell]) => cell !== undefined && data.cdf[cell] !== null),
    );
    const range = (of) => {
      const longestDelay = Math.max(...of.map(([, cell]) => data.cdf[cell].p99), 0) || 1;
      const shortest = Math.min(...of.map(([, cell]) => data.cdf[cell].x.find((v) => v > 0)), longestDelay);
      return log ? [shortest, longestDelay] : [0, longestDelay];
    };
    const whole = range(cells.flat());
    const size = figure.panelSize(panels.length);
    const rows = [[...AXES, "arm", "queueing_delay_ms", "share", "low_95", "high_95", "n"]];
    panels.forEach((panel, i) => {
      const [low, high] = same ? whole : range(cells[i]);
      const chart = new page.Chart({
        ...size,
        height: size.height + 30,
        title: panel.title,
        label: `Distribution of queueing delay ${panel.title}`,
        left: 34,
        across: "queueing delay [ms]",
        up: "share of packets",
        x: scaled(low, high, log),
        y: (from, to) => page.linear(0, 1, from, to),
      });
      cells[i].forEach(([arm, cell]) => drawCurve(chart, arm, cell, low, high, rows));
      figure.body.append(chart.svg);
    });
    figure.note(
      "Mean over the seeds, with its pointwise 95 % Student t interval. Axes end at the longest p99.",
    );
    return rows;
  }

  // The value of a curve at any place: interpolated between its points, and constant beyond the last one.
  function valueAt(place, x, y) {
    const next = x.findIndex((value) => value >= place);
    if (next <= 0) return y.at(next);
    return y[next - 1] + ((y[next] - y[next - 1]) * (place - x[next - 1])) / (x[next] - x[next - 1]);
  }

  function drawCurve(chart, arm, cell, low, high, rows) {
    const { x, mean, low: lower, high: upper, n } = data.cdf[cell];
    const { at } = data.cells[cell];
    const inside = [...x.keys()].filter((i) => x[i] >= low && x[i] <= high);
    const end = (y) => [chart.x(high), chart.y(valueAt(high, x, y))];
    const line = (y) => [...inside.map((i) => [chart.x(x[i]), chart.y(y[i])]), end(y)];
    chart.plot.append(area(arm, line(upper), line(lower)), curve(arm, line(mean)));
    inside.forEach((i) => {
      const percent = (share) => (100 * share).toFixed(1);
      const said = `${percent(mean[i])} % (${percent(lower[i])} to ${percent(upper[i])}) wait at most ${x[i]} ms, n = ${n}`;
      chart.mark(chart.x(x[i]), chart.y(mean[i]), `${data.arms[arm].name}, ${caseText(at)}\n${said}`);
    });
    x.forEach((delay, i) => rows.push([...settings(at), data.arms[arm].name, delay, mean[i], lower[i], upper[i], n]));
  }
})(window.aqmlab);
