/* Search and filters over the misses. Without scripts every table is there all the same, folded by variant. */
document.querySelectorAll("form.filters").forEach(function (form) {
  "use strict";
  var groups = Array.prototype.map.call(form.parentNode.querySelectorAll("details[data-variant]"), function (details) {
    return {
      details: details,
      variant: details.dataset.variant,
      rows: Array.prototype.map.call(details.querySelectorAll("tbody tr"), function (row) {
        return { row: row, task: row.cells[0].textContent, length: row.cells[1].textContent, text: row.textContent.toLowerCase() };
      })
    };
  });
  function apply() {
    var wanted = form.elements.text.value.toLowerCase().split(/\s+/).filter(Boolean);
    var variant = form.elements.variant.value, task = form.elements.task.value, length = form.elements.tokens.value;
    var filtered = wanted.length > 0 || variant !== "" || task !== "" || length !== "";
    var shown = 0, total = 0;
    groups.forEach(function (group) {
      var here = 0;
      group.rows.forEach(function (entry) {
        var keep = (variant === "" || group.variant === variant) && (task === "" || entry.task === task) &&
          (length === "" || entry.length === length) &&
          wanted.every(function (word) { return entry.text.indexOf(word) >= 0; });
        entry.row.hidden = !keep;
        if (keep) here += 1;
      });
      shown += here;
      total += group.rows.length;
      group.details.hidden = here === 0;
      group.details.open = filtered && here > 0;
    });
    form.querySelector("output").textContent = form.dataset.of.replace("{shown}", shown).replace("{total}", total);
  }
  form.addEventListener("input", apply);
  form.addEventListener("submit", function (event) { event.preventDefault(); });
  form.hidden = false;
  apply();
});
