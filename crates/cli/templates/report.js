for (const table of document.querySelectorAll("table.sortable")) {
  const heads = Array.from(table.tHead.querySelectorAll("th")).filter(th => th.querySelector("button"));
  // Values are numbers, some below zero, and texts are ordered as texts.
  const order = (a, b) => Number.isNaN(a - b) ? a.localeCompare(b, "en", { numeric: true }) : a - b;
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const up = head.getAttribute("aria-sort") === "descending";
    heads.forEach(other => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = row => row.cells[column].dataset.value ?? row.cells[column].textContent;
    const rows = Array.from(table.tBodies[0].rows);
    rows.sort((a, b) => order(key(b), key(a)) * (up ? -1 : 1));
    table.tBodies[0].append(...rows);
  }));
}
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(d => { d.open = true; }));
addEventListener("hashchange", () => {
  let inner = document.getElementById(location.hash.slice(1));
  for (; inner; inner = inner.parentElement) { if (inner.tagName === "DETAILS") { inner.open = true; } }
});
