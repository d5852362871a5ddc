// What every page has: keys, forms that submit themselves, charts under the pointer. Pages work without it.
for (const field of document.querySelectorAll("[data-submit]")) {
  field.addEventListener("change", () => field.form.requestSubmit());
}
for (const form of document.querySelectorAll("form[method=get]")) {
  // An empty field says nothing: it stays out of the link.
  form.addEventListener("formdata", (event) => {
    for (const [name, value] of [...event.formData.entries()]) if (value === "") event.formData.delete(name);
  });
}

// What is being sent is sent once: a second press meanwhile would be lost without a sign.
addEventListener("submit", (event) => {
  if (event.target.method !== "post") return;
  setTimeout(() => { for (const button of event.target.querySelectorAll("button")) button.disabled = true; });
});
addEventListener("pageshow", (event) => {
  if (event.persisted) for (const button of document.querySelectorAll("form[method=post] button")) button.disabled = false;
});

// A button that acts on what is chosen says how many that are, and waits until there is one.
for (const button of document.querySelectorAll("button[data-counts]")) {
  const boxes = [...button.form.elements].filter((each) => each.name === button.dataset.counts);
  const all = button.form.querySelector("[data-all]");
  const count = () => {
    const chosen = boxes.filter((each) => each.checked).length;
    button.textContent = button.dataset.text.replace("#", chosen);
    button.disabled = !chosen;
    all.checked = chosen === boxes.length;
  };
  all.addEventListener("change", () => { for (const each of boxes) each.checked = all.checked; });
  button.form.addEventListener("change", count);
  addEventListener("pageshow", count);
  count();
}

// What scrolls sideways is reached by Tab, so that arrow keys can scroll it.
for (const box of document.querySelectorAll(".wide, pre")) {
  if (box.scrollWidth > box.clientWidth && !box.hasAttribute("tabindex")) box.tabIndex = 0;
}

// Keys. Single letters work outside fields, and can be switched off.
const OFF = "assay.keys.off";
const enabled = () => localStorage.getItem(OFF) !== "1";
let prefix = "";
const rows = () => [...document.querySelectorAll("tr[data-href], li[data-href]")];

function select(step) {
  const all = rows();
  if (!all.length) return;
  const at = all.findIndex((row) => row.classList.contains("selected"));
  const next = all[Math.max(0, Math.min(all.length - 1, at + step))] ?? all[0];
  for (const row of all) row.classList.toggle("selected", row === next);
  const link = next.querySelector("a");
  (link ?? next).focus();
  next.scrollIntoView({ block: "nearest" });
}

// The row that was opened is kept for this tab: who goes back finds the focus there.
const ROW = "assay.row";
const address = () => location.pathname + location.search;
document.addEventListener("click", (event) => {
  const row = event.target.closest("tr[data-href], li[data-href]");
  if (row) sessionStorage.setItem(ROW, JSON.stringify({ at: address(), row: row.dataset.href }));
}, true);
addEventListener("pageshow", (event) => {
  const isBack = event.persisted || performance.getEntriesByType("navigation")[0]?.type === "back_forward";
  const kept = JSON.parse(sessionStorage.getItem(ROW) ?? "{}");
  if (!isBack || kept.at !== address()) return;
  const at = rows().findIndex((row) => row.dataset.href === kept.row);
  if (at < 0) return;
  for (const row of rows()) row.classList.remove("selected");
  select(at + 1);
});

const ranges = () => document.querySelector(".ranges");
function range(step) {
  const url = new URL(location.href), body = ranges();
  const choices = [...body.querySelectorAll("input")];
  const chosen = choices.findIndex((each) => each.checked);
  const other = step.zoom && chosen >= 0 ? choices[chosen + step.zoom] : undefined;
  if (other) {
    other.click();
    return;
  }
  const from = Number(body.dataset.from), to = Number(body.dataset.to);
  const width = to - from, longer = step.zoom ? width * 2 ** step.zoom : width;
  const end = Math.min(Date.now(), step.zoom ? (from + to + longer) / 2 : to + step.shift * width);
  url.searchParams.delete("t");
  url.searchParams.delete("after");
  url.searchParams.set("from", new Date(end - longer).toISOString());
  url.searchParams.set("to", new Date(end).toISOString());
  location.href = url;
}

// What a button or link has as a key; one that is hidden or disabled has none.
const shortcuts = () => [...document.querySelectorAll("[data-shortcut]")].filter((each) => each.checkVisibility() && !each.matches(":disabled"));
const filter = () => document.querySelector("[data-filter], input[type=search]");
const anyRow = () => rows().length > 0;
// The keys of every page: [keys, what they do, if they work here, what each runs].
const KEYS = [
  [["?"], "this sheet", () => true, () => sheet()],
  [["/"], "filter", filter, () => filter().focus()],
  [["g"], "then a letter of the menu: a page", () => document.querySelector(".rail a[data-key]"), () => { prefix = "g"; }],
  [["j", "k"], "next, previous row", anyRow, (key) => select(key === "j" ? 1 : -1)],
  [["Enter"], "open the row", anyRow, null],
  [["u"], "back", () => history.length > 1, () => history.back()],
  [["[", "]"], "earlier, later", ranges, (key) => range({ shift: key === "[" ? -1 : 1 })],
  [["-", "+"], "longer, shorter range", ranges, (key) => range({ zoom: key === "-" ? 1 : -1 })],
  [["r"], "load again", () => true, () => location.reload()],
  [["Ctrl+Enter"], "send the form of a text field", () => document.querySelector("main textarea"), null],
  [["←", "→"], "in a chart: the values", () => document.querySelector("figure.chart [data-label]"), null],
  [["Shift+←", "Shift+→", "Enter"], "in a chart: choose a range", () => document.querySelector("figure.chart[data-brush] [data-label]"), null],
];
/** The keys that work now: those of this page's own buttons go before those of every page. */
function working() {
  const own = shortcuts().map((each) => [[each.dataset.shortcut], each.dataset.does ?? each.textContent.trim()]);
  const taken = new Set(own.flatMap(([keys]) => keys));
  const common = KEYS.filter(([, , works]) => works()).map(([keys, does]) => [keys.filter((key) => !taken.has(key)), does]);
  return [...common.filter(([keys]) => keys.length), ...own];
}
function sheet() {
  const dialog = document.createElement("dialog");
  dialog.setAttribute("aria-label", "Keys");
  const list = document.createElement("dl");
  list.className = "facts";
  for (const [keys, does] of working()) {
    const name = document.createElement("dt"), text = document.createElement("dd");
    for (const key of keys) {
      const kbd = document.createElement("kbd");
      kbd.textContent = key;
      if (name.childNodes.length) name.append(" ");
      name.append(kbd);
    }
    text.textContent = does;
    list.append(name, text);
  }
  const label = document.createElement("label"), box = document.createElement("input");
  box.type = "checkbox";
  box.checked = enabled();
  box.addEventListener("change", () => localStorage.setItem(OFF, box.checked ? "0" : "1"));
  label.append(box, " single letters work as keys");
  const close = document.createElement("button");
  close.textContent = "Close";
  close.addEventListener("click", () => dialog.close());
  const title = document.createElement("h2");
  title.textContent = "Keys";
  dialog.append(title, list, label, document.createElement("hr"), close);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
for (const button of document.querySelectorAll("[data-action=keys]")) button.addEventListener("click", sheet);

document.addEventListener("keydown", (event) => {
  const field = event.target.closest("input:not([type=radio], [type=checkbox]), textarea, select, [contenteditable]");
  if (field) {
    if (event.key === "Escape") field.blur();
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && field.form) field.form.requestSubmit();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || !enabled() || document.querySelector("dialog[open]")) return;
  const key = event.key;
  if (prefix === "g") {
    prefix = "";
    document.querySelector(`.rail a[data-key="${CSS.escape(key)}"]`)?.click();
    return;
  }
  const own = shortcuts().find((each) => each.dataset.shortcut === key);
  const common = KEYS.find(([keys, , works, run]) => run && keys.includes(key) && works());
  if (own || common) event.preventDefault();
  if (own) own.click();
  else if (common) common[3](key);
});
document.addEventListener("click", (event) => {
  const row = event.target.closest("tr[data-href]");
  if (row && !event.target.closest("a, button, input, label, summary") && !String(getSelection())) location.href = row.dataset.href;
});

// Charts: a crosshair and the values under it, by pointer or arrow keys; a brush selects a range.
for (const figure of document.querySelectorAll("figure.chart")) {
  const svg = figure.querySelector("svg"), cross = svg.querySelector(".cross"), readout = figure.querySelector(".readout");
  const marks = [...svg.querySelectorAll("[data-label]")];
  if (!marks.length) continue;
  const places = marks.map((mark) => Number(mark.dataset.x));
  let at = -1, held = null;
  const show = (place) => {
    at = place;
    cross.setAttribute("x1", places[at]);
    cross.setAttribute("x2", places[at]);
    cross.classList.add("on");
    readout.textContent = marks[at].dataset.label;
  };
  const nearest = (event) => {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    let best = 0;
    places.forEach((x, place) => { if (Math.abs(x - point.x) < Math.abs(places[best] - point.x)) best = place; });
    return best;
  };
  svg.addEventListener("pointermove", (event) => show(nearest(event)));
  svg.addEventListener("pointerleave", () => { cross.classList.remove("on"); readout.textContent = ""; });
  const go = (first, last) => {
    const url = new URL(location.href), times = marks.map((mark) => Number(mark.dataset.at));
    const width = Math.min(...times.slice(1).map((time, place) => time - times[place]), Number(figure.dataset.to) - Number(figure.dataset.from));
    url.searchParams.delete("t");
    url.searchParams.delete("after");
    url.searchParams.set("from", new Date(times[Math.min(first, last)]).toISOString());
    url.searchParams.set("to", new Date(times[Math.max(first, last)] + width).toISOString());
    location.href = url;
  };
  if (figure.dataset.brush) {
    svg.addEventListener("pointerdown", (event) => { held = nearest(event); });
    svg.addEventListener("pointerup", (event) => {
      const end = nearest(event);
      if (held !== null && Math.abs(end - held) > 0) go(held, end);
      held = null;
    });
  }
  let anchor = null;
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) {
      event.preventDefault();
      if (event.shiftKey && anchor === null) anchor = Math.max(0, at);
      if (!event.shiftKey) anchor = null;
      show(Math.max(0, Math.min(marks.length - 1, at + step)));
    } else if (event.key === "Enter" && figure.dataset.brush && at >= 0) {
      event.preventDefault();
      go(anchor ?? at, at);
    }
  });
}
