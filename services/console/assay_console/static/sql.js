// A statement that runs shows its time, and can be cancelled: the store ends a query whose client has left.
const line = document.getElementById("running"), [text, button] = line.children;
let timer = 0;
function cancel() {
  if (!timer) return;
  window.stop();
  clearInterval(timer);
  timer = 0;
  text.textContent = "Cancelled.";
  button.hidden = true;
}
for (const form of document.querySelectorAll("#sql, form.named")) {
  form.addEventListener("submit", () => {
    const started = performance.now();
    const show = () => { text.textContent = `Running, ${((performance.now() - started) / 1000).toFixed(1)} s`; };
    clearInterval(timer);
    timer = setInterval(show, 100);
    show();
    line.hidden = false;
    button.hidden = false;
  });
}
button.addEventListener("click", cancel);
document.addEventListener("keydown", (event) => { if (event.key === "Escape") cancel(); }, { capture: true });
// A page that comes back from the browser's memory runs nothing.
addEventListener("pageshow", () => { clearInterval(timer); timer = 0; line.hidden = true; });
