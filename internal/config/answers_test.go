package config

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

func TestLoadAnswers(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]string{
		"--version":      "recorder v1.2.3\n",
		"--check-config": "config: ok\n" + render(Default()),
	} {
		var out bytes.Buffer
		o := options(flag)
		o.Stdout = &out
		if _, err := Load(o); !errors.Is(err, ErrDone) {
			t.Errorf("%s: got error %v, want ErrDone", flag, err)
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", flag, diff)
		}
	}
}

func TestLoadHelp(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	o := options("--help")
	o.Stdout = &out
	o.Defaults = everyKey
	o.Flags = func(flags *pflag.FlagSet) { flags.Bool("once", false, "make one pass and exit") }
	if _, err := Load(o); !errors.Is(err, ErrDone) {
		t.Fatalf("got error %v, want ErrDone", err)
	}
	got := out.String()
	for _, want := range []string{"Usage: recorder [flags]", "--config file", "--once", "--check-config", "--version"} {
		if !strings.Contains(got, want) {
			t.Errorf("usage does not mention %q:\n%s", want, got)
		}
	}
	for _, k := range keys(Default()) {
		if !strings.Contains(got, "--"+k.name+" ") || !strings.Contains(got, variable(k.name)) {
			t.Errorf("usage does not mention %s with its variable", k.name)
		}
	}
	if strings.Contains(got, "hunter2") {
		t.Errorf("usage shows the password:\n%s", got)
	}
}

func TestCheckConfigHidesSecrets(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	o := options("--check-config")
	o.Stdout = &out
	o.Environ = []string{"HEADCOUNT_REDIS_PASSWORD=hunter2", "HEADCOUNT_AUTH_PLAY_KEYS=k:HS256:hunter2,hunter2"}
	if _, err := Load(o); !errors.Is(err, ErrDone) {
		t.Fatalf("got error %v, want ErrDone", err)
	}
	got := out.String()
	for _, want := range []string{"\n  password: \"***\"\n", "\n  play_keys: [\"***\",\"***\"]\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q, got:\n%s", want, got)
		}
	}
	if strings.Contains(got, "hunter2") {
		t.Errorf("a secret is shown:\n%s", got)
	}
}

func TestCheckConfigReportsMistakes(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	o := options("--check-config", "--window=5")
	o.Stdout = &out
	_, err := Load(o)
	if got, want := message(err), "--window: window: 5 has no unit; write 5s, 5m or 5h"; got != want {
		t.Errorf("got error %q, want %q", got, want)
	}
	if got := out.String(); got != "" {
		t.Errorf("printed %q, want nothing", got)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestLoadAnswerNotPrinted(t *testing.T) {
	t.Parallel()
	o := options("--version")
	o.Stdout = brokenWriter{}
	_, err := Load(o)
	if got, want := message(err), "print: disk full"; got != want {
		t.Errorf("got error %q, want %q", got, want)
	}
}
