// Charts without selectors, as described by the page's data: lines with bands, and marks.
(function (page) {
  "use strict";
  if (page.report === undefined) return;
  const { Figure, arms, data, shape } = page.report;

  const ends = (series, axis) => [...series[axis], ...(axis === "y" && series.low ? [...series.low, ...series.high] : [])];

  function scaled(axis, values) {
    const [low, high] = page.domain(values, axis.log);
    const [from, to] = [axis.from ?? low, axis.to ?? high];
    return (begin, end) => (axis.log ? page.logarithmic : page.linear)(from, to, begin, end);
  }

  function draw(figure, { title, x, y, series, legend }) {
    const shown = series.filter(({ arm }) => arms().includes(arm));
    const [across, up] = [scaled(x, shown.flatMap((one) => ends(one, "x"))), scaled(y, shown.flatMap((one) => ends(one, "y")))];
    const { width, height } = figure.panelSize(1);
    const chart = new page.Chart({
      width,
      tall: height,
      title,
      label: `${title}: ${y.label} against ${x.label}`,
      left: 14 + 6.4 * Math.max(...up(height, 0).ticks.map(({ text }) => text.length), 1),
      legend: legend.map((entry) => ({ ...entry, color: entry.color ?? "currentColor" })),
      across: x.label,
      up: y.label,
      x: across,
      y: up,
    });
    chart.clip();
    const rows = [["series", x.label, y.label, ...(series.some(({ low }) => low) ? ["low_95", "high_95"] : [])]];
    for (const one of shown) {
      drawSeries(chart, one);
      one.x.forEach((value, i) => {
        chart.mark(chart.x(value), chart.y(one.y[i]), `${one.name}\n${x.label} ${value}\n${y.label} ${one.y[i]}`);
        rows.push([one.name, value, one.y[i], ...(one.low ? [one.low[i], one.high[i]] : [])]);
      });
    }
    figure.body.append(chart.svg);
    return rows;
  }

  function drawSeries(chart, { arm, x, y, low, high, mark, dash }) {
    const { color } = data.arms[arm];
    const place = (values) => x.map((value, i) => `${chart.x(value).toFixed(1)},${chart.y(values[i]).toFixed(1)}`);
    if (mark) {
      chart.plot.append(...x.map((value, i) => shape(mark, color, chart.x(value), chart.y(y[i]), 3.2)));
      return;
    }
    if (low) {
      const outline = [...place(high), ...place(low).toReversed()].join(" ");
      chart.plot.append(page.svg("polygon", { points: outline, fill: color, class: "band" }));
    }
    const line = page.svg("polyline", { points: place(y).join(" "), stroke: color, class: "curve" });
    if (dash.length > 0) line.setAttribute("stroke-dasharray", dash.join(" "));
    chart.plot.append(line);
  }

  for (const [name, chart] of Object.entries(data.charts)) {
    new Figure(name, {}, () => [], (figure) => draw(figure, chart));
  }
})(window.aqmlab);
