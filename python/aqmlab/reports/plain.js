// Figures without selectors, as described by the page's data: lines with bands, marks, and shaded intervals.
(function (page) {
  "use strict";
  if (page.report === undefined) return;
  const { Figure, arms, data, shape } = page.report;

  const ends = (series, axis) => [...series[axis], ...(axis === "y" && series.low ? [...series.low, ...series.high] : [])];
  const hue = ({ arm, color }) => (arm === undefined ? (color === "black" ? "currentColor" : color) : data.arms[arm].color);

  function scaled(axis, values) {
    if (axis.labels) return (begin, end) => page.band(axis.labels, begin, end);
    const [low, high] = page.domain(values, axis.log);
    const [from, to] = [axis.from ?? low, axis.to ?? high];
    return (begin, end) => (axis.log ? page.logarithmic : page.linear)(from, to, begin, end);
  }

  // The quantity along the vertical axis; the title of the plot has it if the axis has no label.
  const quantity = ({ label }) => label || "value";

  function draw(figure, all) {
    const panels = all.filter(({ arm }) => arm === undefined || arms().includes(arm));
    const several = all.length > 1;
    const banded = panels.some(({ series }) => series.some(({ low }) => low));
    const { x, y, legend } = all[0];
    const rows = [[...(several ? ["plot"] : []), "series", x.label, quantity(y), ...(banded ? ["low_95", "high_95"] : [])]];
    panels.forEach((panel, i) => {
      const shown = { ...panel, legend: i === 0 ? legend : [] };
      for (const row of drawPanel(figure, shown, panels.length)) rows.push(several ? [panel.title, ...row] : row);
    });
    return rows;
  }

  // Draws one plot and returns the rows of its numbers.
  function drawPanel(figure, { title, x, y, series, legend, spans = [] }, count) {
    const shown = series.filter(({ arm }) => arm === undefined || arms().includes(arm));
    const [across, up] = [scaled(x, shown.flatMap((one) => ends(one, "x"))), scaled(y, shown.flatMap((one) => ends(one, "y")))];
    const { width, height } = figure.panelSize(count);
    const chart = new page.Chart({
      width,
      tall: height,
      title,
      label: `${title}: ${quantity(y)} against ${x.label}`,
      left: 14 + 6.4 * Math.max(...up(height, 0).ticks.map(({ text }) => text.length), 1),
      legend: legend.map((entry) => ({ ...entry, color: entry.color ?? "currentColor" })),
      across: x.label,
      up: y.label,
      x: across,
      y: up,
    });
    chart.clip();
    const { top, bottom } = chart.box;
    for (const [begin, end] of spans) {
      const wide = Math.max(1, chart.x(end) - chart.x(begin));
      chart.plot.append(page.svg("rect", { x: chart.x(begin), y: top, width: wide, height: bottom - top, class: "shade" }));
    }
    const rows = [];
    for (const one of shown) {
      drawSeries(chart, one);
      one.x.forEach((value, i) => {
        if (one.y[i] === null) return;
        const place = x.labels ? x.labels[value] : value;
        chart.mark(chart.x(value), chart.y(one.y[i]), `${one.name}\n${x.label} ${place}\n${quantity(y)} ${one.y[i]}`);
        rows.push([one.name, place, one.y[i], ...(one.low ? [one.low[i], one.high[i]] : [])]);
      });
    }
    figure.body.append(chart.svg);
    return rows;
  }

  function drawSeries(chart, one) {
    const { x, y, low, high, mark, dash } = one;
    const color = hue(one);
    const known = [...x.keys()].filter((i) => y[i] !== null);
    const place = (values) => known.map((i) => `${chart.x(x[i]).toFixed(1)},${chart.y(values[i]).toFixed(1)}`);
    if (mark) {
      chart.plot.append(...known.map((i) => shape(mark, color, chart.x(x[i]), chart.y(y[i]), 3.2)));
      return;
    }
    if (low && !low.includes(null)) {
      const outline = [...place(high), ...place(low).toReversed()].join(" ");
      chart.plot.append(page.svg("polygon", { points: outline, fill: color, class: "band" }));
    }
    const line = page.svg("polyline", { points: place(y).join(" "), stroke: color, class: "curve" });
    if (dash.length > 0) line.setAttribute("stroke-dasharray", dash.join(" "));
    chart.plot.append(line);
  }

  for (const [name, panels] of Object.entries(data.charts)) {
    new Figure(name, {}, () => [], (figure) => draw(figure, panels));
  }
})(window.aqmlab);
