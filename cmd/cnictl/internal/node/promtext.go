package node

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"cnictl/daemon/api/introspect"
)

// Bounds of a page of metrics: far above what a daemon tells.
const (
	maxMetricsBytes = 8 << 20
	maxMetrics      = 100_000
)

// parseMetrics reads the text format of Prometheus (version 0.0.4). It is lenient where
// a sample is whole, and an error names the line where it is not.
func parseMetrics(text string) ([]introspect.Metric, error) {
	if len(text) > maxMetricsBytes {
		return nil, fmt.Errorf("more than %d bytes", maxMetricsBytes)
	}
	families := map[string]*family{}
	of := func(name string) *family {
		if families[name] == nil {
			families[name] = &family{kind: "untyped"}
		}
		return families[name]
	}
	metrics := []introspect.Metric{}
	number := 0
	for line := range strings.SplitSeq(text, "\n") {
		number++
		line = strings.Trim(line, " \t\r")
		if comment, ok := strings.CutPrefix(line, "#"); ok {
			word, rest, _ := strings.Cut(strings.TrimLeft(comment, " \t"), " ")
			name, rest, _ := strings.Cut(strings.TrimLeft(rest, " \t"), " ")
			switch word {
			case "HELP":
				of(name).help = unescapeHelp(strings.TrimLeft(rest, " \t"))
			case "TYPE":
				of(name).kind = strings.TrimSpace(rest)
			}
			continue
		}
		if line == "" {
			continue
		}
		m, err := parseSample(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if len(metrics) == maxMetrics {
			return nil, fmt.Errorf("more than %d samples", maxMetrics)
		}
		m.Type, m.Help = "untyped", ""
		for _, suffix := range []string{"", "_bucket", "_sum", "_count"} {
			base, ok := strings.CutSuffix(m.Name, suffix)
			if f := families[base]; ok && f != nil {
				m.Type, m.Help = f.kind, f.help
				break
			}
		}
		metrics = append(metrics, m)
	}
	return metrics, nil
}

type family struct{ kind, help string }

// parseSample reads name{label="value",…} value [timestamp], or with names that are no
// plain words {"name","label"="value",…} value [timestamp].
func parseSample(line string) (introspect.Metric, error) {
	m := introspect.Metric{Labels: map[string]string{}}
	end := strings.IndexFunc(line, func(r rune) bool {
		return r != '_' && r != ':' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
	if end < 0 || end == 0 && line[0] != '{' {
		return m, fmt.Errorf("no sample in %.40q", line)
	}
	m.Name = line[:end]
	rest := strings.TrimLeft(line[end:], " \t")
	if inner, ok := strings.CutPrefix(rest, "{"); ok {
		var err error
		if rest, err = parseLabels(inner, &m); err != nil {
			return m, err
		}
	}
	if m.Name == "" {
		return m, fmt.Errorf("no sample in %.40q", line)
	}
	fields := strings.Fields(rest)
	if len(fields) < 1 || len(fields) > 2 {
		return m, fmt.Errorf("no value in %.40q", line)
	}
	v, err := strconv.ParseFloat(fields[0], 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return m, fmt.Errorf("the value %.40q is not a number", fields[0])
	}
	if !math.IsNaN(v) && !math.IsInf(v, 0) {
		m.Value = &v
	}
	return m, nil
}

// parseLabels reads label="value",…} into the sample and returns what follows. A quoted
// name without a value is that of the metric.
func parseLabels(s string, m *introspect.Metric) (rest string, err error) {
	for {
		s = strings.TrimLeft(s, " \t,")
		if after, ok := strings.CutPrefix(s, "}"); ok {
			return after, nil
		}
		var name string
		quoted, isQuoted := strings.CutPrefix(s, `"`)
		if isQuoted {
			if name, s, err = unquote(quoted); err != nil {
				return "", err
			}
		} else if i := strings.IndexByte(s, '='); i > 0 {
			name, s = strings.TrimSpace(s[:i]), s[i:]
		}
		value, ok := strings.CutPrefix(strings.TrimLeft(s, " \t"), "=")
		if isQuoted && !ok && m.Name == "" {
			m.Name = name
			continue
		}
		value, opened := strings.CutPrefix(strings.TrimLeft(value, " \t"), `"`)
		if !ok || !opened || name == "" {
			return "", fmt.Errorf("labels end in the middle: %.40q", s)
		}
		if m.Labels[name], s, err = unquote(value); err != nil {
			return "", err
		}
	}
}

// unquote reads up to the closing quote.
func unquote(s string) (text, rest string, _ error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), s[i+1:], nil
		case '\\':
			i++
			if i == len(s) {
				break
			}
			switch s[i] {
			case 'n':
				b.WriteByte('\n')
			case '\\', '"':
				b.WriteByte(s[i])
			default:
				b.WriteByte('\\')
				b.WriteByte(s[i])
			}
		default:
			b.WriteByte(s[i])
		}
	}
	return "", "", fmt.Errorf("a label's value does not end: %.40q", s)
}

func unescapeHelp(s string) string {
	return strings.NewReplacer(`\\`, `\`, `\n`, "\n").Replace(s)
}
