// Formats rows of numbers and strings as CSV (RFC 4180), and saves them as a file.
const csvFile = (function () {
  "use strict";

  function cell(value) {
    if (value === null || value === undefined) return "";
    if (typeof value === "number") return Number.isFinite(value) ? String(Number(value.toPrecision(7))) : "";
    const text = String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }

  function text(rows) {
    return rows.map((row) => row.map(cell).join(",") + "\n").join("");
  }

  function save(name, rows) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text(rows)], { type: "text/csv" }));
    link.download = `${name}.csv`;
    link.click();
    window.setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  return { save, text };
})();
