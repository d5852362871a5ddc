# packages: opentelemetry-instrumentation-genai-langchain==1.3b0 opentelemetry-util-genai==1.3b0
# packages: httpx==0.28.1 langchain==1.5.2 langchain-openai==1.7.4
import os

os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"
from typing import Any

from _tracing import PASSAGES, QUESTION, traced
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from opentelemetry.instrumentation.genai.langchain import LangChainInstrumentor

provider = traced()
LangChainInstrumentor().instrument(tracer_provider=provider)


class HelpRetriever(BaseRetriever):
    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [
            Document(id=i, page_content=t, metadata={"source": f"{i}.md", "score": 0.5}) for i, t in PASSAGES.items()
        ]


@tool
def get_retention(project: str) -> str:
    """Return how long rows of a project are kept."""
    return "90 days"


def joined(documents: list[Document]) -> str:
    return "\n".join(each.page_content for each in documents)


model = ChatOpenAI(model="gpt-4o-mini")
prompt = ChatPromptTemplate.from_template("Answer from this:\n{context}\n\nQuestion: {question}")
chain = {"context": HelpRetriever() | joined, "question": RunnablePassthrough()} | prompt | model | StrOutputParser()
chain.invoke(QUESTION)
create_agent(model, [get_retention]).invoke({"messages": [{"role": "user", "content": QUESTION}]})
provider.force_flush()
