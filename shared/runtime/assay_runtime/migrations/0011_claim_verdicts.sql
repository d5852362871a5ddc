-- Where each claim of a judged answer stands in the answer, and its evidence in the passages: offsets, never text. Part of the score, so
-- that retention, pruning and erasing a score or a project take them along. Rows from before have none.

ALTER TABLE ${base}.scores
    ADD COLUMN IF NOT EXISTS verdicts Array(Tuple(verdict Enum8('supported' = 1, 'contradicted' = 2, 'not_found' = 3), demoted Bool, answer_from UInt64, answer_to UInt64, passage UInt64, quote_from UInt64, quote_to UInt64)) COMMENT 'Each claim, in the order of the answer: its verdict, whether support was claimed without proof (demoted), where in answers.answer it is made, the passage that decides (place in answers.contexts from 1; 0: none) and where in its text. Offsets count characters from 0; _to is the first one after it. At most 200, those without support first.' CODEC(ZSTD(1)) AFTER detail;

CREATE OR REPLACE VIEW ${views}.scores
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    score_id UUID COMMENT 'Idempotency key: made of event_id and fingerprint.',
    event_id UUID COMMENT 'The answer that was judged.',
    project LowCardinality(String) COMMENT 'The tenant.',
    service LowCardinality(String) COMMENT 'The producer of the answer.',
    event_time DateTime64(3, 'UTC') COMMENT 'The time inside event_id (UTC, milliseconds). The table is partitioned and sorted by it.',
    judged_at DateTime64(6, 'UTC') COMMENT 'When it was judged, or passed over (UTC, microseconds).',
    status Enum8('scored' = 1, 'abstained' = 2, 'no_context' = 3, 'judge_error' = 4, 'skipped_budget' = 5, 'not_sampled' = 6) COMMENT 'How judging ended. The set is closed.',
    base Bool COMMENT 'Whether the answer is in the unbiased base stream. Rates and drift use only these.',
    inclusion_probability Float64 COMMENT 'How probable it was that this answer would be sampled, boosts included: the weight of totals is its inverse.',
    base_probability Float64 COMMENT 'How probable it was that this answer would be in the base stream.',
    metrics Map(LowCardinality(String), Float64) COMMENT 'What was measured, each in [0, 1]; empty unless status is scored.',
    checks Map(LowCardinality(String), Bool) COMMENT 'Layer 1: whether the answer passed each declared check.',
    boosts Array(LowCardinality(String)) COMMENT 'The boost rules that made this answer more probable to be sampled.',
    fingerprint LowCardinality(String) COMMENT 'The judge: a new one starts a new series.',
    backend LowCardinality(String) COMMENT 'Who judged: anthropic, anthropic-batch, or lexical, which is a baseline.',
    model LowCardinality(String) COMMENT 'Model of the judge; version of the lexical baseline.',
    prompt_hash LowCardinality(String) COMMENT 'Hash of the prompt.',
    schema_hash LowCardinality(String) COMMENT 'Hash of the JSON Schema of the verdict.',
    effort LowCardinality(Nullable(String)) COMMENT 'The effort the model was asked for.',
    claims UInt64 COMMENT 'How many claims the answer was found to make.',
    contradicted UInt64 COMMENT 'How many of them a passage contradicts.',
    demoted UInt64 COMMENT 'How many verdicts of support fell because their evidence is in no passage.',
    cost_usd Float64 COMMENT 'What judging this answer cost, in US dollars, failed tries included.',
    input_tokens UInt64 COMMENT 'Tokens read, cached ones included.',
    output_tokens UInt64 COMMENT 'Tokens written.',
    detail String COMMENT 'Why there is no score. Never captured text.',
    verdicts Array(Tuple(verdict Enum8('supported' = 1, 'contradicted' = 2, 'not_found' = 3), demoted Bool, answer_from UInt64, answer_to UInt64, passage UInt64, quote_from UInt64, quote_to UInt64)) COMMENT 'Each claim, in the order of the answer: its verdict, whether support was claimed without proof (demoted), where in answers.answer it is made, the passage that decides (place in answers.contexts from 1; 0: none) and where in its text. Offsets count characters from 0; _to is the first one after it. At most 200, those without support first.',
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    schema_version, score_id, event_id, project, service, event_time, judged_at, status, base, inclusion_probability,
    base_probability, metrics, checks, boosts, fingerprint, backend, model, prompt_hash, schema_hash, effort, claims, contradicted,
    demoted, cost_usd, input_tokens, output_tokens, detail, verdicts, stored_at
FROM ${base}.scores FINAL
COMMENT 'What the judge thinks of each answer: one row for each answer and judge.';
