package recorder

import (
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"headcount/internal/redisclient"
)

// outage tells an operator when writes begin to fail and when that is over, in
// one line each. It is used by one write at a time.
type outage struct {
	log  *zap.Logger
	last time.Time // of the last failure; zero while there is none to be over
}

// quiet is how long no write must have failed for an outage to be over: some
// may succeed meanwhile, on a cluster's other masters.
const quiet = 5 * time.Second

// outageError is err, or nil for one that is a single video's own trouble: a key
// of another type, by whose answer Redis is well.
func outageError(err error) error {
	if redis.HasErrorPrefix(err, "WRONGTYPE") {
		return nil
	}
	return err
}

// note takes in how a write went. Where only some of its calls failed, err is
// the outageError of one of them.
func (o *outage) note(err error, now time.Time) {
	switch {
	case err != nil:
		if o.last.IsZero() {
			o.log.Warn("plays and leaves are not recorded: Redis refuses them or does not answer", zap.String("reason", redisclient.Reason(err)))
		}
		o.last = now
	case !o.last.IsZero() && now.Sub(o.last) > quiet:
		o.last = time.Time{}
		o.log.Info("plays and leaves are recorded again")
	}
}
