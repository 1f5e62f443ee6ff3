package deploytest

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

type rule struct {
	Alert       string
	Expr        string
	Labels      map[string]string
	Annotations map[string]string
}

type rulesFile struct {
	Groups []struct{ Rules []rule }
}

func rules(t *testing.T) (all []rule) {
	t.Helper()
	var file rulesFile
	if err := yaml.Unmarshal(read(t, deployed("prometheus/alerts.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("alerts.yaml has no rules")
	}
	return all
}

func TestAlerts(t *testing.T) {
	t.Parallel()
	promtool(t, deployed("prometheus"), "check", "rules", "alerts.yaml")
	promtool(t, deployed("prometheus"), "test", "rules", "alerts_test.yaml")
}

// Each alert is seen to fire, and not to fire in ordinary times.
func TestAlertsAreTested(t *testing.T) {
	t.Parallel()
	var file struct {
		Tests []struct {
			Name  string
			Rules []struct {
				Alertname string
				Expected  []struct{} `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	if err := yaml.Unmarshal(read(t, deployed("prometheus/alerts_test.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	fires, quiet := make(map[string]bool), make(map[string]bool)
	for _, test := range file.Tests {
		for _, r := range test.Rules {
			fires[r.Alertname] = fires[r.Alertname] || len(r.Expected) > 0
			quiet[r.Alertname] = quiet[r.Alertname] || (test.Name == "ordinary times" && len(r.Expected) == 0)
		}
	}
	for _, r := range rules(t) {
		if !fires[r.Alert] || !quiet[r.Alert] {
			t.Errorf("alerts_test.yaml: %s is seen to fire: %t, not to fire in ordinary times: %t", r.Alert, fires[r.Alert], quiet[r.Alert])
		}
	}
}

func TestAlertsTellWhatToDo(t *testing.T) {
	t.Parallel()
	manual := string(read(t, filepath.Join("..", "..", "..", "docs", "operations.md")))
	for _, r := range rules(t) {
		if severity := r.Labels["severity"]; !slices.Contains([]string{"critical", "warning"}, severity) {
			t.Errorf("%s: severity %q", r.Alert, severity)
		}
		for _, annotation := range []string{"summary", "description"} {
			if r.Annotations[annotation] == "" {
				t.Errorf("%s has no %s", r.Alert, annotation)
			}
		}
		if got, want := r.Annotations["runbook_url"], "docs/operations.md#"+strings.ToLower(r.Alert); got != want {
			t.Errorf("%s: runbook_url %q, want %q", r.Alert, got, want)
		}
		if !strings.Contains(manual, "\n### "+r.Alert+"\n") {
			t.Errorf("docs/operations.md has no heading ### %s", r.Alert)
		}
	}
}
