-- The judge scores sessions by rubric beside answers: their scores are rows of the same table.

ALTER TABLE ${base}.scores
    ADD COLUMN IF NOT EXISTS session_id Nullable(String) COMMENT 'The session that was judged; null for an answer.' CODEC(ZSTD(1)) AFTER verdicts,
    ADD COLUMN IF NOT EXISTS revision UInt64 COMMENT 'The revision of the session that was judged; 0 for an answer.' CODEC(ZSTD(1)) AFTER session_id,
    ADD COLUMN IF NOT EXISTS rubric Array(Tuple(dimension LowCardinality(String), criterion String, absence Bool, verdict Enum8('yes' = 1, 'no' = 2, 'not_applicable' = 3, 'not_judged' = 4), demoted Bool, turn UInt64)) COMMENT 'The rubric of the session: its items, written by the judge and scrubbed, with the verdict on each and the turn of its evidence.' CODEC(ZSTD(3)) AFTER revision,
    ADD INDEX IF NOT EXISTS session_id_bloom session_id TYPE bloom_filter(0.01) GRANULARITY 1;

ALTER TABLE ${base}.scores COMMENT COLUMN IF EXISTS event_id 'The answer that was judged. For a session, an id made of its project, id and start.';

CREATE OR REPLACE VIEW ${views}.scores
(
    schema_version UInt8 COMMENT 'Version of the row contract; 1.',
    score_id UUID COMMENT 'Idempotency key: made of event_id and fingerprint.',
    event_id UUID COMMENT 'The answer that was judged. For a session, an id made of its project, id and start.',
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
    backend LowCardinality(String) COMMENT 'Who judged: anthropic, anthropic-batch, openai (any API that speaks its chat completions), or lexical, which is a baseline.',
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
    session_id Nullable(String) COMMENT 'The session that was judged; null for an answer.',
    revision UInt64 COMMENT 'The revision of the session that was judged; 0 for an answer.',
    rubric Array(Tuple(dimension LowCardinality(String), criterion String, absence Bool, verdict Enum8('yes' = 1, 'no' = 2, 'not_applicable' = 3, 'not_judged' = 4), demoted Bool, turn UInt64)) COMMENT 'The rubric of the session: its items, written by the judge and scrubbed, with the verdict on each and the turn of its evidence.',
    stored_at DateTime64(3, 'UTC') COMMENT 'When the row was written (clock of the store, UTC, milliseconds).'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    schema_version, score_id, event_id, project, service, event_time, judged_at, status, base, inclusion_probability,
    base_probability, metrics, checks, boosts, fingerprint, backend, model, prompt_hash, schema_hash, effort, claims, contradicted,
    demoted, cost_usd, input_tokens, output_tokens, detail, verdicts, session_id, revision, rubric, stored_at
FROM ${base}.scores FINAL
COMMENT 'What the judge thinks of each answer and session: one row for each of them and judge.';

CREATE OR REPLACE VIEW ${views}.sessions
(
    project LowCardinality(String) COMMENT 'The tenant.',
    session_id String COMMENT 'Id of the session: by its agent if it was imported, else the session_id of captured events.',
    source LowCardinality(String) COMMENT 'Agent whose log was imported; capture if the session is known from captured events alone.',
    source_version Nullable(String) COMMENT 'Version of the agent; null if unknown.',
    status LowCardinality(String) COMMENT 'answered, unanswered or aborted, as imported; open for a session that is only captured.',
    complete Bool COMMENT 'True if all parts of the newest revision are stored; true for a session that is only captured.',
    revision UInt64 COMMENT 'Newest revision (Unix milliseconds); 0 for a session that is only captured.',
    digest String COMMENT 'Hash of the sizes of everything in the newest revision; empty for a session that is only captured.',
    parts UInt64 COMMENT 'Parts of the newest revision.',
    parts_stored UInt64 COMMENT 'Parts of the newest revision that are stored.',
    title Nullable(String) COMMENT 'Title of the session, scrubbed; null without one.',
    first_at DateTime64(6, 'UTC') COMMENT 'When the session began (UTC).',
    last_at DateTime64(6, 'UTC') COMMENT 'When it was last changed (UTC).',
    parent_session_id Nullable(String) COMMENT 'Session whose agent started this one as a sub-agent; null for the sessions of people.',
    forked_from Nullable(String) COMMENT 'Session that this one began as a copy of; null without one.',
    model Nullable(String) COMMENT 'Model that answered last; null if unknown.',
    turns UInt64 COMMENT 'Turns of both roles; answers for a session that is only captured.',
    tools UInt64 COMMENT 'Tool calls of the agent.',
    tool_errors UInt64 COMMENT 'Tool calls that failed or were refused.',
    cost_usd Nullable(Float64) COMMENT 'Cost of the session in US dollars, as its log states it.',
    input_tokens UInt64 COMMENT 'Tokens of the prompts, as the log counts them.',
    output_tokens UInt64 COMMENT 'Tokens of the answers, as the log counts them.',
    positive UInt64 COMMENT 'Feedback on its events that was positive.',
    negative UInt64 COMMENT 'Feedback on its events that was negative.',
    scored UInt64 COMMENT 'Answers of the session that the judge scored.',
    faithfulness Nullable(Float64) COMMENT 'Mean faithfulness of these answers; null without one.',
    rubric_score Nullable(Float64) COMMENT 'Share of the items of its rubric that the session meets, by the latest judge; null if it was not scored.',
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received its latest event (Redis clock, UTC, milliseconds).'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS WITH captured AS
(
    SELECT
        project, session_id,
        min(at) AS first_at, max(at) AS last_at, sum(answer) AS turns, sum(call) AS tools, sum(failed) AS tool_errors,
        sum(liked) AS positive, sum(disliked) AS negative, max(received) AS created_at
    FROM
    (
        SELECT
            project, assumeNotNull(t.session_id) AS session_id, occurred_at AS at, created_at AS received,
            0 AS answer, 0 AS call, 0 AS failed, 0 AS liked, 0 AS disliked
        FROM ${base}.candidates AS t FINAL
        WHERE t.session_id IS NOT NULL
        UNION ALL
        SELECT project, assumeNotNull(t.session_id), occurred_at, created_at, 1, 0, 0, 0, 0
        FROM ${base}.answers AS t FINAL
        WHERE t.session_id IS NOT NULL
        UNION ALL
        SELECT project, assumeNotNull(t.session_id), occurred_at, created_at, 0, 1, status IN ('error', 'refused'), 0, 0
        FROM ${base}.tool_calls AS t FINAL
        WHERE t.session_id IS NOT NULL
        UNION ALL
        SELECT project, assumeNotNull(t.session_id), occurred_at, created_at, 0, 0, 0, verdict = 'positive', verdict = 'negative'
        FROM ${base}.feedback AS t FINAL
        WHERE t.session_id IS NOT NULL
    )
    GROUP BY project, session_id
),
imported AS
(
    SELECT
        project, session_id, revision, digest, any(source) AS source, any(source_version) AS source_version,
        toString(any(status)) AS status, max(parts) AS parts, uniqExact(part) AS parts_stored, any(title) AS title,
        min(created) AS first_at, max(updated) AS last_at, any(parent_session_id) AS parent_session_id,
        any(forked_from) AS forked_from, any(model) AS model, any(turns) AS turns, any(tools) AS tools,
        any(tool_errors) AS tool_errors, any(cost_usd) AS cost_usd, any(input_tokens) AS input_tokens,
        any(output_tokens) AS output_tokens, max(created_at) AS created_at
    FROM ${base}.session_parts FINAL
    GROUP BY project, session_id, revision, digest
    ORDER BY revision DESC, max(id) DESC
    LIMIT 1 BY project, session_id
),
judged AS
(
    SELECT project, assumeNotNull(a.session_id) AS session_id, count() AS scored, avg(s.faithfulness) AS faithfulness
    FROM ${base}.answers AS a FINAL
    INNER JOIN
    (
        SELECT event_id, argMax(metrics['faithfulness'], judged_at) AS faithfulness
        FROM ${base}.scores FINAL
        WHERE status = 'scored' AND mapContains(metrics, 'faithfulness')
        GROUP BY event_id
    ) AS s USING (event_id)
    WHERE a.session_id IS NOT NULL
    GROUP BY project, session_id
),
rubrics AS
(
    SELECT project, assumeNotNull(t.session_id) AS session_id, argMax(metrics['rubric_score'], judged_at) AS rubric_score, 1 AS has_rubric
    FROM ${base}.scores AS t FINAL
    WHERE t.session_id IS NOT NULL AND status = 'scored' AND mapContains(metrics, 'rubric_score')
    GROUP BY project, session_id
)
SELECT
    if(i.session_id != '', i.project, c.project) AS project, if(i.session_id != '', i.session_id, c.session_id) AS session_id,
    if(i.session_id != '', toString(i.source), 'capture') AS source, i.source_version AS source_version,
    if(i.session_id != '', i.status, 'open') AS status, CAST(i.parts = i.parts_stored, 'Bool') AS complete, i.revision AS revision, i.digest AS digest,
    i.parts AS parts, i.parts_stored AS parts_stored, i.title AS title,
    if(i.session_id != '', i.first_at, c.first_at) AS first_at, greatest(i.last_at, c.last_at) AS last_at,
    i.parent_session_id AS parent_session_id, i.forked_from AS forked_from, i.model AS model,
    if(i.session_id != '', i.turns, c.turns) AS turns, if(i.session_id != '', i.tools, c.tools) AS tools,
    if(i.session_id != '', i.tool_errors, c.tool_errors) AS tool_errors, i.cost_usd AS cost_usd, i.input_tokens AS input_tokens,
    i.output_tokens AS output_tokens, c.positive AS positive, c.negative AS negative, j.scored AS scored,
    if(j.scored = 0, NULL, j.faithfulness) AS faithfulness, if(r.has_rubric = 1, r.rubric_score, NULL) AS rubric_score,
    greatest(i.created_at, c.created_at) AS created_at
FROM imported AS i
FULL JOIN captured AS c ON i.project = c.project AND i.session_id = c.session_id
LEFT JOIN judged AS j ON j.project = if(i.session_id != '', i.project, c.project) AND j.session_id = if(i.session_id != '', i.session_id, c.session_id)
LEFT JOIN rubrics AS r ON r.project = if(i.session_id != '', i.project, c.project) AND r.session_id = if(i.session_id != '', i.session_id, c.session_id)
COMMENT 'Sessions: one row for each, imported or known from captured events. A session with complete = false is still arriving.';

CREATE OR REPLACE VIEW ${views}.judging_by_day
(
    day Date COMMENT 'Day of the answers or sessions (UTC).',
    project LowCardinality(String) COMMENT 'The tenant.',
    fingerprint LowCardinality(String) COMMENT 'The judge.',
    backend LowCardinality(String) COMMENT 'Who judged.',
    kind LowCardinality(String) COMMENT 'answer or session: of which all the counts are.',
    answers UInt64 COMMENT 'Answers (or sessions) that the judge saw, sampled or not.',
    sampled UInt64 COMMENT 'Answers that were to be judged.',
    base UInt64 COMMENT 'Those of them in the unbiased base stream.',
    scored UInt64 COMMENT 'Answers with a score.',
    abstained UInt64 COMMENT 'Answers that make no claim to judge.',
    no_context UInt64 COMMENT 'Answers without a passage to judge them by.',
    judge_error UInt64 COMMENT 'Answers that the judge failed on.',
    skipped_budget UInt64 COMMENT 'Answers passed over because the budget was used up.',
    coverage Float64 COMMENT 'Share of sampled answers that ended with a score, an abstention or no context: the rest is missing. 1 when none was sampled.',
    checks_failed UInt64 COMMENT 'Answers that failed a check of layer 1.',
    cost_usd Float64 COMMENT 'What judging cost, in US dollars.'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    toDate(event_time, 'UTC') AS day, s.project AS project, s.fingerprint AS fingerprint, any(s.backend) AS backend,
    if(s.session_id IS NULL, 'answer', 'session') AS kind, count() AS answers,
    countIf(status != 'not_sampled') AS sampled, countIf(s.base AND status != 'not_sampled') AS base,
    countIf(status = 'scored') AS scored, countIf(status = 'abstained') AS abstained, countIf(status = 'no_context') AS no_context,
    countIf(status = 'judge_error') AS judge_error, countIf(status = 'skipped_budget') AS skipped_budget,
    if(sampled = 0, 1, (scored + abstained + no_context) / sampled) AS coverage,
    countIf(arrayExists(passed -> NOT passed, mapValues(checks))) AS checks_failed, sum(s.cost_usd) AS cost_usd
FROM ${base}.scores AS s FINAL
GROUP BY day, project, fingerprint, kind
COMMENT 'How much of the traffic was judged, by day, project and judge, and how it ended.';
