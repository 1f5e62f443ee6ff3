package api

import (
	_ "embed" // for openapi.yaml
	"net/http"
	"strconv"
)

// document describes this package's routes, fields, limits and errors to
// programs. The tests hold it and the handlers against each other.
//
//go:embed openapi.yaml
var document []byte

func openAPI(w http.ResponseWriter, _ *http.Request) error {
	h := w.Header()
	h.Set("Content-Type", "application/yaml") // RFC 9512
	h.Set("Content-Length", strconv.Itoa(len(document)))
	h.Set("Cache-Control", "public, max-age=300") // it changes when the program does
	_, _ = w.Write(document)                      // fails only when the client is gone
	return nil
}
