"""Exit codes: 0 ok, 1 a finding (the command found a problem), 2 usage or operation, 3 inconclusive."""

OK = 0
FINDING = 1
OPERATIONAL = 2
INCONCLUSIVE = 3
