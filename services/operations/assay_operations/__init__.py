"""Operations behind the commands: typed input, typed results, nothing printed.

An operation that changes something is two functions: `plan_NAME(data, ...)` returns a plan, and `apply(plan, actor)` applies it. `data`
is the data directory of the settings. A plan is frozen data without clients, passwords or captured text, so it can be shown, stored or
sent. `apply` takes nothing else but `progress`, counters that it updates. A `prepare_NAME` only reads: it checks what a run needs before
money is spent.

All operations are synchronous. A server calls them in a worker thread (`asyncio.to_thread`): those that use Redis start an event
loop, which a thread with a running one cannot.
"""
