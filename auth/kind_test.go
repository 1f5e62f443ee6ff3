package auth_test

import (
	"errors"
	"testing"

	"headcount/auth"
)

func TestVerifyKind(t *testing.T) {
	t.Parallel()
	const refused = "for another kind of videos (kind)"
	for _, tt := range []struct {
		name   string
		claim  any // nil: none
		kind   string
		reason string
	}{
		{"its own", "live", "live", ""},
		{"another's", "video", "live", refused},
		{"the first kind's", "live", "video", refused},
		{"none, for the first", nil, "video", ""},
		{"none, for another", nil, "live", refused},
		{"empty", "", "video", refused},
		{"in another case", "Live", "live", refused},
		{"no text", []string{"live"}, "live", refused},
		{"no kinds", "live", "", ""},
		{"no kinds, no text", 7, "", ""},
	} {
		keys := new(auth.Keys)
		if errs := keys.AddList([]string{entry("hs", "HS256", secret)}); errs != nil {
			t.Fatal(errs)
		}
		v := auth.New(auth.Options{Keys: keys, Kind: tt.kind, DefaultKind: "video", Now: nowFunc})
		changes := object{}
		if tt.claim != nil {
			changes["kind"] = tt.claim
		}
		video, viewer, err := v.Verify(hs256(t, changes))
		if tt.reason == "" {
			if video != "10001" || viewer != "u1" || err != nil {
				t.Errorf("%s: got %q, %q, %v; want 10001, u1", tt.name, video, viewer, err)
			}
			continue
		}
		if err == nil || err.Error() != tt.reason || video != "" || viewer != "" {
			t.Errorf("%s: got %q, %q, %v; want that it is %s", tt.name, video, viewer, err, tt.reason)
		}
		if _, ok := errors.AsType[interface {
			error
			Forbidden()
		}](err); !ok {
			t.Errorf("%s: %v has no method Forbidden", tt.name, err)
		}
	}
}
