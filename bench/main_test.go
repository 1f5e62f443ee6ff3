package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"headcount/bench/internal/contender"
)

// TestMain lets the test binary be the processes that it starts of itself.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "child" || os.Args[1] == "serve") {
		if err := run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func TestQuickComparison(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run(t.Context(), []string{"pass", "--quick", "--only", "many,idle", "--json"}, nil, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	var tables []struct {
		Workload string
		Rows     []map[string]any
	}
	if err := json.Unmarshal(out.Bytes(), &tables); err != nil {
		t.Fatalf("%v in %s", err, out.String())
	}
	if len(tables) != 2 || tables[0].Workload != "many" || tables[1].Workload != "idle" {
		t.Fatalf("got %s, want the tables of many and idle", out.String())
	}
	var names []string
	for _, row := range tables[0].Rows {
		names = append(names, row["name"].(string))
		for _, figure := range []string{"wall_ms", "redis_cpu_ms", "round_trips", "peak_mib", "bytes_per_viewer"} {
			if value, _ := row[figure].(float64); value <= 0 {
				t.Errorf("%s of %s is %v, want more than 0", figure, row["name"], row[figure])
			}
		}
	}
	for _, kind := range contender.Kinds() {
		if !slices.Contains(names, kind.Name) {
			t.Errorf("%s does not take part", kind.Name)
		}
	}
}

func TestQuickLoads(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]map[string][]string{
		"record": {"plays": {"ours", "one call", "no redis", "HSET by redis-benchmark"}, "overload": {"recorded", "refused with 503"}},
		"lookup": {"cached": {"ours", "constant"}, "cold": {"ours"}},
	} {
		var out bytes.Buffer
		only := strings.Join(slices.Sorted(maps.Keys(want)), ",")
		if err := run(t.Context(), []string{command, "--quick", "--only", only, "--json"}, nil, &out, io.Discard); err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		var tables []struct {
			Workload string
			Rows     []map[string]any
		}
		if err := json.Unmarshal(out.Bytes(), &tables); err != nil {
			t.Fatalf("%v in %s", err, out.String())
		}
		for _, table := range tables {
			for _, name := range want[table.Workload] {
				row := slices.IndexFunc(table.Rows, func(r map[string]any) bool { return r["name"] == name })
				if row < 0 {
					t.Errorf("%s %s: %s does not take part", command, table.Workload, name)
					continue
				}
				for figure, value := range table.Rows[row] {
					if n, ok := value.(float64); ok && n <= 0 && figure != "refused_percent" {
						t.Errorf("%s %s: %s of %s is %v, want more than 0", command, table.Workload, figure, name, n)
					}
				}
			}
		}
		if len(tables) != len(want) {
			t.Errorf("%s: got %d tables, want %d", command, len(tables), len(want))
		}
	}
}

func TestBadArguments(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"", "fail", "pass -n 0", "pass --only many,nothing", "pass --unknown", "pass --scale -1"} {
		if err := run(t.Context(), strings.Fields(args), nil, io.Discard, io.Discard); err == nil {
			t.Errorf("bench %s: no error", args)
		}
	}
}
