// Sends a person's verdict on an answer to Assay: see "Feedback from web pages" in docs/gateway.md.
//   const feedback = assayFeedback("https://assay.example.com", "assay_feedback_...");
//   await feedback({event_id}, "negative", {text: "wrong price"});   // true if it is stored
function assayFeedback(url, key) {
  return async (target, verdict, more = {}) => {
    const id = crypto.randomUUID ? crypto.randomUUID() : String(Math.random()).slice(2);
    const body = JSON.stringify({target, verdict, id, ...more});
    for (const wait of [0, 1, 3]) {
      await new Promise((go) => setTimeout(go, wait * 1000));
      try {
        // The type of plain text and the key in the address need no preflight; keepalive outlives the page.
        const answer = await fetch(`${url}/v1/feedback?key=${key}`, {method: "POST", body, keepalive: true});
        if (answer.status < 429) return answer.ok;
      } catch {}
    }
    return false;
  };
}
