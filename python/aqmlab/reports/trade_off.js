// Delay and its price: one mark per run, one labelled ellipse per cell, and a line through the undominated cells.
(function (page) {
  "use strict";
  if (page.report === undefined || page.report.data.tradeOff === null) return;
  const { AXES, Figure, NONE, arms, caseText, cellAt, data, marker, settings } = page.report;
  const { delay, prices, starved } = data.tradeOff;

  const titled = ({ label, unit }) => (unit ? `${label} [${unit}]` : label);
  const priceOf = (figure) => prices.find(({ name }) => name === figure.choice.price);

  // The range of the mean price over the labels of an axis. By default, each label of the axis with the largest
  // range has a panel with its own scales, unless all cells are choices in the same circumstances.
  function reach(axis) {
    const means = data.axes[axis].labels.map((_, label) => {
      const { clouds } = prices[0];
      const of = data.cells.flatMap(({ at }, i) => (at[axis] === label && clouds[i] ? clouds[i].runs : []));
      return of.reduce((sum, run) => sum + run[2], 0) / of.length;
    });
    const known = means.filter(Number.isFinite);
    return Math.max(...known, 0) - Math.min(...known, Infinity);
  }
  const widest = data.axes.map((_, i) => i).sort((a, b) => reach(b) - reach(a))[0];
  const apart = data.axes.length > 1 && prices[0].fronts.length > 1;

  function clouds(figure, panel) {
    const cases = figure.cases(new Map([[figure.choice.by, panel.label]]));
    return arms().flatMap((arm) =>
      cases.flatMap((at) => {
        const cell = cellAt(at, arm);
        const cloud = cell === undefined ? null : priceOf(figure).clouds[cell];
        return cloud === null ? [] : [{ arm, at, cell, ...cloud }];
      }),
    );
  }

  function draw(figure) {
    const price = priceOf(figure);
    const panels = figure.panels(data.axes.length ? figure.choice.by : NONE);
    const all = panels.map((panel) => clouds(figure, panel));
    const range = (of, column) => page.domain(of.flatMap(({ runs }) => runs.map((run) => run[column])), false);
    const size = figure.panelSize(panels.length, 300);
    const rows = [[...AXES, "arm", "seed", column(delay), column(price)]];
    panels.forEach((panel, i) => {
      const of = figure.choice.same ? all.flat() : all[i];
      const [[x0, x1], [y0, y1]] = [range(of, 1), range(of, 2)];
      const chart = new page.Chart({
        ...size,
        height: size.height + 40,
        title: panel.title,
        label: `${titled(price)} against ${titled(delay)} ${panel.title}`,
        left: 50,
        across: titled(delay),
        up: titled(price),
        x: (from, to) => page.linear(x0, x1, from, to),
        y: (from, to) => page.linear(y0, y1, from, to),
      });
      drawFronts(chart, price, all[i]);
      all[i].forEach((cloud) => drawCloud(chart, price, cloud, rows));
      chart.labels([...names(price, all[i]), hint(chart, price)]);
      figure.body.append(chart.svg);
    });
    const better = { more: "Up and to the left is better.", less: "Down and to the left is better." }[price.better];
    const idle = Object.keys(starved).length > 0 ? " Dashed ellipses: choices that starve a link, with its utilisation." : "";
    figure.note(
      "One mark per run, and the 1-sigma ellipse of each cell around its mean (RFC 7928, section 2.7)." +
        ` ${better} The line joins the choices that no other one dominates; the names of the others are grey.${idle}`,
    );
    return rows;
  }

  const column = ({ name, unit }) => `${name.replace(/_(s|bps|percent|packets)$/, "")}_${unit.replace("/", "_").replace("%", "percent").toLowerCase()}`;

  // The place of a cell in the plane: the centre of its ellipse or, with a single run, that run.
  function centre({ ellipse, runs }) {
    const mean = (column) => runs.reduce((sum, run) => sum + run[column], 0) / runs.length;
    return ellipse === null ? [mean(1), mean(2)] : ellipse;
  }

  function drawFronts(chart, price, shown) {
    const places = new Map(shown.map((cloud) => [cloud.cell, centre(cloud)]));
    for (const front of price.fronts) {
      const points = front.filter((cell) => places.has(cell)).map((cell) => places.get(cell));
      if (points.length < 2 || page.report.data.cells.length < 2) continue;
      points.sort((a, b) => a[0] - b[0]);
      const path = points.map(([x, y]) => `${chart.x(x).toFixed(1)},${chart.y(y).toFixed(1)}`).join(" ");
      chart.plot.append(page.svg("polyline", { points: path, class: "front" }));
    }
  }

  // The names of the cells: of arm and labels, those in which the cells of a panel differ. Names of undominated
  // cells come first, so that they are placed first.
  function names(price, shown) {
    const several = new Set(shown.map(({ arm }) => arm)).size > 1;
    const varied = data.axes.map((_, axis) => new Set(shown.map(({ at }) => at[axis])).size > 1);
    const best = new Set(price.fronts.flat());
    const made = shown.map((cloud) => {
      const { arm, at, cell } = cloud;
      const labels = data.axes.flatMap(({ labels: of }, axis) => (varied[axis] ? [of[at[axis]]] : []));
      const idle = starved[cell] === undefined ? [] : [`uses ${Math.round(starved[cell][0])} % of ${starved[cell][1]}`];
      const text = [...(several || labels.length === 0 ? [data.arms[arm].name] : []), ...labels, ...idle].join(", ");
      const first = best.has(cell);
      return { at: centre(cloud), text, first, class: first ? "name first" : "name", ...(several ? { color: data.arms[arm].color } : {}) };
    });
    return made.sort((a, b) => b.first - a.first);
  }

  const hint = (chart, price) => ({
    pixel: [chart.box.left + 4, price.better === "more" ? chart.box.top + 4 : chart.box.bottom - 4],
    text: price.better === "more" ? "↖ better" : "↙ better",
    class: "hint",
  });

  function drawCloud(chart, price, { arm, at, cell, runs, ellipse }, rows) {
    const name = data.arms[arm].name;
    runs.forEach(([seed, x, y]) => {
      const point = marker(arm, chart.x(x), chart.y(y), 3);
      point.setAttribute("opacity", 0.45);
      chart.plot.append(point);
      const [across, up] = [`${x} ${delay.unit}`, `${y} ${price.unit}`];
      chart.mark(chart.x(x), chart.y(y), `${[name, caseText(at)].filter(Boolean).join(", ")}, seed ${seed}\n${across}, ${up}`);
      rows.push([...settings(at), name, seed, x, y]);
    });
    if (ellipse === null) return;
    const line = outline(chart, ellipse, data.arms[arm].color);
    if (starved[cell] !== undefined) line.classList.add("idle");
    chart.plot.append(line);
    const [x, y] = ellipse;
    const [across, up] = price.means[cell];
    const said = [[name, caseText(at)].filter(Boolean).join(", "), `${delay.label} ${across}`, `${price.label} ${up}`];
    chart.mark(chart.x(x), chart.y(y), said.join("\n"));
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
  new Figure(
    "trade-off",
    { price: prices[0].name, by: apart ? String(widest) : NONE, same: false },
    (figure) => [
      prices.length > 1 ? figure.chooser("price", "Price", prices.map((price) => [price.name, price.label])) : null,
      figure.axisChooser("by", "A panel for each", { none: true }),
      ...figure.held([figure.choice.by], { every: true }),
      figure.choice.by === NONE || data.axes.length === 0 ? null : figure.tick("same", "same scale in all panels"),
    ],
    draw,
  );
})(window.aqmlab);
