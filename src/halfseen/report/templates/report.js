"use strict";
(function () {
  var spoken = document.getElementById("spoken");

  /* Sorting: numbers by their exact value, texts by the alphabet; what has no value comes last. */
  function keyOf(row, place) {
    var cell = row.cells[place], value = cell.getAttribute("data-value");
    return value === null ? cell.textContent.trim() : Number(value);
  }
  function isEmpty(key) { return key === "–" || key === ""; }
  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") { return a - b; }
    return String(a).localeCompare(String(b), undefined, { numeric: true });
  }
  function sortBy(head, place) {
    var table = head.closest("table"), body = table.tBodies[0];
    var first = head.classList.contains("number") ? "descending" : "ascending";
    var other = first === "descending" ? "ascending" : "descending";
    var order = head.getAttribute("aria-sort") === first ? other : first;
    var sign = order === "ascending" ? 1 : -1;
    Array.from(body.rows)
      .map(function (row) { return { row: row, key: keyOf(row, place) }; })
      .sort(function (a, b) {
        if (isEmpty(a.key) || isEmpty(b.key)) { return isEmpty(a.key) - isEmpty(b.key); }
        return sign * compare(a.key, b.key);
      })
      .forEach(function (entry) { body.appendChild(entry.row); });
    Array.from(table.tHead.rows[0].cells).forEach(function (cell) { cell.removeAttribute("aria-sort"); });
    head.setAttribute("aria-sort", order);
    spoken.textContent = "Sorted by " + head.textContent.trim() + ", " + order + ".";
  }
  document.querySelectorAll("th button").forEach(function (button) {
    var head = button.closest("th");
    button.addEventListener("click", function () { sortBy(head, head.cellIndex); });
  });

  /* Paper has no fold to open. */
  window.addEventListener("beforeprint", function () {
    document.querySelectorAll("details").forEach(function (fold) { fold.open = true; });
  });
})();
