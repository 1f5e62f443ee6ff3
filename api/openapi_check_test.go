package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
)

// exchange is a request, and what is to come of it.
type exchange struct {
	server         string // "": fresh
	method, target string
	contentType    string            // "": application/json where there is a body
	header         map[string]string // replaced; "-": removed
	body           string
	status         int

	// words are what the document says where its schemas and the handler differ.
	words string
}

func (c *contract) server(e exchange) *httptest.Server {
	if e.server == "" {
		return c.servers[fresh]
	}
	return c.servers[e.server]
}

func (c *contract) request(t *testing.T, e exchange) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), e.method, c.server(e).URL+e.target, strings.NewReader(e.body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Origin", "https://courses.example.org")
	if e.contentType != "" {
		r.Header.Set("Content-Type", e.contentType)
	} else if e.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for name, value := range e.header {
		if r.Header.Set(name, value); value == "-" {
			r.Header.Del(name)
		}
	}
	return r
}

// check sends the request and compares its answer with the document and with the wanted status, and the document's
// verdict on the request with the handler's.
func (c *contract) check(t *testing.T, e exchange) {
	t.Helper()
	res, verdict := c.send(t, e)
	if res.status != e.status {
		t.Errorf("%s %.80s: status = %d, want %d; body: %s", e.method, e.target, res.status, e.status, res.body)
	}
	c.compare(t, e, res, verdict)
}

// compare checks that the handler accepted what the document allows and nothing else, except where words say so.
func (c *contract) compare(t *testing.T, e exchange, res answer, verdict error) {
	t.Helper()
	switch res.status { // of these, the request's form is not the reason
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return
	}
	differ := (verdict == nil) != accepted(res)
	if differ != (e.words != "") {
		t.Errorf("%s %.80s %.80s: answered with %d %.200s; the document's schemas say: %v", e.method, e.target, e.body, res.status, res.body, verdict)
	}
	if !strings.Contains(c.prose, e.words) {
		t.Errorf("the document does not say %q", e.words)
	}
}

// accepted reports whether all that the request asks for was done.
func accepted(res answer) bool {
	return res.status < 300 && (!strings.Contains(res.body, `"errors"`) || strings.Contains(res.body, `"errors":[]`))
}

// send returns the answer, which it compares with the document, and what the document says against the request.
func (c *contract) send(t *testing.T, e exchange) (res answer, verdict error) {
	t.Helper()
	in, verdict := c.judge(t, c.request(t, e))
	res = do(t, c.server(e), c.request(t, e))
	if err := c.checkAnswer(t, in, res); err != nil {
		t.Errorf("%s %.80s: answered with %d %v %.200s, and the document: %v", e.method, e.target, res.status, res.header, res.body, err)
	}
	return res, verdict
}

// judge returns what the document says against the request.
func (c *contract) judge(t *testing.T, r *http.Request) (*openapi3filter.RequestValidationInput, error) {
	t.Helper()
	size := r.ContentLength
	in := &openapi3filter.RequestValidationInput{Request: r, Options: &openapi3filter.Options{
		AuthenticationFunc:    openapi3filter.NoopAuthenticationFunc,
		IncludeResponseStatus: true,
		SchemaValidationOptions: []openapi3.SchemaValidationOption{
			openapi3.WithStringFormatValidator("utf8-bytes", openapi3.NewCallbackValidator(c.checkBytes)),
		},
	}}
	route, params, err := c.router.FindRoute(r)
	if err != nil {
		in.Route = &routers.Route{Spec: c.doc, Operation: c.noOperation()}
		return in, err
	}
	in.Route, in.PathParams = route, params
	for name, value := range params {
		if params[name], err = url.PathUnescape(value); err != nil {
			return in, err
		}
	}
	if body := route.Operation.RequestBody; body != nil && size > maxBytes(t, body.Value) {
		return in, fmt.Errorf("%d bytes", size)
	}
	return in, openapi3filter.ValidateRequest(t.Context(), in)
}

// noOperation has the answers to requests that are no operation's.
func (c *contract) noOperation() *openapi3.Operation {
	responses := openapi3.NewResponsesWithCapacity(3)
	for status, name := range map[string]string{"400": "BadRequest", "404": "NotFound", "405": "MethodNotAllowed"} {
		responses.Set(status, c.doc.Components.Responses[name])
	}
	return &openapi3.Operation{Responses: responses}
}

// maxBytes is how large the document lets the body be.
func maxBytes(t *testing.T, body *openapi3.RequestBody) int64 {
	t.Helper()
	limit, ok := body.Extensions["x-max-bytes"].(float64)
	if !ok {
		t.Fatal("a body has no x-max-bytes")
	}
	return int64(limit)
}

// checkBytes is the format utf8-bytes: a schema's maxLength counts characters, which are not more than the bytes.
func (c *contract) checkBytes(id string) error {
	limit := c.doc.Components.Schemas["VideoId"].Value.MaxLength
	if uint64(len(id)) > *limit || strings.ToValidUTF8(id, "") != id {
		return fmt.Errorf("not up to %d bytes of UTF-8", *limit)
	}
	return nil
}

// checkAnswer returns what the document says against the answer, and notes that it was seen.
func (c *contract) checkAnswer(t *testing.T, in *openapi3filter.RequestValidationInput, res answer) error {
	t.Helper()
	method := in.Request.Method
	request := in.Request.Clone(t.Context())
	request.Method = http.MethodGet // or the library would not look at the answer to a HEAD
	checked := *in
	checked.Request, checked.Options.ExcludeResponseBody = request, method == http.MethodHead
	out := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &checked, Status: res.status, Header: res.header, Options: checked.Options,
	}
	if err := openapi3filter.ValidateResponse(t.Context(), out.SetBodyBytes([]byte(res.body))); err != nil {
		return err
	}
	c.answers[fmt.Sprint(method, " ", in.Route.Path, " ", res.status)] = true
	response := in.Route.Operation.Responses.Status(res.status).Value
	if strings.HasSuffix(res.header.Get("Content-Type"), "json") && method != http.MethodHead {
		c.examples[sameTimes(t, res.body)] = true
	}
	return checkUndocumented(response, res, method == http.MethodHead)
}

// checkUndocumented looks at what the library does not.
func checkUndocumented(response *openapi3.Response, res answer, head bool) error {
	contentType := res.header.Get("Content-Type")
	if (response.Content.Get(contentType) == nil) != (contentType == "") {
		return fmt.Errorf("Content-Type %q", contentType)
	}
	if (res.body == "") != (head || contentType == "") {
		return fmt.Errorf("body of %d bytes", len(res.body))
	}
	documented := []string{"Content-Type", "Content-Length", "Date"}
	for name := range response.Headers {
		documented = append(documented, http.CanonicalHeaderKey(name))
	}
	for name := range res.header {
		if !slices.Contains(documented, name) {
			return fmt.Errorf("header %s is undocumented", name)
		}
	}
	if contentType != "application/problem+json" || head {
		return nil
	}
	var problem struct{ Status int }
	if err := json.Unmarshal([]byte(res.body), &problem); err != nil || problem.Status != res.status {
		return fmt.Errorf("status %d in the body: %w", problem.Status, err)
	}
	return nil
}

var (
	unixTime = regexp.MustCompile(`"recorded_at":[1-9]\d*`)
	isoTime  = regexp.MustCompile(`"(as_of|at|from|to)":"[^"]*"`)
)

// sameTimes makes answers comparable: all times are the same, fields are in the order of their names.
func sameTimes(t *testing.T, answer string) string {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(answer), &value); err != nil {
		t.Errorf("%s: %v", answer, err)
	}
	answer = unixTime.ReplaceAllString(toJSON(t, value), `"recorded_at":1`)
	return isoTime.ReplaceAllString(answer, `"$1":""`)
}
