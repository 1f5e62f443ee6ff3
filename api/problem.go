package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// problem is an error answer as in RFC 9457. Its detail says what is wrong and
// where, and never repeats anything the client sent: that could be a viewer id.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
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

// problemFor maps every error to its answer. The text of a backend's failure
// stays out of it, as it could hold an id.
func problemFor(err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	if bad, ok := errors.AsType[badInput](err); ok {
		field, reason := bad.BadInput()
		return badRequest("%s: %s", field, reason)
	}
	return newProblem(http.StatusServiceUnavailable, "the count store is unavailable, try again")
}

// retryAfter is in seconds: a Redis failover or a full queue is often over by then.
const retryAfter = "1"

// write answers with the problem.
func (p *problem) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	if p.Status == http.StatusServiceUnavailable {
		h.Set("Retry-After", retryAfter)
	}
	w.WriteHeader(p.Status)
	if data, err := json.Marshal(p); err == nil {
		_, _ = w.Write(append(data, '\n')) // fails only when the client is gone
	}
}
