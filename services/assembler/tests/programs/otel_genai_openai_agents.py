# packages: opentelemetry-instrumentation-genai-openai-agents==1.3b0 opentelemetry-util-genai==1.3b0 openai-agents==0.24.0 httpx==0.28.1
import os

os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"

from _tracing import QUESTION, traced
from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool
from openai import AsyncOpenAI
from opentelemetry.instrumentation.genai.openai_agents import OpenAIAgentsInstrumentor

provider = traced()
OpenAIAgentsInstrumentor().instrument(tracer_provider=provider)


@function_tool
def get_retention(project: str) -> str:
    """Return how long rows of a project are kept."""
    return "90 days"


model = OpenAIChatCompletionsModel(model="gpt-4o-mini", openai_client=AsyncOpenAI())
Runner.run_sync(Agent(name="support", instructions="Be brief.", tools=[get_retention], model=model), QUESTION)
provider.force_flush()
