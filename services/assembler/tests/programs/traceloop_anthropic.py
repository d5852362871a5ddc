# packages: opentelemetry-instrumentation-anthropic==0.62.4 anthropic==2.14.0
from _tracing import QUESTION, traced
from anthropic import Anthropic
from opentelemetry.instrumentation.anthropic import AnthropicInstrumentor

provider = traced()
AnthropicInstrumentor().instrument(tracer_provider=provider)
client = Anthropic()
MODEL = "claude-sonnet-4-5"
tool = {"name": "get_retention", "input_schema": {"type": "object", "properties": {"project": {"type": "string"}}}}
asked = {"role": "user", "content": QUESTION}
with provider.get_tracer("support").start_as_current_span("handle"):
    client.messages.create(model=MODEL, max_tokens=100, messages=[asked])
    first = client.messages.create(model=MODEL, max_tokens=100, messages=[asked], tools=[tool])
    said = {"role": "assistant", "content": [part.model_dump(exclude_none=True) for part in first.content]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "90"}]}
    client.messages.create(model=MODEL, max_tokens=100, messages=[asked, said, result], tools=[tool])
provider.force_flush()
