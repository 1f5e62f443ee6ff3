package subject

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What ours is compared with has to run the very script that ours runs.
func TestScriptIsTheProducts(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile("../../../recorder/record.lua")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), recordSource); diff != "" {
		t.Errorf("record.lua (-product +copy):\n%s", diff)
	}
}

func TestUnknownKindIsRefused(t *testing.T) {
	t.Parallel()
	if err := Serve(t.Context(), `{"Kind":"another"}`, strings.NewReader(""), io.Discard); err == nil {
		t.Error("no error")
	}
}
