# packages: logfire==5.4.0 openai==3.57.0 opentelemetry-instrumentation-openai==0.62.4
import logfire
from _tracing import QUESTION
from openai import OpenAI

logfire.configure(send_to_logfire=False, console=False)
client = OpenAI()
logfire.instrument_openai(client)
asked = {"role": "user", "content": QUESTION}
client.chat.completions.create(model="gpt-4o-mini", messages=[asked])
with logfire.span("handle request"):
    for _ in client.chat.completions.create(model="gpt-4o-mini", messages=[asked], stream=True):
        pass
client.responses.create(model="gpt-4o-mini", input=QUESTION)
logfire.force_flush()
