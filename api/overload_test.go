package api_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/iotest"

	"headcount/api"
)

// Batches beyond those in work are refused without reading them; single plays
// are not held up by batches.
func TestPlaysTooManyAtATime(t *testing.T) {
	t.Parallel()
	const most = 64
	entered, release := make(chan struct{}), make(chan struct{})
	store := newStore()
	store.hook = func(context.Context) error {
		entered <- struct{}{}
		<-release
		return nil
	}
	h := api.Handler(options(store))
	var inWork sync.WaitGroup
	answers := make([]answer, most+1) // and a single play's
	for i := range most {
		inWork.Go(func() { answers[i] = send(t, h, http.MethodPost, "/v1/plays", playsBody(1)) })
		<-entered
	}
	unread := iotest.ErrReader(errors.New("the body was read"))
	res := serve(h, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/plays", unread))
	checkProblem(t, res, http.StatusServiceUnavailable, "too many batches at a time, try again")
	checkHeaders(t, res, map[string]string{"Retry-After": "1"})

	inWork.Go(func() { answers[most] = send(t, h, http.MethodPost, "/v1/videos/10001/play", `{"viewer_id":"u1"}`) })
	<-entered
	close(release)
	inWork.Wait()
	for i, res := range answers {
		if res.status != http.StatusOK {
			t.Errorf("request %d of those in work: status = %d, want 200", i, res.status)
		}
	}
	store.hook = nil
	if res := send(t, h, http.MethodPost, "/v1/plays", playsBody(1)); res.status != http.StatusOK {
		t.Errorf("a batch after those in work: status = %d, want 200", res.status)
	}
}
