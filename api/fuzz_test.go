package api_test

import (
	"bufio"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"headcount/api"
)

// parse reads a request as it comes over the wire; nil is what the server refuses before any handler sees it.
func parse(method, target, body string) *http.Request {
	text := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", method, target, len(body), body)
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
	if err != nil {
		return nil
	}
	return r
}

// A video id in a path arrives as it was sent or is refused; nothing redirects, fails or gets to another route.
func FuzzPath(f *testing.F) {
	for _, segment := range []string{
		"10001", "a%2Fb", "%2E%2E", "..", ".", "", "a+b", "a*[b]?", "%00", "%FF", "%zz", "count:zz", "a/play", "a/../b",
		"%252F", "{$}", "日本語", "a;b", "a%3Fx", "a#b", "//", "a|b%7C%2f/",
	} {
		f.Add(segment)
	}
	f.Fuzz(func(t *testing.T, segment string) {
		r := parse(http.MethodPost, "/v1/videos/"+segment+"/play", `{"viewer_id":"u1"}`)
		if r == nil {
			return
		}
		store := newStore()
		got := serve(api.Handler(options(store)), r)
		if !slices.Contains([]int{http.StatusOK, http.StatusNoContent, http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed}, got.status) {
			t.Fatalf("%q: status %d %s", segment, got.status, got.body)
		}
		for _, c := range store.Calls() {
			id, err := url.PathUnescape(segment)
			if strings.ContainsAny(segment, "/?#") {
				continue // of which a part is the id, and the rest another route's or a query
			}
			if want := (call{"play", id, "u1", 0}); err != nil || c != want {
				t.Errorf("%q: call %v, want %v (%v)", segment, c, want, err)
			}
		}
	})
}

// The ids of a batch lookup arrive as they were sent, or none does.
func FuzzQuery(f *testing.F) {
	for _, query := range []string{
		"video_id=10001&video_id=10002", "video_id=", "", "video_id", "video_id=a+b&video_id=%2B", "video_id=%zz", "a;b",
		"video_id=1;video_id=2", "x=1", "video_id=%FF", "&&", "video%5Fid=1", strings.Repeat("video_id=1&", 201),
	} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		r := parse(http.MethodGet, "/v1/viewers?"+query, "")
		if r == nil {
			return
		}
		store := newStore()
		got := serve(api.Handler(options(store)), r)
		switch got.status {
		case http.StatusOK:
			values, err := url.ParseQuery(r.URL.RawQuery)
			want := []call{{"batch", strings.Join(values["video_id"], ","), "", 0}}
			if diff := cmp.Diff(want, store.Calls()); err != nil || diff != "" {
				t.Errorf("%q: calls (-want +got):\n%s(%v)", query, diff, err)
			}
		case http.StatusBadRequest:
			if len(store.Calls()) > 0 {
				t.Errorf("%q: refused, and asked %v", query, store.Calls())
			}
		default:
			t.Errorf("%q: status %d %s", query, got.status, got.body)
		}
	})
}
