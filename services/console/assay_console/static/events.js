// Rows of events link to pages that can walk the list.
for (const table of document.querySelectorAll("table[data-list]")) {
  const rows = [...table.querySelectorAll("tr[data-href]")];
  const ids = rows.map((row) => new URL(row.dataset.href, location.href).pathname.slice("/e/".length)).join(",");
  for (const row of rows) {
    const url = new URL(row.dataset.href, location.href);
    url.searchParams.set("list", ids);
    row.dataset.href = url.pathname + url.search;
    for (const link of row.querySelectorAll("a")) link.href = row.dataset.href;
  }
}
