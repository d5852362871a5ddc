"""CPU seconds that ranx and ir-measures take for the judgements and rankings in a file. Runs in the peers' environment."""

import json
import sys
import time
import warnings

warnings.simplefilter("ignore")


def main() -> None:
    """One JSON object on stdout: seconds by name."""
    import ir_measures
    import ranx

    with open(sys.argv[1]) as file:  # noqa: PTH123
        relevance, rankings = json.load(file)
    judgements = {str(place): judged for place, judged in enumerate(relevance)}
    run = {
        str(place): {name: -float(rank) for rank, name in enumerate(ranking)} for place, ranking in enumerate(rankings)
    }
    names = [
        "mrr",
        "recall@5",
        "recall@10",
        "precision@5",
        "precision@10",
        "ndcg@5",
        "ndcg@10",
        "hit_rate@5",
        "hit_rate@10",
    ]
    few = {key: judgements[key] for key in list(judgements)[:50]}
    ranx.evaluate(ranx.Qrels(few), ranx.Run({key: run[key] for key in few}), names)  # compiles
    started = time.process_time()
    ranx.evaluate(ranx.Qrels(judgements), ranx.Run(run), names)
    seconds = {"ranx": time.process_time() - started}
    wanted = ["RR", *(f"{name}@{k}" for name in ("R", "P", "nDCG", "Success") for k in (5, 10))]
    measures = [ir_measures.parse_measure(name) for name in wanted]
    started = time.process_time()
    ir_measures.calc_aggregate(measures, judgements, run)
    seconds["ir-measures"] = time.process_time() - started
    print(json.dumps(seconds))


if __name__ == "__main__":
    main()
