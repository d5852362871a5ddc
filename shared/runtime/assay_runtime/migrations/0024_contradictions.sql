-- Contradictions between documents that one question retrieves: runs, the pairs that they judged, and people's labels of pairs.
--
-- Append-only: a run that is stored again, after an error, replaces its rows by the same. Pairs keep their texts, scrubbed, so that a person
-- can check a verdict and the same pairs can be judged again; they go with the event that they were captured with.

CREATE TABLE IF NOT EXISTS ${base}.contradiction_runs
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.' CODEC(ZSTD(1)),
    run_id UUID COMMENT 'The run.' CODEC(ZSTD(1)),
    project LowCardinality(String) COMMENT 'The tenant.' CODEC(ZSTD(1)),
    started_at DateTime64(3, 'UTC') COMMENT 'When the run began (UTC, milliseconds).' CODEC(Delta(8), ZSTD(1)),
    completed_at DateTime64(3, 'UTC') COMMENT 'When it ended (UTC, milliseconds).' CODEC(Delta(8), ZSTD(1)),
    status Enum8('completed' = 1, 'partial' = 2, 'judge_failed' = 3) COMMENT 'completed: every pair was tried; partial: the budget or the API ended it; judge_failed: no pair was judged, so there is no rate. The set is closed.' CODEC(ZSTD(1)),
    prompt LowCardinality(String) COMMENT 'Version of prompt and rules, with their hash. Another one starts another series.' CODEC(ZSTD(1)),
    model LowCardinality(String) COMMENT 'Model of the judge, with its fingerprint. Another one starts another series.' CODEC(ZSTD(1)),
    sampling String COMMENT 'How pairs were drawn: documents of a question, pairs of a question, characters of a text. Another one starts another series.' CODEC(ZSTD(1)),
    scope String COMMENT 'Where questions and documents came from. Another one starts another series.' CODEC(ZSTD(1)),
    queries UInt64 COMMENT 'Questions with a pair of documents.' CODEC(ZSTD(1)),
    intended UInt64 COMMENT 'Pairs that were to be judged.' CODEC(ZSTD(1)),
    judged UInt64 COMMENT 'Pairs that were judged, uncertain ones included.' CODEC(ZSTD(1)),
    judge_errors UInt64 COMMENT 'Pairs that were tried without a verdict.' CODEC(ZSTD(1)),
    contradictions UInt64 COMMENT 'Pairs that are strict contradictions.' CODEC(ZSTD(1)),
    rate Nullable(Float64) COMMENT 'Share of contradictions among the judged pairs, weighted by the inverse of their inclusion probability; null without any.' CODEC(ZSTD(1)),
    rate_low Nullable(Float64) COMMENT 'Lower end of its 95 % interval.' CODEC(ZSTD(1)),
    rate_high Nullable(Float64) COMMENT 'Upper end of its 95 % interval.' CODEC(ZSTD(1)),
    query_rate Nullable(Float64) COMMENT 'Share of questions with at least one contradiction, of those with judged pairs; null without any.' CODEC(ZSTD(1)),
    query_rate_low Nullable(Float64) COMMENT 'Lower end of its 95 % interval.' CODEC(ZSTD(1)),
    query_rate_high Nullable(Float64) COMMENT 'Upper end of its 95 % interval.' CODEC(ZSTD(1)),
    cost_usd Float64 COMMENT 'Actual cost in US dollars; a failed call that may have been billed counts with its upper bound.' CODEC(ZSTD(1)),
    summary String COMMENT 'The report without texts: a JSON object as text.' CODEC(ZSTD(3)),
    created_at DateTime64(3, 'UTC') MATERIALIZED started_at COMMENT 'started_at. Retention counts from here.' CODEC(Delta(8), ZSTD(1)),
    stored_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).' CODEC(Delta(8), ZSTD(1)),
    ver UInt64 MATERIALIZED toUnixTimestamp64Milli(stored_at) COMMENT 'Greater for a later stored_at: of several copies the latest is shown.' CODEC(Delta(8), ZSTD(1)),
    CONSTRAINT schema_version_is_1 CHECK schema_version = 1,
    CONSTRAINT project_is_a_name CHECK match(project, '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
    CONSTRAINT summary_length CHECK length(summary) <= 1048576
)
ENGINE = ReplacingMergeTree(ver)
ORDER BY (project, run_id)
SETTINGS non_replicated_deduplication_window = 0, materialize_ttl_recalculate_only = 1
COMMENT 'Runs that judged pairs of retrieved documents for contradictions: one row each.';

CREATE TABLE IF NOT EXISTS ${base}.contradiction_pairs
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.' CODEC(ZSTD(1)),
    result_id UUID COMMENT 'This pair in this run.' CODEC(ZSTD(1)),
    run_id UUID COMMENT 'The run.' CODEC(ZSTD(1)),
    project LowCardinality(String) COMMENT 'The tenant.' CODEC(ZSTD(1)),
    started_at DateTime64(3, 'UTC') COMMENT 'When the run began (UTC, milliseconds).' CODEC(Delta(8), ZSTD(1)),
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received the event with the documents; started_at without one. Retention counts from here.' CODEC(Delta(8), ZSTD(1)),
    place UInt64 COMMENT 'Place of the pair in the random order of the run, from 0.' CODEC(ZSTD(1)),
    pair_id String COMMENT 'Question, documents and texts, hashed: the same in each run that judges them unchanged.' CODEC(ZSTD(1)),
    pair_key String COMMENT 'Question and documents, hashed: the same after a text changed.' CODEC(ZSTD(1)),
    query String COMMENT 'The question, scrubbed.' CODEC(ZSTD(3)),
    documents Array(String) COMMENT 'Ids of the two documents.' CODEC(ZSTD(1)),
    texts Array(String) COMMENT 'Their texts as the judge received them, scrubbed.' CODEC(ZSTD(3)),
    stratum LowCardinality(String) COMMENT 'numbers: alike with different numbers or dates; terms: alike; rest.' CODEC(ZSTD(1)),
    probability Float64 COMMENT 'Probability that the pair is in the sample of the pairs of its question; use its inverse as the weight.' CODEC(ZSTD(1)),
    verdict Nullable(Enum8('no_contradiction' = 1, 'contradiction' = 2, 'temporal_supersession' = 3, 'temporal_regression' = 4, 'temporal_evolution' = 5, 'negation_artifact' = 6, 'uncertain' = 7)) COMMENT 'Verdict of both orders; uncertain if they differ; null if the pair was not judged. The set is closed.' CODEC(ZSTD(1)),
    severity Enum8('info' = 1, 'low' = 2, 'medium' = 3, 'high' = 4) COMMENT 'Severity of the finding; info without one.' CODEC(ZSTD(1)),
    confidence Nullable(Float64) COMMENT 'The lower confidence of both orders; null if the pair was not judged.' CODEC(ZSTD(1)),
    claims Array(String) COMMENT 'The two claims, word for word from the texts; empty without a finding.' CODEC(ZSTD(3)),
    reason String COMMENT 'Reason of the judge; empty without one.' CODEC(ZSTD(3)),
    judge_error LowCardinality(String) COMMENT 'Kind of error if the pair was tried without a verdict; empty otherwise.' CODEC(ZSTD(1)),
    finding_id String COMMENT 'Identity of the finding: its two claims, hashed; empty without one.' CODEC(ZSTD(1)),
    state LowCardinality(String) COMMENT 'State of the finding in this run: new, persisting or reopened; empty without one.' CODEC(ZSTD(1)),
    stored_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).' CODEC(Delta(8), ZSTD(1)),
    ver UInt64 MATERIALIZED toUnixTimestamp64Milli(stored_at) COMMENT 'Greater for a later stored_at: of several copies the latest is shown.' CODEC(Delta(8), ZSTD(1)),
    CONSTRAINT schema_version_is_1 CHECK schema_version = 1,
    CONSTRAINT project_is_a_name CHECK match(project, '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
    CONSTRAINT query_length CHECK lengthUTF8(query) <= 51200,
    CONSTRAINT two_documents CHECK length(documents) = 2 AND length(texts) = 2,
    CONSTRAINT claims_of_a_finding CHECK length(claims) IN (0, 2),
    CONSTRAINT probability_is_a_probability CHECK probability > 0 AND probability <= 1
)
ENGINE = ReplacingMergeTree(ver)
ORDER BY (project, run_id, pair_id)
SETTINGS non_replicated_deduplication_window = 0, materialize_ttl_recalculate_only = 1
COMMENT 'Pairs of retrieved documents that were to be judged for contradictions: one row for each run and pair.';

CREATE TABLE IF NOT EXISTS ${base}.contradiction_labels
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.' CODEC(ZSTD(1)),
    label_id UUID COMMENT 'Idempotency key of the label.' CODEC(ZSTD(1)),
    result_id UUID COMMENT 'The pair in a run that was labelled.' CODEC(ZSTD(1)),
    run_id UUID COMMENT 'The run.' CODEC(ZSTD(1)),
    project LowCardinality(String) COMMENT 'The tenant.' CODEC(ZSTD(1)),
    pair_id String COMMENT 'The pair, as in its row.' CODEC(ZSTD(1)),
    created_at DateTime64(3, 'UTC') COMMENT 'As in the row of the pair, so that a label goes with its pair. Retention counts from here.' CODEC(Delta(8), ZSTD(1)),
    label Enum8('confirm' = 1, 'refute' = 2) COMMENT 'confirm: the texts contradict each other; refute: they do not. The set is closed.' CODEC(ZSTD(1)),
    probability Nullable(Float64) COMMENT 'Probability with which the queue drew the pair among those with its verdict; null for a label outside of the queue.' CODEC(ZSTD(1)),
    labeller String COMMENT 'Name of the person who labelled.' CODEC(ZSTD(1)),
    labelled_at DateTime64(6, 'UTC') COMMENT 'When it was labelled (clock of the host, UTC, microseconds).' CODEC(Delta(8), ZSTD(1)),
    note String COMMENT 'Why, in the words of the labeller, scrubbed; empty without one.' CODEC(ZSTD(3)),
    stored_at DateTime64(6, 'UTC') MATERIALIZED now64(6, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, microseconds). It cannot be inserted.' CODEC(Delta(8), ZSTD(1)),
    CONSTRAINT schema_version_is_1 CHECK schema_version = 1,
    CONSTRAINT project_is_a_name CHECK match(project, '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
    CONSTRAINT probability_is_a_probability CHECK isNull(probability) OR (probability > 0 AND probability <= 1),
    CONSTRAINT labeller_length CHECK lengthUTF8(labeller) BETWEEN 1 AND 128,
    CONSTRAINT note_length CHECK lengthUTF8(note) <= 2000
)
ENGINE = MergeTree
ORDER BY (project, run_id, result_id, labeller)
SETTINGS non_replicated_deduplication_window = 0, materialize_ttl_recalculate_only = 1
COMMENT 'Labels of people on pairs of documents: every label that was given or changed.';

CREATE VIEW IF NOT EXISTS ${views}.contradiction_runs
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
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    schema_version, run_id, project, started_at, completed_at, status, prompt, model, sampling, scope, queries, intended, judged,
    judge_errors, contradictions, rate, rate_low, rate_high, query_rate, query_rate_low, query_rate_high, cost_usd, summary, stored_at
FROM ${base}.contradiction_runs FINAL
COMMENT 'Runs that judged pairs of retrieved documents for contradictions: one row each.';

CREATE VIEW IF NOT EXISTS ${views}.contradiction_pairs
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
    schema_version, result_id, run_id, project, started_at, created_at, place, pair_id, pair_key, query, documents, texts, stratum,
    probability, verdict, severity, confidence, claims, reason, judge_error, finding_id, state, stored_at
FROM ${base}.contradiction_pairs FINAL
COMMENT 'Pairs of retrieved documents that were to be judged for contradictions: one row for each run and pair.';

CREATE VIEW IF NOT EXISTS ${views}.contradiction_labels
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    label_id UUID COMMENT 'Idempotency key of the label.',
    result_id UUID COMMENT 'The pair in a run that was labelled.',
    run_id UUID COMMENT 'The run.',
    project LowCardinality(String) COMMENT 'The tenant.',
    pair_id String COMMENT 'The pair, as in its row.',
    created_at DateTime64(3, 'UTC') COMMENT 'As in the row of the pair, so that a label goes with its pair. Retention counts from here.',
    label Enum8('confirm' = 1, 'refute' = 2) COMMENT 'confirm: the texts contradict each other; refute: they do not. The set is closed.',
    probability Nullable(Float64) COMMENT 'Probability with which the queue drew the pair among those with its verdict; null for a label outside of the queue.',
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
