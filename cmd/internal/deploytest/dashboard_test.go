package deploytest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// source is which data source a panel or a query reads.
type source struct{ Type, UID string }

type panel struct {
	ID         int
	Title      string
	Type       string
	Datasource source
	GridPos    struct{ H, W, X, Y int }
	Targets    []struct {
		Datasource source
		Expr       string
	}
}

type board struct {
	Panels     []panel
	Templating struct {
		List []struct{ Name, Type, Query string }
	}
}

func dashboard(t *testing.T) (b board) {
	t.Helper()
	if err := json.Unmarshal(read(t, deployed("grafana/dashboard.json")), &b); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b board) expressions() (all []string) {
	for _, p := range b.Panels {
		for _, target := range p.Targets {
			all = append(all, target.Expr)
		}
	}
	return all
}

func TestDashboardReadsTheChosenSource(t *testing.T) {
	t.Parallel()
	b := dashboard(t)
	if list := b.Templating.List; len(list) != 1 || list[0].Name != "datasource" || list[0].Type != "datasource" || list[0].Query != "prometheus" {
		t.Errorf("variables = %+v, want datasource, of the type prometheus", list)
	}
	want := source{"prometheus", "${datasource}"}
	for _, p := range b.Panels {
		if p.Type == "row" {
			continue
		}
		if p.Title == "" || len(p.Targets) == 0 || p.Datasource != want {
			t.Errorf("panel %d %q reads %d expressions from %v, want some from %v", p.ID, p.Title, len(p.Targets), p.Datasource, want)
		}
		for _, target := range p.Targets {
			if target.Datasource != want {
				t.Errorf("panel %q: %s reads %v, want %v", p.Title, target.Expr, target.Datasource, want)
			}
		}
	}
}

func TestDashboardPanelsDoNotOverlap(t *testing.T) {
	t.Parallel()
	const columns = 24
	taken := make(map[[2]int]int)
	var ids []int
	for _, p := range dashboard(t).Panels {
		if slices.Contains(ids, p.ID) || p.GridPos.X+p.GridPos.W > columns {
			t.Errorf("panel %d %q: its id is taken, or it is wider than the board", p.ID, p.Title)
		}
		ids = append(ids, p.ID)
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				cell := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other, found := taken[cell]; found {
					t.Fatalf("panels %d and %d overlap", other, p.ID)
				}
				taken[cell] = p.ID
			}
		}
	}
}

// Prometheus's own parser reads each expression, as that of a rule.
func TestDashboardExpressions(t *testing.T) {
	t.Parallel()
	type record struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	var records []record
	for i, expr := range dashboard(t).expressions() {
		records = append(records, record{fmt.Sprintf("dashboard:%d", i), strings.ReplaceAll(expr, "$__rate_interval", "5m")})
	}
	if len(records) == 0 {
		t.Fatal("the dashboard has no expressions")
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": records}}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "dashboard.yaml"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, dir, "check", "rules", "dashboard.yaml")
}
