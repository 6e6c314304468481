"use strict";
(function () {
  var root = document.documentElement;
  var spoken = document.getElementById("spoken");

  function say(words) { spoken.textContent = words; }

  /* Theme: the system's, unless another one was chosen here before. */
  function remembered() { try { return localStorage.getItem("halfseen-theme"); } catch (e) { return null; } }
  function remember(theme) { try { localStorage.setItem("halfseen-theme", theme); } catch (e) { /* private mode */ } }
  function show(theme) {
    if (theme === "light" || theme === "dark") { root.setAttribute("data-theme", theme); }
    else { root.removeAttribute("data-theme"); theme = "system"; }
    var radio = document.querySelector('input[name="theme"][value="' + theme + '"]');
    if (radio) { radio.checked = true; }
  }
  show(remembered());
  document.querySelectorAll('input[name="theme"]').forEach(function (radio) {
    radio.addEventListener("change", function () { show(radio.value); remember(radio.value); });
  });

  /* Sorting: numbers by their exact value, texts by the alphabet; what has no value comes last. */
  function keyOf(row, place) {
    var cell = row.cells[place];
    var value = cell.getAttribute("data-value") || cell.getAttribute("data-order");
    return value === null ? cell.textContent.trim() : Number(value);
  }
  function isEmpty(key) { return key === "–" || key === ""; }
  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") { return a - b; }
    return String(a).localeCompare(String(b), undefined, { numeric: true });
  }
  function sortBy(head, place) {
    var table = head.closest("table"), body = table.tBodies[0];
    var was = head.getAttribute("aria-sort");
    var first = head.classList.contains("number") ? "descending" : "ascending";
    var other = first === "descending" ? "ascending" : "descending";
    var order = was === first ? other : first;
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
    say("Sorted by " + head.textContent.trim() + ", " + order + ".");
  }
  document.querySelectorAll("th button").forEach(function (button) {
    button.addEventListener("click", function () {
      var head = button.closest("th");
      sortBy(head, head.cellIndex);
    });
  });

  /* Copying: quoted as RFC 4180 has it; a text that a spreadsheet would run as a formula is quoted off. */
  function field(cell) {
    var value = cell.getAttribute("data-value");
    var text = value === null ? cell.textContent.trim().replace(/\s+/g, " ") : value;
    if (value === null && /^[=+\-@\t]/.test(text)) { text = "'" + text; }
    return /[",\n\r]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
  }
  function csvOf(table) {
    var heads = Array.from(table.tHead.rows[0].cells);
    var kept = heads.map(function (head, i) { return head.hasAttribute("data-drawn") ? -1 : i; })
      .filter(function (i) { return i >= 0; });
    var rows = [table.tHead.rows[0]].concat(Array.from(table.tBodies[0].rows));
    return rows.map(function (row) {
      return kept.map(function (i) { return field(row.cells[i]); }).join(",");
    }).join("\r\n") + "\r\n";
  }
  function copyPlainly(text) {
    var area = document.createElement("textarea");
    area.value = text;
    area.className = "unseen";
    document.body.appendChild(area);
    area.select();
    var done = document.execCommand("copy");
    area.remove();
    return done ? Promise.resolve() : Promise.reject(new Error("refused"));
  }
  function copy(text) {
    if (navigator.clipboard && navigator.clipboard.writeText) {
      return navigator.clipboard.writeText(text).catch(function () { return copyPlainly(text); });
    }
    return copyPlainly(text);
  }
  document.querySelectorAll("button.copy").forEach(function (button) {
    var word = button.querySelector(".word"), words = word.textContent;
    button.addEventListener("click", function () {
      var table = document.getElementById(button.getAttribute("data-table"));
      copy(csvOf(table)).then(
        function () { word.textContent = "Copied"; say("The table was copied as CSV."); },
        function () { word.textContent = "Not allowed here"; say("The browser refused to copy."); }
      ).then(function () { setTimeout(function () { word.textContent = words; }, 2000); });
    });
  });

  /* Paper has no fold to open. */
  window.addEventListener("beforeprint", function () {
    document.querySelectorAll("details").forEach(function (fold) { fold.open = true; });
  });
})();
