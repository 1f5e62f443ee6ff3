package api

import (
	"fmt"
	"net/http"
	"net/netip"
	"time"
)

// limited takes one play or leave from what the client may record before it is
// even read, so that a flood costs little, whatever is in it.
func (a *api) limited(handle handlerFunc) handlerFunc {
	if a.Limiter == nil {
		return handle
	}
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := a.take(a.client(r), 1, 1); err != nil {
			return err
		}
		return handle(w, r)
	}
}

// client is the address that a request counts for, and the zero Addr, for all
// together, where nobody tells.
func (a *api) client(r *http.Request) netip.Addr {
	if a.ClientAddr == nil {
		return netip.Addr{}
	}
	return a.ClientAddr(r)
}

// takePlays reads a batch, and takes its plays, all or none, from what the client
// may record. One is taken before anything is read, and kept whatever is in the
// body, so that no body is free.
func (a *api) takePlays(w http.ResponseWriter, r *http.Request) (playsBody, error) {
	client, size := a.client(r), bodySize(r, maxPlaysBody)
	if err := a.take(client, 1, 1); err != nil {
		return playsBody{}, err
	}
	if !a.reading.begin(client, size) {
		return playsBody{}, errTooMuchReading
	}
	defer a.reading.end(client, size)
	body, err := readPlays(w, r, a.defaultKind())
	if err != nil {
		return playsBody{}, err
	}
	n := len(body.videoIDs)
	if a.Limiter != nil && n > a.Limiter.Burst() {
		a.metrics.refused[rate].Add(float64(n))
		return playsBody{}, tooMany(0, fmt.Sprintf("%s: %d, more than the %d that one address may send at once", fieldPlays, n, a.Limiter.Burst()))
	}
	return body, a.take(client, n-1, n)
}

// take takes n from what the client may record, or refuses the plays that they
// are for.
func (a *api) take(client netip.Addr, n, plays int) error {
	if a.Limiter == nil || n <= 0 {
		return nil
	}
	if wait := a.Limiter.Take(client, n); wait > 0 {
		return a.tooFast(wait, plays)
	}
	return nil
}

// tooFast refuses plays and leaves that the client may record after wait.
func (a *api) tooFast(wait time.Duration, n int) *problem {
	a.metrics.refused[rate].Add(float64(n))
	seconds := int64((wait + time.Second - 1) / time.Second)
	return tooMany(seconds, "too many plays and leaves from this address, try again later")
}
