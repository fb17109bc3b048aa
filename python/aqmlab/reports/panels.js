// Lines in panels: a metric against an axis, one line per arm.
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
})(window.aqmlab);
