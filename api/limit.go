package api

import (
	"fmt"
	"net/http"
	"time"
)

// limited takes one play or leave from what the client may record before it is
// even read, so that a flood costs little, whatever is in it.
func (a *api) limited(handle handlerFunc) handlerFunc {
	if a.Limiter == nil {
		return handle
	}
	return func(w http.ResponseWriter, r *http.Request) error {
		if wait := a.Limiter.Take(a.ClientAddr(r), 1); wait > 0 {
			return a.tooFast(wait, 1)
		}
		return handle(w, r)
	}
}

// takePlays reads a batch and takes its plays, all or none, from what the client
// may record. A body that cannot be read counts as one play.
func (a *api) takePlays(w http.ResponseWriter, r *http.Request) (playsBody, error) {
	if a.Limiter == nil {
		return readPlays(w, r)
	}
	client := a.ClientAddr(r)
	if wait := a.Limiter.Wait(client); wait > 0 { // before a megabyte is read in vain
		return playsBody{}, a.tooFast(wait, 1)
	}
	body, err := readPlays(w, r)
	if err != nil {
		a.Limiter.Take(client, 1)
		return playsBody{}, err
	}
	n := len(body.videoIDs)
	if most := a.Limiter.Burst(); n > most {
		a.metrics.refused[rate].Add(float64(n))
		return playsBody{}, tooMany(0, fmt.Sprintf("%s: %d, more than the %d that one address may send at once", fieldPlays, n, most))
	}
	if wait := a.Limiter.Take(client, n); wait > 0 {
		return playsBody{}, a.tooFast(wait, n)
	}
	return body, nil
}

// tooFast refuses plays and leaves that the client may record after wait.
func (a *api) tooFast(wait time.Duration, n int) *problem {
	a.metrics.refused[rate].Add(float64(n))
	seconds := int64((wait + time.Second - 1) / time.Second)
	return tooMany(seconds, "too many plays and leaves from this address, try again later")
}
