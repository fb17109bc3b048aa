// Distributions of response times and page times, one line per arm: the part up to a given time, or the tail on
// logarithmic axes.
(function (page) {
  "use strict";
  if (page.report === undefined || page.report.data.waits === undefined) return;
  const { AXES, Figure, NONE, area, arms, caseText, cellAt, curve, data, settings } = page.report;
  const { reference } = data;
  const bySize = data.axes.map((_, i) => i).sort((a, b) => data.axes[b].labels.length - data.axes[a].labels.length);

  const figure = (waits, tail) =>
    new Figure(
      `${waits.key}-${tail ? "ccdf" : "cdf"}`,
      { of: "0", by: String(bySize[0] ?? NONE), until: waits.until },
      (one) => [
        waits.classes.length > 1 ? one.chooser("of", "Class", waits.classes.map(([, text], i) => [String(i), text])) : null,
        tail ? null : one.chooser("until", "until", waits.ends.map((time) => [time, `${time} s`])),
        one.axisChooser("by", "a panel for each", { none: true }),
        ...one.held([one.choice.by]),
      ],
      (one) => draw(one, waits, tail),
    );

  // The curves of the given arms in a panel; the reference is drawn first, and so lies below the others.
  function found(one, { curves }, label, shown) {
    const at = one.cases(new Map([[one.choice.by, label]]))[0];
    const order = shown.toSorted((a, b) => (b === reference) - (a === reference));
    return order.flatMap((arm) => {
      const cell = cellAt(at, arm);
      const of = cell === undefined ? null : curves[Number(one.choice.of)][cell];
      return of === null ? [] : [{ arm, cell, of }];
    });
  }

  function draw(one, waits, tail) {
    const every = one.panels(data.axes.length ? one.choice.by : NONE);
    const panels = every.filter(({ label }) => found(one, waits, label, [...data.arms.keys()]).length > 0);
    const all = panels.map(({ label }) => found(one, waits, label, arms()));
    const range = tail ? tailRange(all.flat()) : { x: [0, Number(one.choice.until)], y: [0, 1] };
    const scale = tail ? page.logarithmic : page.linear;
    const size = one.panelSize(panels.length);
    const up = (from, to) => scale(...range.y, from, to);
    const rows = [[...AXES, "class", "arm", `${waits.key}_time_s`, tail ? "share_longer" : "share", "low_95", "high_95", "n"]];
    panels.forEach((panel, i) => {
      const chart = new page.Chart({
        ...size,
        height: size.height + 30,
        title: panel.title,
        label: `${tail ? "Tail of the d" : "D"}istribution of ${waits.time}s ${panel.title}`,
        left: 14 + 6.4 * Math.max(...up(size.height, 0).ticks.map(({ text }) => text.length), 1),
        across: `${waits.time} [s]`,
        up: `share of ${waits.many}${tail ? " that takes longer" : ""}`,
        x: (from, to) => scale(...range.x, from, to),
        y: up,
      });
      chart.clip();
      all[i].forEach((line) => drawLine(chart, line, { one, waits, tail, range, rows }));
      one.body.append(chart.svg);
    });
    return rows;
  }

  function tailRange(lines) {
    const times = lines.flatMap(({ of }) => of.t.filter((t) => t > 0));
    const shares = lines.flatMap(({ of }) => of.more.filter((share) => share > 0));
    return { x: page.domain(times, true), y: [Math.min(...shares, 1) / 1.5, 1] };
  }

  function drawLine(chart, { arm, cell, of }, { one, waits, tail, range, rows }) {
    const { low = of.more, high = of.more } = of;
    const value = (share) => (tail ? share : 1 - share);
    const shown = [...of.t.keys()].filter((i) => !tail || (of.t[i] > 0 && of.more[i] > 0));
    // Beyond the last request, the function is constant, or not known.
    const place = (shares) => {
      const points = shown.map((i) => [chart.x(of.t[i]), chart.y(Math.max(value(shares[i]), tail ? range.y[0] : 0))]);
      return tail || !of.complete ? points : [...points, [Math.max(chart.x(range.x[1]), points.at(-1)[0]), points.at(-1)[1]]];
    };
    const [band, line] = [area(arm, place(high), place(low)), curve(arm, place(of.more))];
    if (arm === reference) line.classList.add("reference");
    chart.plot.append(band, line);
    const { name } = data.arms[arm];
    const labels = settings(data.cells[cell].at);
    const percent = (share) => `${Number((100 * share).toPrecision(3))} %`;
    shown.forEach((i) => {
      const ends = [value(low[i]), value(high[i])].sort((a, b) => a - b);
      rows.push([...labels, waits.classes[Number(one.choice.of)][0], name, of.t[i], value(of.more[i]), ...ends, of.n]);
      if (of.t[i] < range.x[0] || of.t[i] > range.x[1]) return;
      const between = of.n > 1 ? ` (${ends.map(percent).join(" to ")})` : "";
      const said = `${percent(value(of.more[i]))}${between} ${tail ? "take longer than" : "within"} ${of.t[i]} s, n = ${of.n}`;
      chart.mark(chart.x(of.t[i]), chart.y(value(of.more[i])), `${name} ${caseText(data.cells[cell].at)}\n${said}`);
    });
  }

  data.waits.forEach((waits) => {
    figure(waits, false);
    figure(waits, true);
  });
})(window.aqmlab);
