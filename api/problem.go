package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
)

// problem is an error answer as in RFC 9457. Its detail says what is wrong and
// where, and never repeats anything the client sent: that could be a viewer id.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`

	retryAfter int64 // seconds; 0: trying again is not promised anything
}

func newProblem(status int, detail string) *problem {
	return &problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail}
}

func badRequest(format string, args ...any) *problem {
	return newProblem(http.StatusBadRequest, fmt.Sprintf(format, args...))
}

func (p *problem) Error() string { return p.Detail }

// badInput is what a Recorder or a Lookup returns when the client is at fault.
type badInput interface {
	error
	BadInput() (field, reason string)
}

// videoFull is what a Recorder returns for a viewer who is one too many.
type videoFull interface {
	error
	VideoFull()
}

// problemFor maps every error to its answer. The text of a backend's failure
// stays out of it, as it could hold an id.
func (a *api) problemFor(err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	if bad, ok := errors.AsType[badInput](err); ok {
		field, reason := bad.BadInput()
		return badRequest("%s: %s", field, reason)
	}
	if _, ok := errors.AsType[videoFull](err); ok {
		return tooMany(a.beatAfter(), "the video has as many viewers as it may have")
	}
	return unavailable("the count store is unavailable, try again")
}

// unavailable is the answer to what may well be done when it is tried again.
func unavailable(detail string) *problem {
	p := newProblem(http.StatusServiceUnavailable, detail)
	p.retryAfter = 1 // a Redis failover or a full queue is often over by then
	return p
}

// tooMany is the answer to what is beyond a limit; retryAfter as in problem.
func tooMany(retryAfter int64, detail string) *problem {
	p := newProblem(http.StatusTooManyRequests, detail)
	p.retryAfter = retryAfter
	return p
}

// write answers with the problem.
func (p *problem) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(p.retryAfter, 10))
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	w.WriteHeader(p.Status)
	if data, err := json.Marshal(p); err == nil {
		_, _ = w.Write(append(data, '\n')) // fails only when the client is gone
	}
}
