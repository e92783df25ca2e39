"use strict";
// Without this script the page is still readable. The script marks the open clumps on the map, tells
// where a table is wider than the page, hides the rows that are right, copies filters, and saves rows.
const embedded = document.getElementById("rows");
const data = embedded && JSON.parse(embedded.textContent);

for (const clump of document.querySelectorAll("details.clump")) {
  const ring = document.querySelector(`svg [data-clump="${clump.dataset.clump}"]`);
  const table = clump.querySelector(".scroll"), hint = clump.querySelector(".sideways");
  const mark = () => {
    if (ring) ring.classList.toggle("chosen", clump.open);
    if (table) hint.hidden = table.scrollWidth <= table.clientWidth;
  };
  clump.addEventListener("toggle", mark);
  window.addEventListener("resize", mark);
  mark();
  const only = clump.querySelector(".only input");
  if (only) only.addEventListener("change", () => {
    clump.querySelector(".rows").classList.toggle("only-wrong", only.checked);
  });
  const saving = clump.querySelector(".save");
  if (saving && data) {
    saving.hidden = false;
    for (const button of saving.querySelectorAll("button")) {
      button.addEventListener("click", () => save(data.regions[clump.dataset.clump], button.dataset.kind));
    }
  }
}

for (const button of document.querySelectorAll(".copy")) {
  button.hidden = false;
  button.addEventListener("click", () => {
    getSelection().selectAllChildren(button.parentElement.querySelector("code"));
    button.textContent = document.execCommand("copy") ? "copied" : "press Ctrl+C";
    setTimeout(() => { button.textContent = "copy"; }, 2000);
  });
}

// Text is stored once for each column. A cell has its number.
function spelled(row) {
  return row.map((cell, j) => cell !== null && data.texts[j] ? data.texts[j][cell] : cell);
}

// A cell of a CSV file. A spreadsheet could run text that begins like a formula, so such text gets a
// quotation mark in front, unless it is a number.
function csvCell(cell) {
  if (cell === null) return "";
  let text = String(cell);
  if (typeof cell === "string") {
    const number = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text);
    if (!number && /^\s*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20]|^[\t\r\n]/.test(text)) text = "'" + text;
    if (text === "" || /[",;\t\r\n]|^\s|\s$/.test(text)) text = `"${text.replaceAll('"', '""')}"`;
  }
  return text;
}

function save(region, kind) {
  const rows = region.rows.map(spelled);
  const written = {
    // The first character tells spreadsheets that the file is UTF-8.
    csv: () => "\uFEFF" + [data.columns, ...rows].map((row) => row.map(csvCell).join(",") + "\r\n").join(""),
    json: () => JSON.stringify(
      rows.map((row) => Object.fromEntries(row.map((cell, j) => [data.columns[j], cell]))), null, 1),
  };
  const types = {csv: "text/csv;charset=utf-8", json: "application/json"};
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([written[kind]()], {type: types[kind]}));
  link.download = `${region.file}.${kind}`;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
