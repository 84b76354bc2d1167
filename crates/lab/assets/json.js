// Chooses the message whose bars are shown, and has tables sort. The words and the bars are in the page already.
(() => {
  "use strict";

  for (const group of document.querySelectorAll("[data-choice]")) {
    group.addEventListener("click", ({ target }) => {
      if (!target.dataset.value) return;
      page.choose(group, target.dataset.value);
      for (const bars of group.closest("section").querySelectorAll("[data-shape]")) {
        bars.hidden = bars.dataset.shape !== target.dataset.value;
      }
    });
  }
  page.makeTheme();
  for (const table of document.querySelectorAll(".scroll > table")) {
    if (table.querySelector("thead button")) page.makeSortable(table);
  }
  document.documentElement.dataset.bars = document.querySelectorAll(".way").length;
})();
