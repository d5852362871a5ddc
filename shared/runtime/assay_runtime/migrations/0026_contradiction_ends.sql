-- Findings whose documents a question no longer retrieves end, and a pair that a person skipped in the queue is known.
--
-- `query_key` tells which question a pair is of without its text, so that the evaluator, which reads no text, can tell that the question was
-- asked again. Rows from before get it from their question when they are read.

ALTER TABLE ${base}.contradiction_runs
    ADD COLUMN IF NOT EXISTS pairs_gone Array(String) COMMENT 'Pairs, by pair_key, with an open finding whose question was asked again in this run and no longer retrieved both documents.' CODEC(ZSTD(1)) AFTER summary;

ALTER TABLE ${base}.contradiction_pairs
    ADD COLUMN IF NOT EXISTS query_key String DEFAULT lower(substring(hex(SHA256(query)), 1, 32)) COMMENT 'Question, hashed: the same for each pair of it.' CODEC(ZSTD(1)) AFTER pair_key;

ALTER TABLE ${base}.contradiction_labels
    MODIFY COLUMN label Enum8('confirm' = 1, 'refute' = 2, 'skip' = 3) COMMENT 'confirm: the texts contradict each other; refute: they do not; skip: the labeller did not decide, so it does not count as one. The set is closed.' CODEC(ZSTD(1));

ALTER TABLE ${base}.contradiction_labels COMMENT COLUMN IF EXISTS probability 'Probability with which the queue drew the pair among those with its verdict, or among those with an error; null for a label outside of the queue.';

CREATE OR REPLACE VIEW ${views}.contradiction_runs
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    run_id UUID COMMENT 'The run.',
    project LowCardinality(String) COMMENT 'The tenant.',
    started_at DateTime64(3, 'UTC') COMMENT 'When the run began (UTC, milliseconds).',
    completed_at DateTime64(3, 'UTC') COMMENT 'When it ended (UTC, milliseconds).',
    status Enum8('completed' = 1, 'partial' = 2, 'judge_failed' = 3) COMMENT 'completed: every pair was tried; partial: the budget or the API ended it; judge_failed: no pair was judged, so there is no rate. The set is closed.',
    prompt LowCardinality(String) COMMENT 'Version of prompt and rules, with their hash. Another one starts another series.',
    model LowCardinality(String) COMMENT 'Model of the judge, with its fingerprint. Another one starts another series.',
    sampling String COMMENT 'How pairs were drawn: documents of a question, pairs of a question, characters of a text. Another one starts another series.',
    scope String COMMENT 'Where questions and documents came from. Another one starts another series.',
    queries UInt64 COMMENT 'Questions with a pair of documents.',
    intended UInt64 COMMENT 'Pairs that were to be judged.',
    judged UInt64 COMMENT 'Pairs that were judged, uncertain ones included.',
    judge_errors UInt64 COMMENT 'Pairs that were tried without a verdict.',
    contradictions UInt64 COMMENT 'Pairs that are strict contradictions.',
    rate Nullable(Float64) COMMENT 'Share of contradictions among the judged pairs, weighted by the inverse of their inclusion probability; null without any.',
    rate_low Nullable(Float64) COMMENT 'Lower end of its 95 % interval.',
    rate_high Nullable(Float64) COMMENT 'Upper end of its 95 % interval.',
    query_rate Nullable(Float64) COMMENT 'Share of questions with at least one contradiction, of those with judged pairs; null without any.',
    query_rate_low Nullable(Float64) COMMENT 'Lower end of its 95 % interval.',
    query_rate_high Nullable(Float64) COMMENT 'Upper end of its 95 % interval.',
    cost_usd Float64 COMMENT 'Actual cost in US dollars; a failed call that may have been billed counts with its upper bound.',
    summary String COMMENT 'The report without texts: a JSON object as text.',
    pairs_gone Array(String) COMMENT 'Pairs, by pair_key, with an open finding whose question was asked again in this run and no longer retrieved both documents.',
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    schema_version, run_id, project, started_at, completed_at, status, prompt, model, sampling, scope, queries, intended, judged,
    judge_errors, contradictions, rate, rate_low, rate_high, query_rate, query_rate_low, query_rate_high, cost_usd, summary, pairs_gone,
    stored_at
FROM ${base}.contradiction_runs FINAL
COMMENT 'Runs that judged pairs of retrieved documents for contradictions: one row each.';

CREATE OR REPLACE VIEW ${views}.contradiction_pairs
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    result_id UUID COMMENT 'This pair in this run.',
    run_id UUID COMMENT 'The run.',
    project LowCardinality(String) COMMENT 'The tenant.',
    started_at DateTime64(3, 'UTC') COMMENT 'When the run began (UTC, milliseconds).',
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received the event with the documents; started_at without one. Retention counts from here.',
    place UInt64 COMMENT 'Place of the pair in the random order of the run, from 0.',
    pair_id String COMMENT 'Question, documents and texts, hashed: the same in each run that judges them unchanged.',
    pair_key String COMMENT 'Question and documents, hashed: the same after a text changed.',
    query_key String COMMENT 'Question, hashed: the same for each pair of it.',
    query String COMMENT 'The question, scrubbed.',
    documents Array(String) COMMENT 'Ids of the two documents.',
    texts Array(String) COMMENT 'Their texts as the judge received them, scrubbed.',
    stratum LowCardinality(String) COMMENT 'numbers: alike with different numbers or dates; terms: alike; rest.',
    probability Float64 COMMENT 'Probability that the pair is in the sample of the pairs of its question; use its inverse as the weight.',
    verdict Nullable(Enum8('no_contradiction' = 1, 'contradiction' = 2, 'temporal_supersession' = 3, 'temporal_regression' = 4, 'temporal_evolution' = 5, 'negation_artifact' = 6, 'uncertain' = 7)) COMMENT 'Verdict of both orders; uncertain if they differ; null if the pair was not judged. The set is closed.',
    severity Enum8('info' = 1, 'low' = 2, 'medium' = 3, 'high' = 4) COMMENT 'Severity of the finding; info without one.',
    confidence Nullable(Float64) COMMENT 'The lower confidence of both orders; null if the pair was not judged.',
    claims Array(String) COMMENT 'The two claims, word for word from the texts; empty without a finding.',
    reason String COMMENT 'Reason of the judge; empty without one.',
    judge_error LowCardinality(String) COMMENT 'Kind of error if the pair was tried without a verdict; empty otherwise.',
    finding_id String COMMENT 'Identity of the finding: its two claims, hashed; empty without one.',
    state LowCardinality(String) COMMENT 'State of the finding in this run: new, persisting or reopened; empty without one.',
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    schema_version, result_id, run_id, project, started_at, created_at, place, pair_id, pair_key, query_key, query, documents, texts,
    stratum, probability, verdict, severity, confidence, claims, reason, judge_error, finding_id, state, stored_at
FROM ${base}.contradiction_pairs FINAL
COMMENT 'Pairs of retrieved documents that were to be judged for contradictions: one row for each run and pair.';

CREATE OR REPLACE VIEW ${views}.contradiction_labels
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    label_id UUID COMMENT 'Idempotency key of the label.',
    result_id UUID COMMENT 'The pair in a run that was labelled.',
    run_id UUID COMMENT 'The run.',
    project LowCardinality(String) COMMENT 'The tenant.',
    pair_id String COMMENT 'The pair, as in its row.',
    created_at DateTime64(3, 'UTC') COMMENT 'As in the row of the pair, so that a label goes with its pair. Retention counts from here.',
    label Enum8('confirm' = 1, 'refute' = 2, 'skip' = 3) COMMENT 'confirm: the texts contradict each other; refute: they do not; skip: the labeller did not decide, so it does not count as one. The set is closed.',
    probability Nullable(Float64) COMMENT 'Probability with which the queue drew the pair among those with its verdict, or among those with an error; null for a label outside of the queue.',
    labeller String COMMENT 'Name of the person who labelled.',
    labelled_at DateTime64(6, 'UTC') COMMENT 'When it was labelled (clock of the host, UTC, microseconds).',
    note String COMMENT 'Why, in the words of the labeller, scrubbed; empty without one.',
    stored_at DateTime64(6, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, microseconds). It cannot be inserted.'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    schema_version, label_id, result_id, run_id, project, pair_id, created_at, label, probability, labeller, labelled_at, note, stored_at
FROM
(
    SELECT
        schema_version, label_id, result_id, run_id, project, pair_id, created_at, label, probability, labeller, labelled_at, note,
        stored_at
    FROM ${base}.contradiction_labels
    ORDER BY stored_at DESC, label_id DESC
    LIMIT 1 BY project, result_id, labeller, isNull(probability)
)
COMMENT 'Labels of people on pairs of documents: the latest of each labeller for each pair of a run, one in the queue and one outside of it.';
