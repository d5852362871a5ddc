"""The detail of a score in plain words, with the settings that change it. Pure."""

from assay_judge.reasons import reason


def detail_in_words(status: str, detail: str) -> str:
    """Return the detail of a score for people: that of an error names its class, and is replaced by its reason."""
    return reason(detail) if status == "judge_error" else detail
