# packages: pydantic-ai-slim[openai]==2.68.0
from _tracing import QUESTION, traced
from pydantic_ai import Agent, InstrumentationSettings

provider = traced()
agent = Agent("openai:gpt-4o-mini", instructions="Answer in one sentence.", name="support")


@agent.tool_plain
def get_retention(project: str) -> str:
    """Return how long rows of a project are kept."""
    return f"{project}: 90 days"


agent.instrument = InstrumentationSettings(tracer_provider=provider)
agent.run_sync(QUESTION)
for version in (2, 3, 4, 5):
    try:
        agent.instrument = InstrumentationSettings(tracer_provider=provider, version=version)
    except (TypeError, ValueError):
        continue
    agent.run_sync(QUESTION)
provider.force_flush()
