// packages: @opentelemetry/api@1.9.1 @opentelemetry/core@2.12.1 @opentelemetry/resources@2.12.1 @opentelemetry/sdk-trace-node@2.12.1 @opentelemetry/exporter-trace-otlp-proto@0.223.1
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { send } from "./_genai_spans.mjs";

await send(new OTLPTraceExporter({ compression: "gzip" }));
