// The page of published measurements: its tables sort.
(() => {
  "use strict";

  page.makeTheme();
  for (const table of document.querySelectorAll(".scroll > table")) {
    if (table.querySelector("thead button")) page.makeSortable(table);
  }
})();
