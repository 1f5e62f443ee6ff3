package main

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

const reloaded = `"msg":"configuration reloaded"`

func TestReload(t *testing.T) {
	t.Parallel()
	file := programtest.NewConfigFile(t, "recorder: {beat_after: 20s}\n")
	s := start(t, redistest.Shared(t), "HEADCOUNT_CONFIG="+file.Path())
	s.wantBeat(t, 20)

	file.Replace(t, "recorder: {beat_after: 30s}\n")
	s.Wait(t, reloaded)
	s.wantBeat(t, 30)
	s.wantLastReload(t, 1)

	file.Replace(t, "recorder: {beat_after: 40s\n")
	s.Wait(t, `"msg":"configuration file refused, the old configuration stays"`)
	s.wantBeat(t, 30)
	s.wantLastReload(t, 0)

	file.Replace(t, "recorder: {beat_after: 50s}\n")
	s.Wait(t, reloaded)
	s.wantBeat(t, 50)
	s.wantLastReload(t, 1)
}

func (s *service) wantBeat(t *testing.T, want int64) {
	t.Helper()
	if got := s.play(t, "1", "u1").BeatAfter; got != want {
		t.Errorf("beat_after = %d, want %d", got, want)
	}
}

func (s *service) wantLastReload(t *testing.T, want float64) {
	t.Helper()
	const name = "headcount_config_last_reload_successful"
	if got := programtest.Metric(t, s.admin, name); got != want {
		t.Errorf("%s = %v, want %v", name, got, want)
	}
}

// A video without a count is counted by the window in force.
func TestReloadWindow(t *testing.T) {
	t.Parallel()
	file := programtest.NewConfigFile(t, "window: 10m\n")
	s := start(t, redistest.Shared(t), "HEADCOUNT_CONFIG="+file.Path())
	seen := strconv.FormatInt(time.Now().Add(-5*time.Minute).Unix(), 10)
	for _, video := range []string{"before", "after"} {
		if err := s.redis.Client().HSet(t.Context(), s.keys.Online(video), "u1", seen).Err(); err != nil {
			t.Fatal(err)
		}
	}
	s.wantViewers(t, "before", 1)
	file.Replace(t, "window: 1m\n")
	s.Wait(t, reloaded)
	s.wantViewers(t, "after", 0)
}

func (s *service) wantViewers(t *testing.T, video string, want int) {
	t.Helper()
	got := programtest.Get(t, s.video(video, "viewers")).OK(t)
	if part := `"viewers":` + strconv.Itoa(want) + `,`; !strings.Contains(got, part) {
		t.Errorf("lookup = %s, want %s", got, part)
	}
}

func TestReloadLogLevel(t *testing.T) {
	t.Parallel()
	file := programtest.NewConfigFile(t, "log: {level: info}\n")
	s := start(t, redistest.Shared(t), "HEADCOUNT_CONFIG="+file.Path())

	file.Replace(t, "log: {level: error}\n")
	s.Wait(t, reloaded) // the last line at the old level
	s.Forget()
	file.Replace(t, "log: {level: error}\nrecorder: {beat_after: 20s}\n")
	programtest.Eventually(t, "the new beat_after is in force", func() bool { return s.play(t, "1", "u1").BeatAfter == 20 })
	file.Replace(t, "log: {level: info}\nrecorder: {beat_after: 30s}\n")
	programtest.Eventually(t, "the new beat_after is in force", func() bool { return s.play(t, "1", "u1").BeatAfter == 30 })
	file.Replace(t, "log: {level: info}\nrecorder: {beat_after: 40s}\n")

	line := s.Wait(t, reloaded)
	if got := strings.Count(s.Output(), reloaded); got != 2 {
		t.Errorf("%d reloads were logged, want the first and the last; the last: %s", got, line)
	}
}
