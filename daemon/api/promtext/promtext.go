package promtext

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// maxLine is the longest line that is read: some label values of upstream contain whole
// error texts. Longer lines are skipped.
const maxLine = 64 << 10

// Sample is the value of one series.
type Sample struct {
	Name   string
	Labels map[string]string
	Value  float64
}

// Series returns the sample's series in the text format, with labels sorted by name.
func (s Sample) Series() string {
	if len(s.Labels) == 0 {
		return s.Name
	}
	b := []byte(s.Name)
	separator := byte('{')
	for _, name := range slices.Sorted(maps.Keys(s.Labels)) {
		b = append(append(append(b, separator), name...), '=', '"')
		b = append(append(b, escape.Replace(s.Labels[name])...), '"')
		separator = ','
	}
	return string(append(b, '}'))
}

var escape = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// ParseSeries reads what Series writes.
func ParseSeries(text string) (Sample, error) { return parseSample(text + " 0") }

// Family is what the comments say about the metrics of one name.
type Family struct{ Type, Help string }

// Families returns the metric families that have a comment, by name.
func Families(text []byte) map[string]Family {
	out := map[string]Family{}
	for line := range bytes.Lines(text) {
		comment, ok := strings.CutPrefix(strings.Trim(string(line), " \t\r\n"), "#")
		if !ok {
			continue
		}
		word, rest, _ := strings.Cut(strings.TrimLeft(comment, " \t"), " ")
		name, rest, _ := strings.Cut(strings.TrimLeft(rest, " \t"), " ")
		f := out[name]
		switch word {
		case "HELP":
			f.Help = strings.NewReplacer(`\\`, `\`, `\n`, "\n").Replace(strings.TrimLeft(rest, " \t"))
		case "TYPE":
			f.Type = strings.TrimSpace(rest)
		default:
			continue
		}
		out[name] = f
	}
	return out
}

// NameOf returns the metric name at the start of a line.
func NameOf(line []byte) string {
	line = bytes.TrimLeft(line, " \t")
	if end := bytes.IndexAny(line, "{ \t\r\n"); end >= 0 {
		line = line[:end]
	}
	return string(line)
}

// Samples yields the samples whose name is wanted; with nil, all of them. It does not parse
// other lines. An error names its line; iteration continues with the next sample.
func Samples(text []byte, wanted func(name string) bool) iter.Seq2[Sample, error] {
	return func(yield func(Sample, error) bool) {
		number := 0
		for line := range bytes.Lines(text) {
			number++
			if len(line) > maxLine || wanted != nil && !wanted(NameOf(line)) {
				continue
			}
			line = bytes.Trim(line, " \t\r\n")
			if len(line) == 0 || line[0] == '#' {
				continue
			}
			s, err := parseSample(string(line))
			if err != nil {
				err = fmt.Errorf("line %d: %w", number, err)
			}
			if !yield(s, err) {
				return
			}
		}
	}
}

// parseSample reads name{label="value",…} value [timestamp] or, for names that are not
// plain words, {"name","label"="value",…} value [timestamp].
func parseSample(line string) (Sample, error) {
	s := Sample{Labels: map[string]string{}}
	end := strings.IndexFunc(line, func(r rune) bool {
		return r != '_' && r != ':' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
	if end < 0 {
		end = len(line)
	}
	if end == 0 && line[0] != '{' {
		return Sample{}, fmt.Errorf("no sample in %.40q", line)
	}
	s.Name = line[:end]
	rest := strings.TrimLeft(line[end:], " \t")
	if inner, ok := strings.CutPrefix(rest, "{"); ok {
		var err error
		if rest, err = s.parseLabels(inner); err != nil {
			return Sample{}, err
		}
	}
	if s.Name == "" {
		return Sample{}, fmt.Errorf("no sample in %.40q", line)
	}
	fields := strings.Fields(rest)
	if len(fields) < 1 || len(fields) > 2 {
		return Sample{}, fmt.Errorf("no value in %.40q", line)
	}
	var err error
	if s.Value, err = strconv.ParseFloat(fields[0], 64); err != nil && !errors.Is(err, strconv.ErrRange) {
		return Sample{}, fmt.Errorf("the value %.40q is not a number", fields[0])
	}
	return s, nil
}

// parseLabels reads label="value",…} and returns the rest. A quoted name without a value is
// the metric's name.
func (s *Sample) parseLabels(text string) (rest string, err error) {
	for {
		text = strings.TrimLeft(text, " \t")
		if after, ok := strings.CutPrefix(text, "}"); ok {
			return after, nil
		}
		var name string
		quoted, isQuoted := strings.CutPrefix(text, `"`)
		after := ""
		if isQuoted {
			if name, after, err = unquote(quoted); err != nil {
				return "", err
			}
		} else if i := strings.IndexByte(text, '='); i > 0 {
			name, after = strings.TrimRight(text[:i], " \t"), text[i:]
		}
		value, ok := strings.CutPrefix(strings.TrimLeft(after, " \t"), "=")
		if isQuoted && !ok && s.Name == "" {
			s.Name = name
		} else {
			value, opened := strings.CutPrefix(strings.TrimLeft(value, " \t"), `"`)
			if !ok || !opened || name == "" {
				return "", fmt.Errorf("labels end in the middle: %.40q", text)
			}
			if s.Labels[name], after, err = unquote(value); err != nil {
				return "", err
			}
		}
		after = strings.TrimLeft(after, " \t")
		if next, ok := strings.CutPrefix(after, ","); ok {
			after = next
		} else if !strings.HasPrefix(after, "}") {
			return "", fmt.Errorf("labels end in the middle: %.40q", after)
		}
		text = after
	}
}

// unquote reads up to the closing quote. The escapes are \\, \" and \n.
func unquote(s string) (text, rest string, _ error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), s[i+1:], nil
		case c != '\\':
			b.WriteByte(c)
		case i+1 == len(s):
			i++
		default:
			i++
			switch s[i] {
			case 'n':
				b.WriteByte('\n')
			case '"', '\\':
				b.WriteByte(s[i])
			default:
				return "", "", fmt.Errorf("a label's value has the escape %.4q", s[i-1:])
			}
		}
	}
	return "", "", fmt.Errorf("a label's value does not end: %.40q", s)
}
