"""Programs that are not ours read what the audit log makes, and refuse it once it was changed.

Go's `golang.org/x/mod/sumdb` runs where Debian's packages golang-go and golang-golang-x-mod-dev are installed; sigstore's verifier,
aics-tlog and the reference of SD-JWT in the environment of `make oracles`. OpenSSL's `ts` is in `test_audit_anchors.py`, pymerkle in
`services/auditor/tests`.
"""

import base64
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pytest

from assay_auditor.anchors.proofs import stored_proof
from assay_auditor.notes import Checkpoint, Signer
from assay_runtime.store import connect
from tests.support.audited import ORIGIN, Audited, failure
from tests.support.cli import Cli
from tests.support.store import StoreServer
from tests.support.witness import ROOT, OwnWitness

#: See the fixture `migrated`.
MAY_TAMPER = True
Document = dict[str, Any]
Program = Callable[[list[Document]], list[str]]

GO_PACKAGES = Path("/usr/share/gocode")


def go(directory: Path) -> Program:
    """The small program beside this file, built with Go's own packages."""
    if not shutil.which("go") or not (GO_PACKAGES / "src/golang.org/x/mod/sumdb/tlog").exists():
        pytest.skip("needs go and golang.org/x/mod")
    environment = os.environ | {
        "GO111MODULE": "off",
        "GOPATH": str(GO_PACKAGES),
        "GOCACHE": str(directory / "cache"),
        "GOFLAGS": "",
    }
    binary = directory / "verify"
    source = Path(__file__).with_name("verify.go")
    subprocess.run(["go", "build", "-o", binary, source], env=environment, check=True, timeout=280, cwd=directory)
    return lambda documents: answers([str(binary)], documents)


def oracle(name: str) -> Program:
    """A program in the environment of `make oracles`."""
    python = ROOT / ".venv-audit-oracles/bin/python"
    if not python.exists():
        pytest.skip(f"needs {name}")
    return lambda documents: answers([str(python), str(Path(__file__).with_name("oracles.py")), name], documents)


def answers(command: list[str], documents: list[Document]) -> list[str]:
    """Give a program documents, and return what it finds wrong with each."""
    content = b"".join(orjson.dumps(each) + b"\n" for each in documents)
    done = subprocess.run(command, input=content, capture_output=True, timeout=280)
    assert done.returncode == 0, done.stderr
    found = done.stdout.decode().split("\n")[:-1]
    assert len(found) == len(documents)
    return found


@pytest.fixture(scope="module")
def documents(migrated: StoreServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Document]]:
    """Proofs that the command made of a real log, at two sizes, and the consistency of each older checkpoint."""
    directory = tmp_path_factory.mktemp("log")
    with connect(migrated.settings().store) as owner:
        audited = Audited(migrated, owner, directory / "log")
        witness = OwnWitness({ORIGIN: audited.auditor().signer.verifier.vkey})
        cli = Cli(directory, store_url=migrated.url)
        extra = f'[auditor]\norigin = "{ORIGIN}"\ndirectory = "{audited.directory}"\n'
        found: list[Document] = []
        try:
            for number, count in enumerate((3, 1, 9, 20)):
                audited.calls(count, start=100 * number, agent_name=f"caller-{number}")
                audited.insert("capture_failures", failure())
                audited.watermark()
                assert audited.anchor(witnesses=witness.setting).problems == []
                size = audited.size()
                for place in sorted({0, size // 3, size - 2, size - 1}):
                    done = cli.call("audit", "prove", str(place), role="sre", extra=extra)
                    assert done.returncode == 0, done.stderr
                    found.append(orjson.loads(done.stdout))
        finally:
            witness.stop()
        notes = dict(owner.query("SELECT DISTINCT size, note FROM assay.audit_anchors ORDER BY size").result_rows)
        newest = max(notes)
        signed = Checkpoint.verified(notes[newest], [audited.auditor().signer.verifier], ORIGIN)
        own = {"vkey": found[0]["vkey"], "witness": witness.vkey, "checkpoint": notes[newest]}
        for size, older in notes.items():
            proof = stored_proof(owner, ORIGIN, size, signed) if size < newest else []
            encoded = [base64.b64encode(each).decode() for each in proof]
            found.append(own | {"older": older, "consistency": encoded})
        yield found


def changed(document: Document) -> Iterator[tuple[str, Document]]:
    """Every part of a document, each changed a little."""
    other = Signer(ORIGIN, b"z" * 32)
    text = document["checkpoint"].rpartition("\n\n")[0].split("\n\n")[0] + "\n"
    size = int(text.split("\n")[1])
    yield "another key", document | {"vkey": other.verifier.vkey}
    yield "signed by another key", document | {"checkpoint": other.signed(text)}
    yield "another size", document | {"checkpoint": document["checkpoint"].replace(f"\n{size}\n", f"\n{size + 1}\n")}
    if "leaf" in document:
        yield "another leaf", document | {"leaf": document["leaf"].replace("assay-audit-1", "assay-audit-2")}
        yield "another place", document | {"leaf_index": (document["leaf_index"] + 1) % size}
        yield "a longer proof", document | {"inclusion": [*document["inclusion"], base64.b64encode(bytes(32)).decode()]}
        yield "a shorter proof", document | {"inclusion": document["inclusion"][1:]}
    else:
        yield "another witness", document | {"witness": stranger()}
        if document["consistency"]:
            yield (
                "another proof",
                document | {"consistency": [*document["consistency"][::-1], document["consistency"][0]]},
            )
            yield "no proof", document | {"consistency": []}


def stranger() -> str:
    witness = OwnWitness({}, seed=b"v" * 32)
    witness.stop()
    return witness.vkey


@pytest.mark.slow
@pytest.mark.parametrize("name", ["go", "aics-tlog"])
def test_another_program_verifies_checkpoints_cosignatures_and_proofs_and_refuses_changed_ones(
    documents: list[Document], name: str, tmp_path: Path
) -> None:
    program = go(tmp_path) if name == "go" else oracle(name)
    assert program(documents) == [""] * len(documents)
    altered = [(what, each) for document in documents for what, each in changed(document)]
    accepted = [
        what for (what, _), answer in zip(altered, program([each for _, each in altered]), strict=True) if not answer
    ]
    assert len(altered) > 50
    assert accepted == []


@pytest.mark.slow
def test_sigstores_verifier_accepts_inclusion_proofs_and_refuses_changed_ones(documents: list[Document]) -> None:
    program = oracle("sigstore")
    bundles = [each for each in documents if "leaf" in each]
    assert program(bundles) == [""] * len(bundles)
    # It leaves the signature to its own keys, and an inclusion proof alone does not fix the size.
    kinds = {"another leaf", "another place", "a longer proof", "a shorter proof"}
    altered = [(what, each) for document in bundles for what, each in changed(document) if what in kinds]
    accepted = [
        what for (what, _), answer in zip(altered, program([each for _, each in altered]), strict=True) if not answer
    ]
    assert accepted == []


@pytest.mark.slow
def test_the_reference_of_sd_jwt_verifies_disclosures_and_refuses_those_of_another_leaf(
    documents: list[Document],
) -> None:
    program = oracle("sd-jwt")
    bundles = [each for each in documents if each.get("disclosures")]
    assert len({each["disclosures"][0] for each in bundles}) > 5
    assert program(bundles) == [""] * len(bundles)
    swapped = [
        one | {"disclosures": other["disclosures"]}
        for one, other in pairwise(bundles)
        if one["leaf_index"] != other["leaf_index"]
    ]
    assert "" not in program(swapped)
