// Heat maps: a metric over two axes for one arm, the paired difference between two arms, or, for a single
// case, between all pairs of arms.
(function (page) {
  "use strict";
  if (page.report === undefined) return;
  const { AXES, FIRST, Figure, NONE, caseText, cellAt, data, metric, metrics, settings, titled } =
    page.report;
  const LOWER = "#1f83c7";
  const HIGHER = "#d55e00";
  const mean = ({ found }) => found[0];

  // The differences between a pair of arms, by cell number.
  function byCell(name, pair) {
    return new Map(data.differences[name][pair].map(([cell, found, stands]) => [cell, { found, stands }]));
  }

  // The views that can be selected: pairs of arms (`p0`, ...), then single arms (`a0`, ...).
  const views = [
    ...data.pairs.map(([arm, other], i) => [`p${i}`, `${data.arms[arm].name} − ${data.arms[other].name}`]),
    ...data.arms.map((arm, i) => [`a${i}`, arm.name]),
  ];

  if (data.axes.length === 0) {
    new Figure("heat", { metric: FIRST }, (figure) => [figure.chooser("metric", "Metric", metrics())], drawPairs);
    return;
  }

  new Figure(
    "heat",
    { metric: FIRST, of: views[0][0], x: "0", y: data.axes.length > 1 ? "1" : NONE },
    (figure) => [
      figure.chooser("metric", "Metric", metrics()),
      figure.chooser("of", "of", views),
      figure.axisChooser("x", "across"),
      figure.axisChooser("y", "down", { taken: [figure.choice.x], none: true }),
      ...figure.held([figure.choice.x, figure.choice.y]),
    ],
    draw,
  );

  // Draws the difference between each arm and each of the arms before it.
  function drawPairs(figure) {
    const shown = metric(figure.choice.metric);
    const names = data.arms.map(({ name }) => name);
    const [across, down] = [names.slice(0, -1), names.slice(1)];
    const left = Math.min(150, 16 + 6.4 * Math.max(...down.map((text) => text.length)));
    const side = Math.max(26, Math.min(90, (Math.min(figure.width, 900) - left - 10) / across.length));
    const squares = data.pairs.flatMap(([arm, other], pair) =>
      data.differences[shown.name][pair]
        .filter(([, found]) => found !== null)
        .map(([, found, stands]) => ({ column: other, row: arm - 1, at: [], pair, title: `${names[arm]} − ${names[other]}`, found, stands })),
    );
    const chart = new page.Chart({
      width: left + side * across.length + 10,
      tall: 36 * down.length,
      title: "row − column",
      label: `Differences of ${titled(shown)}`,
      left,
      x: (from, to) => page.band(across, from, to),
      y: (from, to) => page.band(down, to, from),
    });
    const paint = diverging(squares.map(mean));
    squares.forEach((square) => drawSquare(chart, square, { view: square, shown, paint, side, tall: 36 }));
    figure.body.append(chart.svg);
    figure.note(
      `Paired differences of ${titled(shown)}, the arm of the row minus that of the column: blue where it is lower, orange where` +
        ` it is higher. Hatched: not significant at 95 %, corrected for ${squares.length} comparisons (Holm).`,
    );
    const head = ["arm", "minus", "metric", "unit", "mean", "half_width_95", "n", "stands"];
    const rows = squares.map(({ column, row, found: [middle, half, n], stands }) =>
      [down[row], across[column], shown.name, shown.unit, middle, half, n, stands]);
    return [head, ...rows];
  }

  // The numbers of one map (`view` is a pair or an arm): the position of each, and whether a difference is significant.
  function squares(figure, view) {
    const { metric: name, x, y } = figure.choice;
    const contrasts = view.pair === undefined ? null : byCell(name, view.pair);
    const down = y === NONE ? [0] : [...data.axes[Number(y)].labels.keys()];
    return data.axes[Number(x)].labels.flatMap((_, column) =>
      down.flatMap((row) => {
        const at = figure.cases(new Map([[y, row], [x, column]]))[0];
        const cell = cellAt(at, view.arm);
        if (cell === undefined) return [];
        const entry = contrasts === null ? { found: data.estimates[name][cell], stands: true } : contrasts.get(cell);
        return entry === undefined || entry.found === null ? [] : [{ column, row, at, ...entry }];
      }),
    );
  }

  // A pair is shown as three maps: the values of each of its arms, and the difference.
  function maps(of) {
    const name = (arm) => data.arms[arm].name;
    if (of.startsWith("a")) return [{ arm: Number(of.slice(1)), title: name(Number(of.slice(1))) }];
    const pair = Number(of.slice(1));
    const [arm, other] = data.pairs[pair];
    return [
      { arm, title: name(arm) },
      { arm: other, title: name(other) },
      { arm, pair, title: `${name(arm)} − ${name(other)}` },
    ];
  }

  function draw(figure) {
    const { metric: name, of, x, y } = figure.choice;
    const shown = metric(name);
    const across = data.axes[Number(x)].labels;
    const down = y === NONE ? [""] : data.axes[Number(y)].labels;
    const left = Math.min(110, 16 + 6.4 * Math.max(...down.map((text) => text.length)));
    const wide = figure.panelSize(maps(of).length, Math.max(230, left + 30 * across.length)).width;
    const side = Math.min(90, (wide - left - 10) / across.length);
    const tall = Math.max(28, Math.min(46, side));
    const drawn = maps(of).map((view) => ({ view, found: squares(figure, view) }));
    const plain = drawn.filter(({ view }) => view.pair === undefined);
    const absolute = sequential(plain.flatMap(({ found }) => found.map(mean)));
    const rows = [[...AXES, "of", "metric", "unit", "mean", "half_width_95", "n", "stands"]];
    for (const { view, found } of drawn) {
      const chart = new page.Chart({
        width: left + side * across.length + 10,
        tall: tall * down.length,
        title: view.title,
        label: `${titled(shown)}, ${view.title}`,
        left,
        x: (from, to) => page.band(across, from, to),
        y: (from, to) => page.band(down, to, from),
      });
      const paint = view.pair === undefined ? absolute : diverging(found.map(mean));
      found.forEach((square) => drawSquare(chart, square, { view, shown, paint, side, tall }));
      for (const { at, found: [middle, half, n], stands } of found) {
        const kept = view.pair === undefined ? null : stands;
        rows.push([...settings(at), view.title, name, shown.unit, middle, half, n, kept]);
      }
      figure.body.append(chart.svg);
    }
    figure.note(noteOf(of, shown));
    return rows;
  }

  function drawSquare(chart, { column, row, at, found: [middle, , n, text], stands }, { view, shown, paint, side, tall }) {
    const [x, y] = [chart.x(column), chart.y(row)];
    const corner = { x: x - side / 2 + 1, y: y - tall / 2 + 1 };
    const rect = page.svg("rect", { ...corner, width: side - 2, height: tall - 2, rx: 3 });
    rect.style.fill = stands ? paint(middle) : "url(#hatch)";
    const label = page.svg("text", { x, y: y + 4, "text-anchor": "middle", class: "value" }, brief(middle, side));
    if (stands) label.style.fill = "var(--ink)";
    chart.plot.append(rect, label);
    const doubt = stands ? "" : "\nnot significant at 95 %";
    const pairs = view.pair === undefined ? "" : " pairs";
    const where = [view.title, caseText(at)].filter(Boolean).join(", ");
    chart.mark(x, y, `${where}\n${shown.label} ${text}, n = ${n}${pairs}${doubt}`);
  }

  function noteOf(of, shown) {
    const fuller = `Mean over seeds of ${titled(shown)}; the stronger the colour, the larger the value.`;
    if (of.startsWith("a")) return fuller;
    const pair = Number(of.slice(1));
    const [arm, other] = data.pairs[pair].map((i) => data.arms[i].name);
    const count = data.differences[shown.name][pair].length;
    return (
      `${fuller} The last map has the paired differences: blue where ${arm} is lower than ${other}, orange where it is` +
      ` higher. Hatched: not significant at 95 %, corrected for comparing the two in ${count} cases (Holm).`
    );
  }

  function sequential(values) {
    const [low, high] = [Math.min(...values), Math.max(...values)];
    return (value) => mixed("var(--accent)", (value - low) / (high - low || 1));
  }

  function diverging(values) {
    const most = Math.max(...values.map(Math.abs)) || 1;
    return (value) => mixed(value < 0 ? LOWER : HIGHER, Math.abs(value) / most);
  }

  // The colour stays weak enough for the text on it to be readable in the light and in the dark style.
  function mixed(color, share) {
    return `color-mix(in srgb, ${color} ${Math.round(6 + 49 * share)}%, var(--ground))`;
  }

  function brief(value, side) {
    const size = Math.abs(value);
    const text = value.toFixed(size >= 100 || size === 0 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3).replace("-", "−");
    return text.length * 7 < side ? text : "";
  }
})(window.aqmlab);
