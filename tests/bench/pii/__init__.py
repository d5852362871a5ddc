"""Held-out corpora of personal data, and the tools that look for it, each in the interpreter that has it.

Nothing here is imported by the scrubber's own tests or used while its rules are written: values come from generators
that know nothing of the rules (Faker, phonenumbers, cryptography, python-stdnum), sentences from `carriers`, and the
seed is derived when the bench runs. The corpus that rules are tuned on is `services/scrubber/tests/scrub_corpus.py`.
"""
