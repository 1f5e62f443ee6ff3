package console

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"headcount/internal/lastpass"
)

// state is a site where all is well, now being noon.
func state(change func(*site)) *site {
	yes, now, used, most := true, noon.UnixMilli(), int64(50), int64(100)
	s := &site{
		Now:    &now,
		Leader: leader{Held: &yes},
		Redis:  redisState{Masters: []master{{Addr: "redis:6379", UsedBytes: &used, MaxBytes: &most, DropPolicy: "noeviction"}}},
		Rates: &rates{
			Seconds: 10, Queue: &queue{Length: 10, Limit: 100},
			Plays:   map[string]float64{"recorded": 100, "failed": 1, "rejected": 50},
			Lookups: map[string]float64{"hit": 10, "stale": 1, "cached": 100},
		},
		record: lastpass.Record{
			CompletedAt: noon.Add(-20 * time.Second),
			Recent:      []lastpass.Pass{{StartedAt: noon.Unix() - 21, TookMS: 900}},
		},
		metrics: sample{at: noon, values: map[string]float64{metricReload: 1, metricStats + " top": 0}},
	}
	if change != nil {
		change(s)
	}
	return s
}

// failedToWrite has a statistic not been written that long ago.
func (s *site) failedToWrite(statistic string, ago time.Duration) {
	s.metrics.values[metricStats+" "+statistic] = float64(noon.Add(-ago).Unix())
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	no, none := false, int64(0)
	ago := func(d time.Duration) time.Time { return noon.Add(-d) }
	tests := map[string]struct {
		change func(*site)
		want   []warning
	}{
		"all is well": {nil, nil},
		"Redis cannot be asked at all": {
			func(s *site) { s.Redis = redisState{Error: "no masters"}; s.Now = nil },
			[]warning{{"redis_unreachable", "headcountcannotwrite", map[string]any{"master": "", "error": "no masters"}}},
		},
		"a server does not answer": {
			func(s *site) { s.Redis.Masters[0].Error = "refused" },
			[]warning{{"redis_unreachable", "headcountcannotwrite", map[string]any{"master": "redis:6379", "error": "refused"}}},
		},
		"nearly full": {
			func(s *site) { *s.Redis.Masters[0].UsedBytes = 90 },
			[]warning{{"redis_nearly_full", "headcountpasseswithoutlease", map[string]any{"master": "redis:6379", "fill": 0.9}}},
		},
		"full": {
			func(s *site) { *s.Redis.Masters[0].UsedBytes = 101 },
			[]warning{{"redis_full", "headcountpasseswithoutlease", map[string]any{"master": "redis:6379", "fill": 1.01}}},
		},
		"a policy that drops viewers": {
			func(s *site) { s.Redis.Masters[0].DropPolicy = "allkeys-lru" },
			[]warning{{"eviction_policy", "redis-drops-viewers", map[string]any{"master": "redis:6379", "policy": "allkeys-lru"}}},
		},
		"a policy without a limit": {
			func(s *site) { s.Redis.Masters[0].DropPolicy = "allkeys-lru"; s.Redis.Masters[0].MaxBytes = &none }, nil,
		},
		"memory that is not known": {
			func(s *site) { s.Redis.Masters[0].UsedBytes, s.Redis.Masters[0].MaxBytes = nil, nil }, nil,
		},
		"a pass is late": {
			func(s *site) { s.record.CompletedAt = ago(90 * time.Second) }, nil,
		},
		"no complete pass": {
			func(s *site) { s.record.CompletedAt = ago(97 * time.Second) },
			[]warning{{"no_complete_pass", "headcountnocompletepass", map[string]any{"since": millis(ago(97 * time.Second))}}},
		},
		"no pass at all": {
			func(s *site) { s.record = lastpass.Record{} },
			[]warning{{"no_complete_pass", "headcountnocompletepass", map[string]any{"since": (*int64)(nil)}}},
		},
		"another takes over": {
			func(s *site) { s.Leader.Held = &no }, nil,
		},
		"no leader": {
			func(s *site) { s.Leader.Held = &no; s.record.Recent[0].StartedAt = noon.Unix() - 37 },
			[]warning{{"no_leader", "headcountnoleader", nil}},
		},
		"a leader that makes no passes": {
			func(s *site) { s.record.Recent[0].StartedAt = noon.Unix() - 37 }, nil,
		},
		"who leads is not known": {
			func(s *site) { s.Leader.Held = nil; s.record.Recent[0].StartedAt = noon.Unix() - 37 }, nil,
		},
		"a partial pass": {
			func(s *site) { s.record.Recent[0].Errors = 3 },
			[]warning{{"partial_pass", "headcountpartialpasses", map[string]any{"errors": int64(3)}}},
		},
		"a long pass": {
			func(s *site) { s.record.Recent[0].TookMS = 31_000 },
			[]warning{{"pass_too_long", "headcountpassestoolong", map[string]any{"took_ms": int64(31_000), "interval_ms": int64(30_000)}}},
		},
		"passes that cannot be read": {
			func(s *site) { s.record = lastpass.Record{}; s.Passes.Failed = true }, nil,
		},
		"a queue": {
			func(s *site) { s.Rates.Queue.Length = 81 },
			[]warning{{"queue_nearly_full", "headcountqueuenearlyfull", map[string]any{"length": int64(81), "limit": int64(100)}}},
		},
		"plays fail": {
			func(s *site) { s.Rates.Plays = map[string]float64{"recorded": 60, "failed": 30, "busy": 10} },
			[]warning{{"plays_fail", "headcountrecorderrors", map[string]any{"share": 0.4}}},
		},
		"too few plays to tell": {
			func(s *site) { s.Rates.Plays = map[string]float64{"failed": 0.4} }, nil,
		},
		"stale lookups": {
			func(s *site) {
				s.Rates.Lookups = map[string]float64{"hit": 4, "stale": 6, "cached": 100, "rejected": 90}
			},
			[]warning{{"lookups_stale", "headcountlookupsstale", map[string]any{"share": 0.6}}},
		},
		"a program that records nothing": {func(s *site) { s.Rates = nil }, nil},
		"statistics that are not written or read": {
			func(s *site) {
				s.Top.Failed = true
				s.failedToWrite("top", 20*time.Second)
				s.failedToWrite("plays", 94*time.Second)
			},
			[]warning{{"statistics_fail", "headcountstatisticserrors", map[string]any{"statistics": "stats.plays, stats.top"}}},
		},
		"statistics that were not written once": {
			func(s *site) { s.failedToWrite("plays", 97*time.Second) }, nil,
		},
		"statistics of a server that does not answer": {
			func(s *site) {
				s.Top.Failed, s.Redis.Masters[0].Error = true, "refused"
				s.failedToWrite("top", time.Second)
			},
			[]warning{{"redis_unreachable", "headcountcannotwrite", map[string]any{"master": "redis:6379", "error": "refused"}}},
		},
		"a refused configuration": {
			func(s *site) { s.metrics.values[metricReload] = 0 },
			[]warning{{"config_refused", "headcountconfigrefused", nil}},
		},
	}
	c := &Console{o: Options{Interval: func() time.Duration { return interval }}, began: time.Now().Add(-time.Hour)}
	for name, test := range tests {
		got := c.warnings(state(test.change))
		if diff := cmp.Diff(append([]warning{}, test.want...), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A program that has just started does not know yet that there is no worker.
func TestNoWarningAtTheStart(t *testing.T) {
	t.Parallel()
	c := &Console{o: Options{Interval: func() time.Duration { return interval }}, began: time.Now()}
	no := false
	if got := c.warnings(state(func(s *site) { s.record, s.Leader.Held = lastpass.Record{}, &no })); len(got) > 0 {
		t.Errorf("warnings: %v, want none", got)
	}
}

func TestSection(t *testing.T) {
	t.Parallel()
	const page = "# A page\n\nfirst\n\n## Of `one` (and two)\n\nsecond\n- third\n\n### Below\nfourth\n"
	for anchor, want := range map[string]string{
		"a-page":         "# A page\n\nfirst",
		"of-one-and-two": "## Of `one` (and two)\n\nsecond\n- third",
		"below":          "### Below\nfourth",
		"":               "",
		"first":          "",
	} {
		if got := section(page, anchor); got != want {
			t.Errorf("section %q = %q, want %q", anchor, got, want)
		}
	}
}
