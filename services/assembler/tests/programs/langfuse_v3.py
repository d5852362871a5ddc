# packages: langfuse==3.15.0 openai==3.57.0
import os

os.environ.update(LANGFUSE_PUBLIC_KEY="pk-lf-1", LANGFUSE_SECRET_KEY="none", LANGFUSE_HOST=os.environ["IMITATION"])
os.environ["LANGFUSE_BASE_URL"] = os.environ["IMITATION"]
from _tracing import PASSAGES, QUESTION
from langfuse import get_client, observe
from langfuse.openai import OpenAI


@observe(as_type="retriever")
def search(query: str) -> list[dict[str, object]]:
    return [{"id": i, "content": t, "score": 0.5, "metadata": {"source": f"{i}.md"}} for i, t in PASSAGES.items()]


@observe(as_type="tool")
def get_retention(project: str) -> str:
    return "90 days"


@observe(as_type="agent")
def answer(question: str) -> str:
    passages = search(question)
    get_retention(project="help")
    context = "\n".join(str(each["content"]) for each in passages)
    messages = [{"role": "system", "content": context}, {"role": "user", "content": question}]
    made = OpenAI().chat.completions.create(model="gpt-4o-mini", messages=messages)
    return made.choices[0].message.content


@observe()
def handle(question: str) -> str:
    return answer(question)


handle(QUESTION)
OpenAI().chat.completions.create(model="gpt-4o-mini", messages=[{"role": "user", "content": QUESTION}])
get_client().flush()
