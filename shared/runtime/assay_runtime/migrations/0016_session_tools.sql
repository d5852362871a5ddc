-- The tool calls inside imported sessions, one row for each.
--
-- A session's calls are JSON in session_parts. The view reads them from the newest revision that is stored whole, so a session that is
-- still arriving shows its revision before. An item with the key `continues` is the rest of an item that was too large: if it adds the
-- key `turn`, which every call has once, it is the row of that call, whose arguments are then left out.

CREATE VIEW IF NOT EXISTS ${views}.session_tool_calls
(
    event_time DateTime64(3, 'UTC') COMMENT 'When the call began, by the log of the agent (UTC); the last change of the session if the log does not say.',
    session_at DateTime64(6, 'UTC') COMMENT 'When the session was last changed (UTC). Filter on it too: other sessions are skipped before their calls are read.',
    project LowCardinality(String) COMMENT 'The tenant.',
    service LowCardinality(String) COMMENT 'Service of the session: the agent, unless the import named another.',
    source LowCardinality(String) COMMENT 'Agent whose log was read: opencode, claude-code, codex, gemini, otel, jsonl.',
    session_id String COMMENT 'Id of the session, by its agent.',
    parent_session_id Nullable(String) COMMENT 'Session whose agent started this one as a sub-agent; null for the sessions of people.',
    forked_from Nullable(String) COMMENT 'Session that this one began as a copy of; null without one.',
    turn UInt64 COMMENT 'Turn of the session in which the tool was called, from 1.',
    part UInt32 COMMENT 'Part of the session that holds the call, from 1.',
    place UInt64 COMMENT 'Position in that part, from 1. Calls of a session are in order by part and place.',
    tool_name String COMMENT 'The tool called.',
    args Nullable(String) COMMENT 'Arguments of the call, scrubbed: a JSON object as text; null if the call is too large for one part.',
    status Enum8('success' = 1, 'empty' = 2, 'partial' = 3, 'degraded' = 4, 'error' = 5, 'refused' = 6) COMMENT 'Result of the call, with the values of tool_calls.',
    error_kind Nullable(String) COMMENT 'Kind of error, if status is error or refused.',
    duration_ms Nullable(Float64) COMMENT 'Wall-clock time of the call, in milliseconds; null if the log does not say.',
    exit_code Nullable(Int64) COMMENT 'Exit code, if the tool ran a command.',
    call_id Nullable(String) COMMENT 'Id of the call by its agent; null without one.',
    child_session_id Nullable(String) COMMENT 'Session of the sub-agent that the call started; null without one.',
    executed_by LowCardinality(String) COMMENT 'agent, or user for a command that the person ran.',
    counted Bool COMMENT 'False for a call that is counted elsewhere: captured too, or copied from the session that this one is a fork of.',
    event_id UUID COMMENT 'The event_id of the part of the session that holds the call.',
    created_at DateTime64(3, 'UTC') COMMENT 'When the log received that part (Redis clock, UTC, milliseconds). Retention counts from here.'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS WITH newest AS
(
    SELECT project, session_id, revision, digest
    FROM ${base}.session_parts
    GROUP BY project, session_id, revision, digest
    HAVING uniqExact(part) = max(parts)
    ORDER BY revision DESC, max(id) DESC
    LIMIT 1 BY project, session_id
),
calls AS
(
    SELECT
        project, service, source, session_id, parent_session_id, forked_from, part, updated, event_id, created_at, place,
        CAST(
            if(
                item.continues IS NULL,
                (
                    if(item.function_call.name = '', item.function_response.name, item.function_call.name), item.function_call.args, item.turn,
                    item.call_id, item.status, item.error_kind, item.exit_code, item.executed_by, item.started_at, item.duration_ms,
                    item.child_session_id
                ),
                (
                    item.keys.function_response.name, NULL, item.keys.turn, item.keys.call_id, item.keys.status, item.keys.error_kind,
                    item.keys.exit_code, item.keys.executed_by, item.keys.started_at, item.keys.duration_ms, item.keys.child_session_id
                )
            ),
            'Tuple(tool_name String, args Nullable(String), turn UInt64, call_id Nullable(String), status String, error_kind Nullable(String),
            exit_code Nullable(Int64), executed_by String, started_at String, duration_ms Nullable(Float64), child_session_id Nullable(String))'
        ) AS call
    FROM
    (
        SELECT
            project, service, source, session_id, parent_session_id, forked_from, part, updated, event_id, created_at,
            JSONExtract(
                intermediate_events,
                'Array(Tuple(function_call Tuple(name String, args Nullable(String)), function_response Tuple(name String), turn UInt64,
                call_id Nullable(String), status String, error_kind Nullable(String), exit_code Nullable(Int64), executed_by String,
                started_at String, duration_ms Nullable(Float64), child_session_id Nullable(String), continues Nullable(String),
                keys Tuple(function_response Tuple(name String), turn UInt64, call_id Nullable(String), status String,
                error_kind Nullable(String), exit_code Nullable(Int64), executed_by String, started_at String,
                duration_ms Nullable(Float64), child_session_id Nullable(String))))'
            ) AS found
        FROM ${base}.session_parts FINAL
        WHERE (project, session_id, revision, digest) GLOBAL IN (SELECT project, session_id, revision, digest FROM newest)
    )
    ARRAY JOIN found AS item, arrayEnumerate(found) AS place
    WHERE (item.continues IS NULL AND item.turn > 0) OR (item.continues = '[]' AND item.keys.turn > 0)
),
captured AS
(
    SELECT project, assumeNotNull(t.session_id) AS session, tool_name, ifNull(t.call_id, '') AS call_id
    FROM ${base}.tool_calls AS t
    WHERE t.session_id IS NOT NULL AND assumeNotNull(t.session_id) GLOBAL IN (SELECT session_id FROM ${base}.session_parts)
),
origins AS
(
    SELECT
        project, session_id AS session, ifNull(call.call_id, '') AS call_id,
        if(call_id = '', (call.turn, call.tool_name, cityHash64(call.args)), (0, '', 0)) AS content
    FROM calls
    WHERE session_id GLOBAL IN (SELECT assumeNotNull(forked_from) FROM ${base}.session_parts WHERE forked_from IS NOT NULL)
)
SELECT
    ifNull(parseDateTime64BestEffortOrNull(c.call.started_at, 3, 'UTC'), toDateTime64(c.updated, 3, 'UTC')) AS event_time,
    c.updated AS session_at, c.project AS project, c.service AS service, c.source AS source, c.session_id AS session_id,
    c.parent_session_id AS parent_session_id, c.forked_from AS forked_from, c.call.turn AS turn, c.part AS part, toUInt64(c.place) AS place,
    c.call.tool_name AS tool_name, c.call.args AS args,
    CAST(
        if(c.call.status IN ('empty', 'partial', 'degraded', 'error', 'refused'), c.call.status, 'success'),
        'Enum8(\'success\' = 1, \'empty\' = 2, \'partial\' = 3, \'degraded\' = 4, \'error\' = 5, \'refused\' = 6)'
    ) AS status,
    c.call.error_kind AS error_kind, c.call.duration_ms AS duration_ms, c.call.exit_code AS exit_code, c.call.call_id AS call_id,
    c.call.child_session_id AS child_session_id, if(c.call.executed_by = 'user', 'user', 'agent') AS executed_by,
    CAST(
        NOT (
            (c.project, c.session_id, tool_name) GLOBAL IN (SELECT project, session, tool_name FROM captured)
            OR (call_id IS NOT NULL
                AND (c.project, c.session_id, ifNull(call_id, '')) GLOBAL IN (SELECT project, session, call_id FROM captured WHERE call_id != ''))
            OR (c.forked_from IS NOT NULL AND (
                c.project, ifNull(c.forked_from, ''), ifNull(call_id, ''),
                if(call_id IS NULL, (turn, tool_name, cityHash64(args)), (0, '', 0))
            ) GLOBAL IN (SELECT project, session, call_id, content FROM origins))
        ),
        'Bool'
    ) AS counted,
    c.event_id AS event_id, c.created_at AS created_at
FROM calls AS c
COMMENT 'Tool calls inside imported sessions, unrolled from the newest revision of each that is stored whole.';
