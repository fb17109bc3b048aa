// Series of one run: charts that share one time axis and the interval chosen on it.
(function (page) {
  "use strict";
  if (page.report === undefined || page.report.data.courses === null) return;
  const { AXES, Figure, caseText, cellAt, data, settings } = page.report;
  const { charts, runs, warmup, end, first } = data.courses;

  // The columns of all runs are packed into one array of numbers; each is [start, length].
  async function unpacked() {
    const packed = Uint8Array.from(atob(data.courses.packed), (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const numbers = new Float32Array(await new Response(stream).arrayBuffer());
    const column = ([begin, count]) => numbers.subarray(begin, begin + count);
    const table = (columns) => Object.fromEntries(Object.entries(columns).map(([name, place]) => [name, column(place)]));
    for (const run of runs) {
      run.tables = Object.fromEntries(Object.entries(run.tables).map(([name, many]) => [name, many.map(table)]));
    }
  }

  const known = new Map(runs.map((run) => [run.cell, run]));

  // Those lines of a chart that have data in a run, each as [line, the tables that it is drawn from].
  function linesOf(chart, run) {
    const found = chart.lines.map((line) => [line, run.tables[line.of].filter((table) => table[line.y]?.some(Number.isFinite))]);
    return found.filter(([, tables]) => tables.length > 0);
  }

  function build() {
    return new Figure(
      "courses",
      {
        arm: String(data.cells[first].arm),
        ...Object.fromEntries(data.cells[first].at.map((label, i) => [`held-${i}`, String(label)])),
        from: 0,
        to: end,
      },
      (figure) => [
        ...figure.held([]),
        data.arms.length > 1 ? figure.chooser("arm", "Arm", data.arms.map(({ name }, i) => [String(i), name])) : null,
        ...zoomButtons(figure),
      ],
      draw,
    );
  }

  function zoomButtons(figure) {
    const { from, to } = figure.choice;
    const [middle, half] = [(from + to) / 2, (to - from) / 2];
    const whole = half >= end / 2;
    return [
      ["Zoom in", "+", middle - half / 2, middle + half / 2, false],
      ["Zoom out", "−", middle - 2 * half, middle + 2 * half, whole],
      ["Earlier", "◀", from - half, to - half, from <= 0],
      ["Later", "▶", from + half, to + half, to >= end],
      ["The whole run", "all", 0, end, whole],
    ].map(([label, sign, low, high, disabled]) => {
      const made = page.element("button", { type: "button", title: label, "aria-label": label, disabled, "data-key": label }, sign);
      made.addEventListener("click", () => choose(figure, [low, high], label));
      return made;
    });
  }

  // Shows an interval of the run, which is made no shorter than a thousandth of the run.
  function choose(figure, chosen, used) {
    const [low, high] = chosen ?? [0, end];
    const span = Math.min(end, Math.max(high - low, end / 1000));
    const from = Math.max(0, Math.min(low, end - span));
    Object.assign(figure.choice, { from, to: from + span });
    figure.redraw(used);
  }

  function draw(figure) {
    const cell = cellAt(figure.cases(new Map())[0], Number(figure.choice.arm));
    const run = known.get(cell);
    const rows = [[...AXES, "arm", "seed", "chart", "series", "time_s", "value"]];
    if (run === undefined) {
      figure.note("No run of this cell has finished.");
      return rows;
    }
    const { at, arm } = data.cells[cell];
    const name = data.arms[arm].name;
    const { seed } = run;
    const shown = charts.map((chart) => ({ ...chart, found: linesOf(chart, run) })).filter(({ found }) => found.length > 0);
    const drawn = shown.map((chart, i) => {
      const made = drawChart(figure, chart, run, `${chart.title}, ${name} ${caseText(at)}`, i === shown.length - 1);
      for (const [line, tables] of chart.found) {
        tables.forEach((table, k) => {
          const series = tables.length > 1 ? `${line.label} ${k + 1}` : line.label;
          table.t.forEach((t, j) => rows.push([...settings(at), name, seed, chart.title, series, t, table[line.y][j]]));
        });
      }
      return made;
    });
    for (const [begin, until] of run.stalls) {
      rows.push([...settings(at), name, seed, "", "stall", begin, ""], [...settings(at), name, seed, "", "stall", until, ""]);
    }
    figure.body.append(...drawn.map((chart) => chart.svg));
    follow(drawn);
    figure.note([name, caseText(at), `seed ${seed}`].filter(Boolean).join(", "));
    return rows;
  }

  function drawChart(figure, { title, found }, run, label, last) {
    const { from, to } = figure.choice;
    const inside = (table) => [...table.t.keys()].filter((i) => table.t[i] >= from && table.t[i] <= to);
    const values = found.flatMap(([line, tables]) => tables.flatMap((table) => inside(table).map((i) => table[line.y][i])));
    const [low, high] = page.domain(values, false);
    const scale = (bottom, top) => page.linear(low, high, bottom, top);
    const chart = new page.Chart({
      width: Math.max(260, Math.min(1120, figure.width)),
      tall: 130,
      title,
      label,
      left: 52,
      legend: found.map(([line]) => ({ text: line.label, color: line.color, dash: line.dash })),
      across: last ? "time [s]" : "",
      upright: true,
      x: (left, right) => page.linear(from, to, left, right),
      y: scale,
    });
    chart.clip();
    chart.zooms((chosen) => choose(figure, chosen));
    const { top, bottom } = chart.box;
    for (const [begin, until] of run.stalls) {
      const wide = Math.max(1, chart.x(until) - chart.x(begin));
      chart.plot.append(page.svg("rect", { x: chart.x(begin), y: top, width: wide, height: bottom - top, class: "stall" }));
    }
    const moment = { x1: chart.x(warmup), x2: chart.x(warmup), y1: top, y2: bottom, class: "moment" };
    chart.plot.append(page.svg("line", moment));
    for (const [line, tables] of found) tables.forEach((table) => chart.plot.append(curve(chart, line, table)));
    addMarks(chart, found, inside);
    return chart;
  }

  // A line with gaps where values are missing; beyond each edge, it is drawn as far as the next point.
  function curve(chart, line, { t, [line.y]: y }) {
    let path = "";
    let gap = true;
    const [from, to] = [chart.x.invert(chart.box.left), chart.x.invert(chart.box.right)];
    t.forEach((time, i) => {
      const near = (t[i + 1] ?? time) >= from && (t[i - 1] ?? time) <= to;
      if (near && Number.isFinite(y[i])) path += `${gap ? "M" : "L"}${chart.x(time).toFixed(1)} ${chart.y(y[i]).toFixed(1)}`;
      gap = !(near && Number.isFinite(y[i]));
    });
    const made = page.svg("path", { d: path, stroke: line.color, class: "course", "stroke-width": line.width });
    if (line.faint) made.setAttribute("opacity", 0.35);
    if (line.dash.length > 0) made.setAttribute("stroke-dasharray", line.dash.join(" "));
    return made;
  }

  // One mark per sample of the last line (the mean, if flows have lines), with the values of all lines at that time.
  function addMarks(chart, found, inside) {
    const [main, [table]] = found.at(-1);
    for (const i of inside(table)) {
      if (!Number.isFinite(table[main.y][i])) continue;
      const said = found.filter(([, tables]) => tables.length === 1).map(([line, [other]]) => {
        const value = other[line.y][nearest(other.t, table.t[i])];
        return Number.isFinite(value) ? `\n${line.label} ${Number(value.toPrecision(4))}` : "";
      });
      chart.mark(chart.x(table.t[i]), chart.y(table[main.y][i]), `${Number(table.t[i].toPrecision(5))} s${said.join("")}`);
    }
  }

  // The index of the nearest value in an ascending column.
  function nearest(column, value) {
    let [low, high] = [0, column.length - 1];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (column[middle] > value) high = middle;
      else low = middle;
    }
    return value - column[low] <= column[high] - value ? low : high;
  }

  // A line through all charts at the mark selected in one of them.
  function follow(drawn) {
    const lines = drawn.map(({ box }) => page.svg("line", { y1: box.top, y2: box.bottom, class: "cursor" }));
    for (const chart of drawn) {
      chart.shown = (mark) => {
        lines.forEach((line, i) => {
          if (mark === null) return line.remove();
          line.setAttribute("x1", mark.x);
          line.setAttribute("x2", mark.x);
          drawn[i].svg.append(line);
        });
      };
    }
  }

  page.ready = unpacked().then(build);
})(window.aqmlab);
