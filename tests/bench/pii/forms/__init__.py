"""Forms in which secrets and personal data stand in logs, prompts, configuration and code: is the value gone afterwards?

Written from public descriptions (RFCs, manuals, documentation of formats), not from the rules. A form belongs to one of two halves by its
hash, fixed before any rule was written for it: rules are written while looking at the half `seen`; `held` is only counted.

    python -m tests.bench.pii.forms          # recall of each group, both halves, and the forms of `seen` that are missed
"""

from .form import PLACE, Form, found, groups, tally
from .form import forms as forms

__all__ = ["PLACE", "Form", "forms", "found", "groups", "tally"]
