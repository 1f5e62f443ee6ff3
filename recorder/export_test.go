package recorder

// Queued is how many requests wait for a write.
func (r *Recorder) Queued() int { return r.queued() }

// Idle tells whether the goroutine that writes the queue has ended.
func (r *Recorder) Idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.writing
}

const MaxPlays = maxPlays
