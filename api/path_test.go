package api_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"headcount/api"
)

// sendRaw sends the path byte for byte, as no client of net/http would.
func sendRaw(t *testing.T, addr, method, path, body string) answer {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
		method, path, len(body), body); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	return readAnswer(t, res)
}

func TestPathRoundTrip(t *testing.T) {
	t.Parallel()
	tests := map[string]string{ // the segment as sent → the id
		"10001":                            "10001",
		"a%2Fb":                            "a/b",
		"a%2fb":                            "a/b",
		"%2F":                              "/",
		"%2f":                              "/",
		"%2F%2F":                           "//",
		"%2F..%2F":                         "/../",
		"%2E":                              ".",
		"%2E%2E":                           "..",
		"%2e.":                             "..",
		"...":                              "...",
		"a+b":                              "a+b",
		"a%2Bb":                            "a+b",
		"a%20b":                            "a b",
		"a@b":                              "a@b",
		"%40":                              "@",
		"a*":                               "a*",
		"a[b]*":                            "a[b]*",
		"%2A":                              "*",
		"%3F":                              "?",
		"a%3Fx=1%26y":                      "a?x=1&y",
		"%5C":                              `\`,
		"a%23b":                            "a#b",
		"a;b=c,d":                          "a;b=c,d",
		"a%25b":                            "a%b",
		"%252F":                            "%2F",
		"%22%3C%3E":                        `"<>`,
		"a|b%7C":                           "a|b|",
		"%7Bvideo_id%7D":                   "{video_id}",
		"%7B$%7D":                          "{$}",
		"%F0%9F%98%80":                     "😀",
		"😀":                                "😀",
		"%E6%97%A5%E6%9C%AC%E8%AA%9E":      "日本語",
		"%00%0A":                           "\x00\n",
		"%FF":                              "\xff",
		"count:zz":                         "count:zz",
		"play":                             "play",
		"block-v1:edX+DemoX+type@v+b@0b":   "block-v1:edX+DemoX+type@v+b@0b",
		strings.Repeat("%F0%9F%98%80", 64): strings.Repeat("😀", 64),
	}
	store := newStore()
	srv := httptest.NewServer(api.Handler(options(store)))
	defer srv.Close()
	addr := srv.Listener.Addr().String()
	for segment, id := range tests {
		before := len(store.Calls())
		play := sendRaw(t, addr, "POST", "/v1/videos/"+segment+"/play", `{"viewer_id":"u1"}`)
		leave := sendRaw(t, addr, "POST", "/v1/videos/"+segment+"/leave?x=/../y", `{"viewer_id":"u1"}`)
		viewers := sendRaw(t, addr, "GET", "/v1/videos/"+segment+"/viewers", "")
		if got, want := [3]int{play.status, leave.status, viewers.status}, [3]int{200, 204, 200}; got != want {
			t.Errorf("%s: statuses = %v, want %v", segment, got, want)
		}
		want := []call{{"play", id, "u1", 0}, {"leave", id, "u1", 0}, {"viewers", id, "", 0}}
		if diff := cmp.Diff(want, store.Calls()[before:]); diff != "" {
			t.Errorf("%s: calls (-want +got):\n%s", segment, diff)
		}
	}
}

func TestPathRefused(t *testing.T) {
	t.Parallel()
	const noID = "video_id: must not be empty, nor . or .. unless sent as %2E or %2E%2E"
	const noPath = "no such path"
	tests := map[string]struct {
		path   string
		status int
		detail string
	}{
		"empty id":                {"/v1/videos//play", 400, noID},
		"empty id of viewers":     {"/v1/videos//viewers", 400, noID},
		"dot":                     {"/v1/videos/./play", 400, noID},
		"dots":                    {"/v1/videos/../play", 400, noID},
		"dots at the end":         {"/v1/videos/10001/..", 404, noPath},
		"dots that lead to route": {"/v1/x/../videos/10001/play", 404, noPath},
		"empty segment later":     {"/v1/videos/10001//play", 404, noPath},
		"empty segment first":     {"//v1/videos/10001/play", 404, noPath},
		"two slashes":             {"//", 404, noPath},
		"trailing slash":          {"/v1/videos/10001/play/", 404, noPath},
		"trailing slashes":        {"/v1/videos/10001/play//", 404, noPath},
		"trailing escaped slash":  {"/v1/videos/10001/play%2F", 404, noPath},
		"unescaped slash in id":   {"/v1/videos/a/b/play", 404, noPath},
		"slash beside a raw byte": {"/v1/videos/|%2Fplay", 404, noPath},
		"no verb":                 {"/v1/videos/10001", 404, noPath},
		"other case":              {"/V1/videos/10001/play", 404, noPath},
		"root":                    {"/", 404, noPath},
		"no path":                 {"http://localhost", 404, noPath},
		"asterisk":                {"*", 404, noPath},
		"parent route":            {"/v1/videos", 404, noPath},
		"parent route with slash": {"/v1/videos/", 404, noPath},
		"backslash":               {`/v1/videos\10001\play`, 404, noPath},
	}
	store := newStore()
	srv := httptest.NewServer(api.Handler(options(store)))
	t.Cleanup(srv.Close)
	for name, tt := range tests {
		for _, method := range []string{"GET", "POST"} {
			t.Run(name+"/"+method, func(t *testing.T) {
				res := sendRaw(t, srv.Listener.Addr().String(), method, tt.path, `{"viewer_id":"u1"}`)
				checkProblem(t, res, tt.status, tt.detail)
			})
		}
	}
	if got := store.Calls(); len(got) != 0 {
		t.Errorf("calls = %v, want none", got)
	}
}

func TestConnectIsNotRedirected(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(api.Handler(options(newStore())))
	t.Cleanup(srv.Close)
	addr := srv.Listener.Addr().String()
	checkProblem(t, sendRaw(t, addr, "CONNECT", "localhost:80", ""), 404, "no such path")
	checkProblem(t, sendRaw(t, addr, "CONNECT", "/v1/videos/1/play", ""), 405, "allowed here: POST")
}
