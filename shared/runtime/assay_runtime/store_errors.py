"""What the engine's error codes mean for a delivery. Names and numbers are the engine's own (a test compares them)."""

import re

from assay_schema.failures import Reason

#: The store is away, busy, full or in trouble: wait and try again.
DOWN = {
    "CANNOT_READ_FROM_FILE_DESCRIPTOR": 74,
    "CANNOT_WRITE_TO_FILE_DESCRIPTOR": 75,
    "CANNOT_OPEN_FILE": 76,
    "CANNOT_READ_FROM_SOCKET": 95,
    "CANNOT_WRITE_TO_SOCKET": 96,
    "TIMEOUT_EXCEEDED": 159,
    "CANNOT_ALLOCATE_MEMORY": 173,
    "DNS_ERROR": 198,
    "TOO_MANY_SIMULTANEOUS_QUERIES": 202,
    "NO_FREE_CONNECTION": 203,
    "SOCKET_TIMEOUT": 209,
    "NETWORK_ERROR": 210,
    "NO_ZOOKEEPER": 225,
    "ABORTED": 236,
    "MEMORY_LIMIT_EXCEEDED": 241,
    "TABLE_IS_READ_ONLY": 242,
    "NOT_ENOUGH_SPACE": 243,
    "UNEXPECTED_ZOOKEEPER_ERROR": 244,
    "TOO_MANY_PARTS": 252,
    "AIO_WRITE_ERROR": 275,
    "ALL_CONNECTION_TRIES_FAILED": 279,
    "TOO_FEW_LIVE_REPLICAS": 285,
    "UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE": 286,
    "CANNOT_WRITE_TO_FILE": 294,
    "UNKNOWN_STATUS_OF_INSERT": 319,
    "RECEIVED_ERROR_TOO_MANY_REQUESTS": 364,
    "QUERY_WAS_CANCELLED": 394,
    "S3_ERROR": 499,
    "DISTRIBUTED_TOO_MANY_PENDING_BYTES": 574,
    "QUERY_WAS_CANCELLED_BY_CLIENT": 735,
    "SERVER_OVERLOADED": 745,
    "TCP_CONNECTION_LIMIT_REACHED": 749,
    "HTTP_CONNECTION_LIMIT_REACHED": 762,
    "RESOURCE_LIMIT_EXCEEDED": 776,
    "MEMORY_RESERVATION_FAILED": 778,
    "KEEPER_EXCEPTION": 999,
    "POCO_EXCEPTION": 1000,
}

#: The user may not: wrong identity, missing right, used-up quota, row policy, read-only user.
REFUSED = {
    "READONLY": 164,
    "UNKNOWN_USER": 192,
    "WRONG_PASSWORD": 193,
    "REQUIRED_PASSWORD": 194,
    "IP_ADDRESS_NOT_ALLOWED": 195,
    "QUOTA_EXCEEDED": 201,
    "DATABASE_ACCESS_DENIED": 291,
    "SETTING_CONSTRAINT_VIOLATION": 452,
    "ACCESS_DENIED": 497,
    "AUTHENTICATION_FAILED": 516,
    "USER_SESSION_LIMIT_EXCEEDED": 700,
    "USER_EXPIRED": 720,
}

#: A row breaks a constraint, or does not read as the type of its column.
VIOLATED = {
    "CANNOT_PARSE_TEXT": 6,
    "CANNOT_PARSE_ESCAPE_SEQUENCE": 25,
    "CANNOT_PARSE_QUOTED_STRING": 26,
    "CANNOT_PARSE_INPUT_ASSERTION_FAILED": 27,
    "CANNOT_PARSE_DATE": 38,
    "CANNOT_PARSE_DATETIME": 41,
    "TYPE_MISMATCH": 53,
    "ARGUMENT_OUT_OF_BOUND": 69,
    "CANNOT_CONVERT_TYPE": 70,
    "CANNOT_PARSE_NUMBER": 72,
    "INCORRECT_DATA": 117,
    "TOO_LARGE_ARRAY_SIZE": 128,
    "CANNOT_READ_ARRAY_FROM_TEXT": 130,
    "TOO_LARGE_STRING_SIZE": 131,
    "VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE": 321,
    "CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN": 349,
    "CANNOT_PARSE_UUID": 376,
    "CANNOT_PARSE_BOOL": 467,
    "VIOLATED_CONSTRAINT": 469,
    "CANNOT_READ_MAP_FROM_TEXT": 563,
    "UNKNOWN_ELEMENT_OF_ENUM": 691,
}

#: Engine error code to reason; a code that is not here is `other`.
REASONS = {
    code: reason
    for reason, codes in ((Reason.DB_DOWN, DOWN), (Reason.RLS_REJECT, REFUSED), (Reason.CHECK_VIOLATION, VIOLATED))
    for code in codes.values()
}

#: How the driver names the status of an answer that did not come from the engine, such as a proxy's 503.
HTTP_STATUS = re.compile(r"HTTP (?:driver received HTTP )?status (401|403|408|429|502|503|504)\b")
