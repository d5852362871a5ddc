"""Status, history and causes of drift, from Redis and the store."""
