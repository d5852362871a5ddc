"""Exit codes: 0 ok, 1 a finding (the command worked, and what it found is not right), 2 usage or operational, 3 cannot tell."""

OK = 0
FINDING = 1
OPERATIONAL = 2
INCONCLUSIVE = 3
