// The table of cells: sorted by a column, filtered by words and labels, saved as CSV.
(function () {
  "use strict";
  const table = document.getElementById("cells");
  if (table === null) return;
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  const form = document.getElementById("cells-filter");
  const count = document.getElementById("cells-count");

  // A column's values: numbers come before strings, and missing values come last in either order.
  function sort(column, downward) {
    const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
    const compare = (a, b) => {
      const [x, y] = [key(a), key(b)];
      if (x === "" || y === "") return (x === "") - (y === "");
      const [p, q] = [Number(x), Number(y)];
      const order = Number.isNaN(p) || Number.isNaN(q) ? x.localeCompare(y) : p - q;
      return downward ? -order : order;
    };
    rows.sort(compare);
    body.append(...rows);
    heads.forEach((head, i) => {
      if (i === column) head.setAttribute("aria-sort", downward ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
  }

  heads.forEach((head, column) => {
    head.querySelector("button")?.addEventListener("click", () => sort(column, head.getAttribute("aria-sort") === "ascending"));
  });

  function filter() {
    const words = (form.elements.words?.value ?? "").toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = [...form.querySelectorAll("select")].map((select) => [Number(select.dataset.column), select.value]);
    for (const row of rows) {
      const text = [...row.cells].slice(0, chosen.length).map((cell) => cell.textContent.trim());
      const fits = chosen.every(([column, label]) => label === "*" || text[column] === label.slice(1));
      const all = text.join(" ").toLowerCase();
      row.hidden = !(fits && words.every((word) => all.includes(word)));
    }
    const left = rows.filter((row) => !row.hidden).length;
    if (count !== null) count.textContent = left === rows.length ? `${left} cells` : `${left} of ${rows.length} cells`;
  }

  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.querySelector("button").addEventListener("click", () => {
    const names = JSON.parse(table.dataset.columns);
    const lines = rows.filter((row) => !row.hidden).map((row) => [...row.cells].flatMap(numbers));
    csvFile.save("cells", [names, ...lines]);
  });

  // Returns a label as it is, and for an estimate its mean, its half-width and the number of values.
  function numbers(cell) {
    if (cell.dataset.n === undefined) return [cell.textContent.trim()];
    return [cell.dataset.value, cell.dataset.half, cell.dataset.n];
  }

  document.documentElement.classList.add("scripted");
  filter();
})();
