package logs

import (
	"slices"
	"strings"
	"time"

	"cnictl/daemon/api/daemonlog"
	"cnictl/daemon/api/logline"
	"cnictl/daemon/fleet/document"
)

// levels are the log levels in order of severity.
var levels = daemonlog.Levels()

// parseLine parses a log line. Fields other than the message are appended to the message.
func parseLine(node, line string) document.LogItem {
	read := daemonlog.Parse(line)
	about, _ := read.Subject()
	item := document.LogItem{
		Node: node, Line: line, Level: read.Level, Message: read.Message,
		Namespace: about.Namespace, Pod: about.Pod, ENIID: about.ENI, IP: about.IP,
	}
	if !read.At.IsZero() {
		at := read.At.UTC()
		item.At = &at
	}
	if read.HasMessage {
		var b strings.Builder
		b.WriteString(read.Message)
		for _, m := range read.Members {
			b.WriteString(" " + m.Key + "=" + m.Value)
		}
		item.Message = b.String()
	}
	return item
}

// filter selects lines.
type filter struct {
	level  string    // the lowest level; "" for all
	pod    podFilter // pod that a line must name
	words  []string  // a line must contain all of them
	access bool      // include lines about introspection requests
}

func (w filter) accepts(i document.LogItem) bool {
	if w.level != "" && daemonlog.Severity(i.Level) < daemonlog.Severity(w.level) {
		return false
	}
	if !w.access && strings.Contains(i.Line, logline.TextAccess) && daemonlog.Parse(i.Line).Access() {
		return false
	}
	for _, word := range w.words {
		if !strings.Contains(i.Line, word) {
			return false
		}
	}
	return w.pod.accepts(i.Line)
}

// since drops the lines of one node that are older than a time, including their continuation
// lines, which have no time.
func since(items []document.LogItem, oldest time.Time) []document.LogItem {
	old := false
	return slices.DeleteFunc(items, func(i document.LogItem) bool {
		if i.At != nil {
			old = i.At.Before(oldest)
		}
		return old
	})
}

// sortLines sorts the lines of several nodes by time. A line without a time stays after the
// one before it.
func sortLines(items []document.LogItem) {
	at := map[string]time.Time{} // by node: time of the previous line
	times := make([]time.Time, len(items))
	for i, item := range items {
		if item.At != nil {
			at[item.Node] = *item.At
		}
		times[i] = at[item.Node]
	}
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return times[a].Compare(times[b]) })
	sorted := make([]document.LogItem, len(items))
	for i, from := range order {
		sorted[i] = items[from]
	}
	copy(items, sorted)
}
