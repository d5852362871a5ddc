"""The auditor: an append-only log of tool calls, losses and operations that proves itself."""
