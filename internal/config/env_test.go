package config

import (
	"strings"
	"testing"
)

func TestLoadEnvMistakes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		environ []string
		want    string // one line a mistake
	}{
		{"misspelled", []string{"HEADCOUNT_WINDW=5m"}, "HEADCOUNT_WINDW: unknown variable, did you mean HEADCOUNT_WINDOW?"},
		{"misspelled and nested", []string{"HEADCOUNT_REDIS_ADDR=a:1"}, "HEADCOUNT_REDIS_ADDR: unknown variable, did you mean HEADCOUNT_REDIS_ADDRS?"},
		{"group left out", []string{"HEADCOUNT_INTERVAL=5s"}, "HEADCOUNT_INTERVAL: unknown variable, did you mean HEADCOUNT_WORKER_INTERVAL?"},
		{"path misspelled", []string{"HEADCOUNT_CONFIGS=a"}, "HEADCOUNT_CONFIGS: unknown variable, did you mean HEADCOUNT_CONFIG?"},
		{"nothing near", []string{"HEADCOUNT_COLOUR=blue"}, "HEADCOUNT_COLOUR: unknown variable"},
		{"long", []string{"HEADCOUNT_" + strings.Repeat("X", 100) + "=x"}, `"HEADCOUNT_` + strings.Repeat("X", 70) + `...": unknown variable`},
		{"prefix alone", []string{"HEADCOUNT_=x"}, "HEADCOUNT_: unknown variable"},
		{"lower case", []string{"HEADCOUNT_window=5m"}, "HEADCOUNT_window: unknown variable"},
		{"unprintable", []string{"HEADCOUNT_A\nB=x"}, `"HEADCOUNT_A\nB": unknown variable`},
		{"a flag's name", []string{"HEADCOUNT_CHECK_CONFIG=true"}, "HEADCOUNT_CHECK_CONFIG: unknown variable"},
		{"duration without unit", []string{"HEADCOUNT_WINDOW=5"}, "HEADCOUNT_WINDOW: window: 5 has no unit; write 5s, 5m or 5h"},
		{"duration empty", []string{"HEADCOUNT_KEY_TTL="}, "HEADCOUNT_KEY_TTL: key_ttl: has no value"},
		{"number", []string{"HEADCOUNT_REDIS_DB=one"}, `HEADCOUNT_REDIS_DB: redis.db: "one" is not a whole number`},
		{"bool", []string{"HEADCOUNT_REDIS_TLS=1"}, `HEADCOUNT_REDIS_TLS: redis.tls: "1" is neither true nor false`},
		{"list empty", []string{"HEADCOUNT_REDIS_ADDRS="}, "HEADCOUNT_REDIS_ADDRS: redis.addrs: has no address"},
		{"list with an empty item", []string{"HEADCOUNT_REDIS_ADDRS=a:1,", "HEADCOUNT_REDIS_MODE=cluster"}, `HEADCOUNT_REDIS_ADDRS: redis.addrs: "" is not host:port`},
		{"enum", []string{"HEADCOUNT_LOG_LEVEL=INFO"}, `HEADCOUNT_LOG_LEVEL: log.level: "INFO" is none of debug, info, warn, error`},
		{"long value", []string{"HEADCOUNT_LOG_LEVEL=" + strings.Repeat("x", 81)}, `HEADCOUNT_LOG_LEVEL: log.level: "` + strings.Repeat("x", 80) + `..." is none of debug, info, warn, error`},
		{"not UTF-8", []string{"HEADCOUNT_PREFIX=\xff"}, `HEADCOUNT_PREFIX: prefix: "\xff" is not UTF-8`},
		{"relation", []string{"HEADCOUNT_WINDOW=11m", "HEADCOUNT_KEY_TTL=16m"}, "HEADCOUNT_KEY_TTL, HEADCOUNT_WINDOW: key_ttl 16m is less than 1.5 x window 11m"},
		{"relation with a default", []string{"HEADCOUNT_COUNT_TTL=10m"}, "HEADCOUNT_COUNT_TTL: count_ttl 10m is not more than window 10m"},
		{"path empty", []string{"HEADCOUNT_CONFIG="}, "HEADCOUNT_CONFIG: names no file"},
		{"path missing", []string{"HEADCOUNT_CONFIG=/absent.yaml"}, "config file: open /absent.yaml: no such file or directory"},
		{
			"password in an address", []string{"HEADCOUNT_REDIS_ADDRS=redis://:hunter2@a:1"},
			"HEADCOUNT_REDIS_ADDRS: redis.addrs: address 1 is more than host:port; user and password have keys of their own",
		},
		{
			"password in an unknown variable", []string{"HEADCOUNT_REDIS_PASSWRD=hunter2"},
			"HEADCOUNT_REDIS_PASSWRD: unknown variable, did you mean HEADCOUNT_REDIS_PASSWORD?",
		},
		{
			"several", []string{"HEADCOUNT_REDIS_DB=x", "HEADCOUNT_COLOUR=x", "HEADCOUNT_PREFIX="},
			"HEADCOUNT_REDIS_DB: redis.db: \"x\" is not a whole number\nHEADCOUNT_COLOUR: unknown variable\nHEADCOUNT_PREFIX: prefix: is empty",
		},
		{
			"Service named headcount",
			[]string{
				"HEADCOUNT_SERVICE_HOST=10.0.0.1", "HEADCOUNT_SERVICE_PORT=8080", "HEADCOUNT_SERVICE_PORT_HTTP=8080",
				"HEADCOUNT_PORT=tcp://10.0.0.1:8080", "HEADCOUNT_PORT_8080_TCP=tcp://10.0.0.1:8080",
				"HEADCOUNT_PORT_8080_TCP_PROTO=tcp", "HEADCOUNT_PORT_8080_TCP_PORT=8080", "HEADCOUNT_PORT_8080_TCP_ADDR=10.0.0.1",
			},
			"HEADCOUNT_SERVICE_HOST, HEADCOUNT_SERVICE_PORT, HEADCOUNT_SERVICE_PORT_HTTP, HEADCOUNT_PORT, HEADCOUNT_PORT_8080_TCP, " +
				"HEADCOUNT_PORT_8080_TCP_PROTO, HEADCOUNT_PORT_8080_TCP_PORT, HEADCOUNT_PORT_8080_TCP_ADDR: not settings but what " +
				"Kubernetes adds for a Service of that name; set enableServiceLinks: false in the pod's spec",
		},
		{
			"Service named headcount-redis", []string{"HEADCOUNT_REDIS_PORT_6379_TCP_ADDR=10.0.0.1"},
			"HEADCOUNT_REDIS_PORT_6379_TCP_ADDR: not settings but what Kubernetes adds for a Service of that name; " +
				"set enableServiceLinks: false in the pod's spec",
		},
	} {
		o := options()
		o.Environ = append([]string{"HOME=/", "HEADCOUNTER=x", "OTHER_HEADCOUNT_X=x"}, tt.environ...)
		_, err := Load(o)
		if got := message(err); got != tt.want {
			t.Errorf("%s:\n got %q\nwant %q", tt.name, got, tt.want)
		}
	}
}

func TestEnvEmptyText(t *testing.T) {
	t.Parallel()
	o := options("--config", writeFile(t, "redis: {password: hunter2}\nrecorder: {cors_origins: [\"https://a.example\"]}\n"))
	o.Environ = []string{"HEADCOUNT_REDIS_PASSWORD=", "HEADCOUNT_RECORDER_CORS_ORIGINS="}
	got := load(t, o)
	if got.Redis.Password != "" || len(got.Recorder.CORSOrigins) != 0 {
		t.Errorf("an empty variable does not empty its key: password %q, origins %q", got.Redis.Password, got.Recorder.CORSOrigins)
	}
}

func TestEnvListIsTrimmed(t *testing.T) {
	t.Parallel()
	o := options()
	o.Environ = []string{"HEADCOUNT_REDIS_MODE=cluster", "HEADCOUNT_REDIS_ADDRS=a:1, b:2"}
	if got := load(t, o).Redis.Addrs; len(got) != 2 || got[0] != "a:1" || got[1] != "b:2" {
		t.Errorf("addrs = %q, want a:1 and b:2", got)
	}
}
