package chaos

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"headcount/internal/programtest"
	"headcount/internal/redistest"
)

// TestFullDisk runs programs whose log cannot be written. They live and count.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	s := begin(t)
	server := redistest.Start(t)
	site := s.newSite(server.Client(), server.Addr())
	public, admin, workerAdmin := freeAddr(t), freeAddr(t), freeAddr(t)
	const toFullDisk = `exec "$0" >/dev/full`
	programtest.Exec(t, "/bin/sh", site.environment(site.addr, []string{"HEADCOUNT_RECORDER_LISTEN=" + public,
		"HEADCOUNT_RECORDER_ADMIN_LISTEN=" + admin}), "-c", toFullDisk, site.binaries.recorder)
	programtest.Exec(t, "/bin/sh", site.environment(site.addr, []string{"HEADCOUNT_WORKER_ADMIN_LISTEN=" + workerAdmin,
		"HEADCOUNT_WORKER_INTERVAL=200ms"}), "-c", toFullDisk, site.binaries.worker)

	c := newClient(site.ledger)
	defer c.close()
	for _, addr := range []string{admin, workerAdmin} {
		eventually(t, "the program is ready", func() bool {
			return c.get(t.Context(), "http://"+addr, "/readyz").code == http.StatusOK
		})
	}
	site.balancer.add("http://" + public)
	load := site.startLoad(t, loadOptions{players: 10, videos: 20, pause: 10 * time.Millisecond}, nil)
	most := s.times(1000, 20_000)
	eventually(t, "plays", func() bool { n, _ := site.ledger.totals(); return n > most })
	load.stop()
	if total := load.totals(); total.codes[http.StatusOK]+total.codes[http.StatusNoContent] < total.codes[0] {
		t.Errorf("answers by status: %v, want success", total.codes)
	}
	f := figures{lost: site.wantSound(t)}
	for _, addr := range []string{admin, workerAdmin} {
		if ready := c.askReadiness(t.Context(), "http://"+addr); ready.code != http.StatusOK {
			t.Errorf("a program whose log is lost is not ready: %+v", ready)
		}
		n := programtest.Metric(t, "http://"+addr, "headcount_log_write_errors_total")
		f.faults += int(n)
		if n == 0 {
			t.Errorf("headcount_log_write_errors_total = 0, want the lines that could not be written")
		}
	}
	f.report(t, site.ledger)
}

func freeAddr(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", redistest.FreePort(t))
}

// TestNoFileDescriptors uses up a recorder's file descriptors. It serves the connections that it has, and new ones as
// soon as there is room.
func TestNoFileDescriptors(t *testing.T) {
	t.Parallel()
	s := begin(t)
	server := redistest.Start(t)
	site := s.newSite(server.Client(), server.Addr())
	site.startWorker(t)
	const descriptors, players = 64, 10
	recorder := programtest.Exec(t, "/bin/sh", site.environment(site.addr, nil),
		"-c", fmt.Sprintf(`ulimit -n %d; exec "$0"`, descriptors), site.binaries.recorder)
	base := recorder.URL(t, "public")
	site.balancer.add(base)
	load := site.startLoad(t, loadOptions{players: players, videos: 20, pause: 10 * time.Millisecond}, nil)
	eventually(t, "plays", func() bool { n, _ := site.ledger.totals(); return n > 20*players })

	operator := newClient(site.ledger) // has its connection before there are none
	defer operator.close()
	operator.askReadiness(t.Context(), recorder.URL(t, "admin"))
	f := figures{}
	for range s.times(1, 5) {
		said := strings.Count(recorder.Output(), tooManyFiles)
		var idle []net.Conn
		for range 2 * descriptors {
			idle = append(idle, dial(t, base))
		}
		f.faults++
		eventually(t, "the log says that there are too many files", func() bool {
			return strings.Count(recorder.Output(), tooManyFiles) > said
		})
		starved := time.Now()
		eventually(t, "players who are connected go on", func() bool { return load.acknowledgedSince(starved) })
		if ready := operator.askReadiness(t.Context(), recorder.URL(t, "admin")); ready.code != http.StatusOK || ready.Components["redis"] != "ok" {
			t.Errorf("a recorder that serves its connections is not ready: %+v", ready)
		}
		for _, conn := range idle {
			_ = conn.Close() // the recorder may have done so before
		}
		released := time.Now()
		newcomer := newClient(site.ledger)
		eventually(t, "a new client is served", func() bool {
			return newcomer.get(t.Context(), base, popular).code == http.StatusOK
		})
		f.recovered(time.Since(released))
		newcomer.close()
	}
	load.stop()
	// Of the connections that wait, each try to accept one that fails is followed by a pause of a second at most.
	f.holdTo(t, 2*time.Second)
	wantMetric(t, recorder, "process_max_fds", descriptors)
	if n := load.totals().codes[0]; n > 0 {
		t.Errorf("%d requests of players who were connected had no answer", n)
	}
	f.lost = site.wantSound(t)
	f.report(t, site.ledger)
}

const tooManyFiles = "too many open files"

func dial(t *testing.T, base string) net.Conn {
	t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// rude are clients that behave badly, and how long a recorder bears with each.
var rude = map[string]struct {
	behave func(context.Context, net.Conn)
	limit  time.Duration
}{
	"sends its header slowly":       {slowly("POST /v1/videos/10001/play HTTP/1.1\r\nHost: x\r\nX-Slow: "), 5 * time.Second},
	"sends its body slowly":         {slowly("POST /v1/videos/10001/play HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"), 10 * time.Second},
	"sends nothing":                 {func(_ context.Context, conn net.Conn) { drain(conn) }, 5 * time.Second},
	"half closes within its header": {halfClosing("POST /v1/videos/10001/play HTTP/1.1\r\n"), time.Second},
	"half closes after its request": {halfClosing("GET " + popular + " HTTP/1.1\r\nHost: x\r\n\r\n"), time.Second},
	"never reads":                   {neverReading, 15 * time.Second},
}

// slowly sends begin, and then a byte at a time until the connection is ended.
func slowly(begin string) func(context.Context, net.Conn) {
	return func(ctx context.Context, conn net.Conn) {
		ctx, ended := context.WithCancel(ctx)
		go func() {
			defer ended()
			drain(conn)
		}()
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		_, err := conn.Write([]byte(begin))
		for err == nil {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				_, err = conn.Write([]byte("x"))
			}
		}
	}
}

// halfClosing sends no more after text, and reads to the end.
func halfClosing(text string) func(context.Context, net.Conn) {
	return func(_ context.Context, conn net.Conn) {
		if _, err := conn.Write([]byte(text)); err == nil && conn.(*net.TCPConn).CloseWrite() == nil {
			drain(conn)
		}
	}
}

// neverReading asks for much until nobody takes its questions any more.
func neverReading(_ context.Context, conn net.Conn) {
	for {
		if _, err := conn.Write([]byte("GET /openapi.yaml HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
			return
		}
	}
}

// drain reads until the connection is ended.
func drain(conn net.Conn) {
	buf := make([]byte, 4096)
	for {
		if _, err := conn.Read(buf); err != nil {
			return
		}
	}
}

// TestRudeClients has clients that are slow, half closed, or do not read. Others are served meanwhile, and the rude
// ones are cut off.
func TestRudeClients(t *testing.T) {
	t.Parallel()
	s := begin(t)
	server := redistest.Start(t)
	site := s.newSite(server.Client(), server.Addr())
	site.startWorker(t)
	recorder := site.addRecorder(t)
	load := site.startLoad(t, loadOptions{players: 10, videos: 20, pause: 10 * time.Millisecond}, nil)

	f := figures{}
	type ended struct {
		name string
		took time.Duration
	}
	ends := make(chan ended)
	for name, client := range rude {
		for range s.times(2, 10) {
			f.faults++
			conn := dial(t, recorder.URL(t, "public"))
			go func() {
				began := time.Now()
				client.behave(t.Context(), conn)
				ends <- ended{name, time.Since(began)}
			}()
		}
	}
	borne := make(map[string][]time.Duration)
	for range f.faults {
		select {
		case e := <-ends:
			borne[e.name] = append(borne[e.name], e.took)
		case <-time.After(limit):
			t.Fatalf("a rude client is not cut off after %s; cut off so far, and when: %v", limit, borne)
		}
	}
	for name, took := range borne {
		slices.Sort(took)
		median, worst, promised := took[(len(took)-1)/2], took[len(took)-1], rude[name].limit
		if median > promised+time.Second || worst > promised+10*time.Second {
			t.Errorf("a client that %s was cut off after %s, want %s in the median, and 10 s more at most on a busy machine", name, took, promised)
		}
		if promised > time.Second && took[0] < promised-time.Second {
			t.Errorf("a client that %s was cut off after %s, want that it has %s", name, took, promised)
		}
		t.Logf("a client that %s was cut off after %s at most", name, worst.Round(time.Millisecond))
		f.recovered(worst)
	}
	load.stop()
	total := load.totals()
	if total.codes[0] > 0 || total.codes[http.StatusServiceUnavailable] > 0 || total.slowest > answerLimit {
		t.Errorf("the others' answers by status: %v, the slowest took %s", total.codes, total.slowest)
	}
	wantMetric(t, recorder, "headcount_http_requests_in_flight", 0)
	wantReady(t, recorder, "redis", "ok")
	f.lost = site.wantSound(t)
	f.report(t, site.ledger)
}
