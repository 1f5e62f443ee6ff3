/*
Package lock is a standing lease on Redis: of several processes one holds it, keeps it for as long as it lives, and
is replaced soon after it dies. It adds to bsm/redislock what a lease held for hours needs: refreshing, a context that
ends when the lease does, and errors that tell a lease held by another from one that was lost and from a Redis that
does not answer.

	term, err := lease.Wait(ctx, report)
	if err != nil {
		return err // ctx ended
	}
	defer term.Release()
	work(term.Context()) // until ctx ends or the lease is lost

# Until when a lease is trusted

Redis deletes the key one TTL after it ran the script that obtained or refreshed it. The holder does not see when that
was, only that it lies between sending the call and getting the answer. It therefore counts from before the call, on
the monotonic clock: one TTL after that, at the earliest, another holder may come. A [Term] ends a tenth of the TTL
sooner. The tenth is for what happens between deciding to stop and having stopped: a timer that fires late, the
cancellation on its way to the work, a command already sent, and two clocks that do not tick at quite the same rate.

The Term ends at that moment by a timer of its own, whether a refresh failed, hangs or was never tried. The lease is
refreshed every third of the TTL, and a refresh that Redis did not answer is repeated after a tenth of it, so a short
outage costs nothing. When Redis answers that the key is gone or another's, the Term ends at once. A Term that ended
never comes back, even if a late answer says that it was refreshed.

A process that was stopped (SIGSTOP, heavy swapping) for longer than the trust finds its timers due when it continues,
but they need a moment to run. [Term.Held] compares the clock itself and is right from the first instruction: the
worker asks it before each batch of writes.

# An answer that was lost

A call to obtain the lease may succeed in Redis although its answer never arrives. With a new random token the next try
would be locked out by the previous one until the TTL has passed. So a [Lease] keeps its token until a try is seen to
succeed and only then takes a new one: the repeated try finds its own token and gets the lease. If the process gives up
instead, the key expires like that of a killed holder, after one TTL.

# A full Redis

A Redis at its maxmemory refuses the new key, and no less when somebody holds the lease; refreshing needs no memory. So
Acquire then asks whether the key exists, and tells a lease held by another (ErrHeld) from one that nobody can have
(ErrFull). The caller decides what may be done without.

# What it does not guarantee

There is no fencing token: Redis cannot refuse what a former holder sends late. And two processes may both trust that
they hold the lease, until the earlier one's next refresh, when

  - a replica that had not yet received the key is promoted, or someone deletes the key;
  - the clock of the Redis host steps forward by more than the margin: Redis keeps expiry as a time of day;
  - the holder's whole machine is suspended: its monotonic clock stands still meanwhile.

A clock that steps back on the Redis host delays the replacement of a dead holder by as much. The time of day of the
holder plays no part.

So let nothing hang on the lease but the amount of work. The worker asks no more of it: two passes at once publish the
same counts, since each eviction is checked again inside Redis and a count is derived from the hash, not from an
earlier count.
*/
package lock
