// Package keys spells every Redis key that Headcount reads or writes, and says
// which ids may become part of one. The names are a public contract: programs
// in other languages write the hashes and read the counts.
package keys

import "strings"

// ReservedPrefix may not begin a video id: the id's hash would be named like
// another video's count key.
const ReservedPrefix = "count:"

// Keys builds the keys under one prefix. The zero value is not usable; call New.
type Keys struct {
	online string // "<prefix>:online:"
	count  string // "<prefix>:online:count:"
	worker string // "<prefix>:worker:"
	stats  string // "<prefix>:stats:"
}

// New returns the keys under prefix, such as "video".
func New(prefix string) Keys {
	online := prefix + ":online:"
	return Keys{online: online, count: online + ReservedPrefix, worker: prefix + ":worker:", stats: prefix + ":stats:"}
}

// Online is the hash of one video's viewers: viewer id → last seen, Unix seconds.
func (k Keys) Online(videoID string) string { return k.online + videoID }

// Count is the published number of one video's viewers: a decimal string.
func (k Keys) Count(videoID string) string { return k.count + videoID }

// Lease is the lock of the worker that makes the passes.
func (k Keys) Lease() string { return k.worker + "lease" }

// LastPass is the hash that tells when the last pass was and what it found.
func (k Keys) LastPass() string { return k.worker + "last_pass" }

// OnlinePattern is the MATCH pattern of all hashes. It matches the count keys
// too; Parse tells them apart.
func (k Keys) OnlinePattern() string { return globEscaper.Replace(k.online) + "*" }

// Parse splits a key that OnlinePattern matched into its video id and whether
// it is named like a count key rather than a hash. ok is false for any other key.
func (k Keys) Parse(key string) (videoID string, count, ok bool) {
	if id, found := strings.CutPrefix(key, k.count); found {
		return id, true, true
	}
	id, found := strings.CutPrefix(key, k.online)
	return id, false, found
}

// globEscaper makes a prefix match itself only: see Redis's KEYS for the syntax.
var globEscaper = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)
