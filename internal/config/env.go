package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

const (
	envPrefix = "HEADCOUNT_"
	envConfig = envPrefix + "CONFIG" // the path of the file, as --config
)

// serviceLink matches the variables that Kubernetes puts into every pod for a Service whose name begins with headcount.
var serviceLink = regexp.MustCompile(`^HEADCOUNT(_\w+)?_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_[A-Z]+(_PROTO|_PORT|_ADDR)?)?)$`)

// variable is the name of a key in the environment: redis.addrs is HEADCOUNT_REDIS_ADDRS.
func variable(name string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(name, ".", "_"))
}

// readEnv reads the HEADCOUNT_ variables out of environ, which has the form of os.Environ, and returns the path that
// HEADCOUNT_CONFIG gives besides.
func readEnv(environ []string, known []key) (layer, string) {
	byVariable := map[string]key{}
	for _, k := range known {
		byVariable[variable(k.name)] = k
	}
	env, path := newLayer(), ""
	var links []string
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		k, ok := byVariable[name]
		switch {
		case !strings.HasPrefix(name, envPrefix):
		case ok:
			v, err := parse(k.value, value)
			env.put(k.name, name, v, err)
		case name == envConfig && value == "":
			env.errs = append(env.errs, errors.New(envConfig+": names no file"))
		case name == envConfig:
			path = value
		case serviceLink.MatchString(name):
			links = append(links, name)
		default:
			env.errs = append(env.errs, fmt.Errorf("%s: unknown variable%s", plain(name), suggestVariable(name, known)))
		}
	}
	if links != nil {
		env.errs = append(env.errs, fmt.Errorf("%s: not settings but what Kubernetes adds for a Service of that name;"+
			" set enableServiceLinks: false in the pod's spec", strings.Join(links, ", ")))
	}
	return env, path
}

func suggestVariable(name string, known []key) string {
	names := []string{envConfig}
	for _, k := range known {
		names = append(names, variable(k.name))
	}
	// The prefix is left out of the comparison: all names share it, so it is no sign of likeness.
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], envPrefix)
	}
	hint := suggest(strings.TrimPrefix(name, envPrefix), names, "_")
	return strings.Replace(hint, "mean ", "mean "+envPrefix, 1)
}
