package clientip_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"headcount/internal/clientip"
)

var resolver = clientip.Resolver{Trusted: []netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"),
	netip.MustParsePrefix("192.0.2.7/32"),
	netip.MustParsePrefix("fd00::/8"),
}}

// from is a request from a peer, with headers "Name: value".
func from(t testing.TB, peer string, headers ...string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
	r.RemoteAddr = peer
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
	}
	return r
}

func TestAddr(t *testing.T) {
	t.Parallel()
	const proxy = "10.0.0.1:4711"
	type headers []string
	for _, tt := range []struct {
		name, peer string
		headers    headers
		want       string
	}{
		{"no proxy", "203.0.113.9:4711", nil, "203.0.113.9"},
		{"no proxy, IPv6", "[2001:db8::9]:4711", nil, "2001:db8::9"},
		{"no proxy, mapped", "[::ffff:203.0.113.9]:4711", nil, "203.0.113.9"},
		{"no proxy, a zone", "[fe80::1%eth0]:4711", nil, "fe80::1"},
		{"no address", "@", headers{"X-Forwarded-For: 1.1.1.1"}, "invalid IP"},

		{"a claim of no proxy", "203.0.113.9:4711", headers{"X-Forwarded-For: 1.1.1.1"}, "203.0.113.9"},
		{"another", "203.0.113.9:4711", headers{"Forwarded: for=1.1.1.1"}, "203.0.113.9"},
		{"a claim to be a proxy", "203.0.113.9:4711", headers{"X-Forwarded-For: 1.1.1.1, 10.0.0.1"}, "203.0.113.9"},
		{"next to a trusted address", "192.0.2.8:4711", headers{"X-Forwarded-For: 1.1.1.1"}, "192.0.2.8"},

		{"a silent proxy", proxy, nil, "10.0.0.1"},
		{"a proxy", proxy, headers{"X-Forwarded-For: 203.0.113.9"}, "203.0.113.9"},
		{"a proxy by its address", "192.0.2.7:1", headers{"X-Forwarded-For: 203.0.113.9"}, "203.0.113.9"},
		{"a mapped proxy", "[::ffff:10.0.0.1]:1", headers{"X-Forwarded-For: 203.0.113.9"}, "203.0.113.9"},
		{"a proxy with a zone", "[fd00::1%eth0]:1", headers{"X-Forwarded-For: 203.0.113.9"}, "203.0.113.9"},
		{"a made-up address in front", proxy, headers{"X-Forwarded-For: 1.1.1.1, 203.0.113.9"}, "203.0.113.9"},
		{"a made-up proxy in front", proxy, headers{"X-Forwarded-For: 1.1.1.1, 10.0.0.3, 203.0.113.9"}, "203.0.113.9"},
		{"three proxies", proxy, headers{"X-Forwarded-For: 203.0.113.9,10.0.0.3,  fd00::2"}, "203.0.113.9"},
		{"three lines", proxy, headers{"X-Forwarded-For: 1.1.1.1", "X-Forwarded-For: 203.0.113.9", "X-Forwarded-For: 10.0.0.3"}, "203.0.113.9"},
		{"all are proxies", proxy, headers{"X-Forwarded-For: 10.0.0.9, 10.0.0.2"}, "10.0.0.9"},
		{"IPv6", proxy, headers{"X-Forwarded-For: 2001:db8::9"}, "2001:db8::9"},
		{"IPv6 in brackets", proxy, headers{"X-Forwarded-For: [2001:db8::9]"}, "2001:db8::9"},
		{"IPv6 with a port", proxy, headers{"X-Forwarded-For: [2001:db8::9]:4711"}, "2001:db8::9"},
		{"mapped", proxy, headers{"X-Forwarded-For: ::ffff:203.0.113.9"}, "203.0.113.9"},
		{"with a port", proxy, headers{"X-Forwarded-For: 203.0.113.9:4711"}, "203.0.113.9"},

		{"a name", proxy, headers{"X-Forwarded-For: localhost"}, "10.0.0.1"},
		{"empty", proxy, headers{"X-Forwarded-For: "}, "10.0.0.1"},
		{"junk in front", proxy, headers{`X-Forwarded-For: ",";[, 203.0.113.9`}, "203.0.113.9"},
		{"junk behind", proxy, headers{"X-Forwarded-For: 1.1.1.1, x"}, "10.0.0.1"},
		{"junk behind a proxy", proxy, headers{"X-Forwarded-For: 1.1.1.1, x, 10.0.0.3"}, "10.0.0.3"},
		{"nothing behind", proxy, headers{"X-Forwarded-For: 1.1.1.1, "}, "10.0.0.1"},
		{"an open bracket", proxy, headers{"X-Forwarded-For: [2001:db8::9"}, "10.0.0.1"},
		{"junk after a bracket", proxy, headers{"X-Forwarded-For: [2001:db8::9]x"}, "10.0.0.1"},

		{"Forwarded", proxy, headers{"Forwarded: for=203.0.113.9"}, "203.0.113.9"},
		{"Forwarded with more", proxy, headers{"Forwarded: by=10.0.0.1; For=203.0.113.9:4711 ;proto=https"}, "203.0.113.9"},
		{"Forwarded, IPv6", proxy, headers{`Forwarded: for="[2001:db8::9]:4711"`}, "2001:db8::9"},
		{"Forwarded, a named port", proxy, headers{`Forwarded: for="203.0.113.9:_http"`}, "203.0.113.9"},
		{"Forwarded, three proxies", proxy, headers{`Forwarded: for=203.0.113.9,for="[fd00::2]"`, "Forwarded: for=10.0.0.3"}, "203.0.113.9"},
		{"Forwarded, a made-up address in front", proxy, headers{"Forwarded: for=1.1.1.1, for=203.0.113.9"}, "203.0.113.9"},
		{"Forwarded, an open quote in front", proxy, headers{`Forwarded: for="1.1.1.1, for=203.0.113.9`}, "203.0.113.9"},
		{"Forwarded, an open quote and a closed one", proxy, headers{`Forwarded: for=1.1.1.1;x=", for="203.0.113.9"`}, "203.0.113.9"},
		{"Forwarded, separators in quotes", proxy, headers{`Forwarded: for=203.0.113.9;by="a;for=1.1.1.1, for=2.2.2.2"`}, "203.0.113.9"},
		{"Forwarded, quotes in quotes", proxy, headers{`Forwarded: for=203.0.113.9;by="a\", for=1.1.1.1;\\"`}, "203.0.113.9"},
		{"Forwarded, hidden", proxy, headers{"Forwarded: for=1.1.1.1, for=_secret"}, "10.0.0.1"},
		{"Forwarded, unknown", proxy, headers{"Forwarded: for=1.1.1.1, for=unknown, for=10.0.0.3"}, "10.0.0.3"},
		{"Forwarded, twice in one", proxy, headers{"Forwarded: for=203.0.113.9;for=1.1.1.1"}, "10.0.0.1"},
		{"Forwarded, for nobody", proxy, headers{"Forwarded: for=1.1.1.1, proto=https"}, "10.0.0.1"},
		{"Forwarded, an address alone", proxy, headers{"Forwarded: 1.1.1.1"}, "10.0.0.1"},

		{"both agree", proxy, headers{"X-Forwarded-For: 203.0.113.9", "Forwarded: for=203.0.113.9"}, "203.0.113.9"},
		{"both contradict each other", proxy, headers{"X-Forwarded-For: 203.0.113.9", "Forwarded: for=1.1.1.1"}, "10.0.0.1"},
		{"Forwarded says nothing", proxy, headers{"X-Forwarded-For: 203.0.113.9", "Forwarded: for=unknown"}, "203.0.113.9"},
		{"X-Forwarded-For says nothing", proxy, headers{"X-Forwarded-For: -", "Forwarded: for=203.0.113.9"}, "203.0.113.9"},
		{"Forwarded names a proxy", proxy, headers{"X-Forwarded-For: 203.0.113.9", "Forwarded: for=10.0.0.3"}, "203.0.113.9"},
		{"X-Forwarded-For names a proxy", proxy, headers{"X-Forwarded-For: 10.0.0.3", "Forwarded: for=203.0.113.9"}, "203.0.113.9"},
		{"Forwarded, all are proxies", proxy, headers{"Forwarded: for=10.0.0.9, for=10.0.0.2"}, "10.0.0.9"},
	} {
		if got := resolver.Addr(from(t, tt.peer, tt.headers...)); got.String() != tt.want {
			t.Errorf("%s: Addr of %s with %q = %s, want %s", tt.name, tt.peer, tt.headers, got, tt.want)
		}
	}
}

func TestTheZeroResolverTrustsNobody(t *testing.T) {
	t.Parallel()
	var none clientip.Resolver
	if got, want := none.Addr(from(t, "127.0.0.1:1", "X-Forwarded-For: 1.1.1.1")).String(), "127.0.0.1"; got != want {
		t.Errorf("Addr = %s, want %s", got, want)
	}
}

// Whatever clients send, behind a proxy that appends to it they get no other
// address than their own, or at worst the proxy's.
func FuzzAddr(f *testing.F) {
	for _, seed := range [][2]string{
		{"", ""},
		{"1.1.1.1", "for=1.1.1.1"},
		{"10.0.0.1, 10.0.0.2", "for=10.0.0.1"},
		{`","`, `for="1.1.1.1, for="`},
		{"[::1", `for="[2001:db8::1]:4711";by=_x`},
		{"1.1.1.1:", `for=1.1.1.1;x="\", for=\\"`},
		{", ,", ";;=,"},
	} {
		f.Add(seed[0], seed[1])
	}
	const peer, proxy, client, client6 = "203.0.113.9:1", "10.0.0.1:1", "203.0.113.9", "2001:db8::9"
	f.Fuzz(func(t *testing.T, list, forwarded string) {
		made := []string{"X-Forwarded-For: " + list, "Forwarded: " + forwarded}
		for _, tt := range []struct {
			peer    string
			headers []string
			want    string
			orProxy bool
		}{
			{peer, made, client, false},
			{proxy, []string{made[0] + ", " + client}, client, false},
			{proxy, []string{made[0], "X-Forwarded-For: " + client}, client, false},
			{proxy, []string{made[0] + ", " + client, made[1]}, client, true},
			{proxy, []string{made[1] + ", for=" + client + ";proto=https"}, client, false},
			{proxy, []string{made[1] + `, proto=https;for="[` + client6 + `]:4711"`}, client6, false},
			{proxy, []string{made[1], "Forwarded: for=" + client}, client, false},
			{proxy, []string{made[0], made[1] + ",for=" + client}, client, true},
		} {
			got := resolver.Addr(from(t, tt.peer, tt.headers...)).String()
			if got != tt.want && (!tt.orProxy || got != "10.0.0.1") {
				t.Errorf("Addr of %s with %q = %s, want %s", tt.peer, tt.headers, got, tt.want)
			}
		}
	})
}
