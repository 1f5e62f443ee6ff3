package config

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

// A textFlag keeps the text of a key's flag. It is read together with the other layers, so that every mistake is
// reported and not only the first.
type textFlag struct{ text, kind string }

func (f *textFlag) String() string     { return f.text }
func (f *textFlag) Type() string       { return f.kind }
func (f *textFlag) Set(s string) error { f.text = s; return nil }

// newFlags declares the common flags, the program's own and one for every key, in this order.
func newFlags(o Options, known []key) *pflag.FlagSet {
	flags := pflag.NewFlagSet(o.Program, pflag.ContinueOnError)
	flags.SortFlags = false
	flags.SetOutput(io.Discard) // mistakes are returned and reported once
	flags.String("config", "", "the YAML `file` with the settings, also "+envConfig)
	flags.Bool("check-config", false, "check the settings, print them and exit")
	flags.Bool("version", false, "print the version and exit")
	flags.BoolP("help", "h", false, "print this text and exit")
	if o.Flags != nil {
		o.Flags(flags)
	}
	for _, k := range known {
		value := textFlag{text(k.value), kind(k.value)}
		if secret(k.name) {
			value.text = ""
		}
		flag := flags.VarPF(&value, k.name, "", variable(k.name))
		if value.kind == "bool" {
			flag.NoOptDefVal = "true"
		}
	}
	return flags
}

// parseFlags parses args. Its errors do not repeat them, as a slip may have put a password where a name belongs.
func parseFlags(flags *pflag.FlagSet, args []string) error {
	err := flags.Parse(args)
	var unknown *pflag.NotExistError
	var syntax *pflag.InvalidSyntaxError
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		return errors.New("unknown flag with one dash; settings have two, such as --window 10m")
	case errors.As(err, &unknown):
		var names []string
		flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		name := unknown.GetSpecifiedName()
		return fmt.Errorf("%s: unknown flag%s", plain("--"+name), strings.Replace(suggest(name, names, "."), "mean ", "mean --", 1))
	case errors.As(err, &syntax):
		return errors.New("a flag without a name; write it as in --window 10m")
	case err != nil:
		return err
	case flags.NArg() > 0:
		return errors.New("arguments that are no flags; true and false need an equals sign, as in --redis.tls=false")
	case flags.Changed("config") && flags.Lookup("config").Value.String() == "":
		return errors.New("--config: names no file")
	}
	return nil
}

// readFlags reads the keys that were given as flags.
func readFlags(flags *pflag.FlagSet, known []key) layer {
	given := newLayer()
	for _, k := range known {
		if flag := flags.Lookup(k.name); flag.Changed {
			v, err := parse(k.value, flag.Value.String())
			given.put(k.name, "--"+k.name, v, err)
		}
	}
	return given
}

// usage is the answer to --help.
func usage(program string, flags *pflag.FlagSet) string {
	return "Usage: " + program + " [flags]\n\n" +
		"A setting is a flag, a variable of the environment or a key of the YAML file:\n" +
		"--redis.addrs, HEADCOUNT_REDIS_ADDRS and addrs below redis are the same one.\n" +
		"A flag outweighs a variable, a variable the file, the file the default.\n\n" +
		flags.FlagUsages()
}
