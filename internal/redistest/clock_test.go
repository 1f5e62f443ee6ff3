package redistest_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"headcount/internal/redistest"
)

func TestClockStepsAServersTime(t *testing.T) {
	t.Parallel()
	clock := redistest.NewClock(t)
	s := clock.Start(t)
	script := redis.NewScript("return redis.call('TIME')[1]")
	var want time.Duration
	for _, step := range []time.Duration{0, time.Hour, -2 * time.Hour, time.Hour} {
		clock.Step(t, step)
		want += step
		got := ahead(t, s)
		inScript, err := script.Run(t.Context(), s.Client(), nil).Int64()
		if err != nil {
			t.Fatal(err)
		}
		const slack = time.Minute
		if (got-want).Abs() > slack || (time.Until(time.Unix(inScript, 0))-want).Abs() > slack {
			t.Errorf("after a step by %v the server is %v ahead, in scripts %v, want %v", step, got, time.Until(time.Unix(inScript, 0)), want)
		}
	}
}

// ahead is how far a server's clock is before ours.
func ahead(t *testing.T, s *redistest.Server) time.Duration {
	t.Helper()
	now, err := s.Client().Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return time.Until(now)
}
