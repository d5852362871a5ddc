# packages: httpx==0.28.1 openai==3.57.0 opentelemetry-instrumentation-genai-openai==1.3b0 opentelemetry-util-genai==1.3b0
import os

os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"

from _tracing import QUESTION, traced
from openai import OpenAI
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor

provider = traced()
OpenAIInstrumentor().instrument(tracer_provider=provider)
client = OpenAI()
TOOL = {
    "type": "function",
    "function": {
        "name": "get_retention",
        "parameters": {"type": "object", "properties": {"project": {"type": "string"}}},
    },
}
MODEL = "gpt-4o-mini"
system = {"role": "system", "content": "Answer in one sentence."}
asked = {"role": "user", "content": QUESTION}
client.chat.completions.create(model=MODEL, messages=[system, asked])
first = client.chat.completions.create(model=MODEL, messages=[asked], tools=[TOOL]).choices[0].message
result = {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "90"}
client.chat.completions.create(model=MODEL, messages=[asked, first.model_dump(exclude_none=True), result], tools=[TOOL])
for _ in client.chat.completions.create(model=MODEL, messages=[asked], stream=True):
    pass
parts = [{"type": "text", "text": "Read this."}, {"type": "text", "text": QUESTION}]
client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": parts}])
client.responses.create(model=MODEL, input=QUESTION)
client.embeddings.create(model="text-embedding-3-small", input=QUESTION)
provider.force_flush()
