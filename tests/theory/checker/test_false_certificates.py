"""False certificates, some false only very far out: none is accepted (200 here, 1,000 and more with -m long)."""

import false_certificates
import pytest

from farfield.formula import parse
from farfield.theory.checker.examination import examine

BATCH = 50


def accepted(seeds):
    """Those of these seeds whose certificate the checker accepts."""
    out = []
    for seed in seeds:
        case = false_certificates.certificate(seed)
        if examine(parse(case.text), case.verdict, case.certificate, start=case.start):
            out.append((seed, case))
    return out


@pytest.mark.hostile("false and malformed certificates", BATCH)
@pytest.mark.parametrize("batch", range(4))
def test_no_false_certificate_is_accepted(batch):
    assert accepted(range(batch * BATCH, (batch + 1) * BATCH)) == []


@pytest.mark.long
@pytest.mark.parametrize("batch", range(4, 20))
def test_none_of_a_thousand_false_certificates_is_accepted(batch):
    assert accepted(range(batch * BATCH, (batch + 1) * BATCH)) == []


@pytest.mark.long
@pytest.mark.parametrize("batch", range(1000))
def test_no_false_certificate_is_accepted_in_a_night(batch):
    assert accepted(range(10**6 + batch * BATCH, 10**6 + (batch + 1) * BATCH)) == []
