// What every page has: keys, forms that submit themselves, charts under the pointer. Pages work without it.
const root = document.documentElement;
root.classList.add("scripted");

for (const field of document.querySelectorAll("[data-submit]")) {
  field.addEventListener("change", () => field.form.requestSubmit());
}
for (const form of document.querySelectorAll("form[method=get]")) {
  // An empty field says nothing: it stays out of the link.
  form.addEventListener("formdata", (event) => {
    for (const [name, value] of [...event.formData.entries()]) if (value === "") event.formData.delete(name);
  });
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

function range(step) {
  const url = new URL(location.href);
  const body = document.querySelector(".listed[data-from], figure[data-from]");
  const choices = [...document.querySelectorAll(".ranges input")];
  const at = choices.findIndex((each) => each.checked);
  if (step.zoom && at >= 0) {
    choices[at + step.zoom]?.click();
    return;
  }
  const told = ["from", "to"].map((name) => Date.parse(url.searchParams.get(name) ?? ""));
  const [from, to] = told.some(Number.isNaN) ? [Number(body?.dataset.from), Number(body?.dataset.to)] : told;
  if (Number.isNaN(from + to)) return;
  const width = to - from, longer = step.zoom ? width * 2 ** step.zoom : width;
  const end = Math.min(Date.now(), step.zoom ? (from + to + longer) / 2 : to + step.shift * width);
  url.searchParams.delete("t");
  url.searchParams.delete("after");
  url.searchParams.set("from", new Date(end - longer).toISOString());
  url.searchParams.set("to", new Date(end).toISOString());
  location.href = url;
}

const SHEET = [
  ["?", "this sheet"], ["/", "filter"], ["g then a letter", "a page (letters are in the menu)"], ["j, k", "next, previous row"], ["Enter", "open"],
  ["u", "back"], ["[ and ]", "earlier, later"], ["- and +", "longer, shorter range"], ["r", "refresh"],
];
function sheet() {
  const dialog = document.createElement("dialog");
  dialog.setAttribute("aria-label", "Keys");
  const list = document.createElement("dl");
  list.className = "facts";
  const extra = [...document.querySelectorAll("[data-shortcut]")].map((each) => [each.dataset.shortcut, each.dataset.does ?? each.textContent.trim()]);
  for (const [key, does] of [...SHEET, ...extra]) {
    const name = document.createElement("dt"), text = document.createElement("dd");
    const kbd = document.createElement("kbd");
    kbd.textContent = key;
    name.append(kbd);
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
for (const button of document.querySelectorAll("[data-action=keys]")) {
  button.hidden = false;
  button.addEventListener("click", sheet);
}

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
  const own = document.querySelector(`[data-shortcut="${CSS.escape(key)}"]`);
  if (own) {
    event.preventDefault();
    own.click();
    return;
  }
  const actions = {
    "?": sheet, g: () => { prefix = "g"; }, j: () => select(1), k: () => select(-1), u: () => history.back(), r: () => location.reload(),
    "[": () => range({ shift: -1 }), "]": () => range({ shift: 1 }), "-": () => range({ zoom: 1 }), "+": () => range({ zoom: -1 }),
    "/": () => document.querySelector("[data-filter], input[type=search]")?.focus(),
  };
  if (actions[key]) {
    event.preventDefault();
    actions[key]();
  }
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
