package e2e_test

import (
	"io"
	"regexp"
	"strings"

	"cnictl/testenv/node"
)

// scrape reads the metrics of a node's daemon.
func (l *lab) scrape(n *node.Node) string {
	l.t.Helper()
	conn := l.dial(n, "tcp", "127.0.0.1:61678")
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /metrics HTTP/1.0\r\n\r\n"); err != nil {
		l.t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		l.t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(answer), "\r\n\r\n")
	return body
}

// series returns the series of a scrape without values: "type name{labels}". Label values that
// differ from node to node are normalised, and the buckets of a histogram are one
// series: ours has more of them.
func series(text string) map[string]bool {
	types, out := map[string]string{}, map[string]bool{}
	le := regexp.MustCompile(`,?le="[^"]*"`)
	suffix := regexp.MustCompile(`_(bucket|sum|count)$`)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if words := strings.Fields(line); len(words) == 4 && words[1] == "TYPE" {
			types[words[2]] = words[3]
		}
		if line == "" || line[0] == '#' || strings.HasPrefix(line, "go_") || strings.HasPrefix(line, "process_") {
			continue
		}
		line = line[:strings.LastIndexByte(line, ' ')]
		name, labels, _ := strings.Cut(line, "{")
		if family := suffix.ReplaceAllString(name, ""); types[family] != "" {
			name = family
		}
		labels = strings.TrimSuffix(le.ReplaceAllString(labels, ""), "}")
		out[types[name]+" "+name+"{"+normalLabels(labels)+"}"] = true
	}
	return out
}

// planReasons matches the planner's reasons, which the planner's tests check.
var planReasons = regexp.MustCompile(`action="[^"]*",reason="[^"]*"`)

// normalLabels replaces values that differ from node to node.
func normalLabels(labels string) string {
	for _, label := range []string{"cidr", "eni", "version", "goversion"} {
		labels = regexp.MustCompile(`\b`+label+`="[^"]*"`).ReplaceAllString(labels, label+`="…"`)
	}
	return labels
}

// value returns the value of one series, "" if the series does not exist.
func value(text, name string) string {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}
