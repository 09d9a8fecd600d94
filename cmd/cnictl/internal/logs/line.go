package logs

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"cnictl/daemon/api/introspect"
)

// levels in their order.
var levels = []string{"debug", "info", "warn", "error", "fatal"}

// severity is the place of a level among the levels; a line that does not tell its level
// counts as info.
func severity(level string) int {
	switch level = strings.ToLower(level); level {
	case "warning":
		level = "warn"
	case "panic", "dpanic":
		level = "fatal"
	}
	if i := slices.Index(levels, level); i >= 0 {
		return i
	}
	return 1
}

// parseLine reads a line of a log: an object with level, ts and msg, as ipamd of ours and
// of the original write them. Whatever else it is stays the message.
func parseLine(node, line string) introspect.LogItem {
	item := introspect.LogItem{Node: node, Line: line, Message: line}
	if stamp, rest, ok := strings.Cut(line, " "); ok {
		if at, err := time.Parse(time.RFC3339Nano, stamp); err == nil { // of the container's log
			item = parseLine(node, rest)
			if item.Line = line; item.At == nil {
				at = at.UTC()
				item.At = &at
			}
			return item
		}
	}
	var doc struct {
		Level, TS, Msg *string
	}
	if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &doc) != nil {
		return item
	}
	if doc.Level != nil && slices.Contains(levels, levels[severity(*doc.Level)]) {
		item.Level = levels[severity(*doc.Level)]
	}
	if doc.TS != nil {
		if at, err := time.Parse(time.RFC3339Nano, *doc.TS); err == nil {
			at = at.UTC()
			item.At = &at
		}
	}
	if doc.Msg != nil {
		item.Message = *doc.Msg + membersOf(line)
	}
	return item
}

// membersOf are the members of a line beside the four of each, in their order.
func membersOf(line string) string {
	var b strings.Builder
	d := json.NewDecoder(strings.NewReader(line))
	if _, err := d.Token(); err != nil {
		return ""
	}
	for d.More() {
		key, err := d.Token()
		name, ok := key.(string)
		if err != nil || !ok {
			return b.String()
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return b.String()
		}
		if slices.Contains([]string{"level", "ts", "caller", "msg"}, name) {
			continue
		}
		text := string(value)
		var s string
		if json.Unmarshal(value, &s) == nil && text != "null" {
			text = s
		}
		b.WriteString(" " + name + "=" + text)
	}
	return b.String()
}

// filter chooses lines.
type filter struct {
	level string   // the least; "" = all
	words []string // all of which a line holds
}

func (w filter) accepts(i introspect.LogItem) bool {
	if w.level != "" && severity(i.Level) < severity(w.level) {
		return false
	}
	for _, word := range w.words {
		if !strings.Contains(i.Line, word) {
			return false
		}
	}
	return true
}

// sortLines puts lines of several nodes into the order of their times. A line without a
// time stays behind the one before it.
func sortLines(items []introspect.LogItem) {
	at := map[string]time.Time{} // by node: of the line before
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
	sorted := make([]introspect.LogItem, len(items))
	for i, from := range order {
		sorted[i] = items[from]
	}
	copy(items, sorted)
}
