package ratelimit

// Known is how many addresses have a bucket, when the table's housekeeping is done.
func (l *Limiter) Known() int {
	l.buckets.CleanUp()
	return l.buckets.EstimatedSize()
}
