# packages: opentelemetry-instrumentation-llamaindex==0.62.4 llama-index-core==0.14.25 llama-index-llms-openai==0.8.3
from typing import Any

from _tracing import PASSAGES, QUESTION, traced
from llama_index.core import PromptTemplate
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.llms.openai import OpenAI
from opentelemetry.instrumentation.llamaindex import LlamaIndexInstrumentor

provider = traced()
LlamaIndexInstrumentor().instrument(tracer_provider=provider)


class HelpRetriever(BaseRetriever):
    def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
        nodes = [TextNode(id_=i, text=t, metadata={"file_name": f"{i}.md"}) for i, t in PASSAGES.items()]
        return [NodeWithScore(node=node, score=0.5) for node in nodes]


model = OpenAI(model="gpt-4o-mini")
RetrieverQueryEngine.from_args(HelpRetriever(), llm=model).query(QUESTION)
model.predict(PromptTemplate("{question}"), question=QUESTION)
provider.force_flush()
