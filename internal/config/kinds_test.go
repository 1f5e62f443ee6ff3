package config

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestKindsFromEverySource(t *testing.T) {
	t.Parallel()
	env := options()
	env.Environ = []string{"HEADCOUNT_KINDS=video,live"}
	for name, o := range map[string]Options{
		"flag": options("--kinds", "video,live"),
		"env":  env,
		"file": options("--config", writeFile(t, "kinds: [video, live]\n")),
	} {
		if diff := cmp.Diff([]string{"video", "live"}, load(t, o).Prefixes()); diff != "" {
			t.Errorf("%s: prefixes (-want +got):\n%s", name, diff)
		}
	}
}

func TestPrefixesWithoutKinds(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff([]string{"film"}, load(t, options("--prefix", "film")).Prefixes()); diff != "" {
		t.Errorf("prefixes (-want +got):\n%s", diff)
	}
}

// No kind takes a path of the site, now or when another route is added.
func TestKindsTakeNoRouteOfTheSite(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	routes := regexp.MustCompile(`(?m)^  /v1/(\w+)s:$`).FindAllStringSubmatch(string(document), -1)
	if len(routes) < 3 {
		t.Fatalf("found %d routes of the site that end in s, want /v1/plays, /v1/uniques and /v1/viewers at least", len(routes))
	}
	for _, route := range routes {
		c := Default()
		c.Kinds = []string{"video", route[1]}
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "one of the site") {
			t.Errorf("kind %s: error %v, want that it is refused for its route", route[1], err)
		}
	}
}
