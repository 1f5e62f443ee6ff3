package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// allows reports whether the document allows the request, and checks that the handler is of the same mind.
func (c *contract) allows(t *testing.T, e exchange) bool {
	t.Helper()
	res, verdict := c.send(t, e)
	c.compare(t, e, res, verdict)
	return verdict == nil
}

// idProbes are on both sides of each limit of an id.
func idProbes(schema *openapi3.Schema) []string {
	limit := int(*schema.MaxLength)
	return []string{
		"x", " ", ".", "..", "/", "+", "*", "a[b]?", `\`, `"`, "a/../b", "block-v1:edX+DemoX+type@video+block@0b9e", "日本語", "😀", "\ufeff", "\u00a0", "\u2028",
		"count", "Count:x", "xcount:", "count:", "count:zz",
		"\x00", "\n", "a\x1f", "\x7f", "\u0085", "a\u009f",
		strings.Repeat("a", limit), strings.Repeat("a", limit+1),
		strings.Repeat("é", limit/2), strings.Repeat("é", limit/2) + "a",
		strings.Repeat("😀", limit/4), strings.Repeat("😀", limit/4) + "a",
	}
}

// checkIDs puts ids wherever an address has one.
func (c *contract) checkIDs(t *testing.T) {
	refused := 0
	for _, id := range append(idProbes(c.doc.Components.Schemas["VideoId"].Value), "\xff") {
		segment := strings.ReplaceAll(url.PathEscape(id), ".", "%2E")
		for _, e := range []exchange{
			{method: "POST", target: "/v1/videos/" + segment + "/play", body: viewer},
			{method: "POST", target: "/v1/videos/" + segment + "/leave", body: viewer},
			{method: "GET", target: "/v1/videos/" + segment + "/viewers"},
			{method: "GET", target: "/v1/videos/" + segment + "/uniques"},
			{method: "GET", target: "/v1/videos/" + segment + "/plays"},
			{method: "GET", target: "/v1/videos/" + segment + "/history"},
			{method: "GET", target: "/v1/videos/" + segment + "/stats"},
			{method: "GET", target: batchPath + "&video_id=" + url.QueryEscape(id)},
		} {
			if !c.allows(t, e) {
				refused++
			}
		}
	}
	if want := 8 * 12; refused != want {
		t.Errorf("the document refuses %d ids, want %d", refused, want)
	}
}

// checkFields puts values of all kinds, and those on both sides of each limit, into each field of each body.
func (c *contract) checkFields(t *testing.T) {
	c.operations(func(method, path string, op *openapi3.Operation) {
		if op.RequestBody == nil {
			return
		}
		target := strings.Replace(path, "{video_id}", "10009", 1)
		schema := op.RequestBody.Value.Content["application/json"].Schema.Value
		fields, format := schema.Properties, `{%s}`
		if plays := schema.Properties["plays"]; plays != nil {
			fields, format = plays.Value.Items.Value.Properties, `{"plays":[{%s}]}`
			c.checkField(t, exchange{method: method, target: target}, `{"plays":%s}`, plays.Value)
		}
		for name, field := range fields {
			if name == "kind" { // none is listed here: kinds_test.go has them
				continue
			}
			object := fmt.Sprintf(format, others(fields, name)+fmt.Sprintf("%q:%%s", name))
			c.checkField(t, exchange{method: method, target: target}, object, field.Value)
		}
	})
}

// others are the fields that the one with this name needs beside it.
func others(fields openapi3.Schemas, name string) string {
	var object strings.Builder
	for _, id := range []string{"video_id", "viewer_id"} {
		if fields[id] != nil && id != name {
			fmt.Fprintf(&object, "%q:\"x\",", id)
		}
	}
	return object.String()
}

func (c *contract) checkField(t *testing.T, e exchange, format string, schema *openapi3.Schema) {
	t.Helper()
	values := []string{`null`, `true`, `0`, `1`, `-1`, `1.5`, `""`, `"x"`, `"1"`, `[]`, `["x"]`, `{}`}
	if schema.MaxLength != nil {
		for _, id := range idProbes(schema) {
			values = append(values, toJSON(t, id))
		}
	}
	if schema.Max != nil {
		values = append(values, fmt.Sprintf("%.0f", *schema.Min), fmt.Sprintf("%.0f", *schema.Min-1),
			fmt.Sprintf("%.0f", *schema.Max), fmt.Sprintf("%.0f", *schema.Max+1))
	}
	allowed := 0
	for _, value := range values {
		e.body = fmt.Sprintf(format, value)
		if c.allows(t, e) {
			allowed++
		}
	}
	if allowed == 0 || allowed == len(values) {
		t.Errorf("%s: the document allows %d of %d values", format, allowed, len(values))
	}
}

// checkBatchSizes sends as many items as the document allows, and one more.
func (c *contract) checkBatchSizes(t *testing.T) {
	plays := c.doc.Components.Schemas["Plays"].Value.Properties["plays"].Value.MaxItems
	videos := c.doc.Paths.Value("/v1/viewers").Parameters.GetByInAndName("query", "video_id").Schema.Value.MaxItems
	for more, status := range []int{http.StatusOK, http.StatusBadRequest} {
		items := strings.Repeat(`,{"video_id":"10009","viewer_id":"u1"}`, int(*plays)+more)
		c.check(t, exchange{method: "POST", target: "/v1/plays", body: `{"plays":[` + items[1:] + `]}`, status: status})
		query := strings.Repeat("&video_id=10009", int(*videos)+more)
		c.check(t, exchange{method: "GET", target: "/v1/viewers?" + query[1:], status: status})
	}
}

// checkBodySizes sends as many bytes as the document allows, and one more.
func (c *contract) checkBodySizes(t *testing.T) {
	c.operations(func(method, path string, op *openapi3.Operation) {
		if op.RequestBody == nil {
			return
		}
		example := viewer
		if path == "/v1/plays" {
			example = twoPlays
		}
		e := exchange{method: method, target: strings.Replace(path, "{video_id}", "10009", 1)}
		limit := int(maxBytes(t, op.RequestBody.Value))
		e.body = example + strings.Repeat(" ", limit-len(example))
		if !c.allows(t, e) {
			t.Errorf("%s: the document does not allow %d bytes", path, limit)
		}
		e.body, e.status = e.body+" ", http.StatusRequestEntityTooLarge
		c.check(t, e)
	})
}
