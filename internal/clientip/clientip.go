// Package clientip tells which address a request came from when there are proxies
// in between, and believes nobody else.
//
// A proxy adds the address that it was called from to the end of X-Forwarded-For
// or Forwarded (RFC 7239); what stands before that, the caller may have made up.
// So both are read from their end, and only as far as each address belongs to a
// proxy that is trusted.
package clientip

import (
	"iter"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Resolver finds clients' addresses. The zero Resolver trusts no proxy.
type Resolver struct {
	Trusted []netip.Prefix // where the proxies are; IPv4 as such, not mapped into IPv6
}

// Addr is the address of the request's client: of the caller, unless that is a
// trusted proxy. Then it is the last address in the header that is none of a
// trusted proxy, or the first if all are. An entry that is no address ends the
// search: whoever wrote it is the client then.
//
// A proxy sets one of the two headers and may pass on the other as it came, made
// up by a client. When they contradict each other neither is believed, and the
// caller's own address is returned. It is the zero Addr if that has none.
func (r Resolver) Addr(req *http.Request) netip.Addr {
	caller, _ := parse(req.RemoteAddr)
	if !r.trusts(caller) {
		return caller
	}
	a := r.walk(caller, fromEnd(req.Header["X-Forwarded-For"]), parse)
	b := r.walk(caller, fromEnd(req.Header["Forwarded"]), parseForwarded)
	switch {
	case a == b, b == caller, a != caller && r.trusts(b):
		return a
	case a == caller, r.trusts(a):
		return b
	}
	return caller
}

func (r Resolver) trusts(addr netip.Addr) bool {
	return slices.ContainsFunc(r.Trusted, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// walk follows entries, the last one first, from one proxy to whom it was called by.
func (r Resolver) walk(addr netip.Addr, entries iter.Seq[string], parse func(string) (netip.Addr, bool)) netip.Addr {
	for entry := range entries {
		next, ok := parse(entry)
		if !ok {
			break
		}
		if addr = next; !r.trusts(addr) {
			break
		}
	}
	return addr
}

// fromEnd yields the entries of a header that may be given several times, each
// time with several entries, the last one first.
func fromEnd(lines []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, line := range slices.Backward(lines) {
			for more := true; more; {
				var entry string
				if line, entry, more = cutLast(line, ','); !yield(entry) {
					return
				}
			}
		}
	}
}

// cutLast cuts s at the last separator outside quotes. It looks at s from its
// end, so that a quote which somebody left open further to the front hides nothing.
func cutLast(s string, separator byte) (before, last string, found bool) {
	quoted := false
	for i := len(s) - 1; i >= 0; i-- {
		switch {
		case s[i] == '"' && (!quoted || !escapes(s[:i])):
			quoted = !quoted
		case s[i] == separator && !quoted:
			return s[:i], s[i+1:], true
		}
	}
	return "", s, false
}

// escapes tells whether s ends in a backslash that is not itself escaped.
func escapes(s string) bool {
	return (len(s)-len(strings.TrimRight(s, `\`)))%2 == 1
}

// parseForwarded reads the address of an entry such as for="[2001:db8::1]:4711";proto=https.
// There is none in an entry without "for", with two of them, or with a name in its place.
func parseForwarded(entry string) (addr netip.Addr, ok bool) {
	for more := true; more; {
		var pair string
		entry, pair, more = cutLast(entry, ';')
		name, value, _ := strings.Cut(pair, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "for") {
			continue
		}
		if addr.IsValid() {
			return netip.Addr{}, false
		}
		if addr, ok = parse(unquote(strings.TrimSpace(value))); !ok {
			return netip.Addr{}, false
		}
	}
	return addr, addr.IsValid()
}

func unquote(s string) string {
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		return s[1 : len(s)-1]
	}
	return s
}

// parse reads an address with or without a port, IPv6 with or without brackets,
// which a port needs. The port is ignored: it may be a name in Forwarded.
func parse(s string) (netip.Addr, bool) {
	s = strings.TrimSpace(s)
	host := s
	if inner, bracketed := strings.CutPrefix(s, "["); bracketed {
		var port string
		host, port, bracketed = strings.Cut(inner, "]")
		if !bracketed || (port != "" && port[0] != ':') {
			return netip.Addr{}, false
		}
	} else if strings.Count(s, ":") == 1 {
		host, _, _ = strings.Cut(s, ":")
	}
	addr, err := netip.ParseAddr(host)
	return addr.Unmap().WithZone(""), err == nil
}
