"""The policy file: levels, mistakes, and reading it again while scrubbing goes on."""

import re
from pathlib import Path
from typing import Any

import pytest

from assay_schema.settings import ScrubberSettings, Settings, SettingsError
from assay_scrubber.engine import Scrubber
from assay_scrubber.policy import Policy, PolicyError
from assay_scrubber.policy_file import parse_policies
from assay_scrubber.producer import InProducer
from assay_scrubber.reload import PolicyFile, read_policies, scrubbers_of

KEY = b"0123456789abcdef"
FILE = r"""
[actions]
contact = "label"

[families]
phone = "redact"

[patterns.staff_number]
category = "online_identifier"
pattern = '\bEMP-[0-9]{5}\b'

[projects.clinic]
scrub_slugs = true
actions = { contact = "refuse", online_identifier = "label" }

[projects.lab.families]
email = "allow"
"""
TEXT = "ann@example.com, 555-123-4567, EMP-12345, 4111111111111111"


def test_a_project_goes_before_what_is_said_for_all_and_a_family_before_its_category() -> None:
    policies = parse_policies(FILE)
    scrubbed = {name: Scrubber(policies.of(name)).scrub(TEXT).text for name in ("any", "clinic", "lab")}
    assert scrubbed == {
        "any": "[EMAIL], [REDACTED], [REDACTED], [REDACTED]",
        "clinic": "[REDACTED], [REDACTED], [STAFF_NUMBER], [REDACTED]",
        "lab": "ann@example.com, [REDACTED], [REDACTED], [REDACTED]",
    }
    assert [str(policies.of("clinic").action(name)) for name in ("email", "phone")] == ["refuse", "refuse"]
    assert (policies.of("clinic").scrub_slugs, policies.of("any").scrub_slugs) == (True, False)


def test_an_empty_file_is_the_default_policy() -> None:
    assert parse_policies("").default.fingerprint == Policy().fingerprint
    assert parse_policies("", scrub_slugs=True).default == Policy(scrub_slugs=True)


def test_a_project_may_define_a_pattern_anew_and_add_its_own() -> None:
    text = FILE + "[projects.lab.patterns]\nstaff_number = { category = 'health', pattern = 'L[0-9]{3}' }\n"
    lab = Scrubber(parse_policies(text).of("lab"))
    assert lab.scrub("EMP-12345 L123").text == "EMP-12345 [REDACTED]"
    assert lab.policy.custom[0].category == "health"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[action]\n",
            "unknown policy setting 'action'; valid: actions, families, patterns, projects, scrub_keys, scrub_slugs",
        ),
        ("[projects.a.projects.b]\n", r"projects\.a: unknown policy setting 'projects'"),
        ("[projects.a.actions]\ncontacts = 'label'\n", r"projects\.a: unknown category 'contacts'; valid: behavioral"),
        ("[projects.a.families]\nfax = 'label'\n", r"projects\.a: unknown family 'fax'; valid: .*email.*us_ssn"),
        ("[families]\nemail = 'labels'\n", "unknown action 'labels'; valid: allow, hash, label, redact, refuse"),
        ("[actions]\ncredential = 'allow'\n", "credential can never be allowed"),
        ("[families]\nemail = 'hash'\n", "scrubber.hash_key_file"),
        ("[patterns.x]\ncategory = 'contact'\n", r"patterns\.x: pattern must be text"),
        ("[patterns.x]\ncategory = 'home'\npattern = 'a'\n", r"unknown category of patterns\.x 'home'"),
        ("[patterns.x]\ncategory = 'contact'\npattern = '(?=a)'\n", "no look-around"),
        ("[patterns.email]\ncategory = 'contact'\npattern = 'a'\n", "name of a built-in family"),
        ("[patterns]\nx = 'a'\n", "patterns must be tables"),
        ("projects = 1\n", "projects must be a table"),
        ("[projects]\na = 1\n", r"projects\.a must be a table"),
        ("[patterns.x]\ncategory = 'credential'\npattern = 'a'\n[families]\nx = 'allow'\n", "can never be allowed"),
        ("scrub_slugs = 1\n", "scrub_slugs must be true or false"),
    ],
)
def test_a_mistake_is_refused_with_its_place_and_what_is_valid(text: str, said: str) -> None:
    with pytest.raises(PolicyError, match=said):
        parse_policies(text)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("# a comment\n\n[actions]\ncontact = 'label'\ncontacts = 'label'\n[families]\nemail = 'label'\n", 5),
        ("[families]\nfax = 'label'\n[patterns.x]\ncategory = 'contact'\npattern = 'a'\n", 2),
        ("scrub_keys = [\n  'a',\n  1,\n]\n[actions]\ncontact = 'label'\n", 4),
        ("[projects.a.actions]\ncontact = 'label'\n[projects.b.actions]\ncontact = 'labels'\n", 4),
        ("[patterns.x]\ncategory = 'home'\npattern = 'a'\n[patterns.y]\ncategory = 'contact'\npattern = 'a'\n", 2),
        ("[patterns.x]\ncategory = 'contact'\npattern = '(?=a)'\n", 3),
        ("[patterns.y]\ncategory = 'contact'\npattern = 'a'\n[patterns.x]\npattern = 'a'\n", 5),
        ("[action]\n", 1),
        ("[projects.'no name']\n", 1),
    ],
)
def test_a_mistake_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(PolicyError, match=rf"^line {line}: "):
        parse_policies(text)


def test_a_mistake_in_a_very_long_file_is_refused_without_its_line() -> None:
    with pytest.raises(PolicyError, match=r"^unknown category 'contacts'"):
        parse_policies("[actions]\ncontacts = 'label'\n" + "#\n" * 1_000)


def test_broken_toml_is_refused_by_its_place_without_its_text() -> None:
    with pytest.raises(PolicyError) as raised:
        parse_policies("[actions]\nsecret = 4111oops\n")
    assert "line 2" in str(raised.value)
    assert "4111" not in str(raised.value)


def test_projects_whose_policy_is_the_same_share_a_scrubber() -> None:
    actions = "[projects.{}.actions]\ncontact = 'label'\n"
    default, different = scrubbers_of(parse_policies(actions.format("a") + actions.format("b") + "[projects.c]\n"))
    assert different["a"] is different["b"] is not default
    assert set(different) == {"a", "b"}


class Use:
    """What the processor would be told."""

    def __init__(self) -> None:
        self.default = Scrubber(Policy(families=frozenset()))
        self.times = 0

    def __call__(self, default: Scrubber, _: Any) -> None:
        self.default = default
        self.times += 1

    def scrub(self) -> str:
        return self.default.scrub("ann@example.com").text


def write(path: Path, text: str) -> None:
    temporary = path.with_suffix(".new")
    temporary.write_text(text)
    temporary.replace(path)


async def test_a_changed_file_is_in_use_after_two_looks_and_an_unchanged_one_is_not_read_again(tmp_path: Path) -> None:
    path, use = tmp_path / "policy.toml", Use()
    write(path, "[actions]\ncontact = 'label'\n")
    policy = PolicyFile(ScrubberSettings(policy_file=path), use)
    assert use.scrub() == "[EMAIL]"
    await policy.look()
    await policy.look()
    assert use.times == 1
    write(path, "[actions]\ncontact = 'redact'\n")
    await policy.look()
    assert use.scrub() == "[EMAIL]"  # it may still be being written
    await policy.look()
    assert use.scrub() == "[REDACTED]"
    assert policy.problems() == []


async def test_a_bad_or_missing_file_keeps_the_policy_and_says_so_until_it_is_mended(tmp_path: Path) -> None:
    path, use = tmp_path / "policy.toml", Use()
    write(path, "[actions]\ncontact = 'label'\n")
    policy = PolicyFile(ScrubberSettings(policy_file=path), use)
    for spoil, said in (
        (lambda: write(path, "[actions]\ncontacts = 'label'\n"), "unknown category 'contacts'"),
        (lambda: path.write_bytes(b"\xff"), "not UTF-8"),
        (path.unlink, "No such file"),
    ):
        spoil()
        await policy.look()
        await policy.look()
        assert use.scrub() == "[EMAIL]"
        [problem] = policy.problems()
        assert "policy.toml is not in use; an earlier version is" in problem
        assert said in problem
    write(path, "")
    await policy.look()
    await policy.look()
    assert (use.scrub(), policy.problems()) == ("[REDACTED]", [])


def test_a_file_that_is_bad_at_the_start_stops_the_start_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text("[actions]\ncontacts = 'label'\n")
    with pytest.raises(SettingsError, match=r"policy\.toml: line 2: unknown category 'contacts'; valid: behavioral"):
        PolicyFile(ScrubberSettings(policy_file=path), Use())
    with pytest.raises(SettingsError, match=r"missing\.toml: No such file"):
        PolicyFile(ScrubberSettings(policy_file=tmp_path / "missing.toml"), Use())


def test_the_key_comes_from_its_file_or_its_setting_and_is_shown_nowhere(tmp_path: Path) -> None:
    path, key = tmp_path / "policy.toml", tmp_path / "key"
    path.write_text("[families]\nemail = 'hash'\n")
    key.write_bytes(KEY + b"\n")
    by_file = ScrubberSettings(policy_file=path, hash_key_file=key)
    by_setting = ScrubberSettings.model_validate({"policy_file": path, "hash_key": KEY.decode()})
    assert read_policies(by_file).default.fingerprint == read_policies(by_setting).default.fingerprint
    assert KEY.decode() not in repr(by_setting)
    with pytest.raises(SettingsError, match="hash_key_file: No such file"):
        read_policies(ScrubberSettings(policy_file=path, hash_key_file=tmp_path / "none"))


def test_a_key_that_is_too_short_is_refused_by_the_setting_that_gave_it(tmp_path: Path) -> None:
    path, key = tmp_path / "policy.toml", tmp_path / "key"
    path.write_text("")
    key.write_text("planted")
    file = rf"^scrubber\.hash_key_file \(or ASSAY_SCRUBBER_HASH_KEY_FILE\): the key in {re.escape(str(key))} is shorter than 16 bytes$"
    with pytest.raises(SettingsError, match=file):
        read_policies(ScrubberSettings(policy_file=path, hash_key_file=key))
    setting = r"^scrubber\.hash_key \(or ASSAY_SCRUBBER_HASH_KEY\): the key is shorter than 16 bytes$"
    with pytest.raises(SettingsError, match=setting):
        read_policies(ScrubberSettings.model_validate({"hash_key": "planted"}))
    with pytest.raises(SettingsError, match=file):  # not as a mistake of the policy file
        InProducer(Settings(scrubber=ScrubberSettings(policy_file=path, hash_key_file=key)))


def test_a_pattern_without_a_category_is_told_that_it_needs_one() -> None:
    with pytest.raises(PolicyError, match=r"patterns\.badge needs a category; valid: behavioral, "):
        parse_policies("[patterns.badge]\npattern = 'B-[0-9]{6}'")
