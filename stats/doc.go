// Package stats keeps what Headcount knows beside how many are watching: who is
// on the site, how many different viewers there were, how often a video was
// started, the largest videos, peaks, and a history of counts.
//
// Each statistic is a file: what it writes, under which key, and how it is read.
// There are two kinds.
//
//	what a play says    online, uniques, plays    script calls that the recorder sends beside a batch of plays
//	what a pass knows   top, peaks, history       written by the pass through [Passes], from the counts it publishes
//
// A statistic that is off is not built, and nothing is written for it. One that
// fails never fails a play or a pass: see [Failures].
package stats
