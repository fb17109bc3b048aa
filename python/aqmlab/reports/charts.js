// Draws the charts of a page in their places, paints their text in the page's colours, and gives each a button that
// saves the numbers it shows. `charts` is what reports/figures.py says of them.
const charts = (function () {
  "use strict";
  const { document: json, places } = JSON.parse(document.getElementById("charts").textContent);
  json.version = Bokeh.version;
  Bokeh.set_log_level("info");

  function model(name) {
    return Bokeh.documents[0].get_model_by_name(name);
  }

  function figures() {
    return Object.values(places).map(model);
  }

  function paint() {
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--ink").trim();
    const soft = style.getPropertyValue("--soft").trim();
    for (const figure of figures()) {
      for (const part of [...figure.above, ...figure.below, ...figure.left, ...figure.right, ...figure.center]) {
        if (part.type === "Legend") part.label_text_color = ink;
        if (part.type.endsWith("Axis")) { part.major_label_text_color = soft; part.axis_label_text_color = soft; }
        if (part.type === "ColorBar") { part.major_label_text_color = soft; part.title_text_color = soft; }
      }
      if (figure.title !== null) figure.title.text_color = ink;
    }
  }

  // Rows of name, x, y and, in a heat map, value.
  function points(mark) {
    const glyph = mark.glyph;
    const columns = mark.data_source.data;
    const name = mark.name ?? "";
    const series = (label, xs, ys, values) => Array.from(xs, (x, i) => [label, x, ys[i], ...(values ? [values[i]] : [])]);
    switch (glyph.type) {
      case "MultiLine":
        return Array.from(columns[glyph.xs.field], (xs, i) => series(`${name} ${i + 1}`, xs, columns[glyph.ys.field][i])).flat();
      case "VArea":
        return ["y1", "y2"].flatMap((edge, i) =>
          series(`${name} ${["low", "high"][i]}`, columns[glyph.x.field], columns[glyph[edge].field]));
      case "Segment":
        return ["y0", "y1"].flatMap((edge, i) =>
          series(`${name} ${["low", "high"][i]}`, columns[glyph.x0.field], columns[glyph[edge].field]));
      case "VStrip":
        // There is nothing to tell but when.
        return Array.from(columns[glyph.x0.field], (from, i) => [[name, from, ""], [name, columns[glyph.x1.field][i], ""]]).flat();
      case "Rect":
        return series(name, columns[glyph.x.field], columns[glyph.y.field], columns[glyph.fill_color.field]);
      default:
        return series(name, columns[glyph.x.field], columns[glyph.y.field]);
    }
  }

  function rowsOf(figure) {
    const title = figure.title === null ? "" : figure.title.text;
    const head = ["series", figure.below[0].axis_label ?? "x", figure.left[0].axis_label ?? (title || "y")];
    const rows = figure.renderers.flatMap(points);
    if (rows.some((row) => row.length > head.length)) head.push("value");
    return [head, ...rows];
  }

  function csv(figure) {
    return csvFile.text(rowsOf(figure));
  }

  function save(place, element) {
    const shown = element.dataset.shown ? `-${element.dataset.shown.replaceAll(/[^A-Za-z0-9]+/g, "-")}` : "";
    csvFile.save(`${place}${shown}`, rowsOf(model(place)));
  }

  function addButtons() {
    for (const place of Object.values(places)) {
      const element = document.getElementById(place).closest(".chart");
      const button = document.createElement("button");
      button.type = "button";
      button.className = "csv";
      button.textContent = "CSV";
      button.title = "Save the numbers of this chart";
      button.addEventListener("click", () => save(place, element));
      element.append(button);
    }
  }

  const item = { docid: "charts", roots: places, root_ids: Object.keys(places) };
  const ready = Bokeh.embed.embed_items({ charts: json }, [item]).then(() => {
    paint();
    addButtons();
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
  });
  return { ready, model, csv };
})();
