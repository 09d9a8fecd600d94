package situation

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"cnictl/doctor/evidence/file"
)

func refuse(node *yaml.Node, member, why string) error {
	return &file.Refusal{Line: node.Line, Member: member, Why: why}
}

func join(path, member string) string {
	if path == "" {
		return member
	}
	return path + "." + member
}

// each calls do for every member of an object. It rejects duplicate members.
func each(node *yaml.Node, path string, do func(key string, at, value *yaml.Node) error) error {
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		at, value := node.Content[i], node.Content[i+1]
		if at.Kind != yaml.ScalarNode {
			return refuse(at, path, "want a name, not "+kind(at))
		}
		if seen[at.Value] {
			return refuse(at, join(path, at.Value), "given twice")
		}
		seen[at.Value] = true
		if err := do(at.Value, at, value); err != nil {
			return err
		}
	}
	return nil
}

// kind describes a value of the file, for errors.
func kind(node *yaml.Node) string {
	switch node.Kind {
	case yaml.MappingNode:
		return "an object"
	case yaml.SequenceNode:
		return "a list"
	}
	switch node.Tag {
	case "!!str":
		return strconv.Quote(short(node.Value))
	case "!!null":
		return "null"
	}
	return short(node.Value)
}

// short returns the beginning of a value: input that is no evidence file can be anything.
func short(value string) string {
	const most = 40
	if len(value) <= most {
		return value
	}
	return strings.ToValidUTF8(value[:most], "") + "…"
}

// wanted describes a type, for errors.
func wanted(t reflect.Type) string {
	switch t.String() {
	case "time.Time":
		return "a time, such as 2026-11-21T14:02:11Z or -40s"
	case "time.Duration":
		return "a duration, such as 1h30m"
	case "netip.Addr":
		return "an IP address"
	case "netip.Prefix":
		return "a CIDR"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return wanted(t.Elem())
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint32, reflect.Uint64:
		return "an integer ≥ 0"
	case reflect.Float64:
		return "a number ≥ 0"
	case reflect.Slice:
		return "a list"
	}
	return "an object"
}

// time accepts an absolute time, or one relative to the reading, counting back.
func (d decoder) time(node *yaml.Node, dst reflect.Value, path string) error {
	bad := refuse(node, path, "want "+wanted(timeType)+", not "+kind(node))
	if node.Kind != yaml.ScalarNode {
		return bad
	}
	if ago, ok := strings.CutPrefix(node.Value, "-"); ok {
		span, err := parseDuration(ago)
		if err != nil || d.at.IsZero() {
			return bad
		}
		dst.Set(reflect.ValueOf(d.at.Add(-span)))
		return nil
	}
	at, err := time.Parse(time.RFC3339Nano, node.Value)
	if err != nil || at.Year() < 1970 {
		return bad
	}
	dst.Set(reflect.ValueOf(at.UTC()))
	return nil
}

func (d decoder) duration(node *yaml.Node, dst reflect.Value, path string) error {
	span, err := parseDuration(node.Value)
	if node.Kind != yaml.ScalarNode || err != nil {
		return refuse(node, path, "want "+wanted(durationType)+", not "+kind(node))
	}
	dst.SetInt(int64(span))
	return nil
}

// parseDuration reads numbers with the units s, m, h, d.
func parseDuration(text string) (time.Duration, error) {
	days, rest, ok := strings.Cut(text, "d")
	if !ok {
		days, rest = "", text
	}
	var sum time.Duration
	if days != "" {
		n, err := strconv.ParseFloat(days, 64)
		if err != nil || n < 0 || n > 36500 {
			return 0, fmt.Errorf("%q is not a duration", text)
		}
		sum = time.Duration(n * float64(24*time.Hour))
	}
	if rest == "" && ok {
		return sum, nil
	}
	if strings.Trim(rest, "0123456789.smh") != "" || strings.Contains(rest, "ms") {
		return 0, fmt.Errorf("%q is not a duration", text)
	}
	span, err := time.ParseDuration(rest)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration", text)
	}
	return sum + span, nil
}
