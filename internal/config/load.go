package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"
)

// ErrDone says that --help, --version or --check-config was answered on Stdout: the program has nothing left to do.
var ErrDone = errors.New("config: answered, nothing left to do")

// Options say where a program's settings come from.
type Options struct {
	// Program is its name, e.g. "recorder"; Version is what --version prints after it.
	Program, Version string
	// Args are its arguments, without its name.
	Args []string
	// Environ is its environment, in the form of os.Environ.
	Environ []string
	// Stdout receives the answers to --help, --version and --check-config.
	Stdout io.Writer
	// Flags declares further flags of the program; nil declares none.
	Flags func(*pflag.FlagSet)
	// Checks check single keys, by name, beyond what this package knows of them. Each returns what is wrong with its key,
	// without repeating a secret; nil checks nothing more.
	Checks map[string]func(Config) []error
	// Defaults are in force where nothing else is said; the zero Config stands for Default().
	Defaults Config
}

// settle is longer than a program pauses while it writes a file.
const settle = 50 * time.Millisecond

// A Source holds the configuration in force and knows where it came from.
type Source struct {
	path     string // of the file; empty without one
	defaults Config
	known    []key
	checks   map[string]func(Config) []error
	over     []layer       // what outweighs the file, the strongest last: the environment and the flags
	loaded   reading       // what the file held when it was loaded
	settle   time.Duration // how long a changed file must stay the same before it counts
	current  atomic.Pointer[Config]
}

// Load reads and checks the settings. The error tells every mistake, one on a line, or is ErrDone. No file is read
// unless --config or HEADCOUNT_CONFIG names one.
func Load(o Options) (*Source, error) {
	if reflect.ValueOf(o.Defaults).IsZero() {
		o.Defaults = Default()
	}
	s := &Source{defaults: o.Defaults, known: keys(o.Defaults), checks: o.Checks, settle: settle}
	flags := newFlags(o, s.known)
	if err := parseFlags(flags, o.Args); err != nil {
		return nil, err
	}
	given := func(name string) bool { return flags.Lookup(name).Value.String() == "true" }
	if given("help") {
		return nil, answer(o.Stdout, usage(o.Program, flags))
	}
	if given("version") {
		return nil, answer(o.Stdout, o.Program+" "+o.Version+"\n")
	}
	env, path := readEnv(o.Environ, s.known)
	if flags.Changed("config") {
		path = flags.Lookup("config").Value.String()
	}
	s.path, s.over = path, []layer{env, readFlags(flags, s.known)}
	s.loaded = read(path)
	c, err := s.build(s.loaded)
	if err != nil {
		return nil, err
	}
	if given("check-config") {
		return nil, answer(o.Stdout, "config: ok\n"+render(c))
	}
	s.current.Store(&c)
	return s, nil
}

// answer prints text and returns ErrDone, or why it could not be printed.
func answer(w io.Writer, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return ErrDone
}

// Config returns the configuration in force. It is safe for concurrent use; its lists must not be changed.
func (s *Source) Config() Config { return *s.current.Load() }

// build lays what the file held under the environment and the flags, and checks the whole.
func (s *Source) build(r reading) (Config, error) {
	file, fileErr := readFile(s.path, r, s.known)
	layers := append([]layer{file}, s.over...)
	origins, unread := map[string]string{}, map[string]bool{}
	var errs []error
	for _, l := range layers {
		errs = append(errs, l.errs...)
		for name, setting := range l.settings {
			origins[name] = setting.origin
			unread[name] = unread[name] || setting.value == nil
		}
	}
	if fileErr != nil {
		// Without the file's values a check of the rest would report contradictions that are none.
		return Config{}, errors.Join(append(errs, fileErr)...)
	}
	c, err := merge(s.defaults, layers)
	if err != nil {
		return Config{}, err
	}
	for _, p := range append(c.problems(unread), s.problems(c, unread)...) {
		errs = append(errs, p.at(origins))
	}
	return c, errors.Join(errs...)
}

// problems makes the program's own checks.
func (s *Source) problems(c Config, unread map[string]bool) []problem {
	r := report{unread: unread, refused: map[string]bool{}}
	for _, k := range s.known {
		if check := s.checks[k.name]; check != nil {
			for _, err := range check(c) {
				r.refuse(k.name, "%v", err)
			}
		}
	}
	return r.problems
}

// merge decodes the defaults under the layers, the strongest last.
func merge(defaults Config, layers []layer) (Config, error) {
	v := viper.New()
	for _, k := range keys(defaults) {
		v.SetDefault(k.name, k.value)
	}
	for _, l := range layers {
		values := viper.New()
		for name, setting := range l.settings {
			if setting.value != nil {
				values.Set(name, setting.value)
			}
		}
		if err := v.MergeConfigMap(values.AllSettings()); err != nil {
			return Config{}, fmt.Errorf("merge: %w", err)
		}
	}
	var c Config
	// The values have their types already: what would convert them by guessing is switched off.
	strict := func(d *mapstructure.DecoderConfig) { d.WeaklyTypedInput, d.DecodeHook = false, nil }
	if err := v.UnmarshalExact(&c, strict); err != nil {
		return Config{}, fmt.Errorf("decode: %w", err)
	}
	return c, nil
}

// render writes c as YAML in the order of its fields, secrets hidden.
func render(c Config) string {
	var out strings.Builder
	open := ""
	for _, k := range keys(c) {
		group, name, nested := strings.Cut(k.name, ".")
		switch {
		case !nested:
			name = k.name
		case group != open:
			out.WriteString(group + ":\n  ")
			open = group
		default:
			out.WriteString("  ")
		}
		if secret(k.name) {
			k.value = hide(k.value)
		}
		out.WriteString(name + ": " + yamlValue(k.value) + "\n")
	}
	return out.String()
}

// yamlValue writes a value on one line; JSON is YAML.
func yamlValue(value any) string {
	if d, ok := value.(time.Duration); ok {
		return Short(d)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return "" // unreachable: texts, numbers, truth values and lists of texts all have a JSON form
	}
	return string(text)
}
