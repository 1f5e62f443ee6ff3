package workload

import (
	"context"
	"time"

	"headcount/bench/internal/contender"
)

// repeated is the medians of first passes by ours and by the floor, taken in
// turns. Each sample is the mean of some passes, for those that are too short to
// be measured alone.
func (s *stage) repeated(ctx context.Context, passes int) (map[string]figures, error) {
	samples := make(map[string][]sample)
	for range s.r.Repetitions {
		for _, name := range []string{"ours", "floor"} {
			mean, err := s.together(ctx, name, passes)
			if err != nil {
				return nil, err
			}
			samples[name] = append(samples[name], mean)
		}
	}
	return map[string]figures{"ours": medians(samples["ours"]), "floor": medians(samples["floor"])}, nil
}

// together is the mean of some passes, with the longest command of all.
func (s *stage) together(ctx context.Context, name string, passes int) (sum sample, err error) {
	kind, err := contender.Find(name)
	if err != nil {
		return sum, err
	}
	for range passes {
		if err := s.restore(ctx); err != nil {
			return sum, err
		}
		one, err := s.pass(ctx, kind, s.srv.Addr)
		if err != nil {
			return sum, err
		}
		sum.wall += one.wall
		sum.cpu += one.cpu
		sum.trips += one.trips
		sum.longest = max(sum.longest, one.longest)
	}
	sum.wall /= time.Duration(passes)
	sum.cpu /= time.Duration(passes)
	sum.trips /= int64(passes)
	return sum, nil
}
