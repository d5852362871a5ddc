// Reloads a page that shows how things are now, while somebody looks at it and does nothing else with it.
const button = document.querySelector("[data-refresh]");
const PAUSED = "assay.refresh.paused";
if (button) {
  const seconds = Number(button.dataset.refresh);
  let paused = sessionStorage.getItem(PAUSED) === "1";
  let left = seconds;
  const busy = () =>
    document.visibilityState !== "visible" || document.querySelector("dialog[open], main details[open], :popover-open") ||
    String(getSelection()) || document.activeElement?.closest("input, textarea, select");
  const show = () => {
    button.setAttribute("aria-pressed", String(paused));
    button.firstChild.textContent = paused ? "Paused " : "Refreshes every " + seconds + " s ";
  };
  button.addEventListener("click", () => {
    paused = !paused;
    left = seconds;
    sessionStorage.setItem(PAUSED, paused ? "1" : "0");
    show();
  });
  show();
  // A page that is being left must not be loaded again: that would cancel the way to the next one.
  let leaving = false;
  addEventListener("click", (event) => { leaving ||= Boolean(event.target.closest?.("a[href], [data-href]")); });
  addEventListener("submit", () => { leaving = true; });
  addEventListener("pageshow", () => { leaving = false; });
  setInterval(() => {
    if (paused || leaving || busy()) return;
    left -= 1;
    if (left <= 0) {
      leaving = true;
      location.reload();  // keeps the place on the page
    }
  }, 1000);
}
