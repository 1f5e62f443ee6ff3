package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// A reading is what one attempt to read the file found: its content, or why there is none. Readings are compared, so
// the error is kept as text.
type reading struct{ content, err string }

// read reads the file; without a path it is as if it were empty.
func read(path string) reading {
	if path == "" {
		return reading{}
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return reading{err: err.Error()}
	}
	return reading{content: string(content)}
}

// readFile takes the YAML of the file called name apart. Mistakes in single keys are in the layer; the error says why
// the file as a whole could not be read.
func readFile(name string, r reading, known []key) (layer, error) {
	file := fileReader{name: name, layer: newLayer(), known: map[string]key{}, groups: map[string]bool{}, lines: map[string]int{}}
	for _, k := range known {
		file.known[k.name] = k
		file.names = append(file.names, k.name)
		if group, _, ok := strings.Cut(k.name, "."); ok {
			file.groups[group] = true
		}
	}
	if r.err != "" {
		return file.layer, fmt.Errorf("config file: %s", r.err)
	}
	root, err := document(r.content)
	switch {
	case err != nil:
		return file.layer, syntaxError(name, r.content, err)
	case root == nil || root.ShortTag() == "!!null": // an empty file is one that changes nothing
	case root.Kind != yaml.MappingNode:
		return file.layer, fmt.Errorf("%s:%d: want keys with values, such as window: 10m", name, root.Line)
	default:
		file.group("", root)
	}
	return file.layer, nil
}

// document parses content, which must be one YAML document; it is nil when there is none.
func document(content string) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(strings.NewReader(content))
	var first, second yaml.Node
	if err := decoder.Decode(&first); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	switch err := decoder.Decode(&second); {
	case err == nil:
		return nil, fmt.Errorf("yaml: line %d: a second document begins here; one file holds one", second.Line)
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	return first.Content[0], nil
}

var (
	yamlLine   = regexp.MustCompile(`^line (\d+): `)
	tabIndent  = regexp.MustCompile(`(?m)^ *\t`)
	yamlAnchor = regexp.MustCompile(`^unknown anchor '.*' referenced$`)
)

// syntaxError words what the YAML parser found as "file:line: what".
func syntaxError(name, content string, err error) error {
	what := strings.TrimPrefix(err.Error(), "yaml: ")
	if line := yamlLine.FindStringSubmatch(what); line != nil {
		name, what = name+":"+line[1], what[len(line[0]):]
	}
	if yamlAnchor.MatchString(what) {
		// The anchor's name may well be a password that begins with an asterisk, so it is not repeated.
		what = "unknown anchor referenced; a value that begins with * must be in quotes"
	}
	if tabIndent.MatchString(content) {
		what += "; a tab indents a line, YAML wants spaces"
	}
	return fmt.Errorf("%s: %s", name, what)
}

// A fileReader walks the nodes of one file.
type fileReader struct {
	name   string
	layer  layer
	known  map[string]key
	names  []string // of known, in order
	groups map[string]bool
	lines  map[string]int // where each name was first seen
}

// group reads the keys of a mapping, whose full names begin with prefix.
func (f *fileReader) group(prefix string, mapping *yaml.Node) {
	for pair := range slices.Chunk(mapping.Content, 2) {
		name, value := prefix+pair[0].Value, deref(pair[1])
		origin := fmt.Sprintf("%s:%d", f.name, pair[0].Line)
		k, known := f.known[name]
		switch {
		case f.lines[name] > 0:
			f.refuse("%s: %s is given twice, first on line %d", origin, plain(name), f.lines[name])
		case known:
			v, err := nodeValue(k.value, value)
			f.layer.put(name, origin, v, err)
		case !f.groups[name]:
			f.refuse("%s: unknown key %s%s", origin, plain(name), suggest(name, f.names, "."))
		case value.Kind == yaml.MappingNode:
			f.group(name+".", value)
		case value.ShortTag() != "!!null": // a group without keys is one that changes nothing
			f.refuse("%s: %s is a group; want keys with values below it", origin, name)
		}
		f.lines[name] = pair[0].Line
	}
}

func (f *fileReader) refuse(format string, args ...any) {
	f.layer.errs = append(f.layer.errs, fmt.Errorf(format, args...))
}

// deref follows an alias to the node it stands for.
func deref(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// nodeValue reads n as the type of like. YAML's own type has to fit, for it shows what was meant: an unquoted 0123 is a
// number and has lost its zero before it could become text. The errors do not repeat values, which may be secret.
func nodeValue(like any, n *yaml.Node) (any, error) {
	if n.ShortTag() == "!!null" {
		return nil, errors.New("has no value")
	}
	switch like.(type) {
	case []string:
		return nodeList(n)
	case time.Duration:
		if !scalar(n, "!!str", "!!int", "!!float") {
			return nil, errors.New("want a duration such as 30s")
		}
	case int:
		if !scalar(n, "!!int") {
			return nil, errors.New("want a whole number, without quotes")
		}
	case bool:
		if !scalar(n, "!!bool") {
			return nil, errors.New("want true or false, without quotes")
		}
	default:
		if !scalar(n, "!!str") {
			return nil, errors.New("want text; put the value in quotes")
		}
	}
	return parse(like, n.Value)
}

func nodeList(n *yaml.Node) (any, error) {
	if n.Kind != yaml.SequenceNode {
		return nil, errors.New(`want a list such as ["a", "b"]`)
	}
	list := make([]string, len(n.Content))
	for i, item := range n.Content {
		if item = deref(item); !scalar(item, "!!str") {
			return nil, fmt.Errorf("item %d: want text; put the value in quotes", i+1)
		}
		list[i] = item.Value
	}
	return list, nil
}

func scalar(n *yaml.Node, tags ...string) bool {
	return n.Kind == yaml.ScalarNode && slices.Contains(tags, n.ShortTag())
}
