"""A panel of judges of three families over real sockets, and answers that say how they are to be scored."""

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.support.anthropic_server import KEY, AnthropicServer
from tests.support.openai_server import OpenAiServer


def scores(document: dict[str, Any]) -> str:
    """Score an answer by the digits in it: `8/3` is 8 for correctness, 3 for directness."""
    correctness, _, directness = document["answer"].partition("/")
    said = {"correctness": int(correctness), "directness": int(directness or correctness)}
    return json.dumps({name: {"reason": "as it says", "score": score} for name, score in said.items()})


class Panel:
    """Three judges: Anthropic's API, and two that speak OpenAI's, one of them local without a key."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        self.directory = directory
        self.anthropic = stack.enter_context(AnthropicServer(reply=scores))
        self.openai = stack.enter_context(OpenAiServer(reply=scores))
        self.local = stack.enter_context(OpenAiServer(reply=scores))
        self.local.keys = set()
        (directory / "key").write_text(KEY)
        (directory / "key").chmod(0o600)
        self.file = directory / "panel.toml"
        self.write()

    def write(
        self,
        prices: str = "price_input_usd = 0.1\nprice_output_usd = 0.5\n",
        more: str = "",
        key_file: str | None = None,
    ) -> None:
        self.file.write_text(f"""{more}
[[judges]]
family = "anthropic"
backend = "anthropic"
model = "claude-haiku-5-5"
base_url = "{self.anthropic.url}"
api_key_file = "{key_file or self.directory / "key"}"

[[judges]]
family = "openai"
backend = "openai"
model = "judge-2"
base_url = "{self.openai.url}"
api_key_env = "PANEL_TEST_KEY"
{prices}
[[judges]]
family = "local"
backend = "openai"
model = "judge-3"
base_url = "{self.local.url}"
price_input_usd = 0
price_output_usd = 0
""")

    @property
    def servers(self) -> tuple[AnthropicServer, ...]:
        return self.anthropic, self.openai, self.local

    @property
    def asked(self) -> int:
        return sum(sum(server.asked.values()) for server in self.servers)

    def answers(self, *answers: str, mark: str = "", **fields: Any) -> Path:
        path = self.directory / "answers.jsonl"
        path.write_text(
            "".join(
                json.dumps({"question_id": f"q{n}", "question": f"why {n}?{mark}", "hypothesis": answer} | fields)
                + "\n"
                for n, answer in enumerate(answers)
            )
        )
        return path
