"""Forms in which secrets and personal data stand in logs, prompts, configuration and code: is the value gone afterwards?

Written from public descriptions (RFCs, manuals, documentation of formats), not from the rules. A form belongs to one of two halves by its
hash, fixed before any rule was written for it: rules are written while looking at the half `seen`; `held` is only counted.

    python -m tests.bench.pii.forms          # recall of each group, both halves, and the forms of `seen` that are missed
"""

from .form import PERSONAL, PLACE, Form, Half, found, groups, tally
from .form import forms as forms

__all__ = ["PERSONAL", "PLACE", "Form", "Half", "forms", "found", "groups", "tally"]
