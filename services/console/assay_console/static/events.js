// The event of a row knows the rows around it: they are kept for this tab, so that the link stays short and can be sent to others.
for (const table of document.querySelectorAll("table[data-list]")) {
  const links = [...table.querySelectorAll("tr[data-href]")].map((row) => row.dataset.href);
  table.addEventListener("click", (event) => {
    if (event.target.closest("tr[data-href]")) sessionStorage.setItem("assay.list", JSON.stringify(links));
  });
}
