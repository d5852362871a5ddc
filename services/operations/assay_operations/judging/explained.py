"""The detail of a score in plain words, with the settings that change it. Pure."""

from assay_judge.reasons import reason


def detail_in_words(status: str, detail: str) -> str:
    """Return the detail of a score for people.

    That of an error begins with the name of a class, and is replaced by the reason.
    """
    return reason(detail) if status == "judge_error" else detail
