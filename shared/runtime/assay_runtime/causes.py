"""Follow an error to the errors behind it. Pure."""


def causes(error: BaseException | None) -> list[BaseException]:
    """Return an error and the errors behind it, the nearest first."""
    chain: list[BaseException] = []
    while error is not None and error not in chain:
        chain.append(error)
        error = error.__cause__ or error.__context__
    return chain
