// The live tail: rows come as Server-Sent Events and go above the others. Without this module the page has the last rows.
const ROWS_MAX = 500, WAITING_MAX = 2000, ANNOUNCE_MS = 5000, RETRY_MS = 10000;
const QUIET_MS = 40000; // the console sends its state every 15 s
const table = document.getElementById("live");
const INVISIBLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;
const SHAPES = { good: "●", warn: "◆", bad: "▲" };
const KINDS = {
  success: "good", positive: "good", answered: "good", negative: "bad", error: "bad", refused: "bad", aborted: "bad", no_result: "warn", empty: "warn",
  uncited: "warn", partial: "warn", degraded: "warn", schema_version_mismatch: "warn",
};

function element(name, className, ...parts) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...parts);
  return made;
}
function captured(text) {
  const made = element("bdi", "captured");
  let end = 0;
  for (const match of text.matchAll(INVISIBLE)) {
    made.append(text.slice(end, match.index));
    const mark = element("span", "invisible", match[0] === "\0" ? "" : match[0]);
    mark.dataset.char = match[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    made.append(mark);
    end = match.index + match[0].length;
  }
  made.append(text.slice(end));
  return made;
}
function took(ms) {
  if (ms === null) return "–";
  return ms < 1000 ? `${ms < 10 ? ms.toFixed(1) : Math.round(ms)}\u00a0ms` : `${(ms / 1000).toFixed(1)}\u00a0s`;
}
function rowOf(event) {
  const where = event.session ? `/s/${encodeURIComponent(event.session)}` : `/e/${encodeURIComponent(event.event_id)}`;
  const href = `${where}?project=${encodeURIComponent(event.project)}`;
  const link = element("a", ""), time = element("time", "", event.time ? event.time.slice(5, 19).replace("T", " ") : "–");
  link.href = href;
  if (event.time) { time.dateTime = event.time; time.title = `${event.time.slice(0, 23).replace("T", " ")} UTC`; }
  link.append(time);
  const text = element("td", "text", event.text ? captured(event.text) : element("span", "dim", "no text"));
  if (event.characters > event.text.length) text.append(element("span", "cut", "…"));
  const state = KINDS[event.status] ?? "";
  const badge = event.status ? element("span", `badge ${state}`, `${SHAPES[state] ?? ""} ${event.status.replaceAll("_", " ")}`) : "";
  const pii = element("td", "nowrap wordy");
  for (const [family, n] of Object.entries(event.pii)) pii.append(element("span", "badge", `${family.replaceAll("_", " ")} ${n}`), " ");
  const row = element(
    "tr", "", element("td", "", link), text, element("td", "", element("span", `kind k-${event.kind}`, event.kind.replaceAll("_", " "))),
    element("td", "nowrap", badge), element("td", "short opt", event.project), element("td", "short opt", captured(event.service)),
    element("td", "n opt", took(event.latency_ms)), element("td", "n opt", event.results === null ? "" : String(event.results)), pii,
  );
  row.dataset.href = href;
  row.dataset.event = event.event_id;
  return row;
}

if (table) {
  const body = table.tBodies[0], state = document.getElementById("live-state"), pause = document.getElementById("live-pause");
  const announcements = document.getElementById("live-log");
  let source = null, position = table.dataset.position, paused = false, waiting = [], skipped = 0, fresh = 0, away = false, connected = false, heard = Date.now(), lost = "";

  function say() {
    const parts = [paused ? `Paused, ${waiting.length} waiting` : lost ? `${lost}, connecting again` : !connected ? "Connecting …" : away ? "Redis is away, waiting for it" : "Live"];
    if (skipped) parts.push(`${skipped} skipped, too fast`);
    const text = `${parts.join(" · ")}.`;
    if (state.textContent !== text) state.textContent = text;
    pause.textContent = paused ? `Go on (${waiting.length})` : "Pause";
  }
  function show(events) {
    if (!events.length) return;
    document.getElementById("live-empty")?.remove();
    const above = document.createDocumentFragment();
    for (const event of events.slice(-ROWS_MAX).reverse()) above.append(rowOf(event));
    body.prepend(above);
    while (body.rows.length > ROWS_MAX) body.lastElementChild.remove();
    fresh += events.length;
  }
  let batch = [], drawing = false;
  function arrived(event) {
    if (paused) {
      waiting.push(event);
      if (waiting.length > WAITING_MAX) { waiting.shift(); skipped += 1; }
      return say();
    }
    batch.push(event);
    if (drawing) return;
    drawing = true;
    requestAnimationFrame(() => { drawing = false; show(batch); batch = []; });
  }
  function open() {
    if (source) return;
    const url = new URL("/api/v1/live", location.href);
    for (const [name, value] of new URL(location.href).searchParams) if (name !== "after") url.searchParams.append(name, value);
    if (position) url.searchParams.set("after", position);
    source = new EventSource(url);
    heard = Date.now();
    const placed = (event) => { heard = Date.now(); if (event.lastEventId) position = event.lastEventId; };
    source.onopen = () => { connected = true; heard = Date.now(); lost = ""; say(); };
    source.onmessage = (event) => { placed(event); arrived(JSON.parse(event.data)); };
    source.addEventListener("skipped", (event) => { placed(event); skipped += JSON.parse(event.data).skipped ?? 1; say(); });
    source.addEventListener("state", (event) => { placed(event); away = JSON.parse(event.data).redis !== "ready"; say(); });
    source.onerror = () => {
      connected = false;
      lost ||= "Redis or the console is away";
      say();
      if (source?.readyState !== EventSource.CLOSED) return; // the browser connects again by itself
      close();
      setTimeout(() => { if (!document.hidden) open(); }, RETRY_MS);
    };
  }
  function close() {
    source?.close();
    source = null;
    connected = false;
  }
  pause.addEventListener("click", () => {
    paused = !paused;
    if (!paused) { show(waiting); waiting = []; }
    say();
  });
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  setInterval(() => {
    if (fresh) announcements.textContent = `${fresh} new event${fresh === 1 ? "" : "s"}`;
    fresh = 0;
    if (!source || Date.now() - heard < QUIET_MS) return;
    lost = "The console does not answer";
    close();
    open();
    say();
  }, ANNOUNCE_MS);
  say();
  if (!document.hidden) open();
}
