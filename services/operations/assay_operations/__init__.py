"""Operations behind the commands: typed input, typed results, nothing printed."""
