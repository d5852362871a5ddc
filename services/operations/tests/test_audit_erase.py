"""How an erasure of the audit log is divided into statements."""

from assay_auditor.disclosures import digest_of
from assay_operations.audit_erase import STATEMENT_BYTES, groups_of


def test_digests_are_erased_in_few_statements_that_the_store_takes() -> None:
    digests = [(number // 2, digest_of(str(number))) for number in range(20_000)]
    groups = list(groups_of(digests))
    assert [each for group in groups for each in group] == digests
    assert 1 < len(groups) <= 5
    assert all(sum(len(digest) + 4 for _, digest in group) <= STATEMENT_BYTES for group in groups)


def test_a_forged_digest_of_any_length_is_in_a_group_and_nothing_makes_none() -> None:
    forged = [(0, "'" * STATEMENT_BYTES), (1, "x"), (2, "'" * STATEMENT_BYTES)]
    assert list(groups_of(forged)) == [[each] for each in forged]
    assert list(groups_of([])) == []
