// packages: ai@5.0.277 @ai-sdk/openai@2.0.131 @opentelemetry/sdk-node@0.223.0 @opentelemetry/exporter-trace-otlp-http@0.223.1 zod@4.6.7
import { createOpenAI } from "@ai-sdk/openai";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { NodeSDK } from "@opentelemetry/sdk-node";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const sdk = new NodeSDK({ traceExporter: new OTLPTraceExporter() });
sdk.start();
const model = createOpenAI({ baseURL: process.env.OPENAI_BASE_URL, apiKey: "none" }).chat("gpt-4o-mini");
const settings = { isEnabled: true, functionId: "support", metadata: { sessionId: "session-1", userId: "user-1" } };
const question = "How long are rows kept?";
const getRetention = tool({
  description: "Return how long rows of a project are kept.",
  inputSchema: z.object({ project: z.string() }),
  execute: async ({ project }) => `${project}: 90 days`,
});
await generateText({ model, prompt: question, experimental_telemetry: settings });
await generateText({
  model,
  messages: [{ role: "user", content: question }],
  tools: { get_retention: getRetention },
  stopWhen: stepCountIs(3),
  experimental_telemetry: settings,
});
for await (const _ of streamText({ model, prompt: question, experimental_telemetry: settings }).textStream);
await sdk.shutdown();
