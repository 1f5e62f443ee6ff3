package keys

import "strings"

// Keys of statistics. Where a video id is asked for, the empty one stands for
// the whole site.

// OnlineUsers is the sorted set of who is on the site: viewer id → last seen,
// Unix seconds.
func (k Keys) OnlineUsers() string { return k.stats + "online" }

// Uniques is the HyperLogLog of those who were seen watching a video, or any
// video, in an hour, written yyyymmddhh. All hours of a video are in one slot of
// a cluster, so that they can be counted together.
func (k Keys) Uniques(videoID, hour string) string {
	if videoID == "" {
		return k.stats + "site_uniques:{site}:" + hour
	}
	return k.stats + "uniques:{" + slotGuard(videoID) + videoID + "}:" + hour
}

// slotGuard keeps the braces around an id from being empty to Redis, which takes
// the first closing one: it would spread the video's hours over all slots. No id
// holds a control character, so no two keys become one.
func slotGuard(videoID string) string {
	if strings.HasPrefix(videoID, "}") {
		return "\x1f"
	}
	return ""
}

// Plays is the hash of a video's plays: in all, by hour and by day.
func (k Keys) Plays(videoID string) string { return k.stats + "plays:" + videoID }

// PlaysPattern is the MATCH pattern of all hashes of plays.
func (k Keys) PlaysPattern() string { return globEscaper.Replace(k.stats+"plays:") + "*" }

// Top is the sorted set of the videos with the most viewers.
func (k Keys) Top() string { return k.stats + "top" }

// Peak is the hash of a video's largest counts.
func (k Keys) Peak(videoID string) string { return k.stats + "peak:" + videoID }

// History is the stream of a video's counts.
func (k Keys) History(videoID string) string { return k.stats + "history:" + videoID }
