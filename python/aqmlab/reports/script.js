// Chooses the arm whose lines the time charts show, and paints the charts' text in the page's colours.
(function () {
  "use strict";
  const names = JSON.parse(document.getElementById("chart-names").textContent);

  function figures() {
    const charts = Bokeh.documents[0];
    return names.map((name) => charts.get_model_by_name(name)).filter((figure) => figure !== null);
  }

  function show(arm) {
    const charts = Bokeh.documents[0];
    for (const kind of ["queue", "law", "flows", "mean"]) {
      const chosen = charts.get_model_by_name(kind + "-" + arm);
      const live = charts.get_model_by_name(kind + "-live");
      if (chosen !== null && live !== null) live.data = chosen.data;
    }
    for (const chart of document.querySelectorAll("[data-arms]")) {
      chart.hidden = !chart.dataset.arms.split(" ").includes(arm);
    }
  }

  function paint() {
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--ink").trim();
    const soft = style.getPropertyValue("--soft").trim();
    for (const figure of figures()) {
      for (const part of [...figure.above, ...figure.below, ...figure.left, ...figure.right, ...figure.center]) {
        if (part.type === "Title") part.text_color = ink;
        if (part.type === "Legend") part.label_text_color = ink;
        if (part.type === "LinearAxis") { part.major_label_text_color = soft; part.axis_label_text_color = soft; }
      }
      if (figure.title !== null) figure.title.text_color = ink;
    }
  }

  function ready() {
    if (typeof Bokeh === "undefined" || Bokeh.documents.length === 0 || figures().length < names.length) {
      window.setTimeout(ready, 20);
      return;
    }
    paint();
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
    for (const input of document.querySelectorAll("input[name=arm]")) {
      input.addEventListener("change", () => show(input.value));
      if (input.checked) show(input.value);
    }
  }
  if (names.length > 0) ready();
})();
