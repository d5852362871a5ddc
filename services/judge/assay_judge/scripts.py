"""The judge's atomic steps in Redis. See the files in `lua`.

The keys of each script share a hash tag, so they run on Redis Cluster too. A *call record* is the state of an answer's
judging by one judge: `reserved` (a call may be running) or `done` (its score is known).
"""

from assay_runtime.lua import script

_PACKAGE = "assay_judge"
#: Reserve money for one attempt, unless that would exceed a cap.
RESERVE = script(_PACKAGE, "reserve")
#: Renew the leases of the judge that reserved.
RENEW = script(_PACKAGE, "renew")
#: Replace a reservation by the actual cost, and store the score.
SETTLE = script(_PACKAGE, "settle")
#: Store the score of an answer that cost nothing.
KEEP = script(_PACKAGE, "keep")
#: Release the reservation of calls that were certainly not billed.
RELEASE = script(_PACKAGE, "release")
#: Delete a call record, unless a judge is at work on its answer.
FORGET = script(_PACKAGE, "forget")
#: Finish entries of `events`, and publish each score once.
PUBLISH = script(_PACKAGE, "publish")
#: Publish a score of a session, and empty the records of its calls.
PUBLISH_SESSION = script(_PACKAGE, "publish_session")
#: Check whether one more call may start within the limits per minute.
TAKE = script(_PACKAGE, "take")
#: Store a call's information about limits.
LEARN = script(_PACKAGE, "learn")
#: Publish an alert's transition once.
ALERT = script(_PACKAGE, "alert")
#: Move waiting answers into a batch.
SEND = script(_PACKAGE, "send")
#: Return the answers of a batch that was certainly not accepted to the queue.
UNSEND = script(_PACKAGE, "unsend")
#: Extend or release a lock, if it is still ours.
LOCK = script(_PACKAGE, "lock")
#: Publish the score of an answer in a batch once.
FETCHED = script(_PACKAGE, "fetched")
