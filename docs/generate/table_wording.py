"""Replace comments of applied migrations by clearer text in `docs/tables.md`.

An applied migration is never edited, so `DESCRIBE` shows the text on the left.
"""

#: The comment of a view or column in the migrations, and its text in the reference.
REWORDED = {
    # views
    "Captured retrievals: what was asked and which chunks came back.": "Captured retrievals: the query and the chunks that were returned.",
    "What could not be stored, and why. Never the content.": "Events that could not be stored, and the reason. Never their content.",
    "How far each shard of the log is stored.": "The position up to which each shard of the log is stored.",
    "Which changes of the schema have been applied.": "Applied migrations of the schema.",
    "How far the log is stored: one row, the least watermark of all shards.": (
        "The position up to which the log is stored: one row, the lowest watermark of all shards."
    ),
    "What the judge thinks of each answer: one row for each answer and judge.": (
        "The judge's result for each answer: one row per answer and judge."
    ),
    "How far the judge agrees with people: one row for each calibration and metric.": (
        "Agreement of the judge with people: one row per calibration and metric."
    ),
    "What judging costs, by day, project and judge.": "Cost of judging by day, project and judge.",
    "How much of the traffic was judged, by day, project and judge, and how it ended.": (
        "Number of judged answers by day, project and judge, with their outcomes."
    ),
    "What each case of an evaluation run came to: one row for each run and case.": (
        "Results of the cases of evaluation runs: one row per run and case."
    ),
    "How nightly evaluations ended: one row for each attempt.": "Outcomes of nightly evaluations: one row per attempt.",
    "What people think of answers and retrievals, by day, project, service and kind.": (
        "People's verdicts on answers and retrievals, by day, project, service and kind."
    ),
    "Operations that deleted stored data or changed what it means: who, what range, why. One row for each attempt.": (
        "Operations that deleted stored data or changed its meaning: actor, range and reason. One row per attempt."
    ),
    # events
    "What was asked, scrubbed. At most 51,200 characters.": "The query, scrubbed. At most 51,200 characters.",
    "Whether the caller asked for query expansion; null for search.": "True if the caller asked for query expansion; null for search.",
    "How many findings of each family of personal data were removed.": "Number of findings of personal data that were removed, by family.",
    "What was found in the event: categories of personal data, whatever the policy did with them.": (
        "Categories of personal data that were found in the event, regardless of the policy's action."
    ),
    "Of these, the categories that were kept out of the row: redacted, labelled or hashed.": (
        "Found categories that are not in the row: redacted, labelled or hashed."
    ),
    "What was answered, scrubbed. At most 256 KiB.": "The answer, scrubbed. At most 256 KiB.",
    "The passages given to the model, in order. contexts.text, contexts.id and so on are arrays of their own.": (
        "The passages given to the model, in order. contexts.text, contexts.id and so on are separate arrays."
    ),
    "The event_id judged.": "The event_id that the verdict is about.",
    "What the person thought.": "The person's verdict.",
    "What the person said, scrubbed. At most 256 KiB.": "The person's comment, scrubbed. At most 256 KiB.",
    # failures and watermarks
    "The event, when its entry was readable enough to say.": "The event, if its entry was readable enough.",
    "The stream entry that failed, lost for the tables; null for an incident of a sink: nothing was lost, the events wait.": (
        "The stream entry that failed and is missing from the tables; null for an outage of a sink, which loses nothing: the events wait."
    ),
    "The tenant; unknown when the entry was too broken to say.": "The tenant; unknown if the entry was not readable enough.",
    "The producer; unknown when the entry was too broken to say.": "The producer; unknown if the entry was not readable enough.",
    "The service that gave up: scrubber, writer, ...": "The service that recorded the failure: scrubber, writer, ...",
    "Why. The set is closed.": "Reason of the failure. The set is closed.",
    "Which field and which rule.": "The field and the rule.",
    "How often the entry had been delivered.": "Number of deliveries of the entry.",
    "What was found in the event: categories of personal data. Empty unless the policy refused it.": (
        "Categories of personal data that were found in the event. Empty unless the policy refused it."
    ),
    "Of these, the categories because of which the policy refused the event.": (
        "Found categories because of which the policy refused the event."
    ),
    "Every captured entry of the shard with an id up to this is stored or recorded as a failure. Never goes back.": (
        "Every captured entry of the shard with an id up to this one is stored or recorded as a failure. Never decreases."
    ),
    "When the writer last moved it (UTC, milliseconds).": "When the writer last raised it (UTC, milliseconds).",
    "When the shard that moved longest ago moved it (UTC, milliseconds).": (
        "The oldest time of the shards' last updates (UTC, milliseconds)."
    ),
    # rollups
    "What is counted: events of a kind, or failures.": "The rows that are counted: events of a kind, or failures.",
    "Events that were lost for the tables.": "Events that are missing from the tables.",
    "Times that a sink was away; nothing was lost.": "Number of outages of a sink; nothing was lost.",
    "Retrievals that found nothing.": "Retrievals without results.",
    "How many events had which latency: microseconds, exact to 1 %, an hour and more as an hour. Add up with sumMap.": (
        "Number of events by latency in microseconds, exact to 1 %; an hour and more count as an hour. Add up with sumMap."
    ),
    "Least score of a first hit; null when none has one.": "Lowest score of a first hit; null if none has a score.",
    "How many findings of each family of personal data were removed. Add up with sumMap.": (
        "Number of findings of personal data that were removed, by family. Add up with sumMap."
    ),
    "Counts everything that was stored up to here (clock of the store, UTC, milliseconds).": (
        "The row counts everything that was stored up to this time (clock of the store, UTC, milliseconds)."
    ),
    # judging
    "When it was judged, or passed over (UTC, microseconds).": "When it was judged or skipped (UTC, microseconds).",
    "How judging ended. The set is closed.": "Outcome of judging. The set is closed.",
    "Whether the answer is in the unbiased base stream. Rates and drift use only these.": (
        "True if the answer is in the unbiased base stream. Rates and drift use only these answers."
    ),
    "How probable it was that this answer would be sampled, boosts included: the weight of totals is its inverse.": (
        "Probability that this answer was sampled, boosts included; use its inverse as the weight in totals."
    ),
    "How probable it was that this answer would be in the base stream.": "Probability that this answer was in the base stream.",
    "What was measured, each in [0, 1]; empty unless status is scored.": "Metrics, each in [0, 1]; empty unless status is scored.",
    "Layer 1: whether the answer passed each declared check.": "Layer 1: true for each declared check that the answer passed.",
    "The boost rules that made this answer more probable to be sampled.": (
        "The boost rules that raised the probability of sampling this answer."
    ),
    "Who judged: anthropic, anthropic-batch, openai (any API that speaks its chat completions), or lexical, which is a baseline.": (
        "The judge's backend: anthropic, anthropic-batch, openai (any API compatible with its chat completions), or lexical, "
        "which is a baseline."
    ),
    "The effort the model was asked for.": "The effort that was requested from the model.",
    "How many claims the answer was found to make.": "Number of claims in the answer.",
    "How many of them a passage contradicts.": "Number of claims that a passage contradicts.",
    "How many verdicts of support fell because their evidence is in no passage.": (
        "Number of verdicts of support that were withdrawn because no passage contains their evidence."
    ),
    "What judging this answer cost, in US dollars, failed tries included.": (
        "Cost of judging this answer in US dollars, including failed attempts."
    ),
    "Why there is no score. Never captured text.": "Reason for a missing score. Never captured text.",
    "Each claim, in the order of the answer: its verdict, whether support was claimed without proof (demoted), where in "
    "answers.answer it is made, the passage that decides (place in answers.contexts from 1; 0: none) and where in its text."
    " Offsets count characters from 0; _to is the first one after it. At most 200, those without support first.": (
        "The claims in the order of the answer: verdict; demoted (support was claimed without evidence); offsets in answers.answer; the "
        "decisive passage (index in answers.contexts from 1; 0: none) and offsets in its text. Offsets count characters from 0; _to is "
        "exclusive. At most 200, claims without support first."
    ),
    "How many answers people labelled.": "Number of answers that people labelled.",
    "Mean of label minus verdict: what the PPI estimate adds to the raw rate.": (
        "Mean of label minus verdict, which the PPI estimate adds to the raw rate."
    ),
    "Whether alerts on this metric may be critical: kappa and tnr reach what the settings ask for.": (
        "True if alerts on this metric can be critical: kappa and tnr reach the minimum in the settings."
    ),
    "Who judged.": "The judge's backend.",
    "Answers that were handed to the judge.": "Answers that were sent to the judge.",
    "Answers passed over because the budget was used up.": "Answers skipped because the budget was used up.",
    "What they cost, in US dollars, failed tries included.": "Cost in US dollars, including failed attempts.",
    "What judging cost, in US dollars.": "Cost of judging in US dollars.",
    "Mean of the metric, as the judge says (raw).": "Mean of the metric from the judge's scores (raw).",
    "Share of good answers, as the judge says (raw); null without a calibration.": (
        "Share of good answers from the judge's scores (raw); null without a calibration."
    ),
    "Share of good answers, corrected for what the judge gets wrong (prediction-powered inference); null without a calibration.": (
        "Share of good answers, corrected for the judge's errors (prediction-powered inference); null without a calibration."
    ),
    "Answers that were to be judged.": "Answers that were sampled for judging.",
    "Those of them in the unbiased base stream.": "Sampled answers in the unbiased base stream.",
    "Answers without a passage to judge them by.": "Answers without a passage, which cannot be judged.",
    # alerts
    "What the alert is about. The set is closed.": "Subject of the alert. The set is closed.",
    "How urgent this transition is.": "Urgency of this transition.",
    "What was measured.": "The metric.",
    "What the numbers come from: the fingerprint of the judge or the embedding model.": (
        "Source of the numbers: the fingerprint of the judge or the embedding model."
    ),
    "The metric as it was before, or the limit.": "The metric before the change, or the limit.",
    "How much it changed: relative to the baseline, or a distance between 0 and 1.": (
        "Size of the change: relative to the baseline, or a distance between 0 and 1."
    ),
    "How many samples value is made of.": "Number of samples behind value.",
    "Evidence as a fraction of what raises an alert; 1 or more has raised it.": (
        "Evidence as a fraction of the threshold of an alert; 1 or more raised it."
    ),
    "Transitions with the same group at the same time belong in one notice.": (
        "Transitions with the same group at the same time are sent in one notice."
    ),
    "What happened, in one sentence.": "The change in one sentence.",
    "SQL that shows more.": "SQL for more details.",
    "What was measured, in [0, 1].": "The metric, in [0, 1].",
    # evaluations
    "The run: made of its name, its start and what it measured, so that storing it again replaces it.": (
        "The run: a hash of its name, start and results, so that storing it again replaces it."
    ),
    "What people call the run: the folder it was written to.": "Name of the run: the folder that it was written to.",
    "What reports call it.": "Label of the run in reports.",
    "What was asked, as it was named: http://host/path, module:function or a command.": (
        "The target as it was given: http://host/path, module:function or a command."
    ),
    "Of the resamples behind the intervals.": "Random seed of the resamples behind the intervals.",
    "Everything that was configured: a JSON object as text.": "The configuration: a JSON object as text.",
    "How many cases have a result.": "Number of cases with a result.",
    "How many of them ended in an error.": "Number of cases that ended in an error.",
    "What a later version may have written beside these columns: a JSON object as text.": (
        "Additional fields of later versions: a JSON object as text."
    ),
    "What came back, best first: slugs, or source::slug.": "The results, best first: slugs, or source::slug.",
    "How long it took, in milliseconds; null without an answer.": "Duration in milliseconds; null without an answer.",
    "What was measured; null where a metric does not apply.": "Metrics; null where a metric does not apply.",
    "Why there is no answer. Never what was asked.": "Reason for a missing answer. Never the query.",
    "How often it was asked.": "Number of attempts.",
    "Cases of one session or document share it.": "Cluster of the case: cases of one session or document have the same.",
    "The attempt. It has two rows at first, started and its end, of which the end is shown.": (
        "The attempt. Its start and its end are stored as two rows; only the end is shown."
    ),
    "Which evaluation: the name of its dataset and its target, hashed.": "The evaluation: a hash of its dataset's name and its target.",
    "How it ended; started while it runs, or when it was killed. The set is closed.": (
        "Outcome; started while it runs, or if it was killed. The set is closed."
    ),
    "How it ended; started while it runs, or if it was killed. The set is closed.": (
        "Outcome; started while it runs, or if it was killed. The set is closed."
    ),
    "The run it made.": "The run of this attempt.",
    "What it cost, in US dollars.": "Cost in US dollars.",
    "Why, in a sentence. Never captured text.": "Reason in one sentence. Never captured text.",
    "The transitions of alerts that this outcome made, as published: JSON objects as text.": (
        "The alert transitions of this outcome, as published: JSON objects as text."
    ),
    # feedback and operations
    "The producer of what was judged; of the verdict where that is not there.": (
        "The producer of the answer or retrieval; the producer of the verdict if that is not stored."
    ),
    "What was judged: answer, retrieval, or unknown where it is not stored (any more).": (
        "Kind of the event: answer, retrieval, or unknown if it is not (or no longer) stored."
    ),
    "Verdicts that it was good.": "Positive verdicts.",
    "Verdicts that it was bad.": "Negative verdicts.",
    "Distinct answers or retrievals that were judged.": "Distinct answers or retrievals with a verdict.",
    "Verdicts with words beside them.": "Verdicts with a comment.",
    "Distinct pseudonyms among those who gave one.": "Number of distinct pseudonyms.",
    "What this record is about: the start, or how the operation ended. The set is closed.": (
        "Type of the record: the start, or the outcome of the operation. The set is closed."
    ),
    "Number of items to change, as counted before.": "Number of items to change, counted before the operation.",
    "Why, in the words of the actor, scrubbed; empty without one.": "Reason in the actor's words, scrubbed; empty without one.",
}


def reworded(comment: str) -> str:
    """Return the text of a comment in the reference."""
    return REWORDED.get(comment, comment)
