"""Checks of agents' sessions by rules, without a model.

`rules_file` names the rules, `checker` applies them to a session, `tally` sums them up.
"""
