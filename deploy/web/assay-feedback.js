// Sends a person's verdict on an answer to Assay: see "Feedback from web pages" in docs/gateway.md.
//   const feedback = assayFeedback("https://assay.example.com", "assay_feedback_...");
//   await feedback({event_id}, "negative", {text: "wrong price"});   // true if it is stored
//   Instead of {event_id}: {trace_id} or {response_id}, for answers that came as OpenTelemetry spans.
function assayFeedback(url, key) {
  return async (target, verdict, more = {}) => {
    const id = crypto.randomUUID ? crypto.randomUUID() : String(Math.random()).slice(2);
    const body = JSON.stringify({target, verdict, id, ...more});
    for (const wait of [0, 1, 3, 10, 20]) {
      await new Promise((go) => setTimeout(go, wait * 1000));
      try {
        // The type of plain text and the key in the address need no preflight; keepalive outlives the page.
        const answer = await fetch(`${url}/v1/feedback?key=${key}`, {method: "POST", body, keepalive: true});
        // 404: the trace of the answer may still be open.
        if (answer.status < 429 && answer.status !== 404) return answer.ok;
      } catch {}
    }
    return false;
  };
}
