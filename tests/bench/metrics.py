"""Retrieval metrics over 100,000 queries of ten documents: ours beside trec_eval's binding, ranx and ir-measures.

All start from the same lists of ids and dictionaries of grades, so each one's own conversion counts. Figures are CPU seconds of one
process, medians of rounds in turns. trec_eval runs in this process, the others in the peers' environment, ranx once it has compiled.
"""

import json
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytrec_eval

from assay_evals.metrics.retrieval import judge, retrieval_metrics
from tests.bench.result import result

QUERIES, DOCUMENTS = 100_000, 10
PEERS = Path(".venv-peers/bin/python")
MEASURES = {"recip_rank", "recall.5,10", "P.5,10", "ndcg_cut.5,10", "success.5,10"}

Relevance = list[dict[str, int]]
Rankings = list[list[str]]


def corpus(queries: int, seed: int = 6) -> tuple[Relevance, Rankings]:
    """Judgements of one to five of a thousand documents, and rankings of ten."""
    rng = random.Random(seed)
    names = [f"document-{number}" for number in range(1_000)]
    relevance = [{name: rng.randint(1, 3) for name in rng.sample(names, rng.randint(1, 5))} for _ in range(queries)]
    return relevance, [rng.sample(names, DOCUMENTS) for _ in range(queries)]


def ours(relevance: Relevance, rankings: Rankings) -> float:
    """Mean nDCG@10, all metrics computed."""
    return float(retrieval_metrics(judge(relevance, rankings))["ndcg@10"].mean())


def trec(relevance: Relevance, rankings: Rankings) -> float:
    """The same by trec_eval, from the same lists."""
    judgements = {str(place): judged for place, judged in enumerate(relevance)}
    run = {
        str(place): {name: -float(rank) for rank, name in enumerate(ranking)} for place, ranking in enumerate(rankings)
    }
    found = pytrec_eval.RelevanceEvaluator(judgements, MEASURES).evaluate(run)
    return statistics.fmean(each["ndcg_cut_10"] for each in found.values())


def measure(quick: bool = False) -> list[dict[str, Any]]:
    """CPU seconds; `ours` and `anchor` are exchanged so that a ratio above 1 says how many times faster ours is."""
    queries, rounds = (5_000, 1) if quick else (QUERIES, 5)
    relevance, rankings = corpus(queries)
    if abs(ours(relevance, rankings) - trec(relevance, rankings)) > 1e-9:
        raise AssertionError("ours and trec_eval differ: the comparison would mean nothing")
    mine, theirs = [], []
    for _ in range(rounds):
        mine.append(_cpu(ours, relevance, rankings))
        theirs.append(_cpu(trec, relevance, rankings))
    figure = statistics.median(mine)
    rows = [_faster("trec_eval's CPU by ours", statistics.median(theirs), figure, ">= 1", queries)]
    for name, seconds in _peers(relevance, rankings).items():
        rows.append(_faster(f"{name}'s CPU by ours", seconds, figure, None, queries))
    return rows


def _faster(name: str, theirs: float, mine: float, target: str | None, queries: int) -> dict[str, Any]:
    return result(name, theirs, mine, "CPU s (theirs, ours)", target, queries)


def _cpu(work: Callable[[Relevance, Rankings], float], relevance: Relevance, rankings: Rankings) -> float:
    started = time.process_time()
    work(relevance, rankings)
    return time.process_time() - started


def _peers(relevance: Relevance, rankings: Rankings) -> dict[str, float]:
    if not PEERS.exists():
        print("ranx and ir-measures are not installed; `make peers` does it")
        return {}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump([relevance, rankings], file)
        file.flush()
        command = [PEERS, "-m", "tests.bench.peer_metrics", file.name]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found
