// A question with a search, a tool call and an answer, as spans of the GenAI conventions made by hand with OpenTelemetry's SDK.
import { context, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { setGlobalErrorHandler } from "@opentelemetry/core";
import { defaultResource, detectResources, envDetector } from "@opentelemetry/resources";
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";

const QUESTION = "How long are rows kept?";
const PASSAGES = [
  { id: "4101", score: 0.91, content: "Rows are kept for 90 days." },
  { id: "4102", score: 0.54, content: "Retention is set per project. Gespräche: „ja“, 对, 👍" },
];
const said = (role, content) => ({ role, parts: [{ type: "text", content }] });

function child(tracer, parent, name, kind, attributes) {
  return tracer.startSpan(name, { kind, attributes }, trace.setSpan(context.active(), parent));
}

export async function send(exporter) {
  setGlobalErrorHandler((error) => {
    console.error(error);
    process.exitCode = 1;
  });
  const resource = defaultResource().merge(detectResources({ detectors: [envDetector] }));
  const provider = new NodeTracerProvider({ resource, spanProcessors: [new BatchSpanProcessor(exporter)] });
  const tracer = provider.getTracer("by hand", "1.0");
  const agent = tracer.startSpan("invoke_agent support", {
    kind: SpanKind.INTERNAL,
    attributes: {
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.agent.name": "support",
      "gen_ai.conversation.id": "session-1",
      "gen_ai.input.messages": JSON.stringify([said("user", QUESTION)]),
    },
  });
  child(tracer, agent, "GET /healthz", SpanKind.CLIENT, { "http.route": "/healthz", "http.response.status_code": 200 }).end();
  child(tracer, agent, "retrieval handbook", SpanKind.CLIENT, {
    "gen_ai.operation.name": "retrieval",
    "gen_ai.data_source.id": "handbook",
    "gen_ai.retrieval.top_k": 2,
    "gen_ai.retrieval.query.text": QUESTION,
    "gen_ai.retrieval.documents": JSON.stringify(PASSAGES),
  }).end();
  const tool = child(tracer, agent, "execute_tool get_retention", SpanKind.INTERNAL, {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "get_retention",
    "gen_ai.tool.call.id": "call_1",
    "gen_ai.tool.call.arguments": JSON.stringify({ project: "help", days: 90 }),
    "gen_ai.tool.call.result": "90 days",
  });
  tool.addEvent("cache.miss", { ratio: 0.5, tries: [1, 2], warm: false });
  tool.end();
  const failed = child(tracer, agent, "execute_tool get_owner", SpanKind.INTERNAL, {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "get_owner",
    "gen_ai.tool.call.arguments": "{}",
    "error.type": "TimeoutError",
  });
  failed.setStatus({ code: SpanStatusCode.ERROR, message: "timed out" });
  failed.end();
  child(tracer, agent, "chat gpt-4o-mini", SpanKind.CLIENT, {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "openai",
    "gen_ai.request.model": "gpt-4o-mini",
    "gen_ai.response.model": "gpt-4o-mini-2024-07-18",
    "gen_ai.response.finish_reasons": ["stop"],
    "gen_ai.usage.input_tokens": 20,
    "gen_ai.request.temperature": 0.2,
    "gen_ai.input.messages": JSON.stringify([said("system", PASSAGES[0].content), said("user", QUESTION)]),
    "gen_ai.output.messages": JSON.stringify([{ ...said("assistant", "Rows are kept for 90 days."), finish_reason: "stop" }]),
  }).end();
  agent.end();
  await provider.forceFlush();
  await provider.shutdown();
}
