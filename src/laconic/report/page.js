"use strict";
// Without this script the page is still readable. The script marks the open clumps on the map, tells
// where a table is wider than the page, and hides the rows that are right on request.
for (const clump of document.querySelectorAll("details.clump")) {
  const dots = document.querySelectorAll(`svg [data-clump="${clump.dataset.clump}"]`);
  const table = clump.querySelector(".scroll"), hint = clump.querySelector(".sideways");
  const mark = () => {
    dots.forEach((dot) => dot.classList.toggle("chosen", clump.open));
    if (table) hint.hidden = table.scrollWidth <= table.clientWidth;
  };
  clump.addEventListener("toggle", mark);
  window.addEventListener("resize", mark);
  mark();
  const only = clump.querySelector(".only input");
  only.addEventListener("change", () => {
    clump.querySelector(".rows").classList.toggle("only-wrong", only.checked);
  });
}
