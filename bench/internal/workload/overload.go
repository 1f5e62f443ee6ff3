package workload

import (
	"context"
	"errors"

	"headcount/bench/internal/report"
)

func overload(ctx context.Context, r *Runner) (_ report.Table, err error) {
	return report.Table{}, errors.New("todo")
}
