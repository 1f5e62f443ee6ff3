package chaos

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

// A balancer that looks at readiness every second has noticed within a drain.
const (
	drainFor     = 4 * time.Second
	balancerLook = time.Second
)

// TestRollingRestart replaces recorders by SIGTERM under load, behind a balancer that goes by their readiness. Nobody is
// refused, and readiness goes first.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	s := begin(t)
	server := redistest.Start(t)
	site := s.newSite(server.Client(), server.Addr())
	site.startWorker(t)
	drain := "HEADCOUNT_RECORDER_DRAIN=" + drainFor.String()
	recorders := []*programtest.Program{site.addRecorder(t, drain), site.addRecorder(t, drain)}
	r := &rolling{site: site, s: s}
	load := site.startLoad(t, loadOptions{players: 20, videos: 20, pause: 30 * time.Millisecond}, r.refused)

	var f figures
	for range s.times(2, 20) {
		recorders = append(recorders, site.addRecorder(t, drain))
		oldest := recorders[0]
		recorders = recorders[1:]
		f.recovered(r.replace(t, oldest))
		f.faults++
	}
	load.stop()
	for _, a := range r.refusals {
		t.Errorf("refused: %s", a)
	}
	f.holdTo(t, time.Second)
	f.lost = site.wantSound(t)
	site.wantNobodyLeft(t)
	t.Logf("%d plays were answered while their recorder was not ready any more", r.late)
	f.report(t, site.ledger)
}

// rolling is a rolling restart.
type rolling struct {
	*site
	s    *scenario
	late int // plays of those who stay, answered while their recorder was not ready

	mu       sync.Mutex
	refusals []answer
}

func (r *rolling) refused(a answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refusals = append(r.refusals, a)
}

// replace stops a recorder while some players stay with it, and the balancer does until it looks. It returns how long it
// took from SIGTERM until the recorder was not ready.
func (r *rolling) replace(t *testing.T, recorder *programtest.Program) (unready time.Duration) {
	t.Helper()
	public, admin := recorder.URL(t, "public"), recorder.URL(t, "admin")
	stay := r.keepPlaying(t, public)
	wantReady(t, recorder, "redis", "ok")
	slow := r.beginSlowly(t, public)

	began := time.Now()
	stopped := make(chan error, 1)
	go func() { stopped <- recorder.Stop(t) }()
	c := newClient(r.ledger)
	defer c.close()
	eventually(t, "the recorder is not ready", func() bool {
		ready := c.askReadiness(t.Context(), admin)
		return ready.code == http.StatusServiceUnavailable && ready.Status == "draining"
	})
	notReady := time.Now()
	wantLogged(t, recorder, drains)
	r.late += stay.wantServed(t, notReady)
	<-time.After(time.Duration(r.s.rand.Int64N(int64(balancerLook))))
	r.balancer.remove(public)
	stay.stop() // whoever comes by the balancer goes to another one now
	awaitClosed(t, public)
	slow.finish(t)
	if err := <-stopped; err != nil {
		t.Errorf("the recorder ended with %v", err)
	}
	wantLogged(t, recorder, "stopped")
	if logged(recorder, "drained with requests still under way") {
		t.Error("a request was cut off")
	}
	return notReady.Sub(began)
}

// awaitClosed waits until a recorder takes no new connection.
func awaitClosed(t *testing.T, base string) {
	t.Helper()
	var d net.Dialer
	eventually(t, "no connection is taken", func() bool {
		conn, err := d.DialContext(t.Context(), "tcp", base[len("http://"):])
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
}

// stayer is a player at one recorder, on one connection for as long as no answer ends it. Another viewer follows on the next.
type stayer struct {
	done   chan struct{} // closed when it has stopped
	cancel context.CancelFunc

	mu     sync.Mutex
	latest time.Time // when the youngest request was sent that was answered and ended its connection
	served int       // such requests
}

// keepPlaying has somebody play at a recorder, one request after the other.
func (r *rolling) keepPlaying(t *testing.T, base string) *stayer {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	p := &stayer{done: make(chan struct{}), cancel: cancel}
	t.Cleanup(p.stop)
	first := make(chan struct{})
	go func() {
		defer close(p.done)
		p.play(ctx, r, base, sync.OnceFunc(func() { close(first) }))
	}()
	select {
	case <-first:
	case <-p.done:
	}
	return p
}

func (p *stayer) stop() {
	p.cancel()
	<-p.done
}

func (p *stayer) play(ctx context.Context, r *rolling, base string, answered func()) {
	c := newClient(r.ledger)
	defer c.close()
	for connection := 1; ctx.Err() == nil; {
		v := viewing{"10001", fmt.Sprintf("stayer-%s-%d", base, connection)}
		_, a := c.play(context.WithoutCancel(ctx), base, v)
		switch {
		case a.code != http.StatusOK:
			r.refused(a)
			return
		case a.last:
			connection++
			p.note(a.sent)
		}
		answered()
	}
}

func (p *stayer) note(sent time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.latest = sent
	p.served++
}

// wantServed waits until a play was answered that was sent after the recorder was seen to be not ready, and returns how many
// were since it drains.
func (p *stayer) wantServed(t *testing.T, notReady time.Time) (served int) {
	t.Helper()
	eventually(t, "a play is answered by a recorder that is not ready", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		served = p.served
		return p.latest.After(notReady)
	})
	return served
}

// slowPlay is a play of which the recorder has got the beginning.
type slowPlay struct {
	conn  net.Conn
	sent  *entry
	rest  string
	ended func(*entry, outcome, int64, bool)
}

// beginSlowly sends half a play.
func (r *rolling) beginSlowly(t *testing.T, base string) slowPlay {
	t.Helper()
	v := viewing{"10001", "slow-" + base}
	body := fmt.Sprintf(`{"viewer_id":%q}`, v.viewer)
	conn := dial(t, base)
	sent := r.ledger.send(0, false, v)
	if _, err := fmt.Fprintf(conn, "POST %s/play HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		videoPath(v.video), len(body), body[:5]); err != nil {
		t.Fatal(err)
	}
	return slowPlay{conn, sent[0], body[5:], r.ledger.settle}
}

// finish sends the other half. The play must be answered, although its recorder takes no new ones.
func (p slowPlay) finish(t *testing.T) {
	t.Helper()
	var a answer
	if _, a.err = io.WriteString(p.conn, p.rest); a.err == nil {
		var res *http.Response
		if res, a.err = http.ReadResponse(bufio.NewReader(p.conn), nil); a.err == nil {
			defer func() { _ = res.Body.Close() }()
			a.code = res.StatusCode
			a.body, a.err = io.ReadAll(res.Body)
		}
	}
	p.ended(p.sent, a.outcome(), a.recordedAt(), true)
	if a.code != http.StatusOK {
		t.Errorf("a play that was under way when its recorder was stopped: %s, want it recorded", a)
	}
}
