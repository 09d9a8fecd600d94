// Package daemonlog parses log lines of ipamd, ours and upstream's, as a node or the container's
// log returns them. It is pure. It returns text as the node wrote it: printers must make it safe
// first.
package daemonlog

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"cnictl/daemon/api/logline"
	"cnictl/daemon/lazy"
)

// Levels in ascending order.
var levels = []string{"debug", "info", "warn", "error", "fatal"}

// Levels returns the levels that a line can have, lowest first.
func Levels() []string { return slices.Clone(levels) }

// Severity returns the index of a level in Levels, in any case and including the names that other
// loggers use. Unknown levels count as info.
func Severity(level string) int {
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

// Line is a parsed log line.
type Line struct {
	At         time.Time // zero if not in the line
	Level      string    // one of Levels, "" if not in the line
	Message    string    // text of the message; the whole line if its format is unknown
	Known      bool      // it is an object, as both daemons write
	HasMessage bool      // the object has a message
	Members    []Member  // of the object except level, ts, caller and msg, in order
}

// Member is a member of a line.
type Member struct{ Key, Value string }

// IsPod and IsNamespace report a member that names a pod or its namespace: ours, or a CNI
// argument.
func (m Member) IsPod() bool { return m.Key == logline.KeyPod || m.Key == "K8S_POD_NAME" }
func (m Member) IsNamespace() bool {
	return m.Key == logline.KeyNamespace || m.Key == "K8S_POD_NAMESPACE"
}

// Subject is what a line is about; unnamed parts are "".
type Subject struct{ Namespace, Pod, ENI, IP string }

// Subject extracts what the line is about from its members, and returns the other members.
func (l Line) Subject() (s Subject, rest []Member) {
	for _, m := range l.Members {
		switch {
		case m.IsPod():
			s.Pod = m.Value
		case m.IsNamespace():
			s.Namespace = m.Value
		case m.Key == logline.KeyIP:
			s.IP = m.Value
		case m.Key == logline.KeyENI:
			s.ENI = m.Value
		default:
			rest = append(rest, m)
		}
	}
	if namespace, name, ok := strings.Cut(s.Pod, "/"); ok {
		s.Namespace, s.Pod = namespace, name
	}
	return s, rest
}

// Access reports whether the line only records a request to the daemon's introspection: each poll
// writes one, upstream's daemon at info, ours at debug.
func (l Line) Access() bool { return strings.HasPrefix(l.Message, logline.TextAccess) }

// Parse parses a line: an object with level, ts and msg, or any text, either of them also after
// the timestamps that a container's log adds. The time in the object takes precedence.
func Parse(text string) Line {
	var line Line
	for {
		stamp, rest, ok := strings.Cut(text, " ")
		if !ok {
			break
		}
		at, err := time.Parse(time.RFC3339Nano, stamp)
		if err != nil {
			break
		}
		line.At, text = at, rest
	}
	line.Message = text
	if object := strings.TrimLeft(text, " \t\r\n"); strings.HasPrefix(object, "{") {
		if json.Valid([]byte(object)) {
			line.read(object)
		} else {
			line.glean(object)
		}
	}
	return line
}

// Members of an invalid object: a line that was cut off, or has escapes that JSON does not allow.
// Inside a string, their quotes would be escaped.
var (
	gleanedTime  = lazy.Regexp(`"ts": ?"([^"\\]{1,40})"`)
	gleanedLevel = lazy.Regexp(`"level": ?"([a-zA-Z]{1,10})"`)
)

// glean extracts time and level from an invalid object, so that the line can be sorted and
// filtered.
func (l *Line) glean(object string) {
	if m := gleanedTime().FindStringSubmatch(object); m != nil {
		if at, ok := ParseTime(m[1]); ok {
			l.At = at
		}
	}
	if m := gleanedLevel().FindStringSubmatch(object); m != nil {
		l.Level = levels[Severity(m[1])]
	}
}

// read reads the members of a valid object. Of duplicate names the last one counts; null members
// count as absent.
func (l *Line) read(object string) {
	d := json.NewDecoder(strings.NewReader(object))
	if _, err := d.Token(); err != nil {
		return
	}
	l.Known = true
	for d.More() {
		key, err := d.Token()
		name, ok := key.(string)
		var value json.RawMessage
		if err != nil || !ok || d.Decode(&value) != nil {
			return
		}
		text, isText := plain(value)
		switch null := string(value) == "null"; name {
		case "level":
			if isText {
				l.Level = levels[Severity(text)]
			}
		case "ts":
			if at, ok := ParseTime(text); ok {
				l.At = at
			}
		case "caller":
		case "msg":
			if !null {
				l.Message, l.HasMessage = text, true
			}
		default:
			l.Members = append(l.Members, Member{name, text})
		}
	}
}

// plain returns a value as people write it; text reports that it is a string.
func plain(raw json.RawMessage) (_ string, text bool) {
	var s string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		return s, true
	}
	return string(raw), false
}

// ParseTime parses both forms of ts: with and without a colon in the zone.
func ParseTime(s string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05Z0700"} {
		if at, err := time.Parse(layout, s); err == nil && at.Year() > 1 {
			return at, true
		}
	}
	return time.Time{}, false
}
