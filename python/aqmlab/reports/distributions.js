// Distributions of queueing delay, response times and page times: one line per arm, with the band of its mean. Times
// are shown up to a limit or, for a tail, on logarithmic axes.
(function (page) {
  "use strict";
  if (page.report === undefined) return;
  const { AXES, Figure, NONE, area, arms, caseText, cellAt, curve, data, settings } = page.report;
  const { reference } = data;
  const bySize = data.axes.map((_, i) => i).sort((a, b) => data.axes[b].labels.length - data.axes[a].labels.length);
  const longest = String(bySize[0] ?? NONE);

  const scaled = ([low, high], log) => (from, to) => (log ? page.logarithmic : page.linear)(low, high, from, to);
  const percent = (share) => `${Number((100 * share).toPrecision(3))} %`;

  // The distributions { x, y, low, high, n, complete } of arms in a panel, as returned by `of` for a cell. The reference
  // is drawn first, and so lies below the others.
  function found(one, label, shown, of) {
    const at = one.cases(new Map([[one.choice.by, label]]))[0];
    const order = shown.toSorted((a, b) => (b === reference) - (a === reference));
    return order.flatMap((arm) => {
      const cell = cellAt(at, arm);
      const line = cell === undefined ? null : of(cell);
      return line === null ? [] : [{ arm, cell, ...line }];
    });
  }

  // Draws the panels of a figure and returns the rows of its numbers. `of` has the distributions; `x` and `y` return
  // [range, logarithmic] for the lines that share a panel, or all panels; `said` describes a share and a value.
  function draw(one, { of, x, y, label, across, up, head, first = [], said }) {
    const every = one.panels(data.axes.length ? one.choice.by : NONE);
    const panels = every.filter((panel) => found(one, panel.label, [...data.arms.keys()], of).length > 0);
    const all = panels.map((panel) => found(one, panel.label, arms(), of));
    const size = one.panelSize(panels.length);
    const rows = [[...AXES, ...head]];
    panels.forEach((panel, i) => {
      const [[xs, logX], [ys, logY]] = [x(all[i], all.flat()), y(all[i], all.flat())];
      const scale = scaled(ys, logY);
      const chart = new page.Chart({
        ...size,
        height: size.height + 30,
        title: panel.title,
        label: `${label} ${panel.title}`,
        left: 14 + 6.4 * Math.max(...scale(size.height, 0).ticks.map(({ text }) => text.length), 1),
        across,
        up,
        x: scaled(xs, logX),
        y: scale,
      });
      chart.clip();
      all[i].forEach((line) => drawLine(chart, line, { xs, ys, logX, logY, first, said, rows }));
      one.body.append(chart.svg);
    });
    return rows;
  }

  function drawLine(chart, line, { xs, ys, logX, logY, first, said, rows }) {
    const { arm, cell, x, y, low, high, n, complete } = line;
    const shown = [...x.keys()].filter((i) => !(logX && x[i] <= 0) && !(logY && y[i] <= 0));
    // Beyond the last point, the function is constant, or not known. A tail ends there.
    const place = (values) => {
      const points = shown.map((i) => [chart.x(x[i]), chart.y(Math.max(values[i], ys[0]))]);
      return logY || !complete ? points : [...points, [Math.max(chart.x(xs[1]), points.at(-1)[0]), points.at(-1)[1]]];
    };
    const [band, path] = [area(arm, place(high), place(low)), curve(arm, place(y))];
    if (arm === reference) path.classList.add("reference");
    chart.plot.append(band, path);
    const { name } = data.arms[arm];
    const { at } = data.cells[cell];
    const title = [name, caseText(at)].filter(Boolean).join(", ");
    shown.forEach((i) => {
      rows.push([...settings(at), ...first, name, x[i], y[i], low[i], high[i], n]);
      if (x[i] < xs[0] || x[i] > xs[1]) return;
      const between = n > 1 ? ` (${percent(low[i])} to ${percent(high[i])})` : "";
      chart.mark(chart.x(x[i]), chart.y(y[i]), `${title}\n${said(percent(y[i]) + between, x[i])}, n = ${n}`);
    });
  }

  new Figure(
    "cdf",
    { by: longest, log: false, same: false },
    (one) => [
      one.axisChooser("by", "A panel for each", { none: true }),
      ...one.held([one.choice.by]),
      one.tick("log", "logarithmic"),
      one.choice.by === NONE || data.axes.length === 0 ? null : one.tick("same", "same scale in all panels"),
    ],
    (one) => {
      const { log, same } = one.choice;
      const range = (lines) => {
        const end = Math.max(...lines.map(({ p99 }) => p99), 0) || 1;
        return log ? [Math.min(...lines.map(({ x }) => x.find((v) => v > 0)), end), end] : [0, end];
      };
      const rows = draw(one, {
        of: (cell) => data.cdf[cell] && { ...data.cdf[cell], y: data.cdf[cell].mean, complete: true },
        x: (own, every) => [range(same ? every : own), log],
        y: () => [[0, 1], false],
        label: "Distribution of queueing delay",
        across: "queueing delay [ms]",
        up: "share of packets",
        head: ["arm", "queueing_delay_ms", "share", "low_95", "high_95", "n"],
        said: (share, delay) => `${share} wait at most ${delay} ms`,
      });
      one.note("Mean over the seeds, with its pointwise 95 % Student t interval. Axes end at the longest p99.");
      return rows;
    },
  );

  // The part of a distribution up to the chosen time, or its tail. The page has the share of longer times.
  function ofWaits(curves, tail) {
    return (cell) => {
      const of = curves[cell];
      if (of === null) return null;
      const { t: x, more, low = more, high = more, n, complete } = of;
      if (tail) return { x, y: more, low, high, n, complete };
      const rest = (shares) => shares.map((share) => 1 - share);
      return { x, y: rest(more), low: rest(high), high: rest(low), n, complete };
    };
  }

  function tailRanges(lines) {
    const times = lines.flatMap(({ x }) => x.filter((t) => t > 0));
    const shares = lines.flatMap(({ y }) => y.filter((share) => share > 0));
    return [page.domain(times, true), [Math.min(...shares, 1) / 1.5, 1]];
  }

  const ofTimes = (waits, tail) =>
    new Figure(
      `${waits.key}-${tail ? "ccdf" : "cdf"}`,
      { of: "0", by: longest, until: waits.until },
      (one) => [
        waits.classes.length > 1 ? one.chooser("of", "Class", waits.classes.map(([, text], i) => [String(i), text])) : null,
        tail ? null : one.chooser("until", "until", waits.ends.map((time) => [time, `${time} s`])),
        one.axisChooser("by", "a panel for each", { none: true }),
        ...one.held([one.choice.by]),
      ],
      (one) =>
        draw(one, {
          of: ofWaits(waits.curves[Number(one.choice.of)], tail),
          x: (_, every) => [tail ? tailRanges(every)[0] : [0, Number(one.choice.until)], tail],
          y: (_, every) => [tail ? tailRanges(every)[1] : [0, 1], tail],
          label: `${tail ? "Tail of the d" : "D"}istribution of ${waits.time}s`,
          across: `${waits.time} [s]`,
          up: `share of ${waits.many}${tail ? " that takes longer" : ""}`,
          head: ["class", "arm", `${waits.key}_time_s`, tail ? "share_longer" : "share", "low_95", "high_95", "n"],
          first: [waits.classes[Number(one.choice.of)][0]],
          said: (share, time) => `${share} ${tail ? "take longer than" : "within"} ${time} s`,
        }),
    );

  (data.waits ?? []).forEach((waits) => {
    ofTimes(waits, false);
    ofTimes(waits, true);
  });
})(window.aqmlab);
