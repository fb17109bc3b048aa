// Chooses the arm whose lines the charts over time show.
(function () {
  "use strict";

  function show(input) {
    const arm = input.value;
    for (const kind of ["queue", "law", "flows", "mean", "stalls"]) {
      const chosen = charts.model(`${kind}-${arm}`);
      const live = charts.model(`${kind}-live`);
      if (chosen !== null && live !== null) live.data = chosen.data;
    }
    for (const chart of document.querySelectorAll("[data-arms]")) {
      chart.hidden = !chart.dataset.arms.split(" ").includes(arm);
      chart.dataset.shown = input.nextElementSibling.textContent;
    }
  }

  charts.ready.then(() => {
    for (const input of document.querySelectorAll("input[name=arm]")) {
      input.addEventListener("change", () => show(input));
      if (input.checked) show(input);
    }
  });
})();
