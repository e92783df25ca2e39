"use strict";
// Without this script everything is still readable; it marks the open clumps on the map, and hides
// the rows that are right where that is asked for.
for (const clump of document.querySelectorAll("details.clump")) {
  const dots = document.querySelectorAll(`circle[data-clump="${clump.dataset.clump}"]`);
  const mark = () => dots.forEach((dot) => dot.classList.toggle("chosen", clump.open));
  clump.addEventListener("toggle", mark);
  mark();
  const only = clump.querySelector(".only input");
  only.addEventListener("change", () => {
    clump.querySelector(".rows").classList.toggle("only-wrong", only.checked);
  });
}
