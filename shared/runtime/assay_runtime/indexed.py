"""SQL expressions that the tables have skip indexes on. Pure.

A query that filters by one skips most of a table. The engine uses such an index only for the very expression it was made of, so queries
take it from here.
"""

#: The trace id of `traceparent`: 32 hexadecimal digits; null without one. Indexed in candidates, answers, tool_calls and server_events.
TRACE_ID = "substring(traceparent, 4, 32)"


def question_hash(question: str) -> str:
    """Return the hash of a question, ignoring case and white space at its ends or repeated.

    `question` is the SQL of a string. `question_hash("query")` is indexed in candidates and answers.
    """
    return f"cityHash64(lowerUTF8(trimBoth(replaceRegexpAll({question}, '[[:space:]]+', ' '))))"
