package reading

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"cnictl/daemon/api/daemonlog"
	"cnictl/daemon/scrub"
	"cnictl/doctor/evidence"
)

// piece is one message of a line.
type piece struct {
	at              time.Time
	level           string // "" if it must be derived from the text
	text            []byte // an object with members, key=value as logrus writes it, or any text
	stamp, stampEnd int    // where its time is in the text
	partial         bool   // it continues in the next line
	seq             int    // its place in the log
}

// ParseLine reads a line of any log of a node: of our daemon or upstream's, logrus or klog, with
// or without the prefix of a container runtime or the journal. One line may hold several
// messages. Times without a year get theirs from near.
func ParseLine(text string, near time.Time) []evidence.Line {
	var out []evidence.Line
	peel([]byte(text), near).split(time.Time{}, func(p piece) { out = append(out, p.line()) })
	return out
}

// peel strips what the runtime or the journal put before a line.
func peel(line []byte, near time.Time) piece {
	var p piece
	first, rest, ok := bytes.Cut(line, []byte(" "))
	switch at, isTime := stampTime(first); {
	case ok && isTime:
		p.at = at
		if stream, tagged, ok := bytes.Cut(rest, []byte(" ")); ok && (string(stream) == "stdout" || string(stream) == "stderr") {
			tag, message, _ := bytes.Cut(tagged, []byte(" "))
			p.partial = string(tag) == "P"
			rest = message
		} else {
			rest = unitless(rest, true)
		}
		line = rest
	case len(line) > 16 && line[3] == ' ' && line[6] == ' ' && line[15] == ' ':
		at, err := time.Parse(time.Stamp, string(line[:15]))
		if err == nil {
			p.at = withYear(at, near)
			line = unitless(line[16:], false)
		}
	}
	p.text = line
	return p.peelMore(near)
}

// stampTime reads the time at the start of a line.
func stampTime(text []byte) (time.Time, bool) {
	if len(text) < len("2006-01-02T15:04:05Z") || len(text) > 40 || text[4] != '-' || text[10] != 'T' {
		return time.Time{}, false
	}
	return daemonlog.ParseTime(string(text))
}

// withYear gives a time without a year the year that puts it closest before near.
func withYear(at, near time.Time) time.Time {
	if near.IsZero() {
		return time.Time{}
	}
	at = at.AddDate(near.UTC().Year()-at.Year(), 0, 0)
	if at.After(near.Add(24 * time.Hour)) {
		at = at.AddDate(-1, 0, 0)
	}
	return at
}

// unitless strips "host unit[pid]: " from a line of the journal.
func unitless(line []byte, strict bool) []byte {
	_, rest, ok := bytes.Cut(line, []byte(" "))
	unit, message, found := bytes.Cut(rest, []byte(": "))
	if !ok || !found || bytes.ContainsRune(unit, ' ') || strict && !bytes.HasSuffix(unit, []byte("]")) && string(unit) != "kernel" {
		return line
	}
	return message
}

// peelMore reads what the program itself put before its message.
func (p piece) peelMore(near time.Time) piece {
	switch {
	case len(p.text) == 0:
	case bytes.HasPrefix(p.text, []byte(`{"log":"`)):
		var docker struct {
			Log  string
			Time time.Time
		}
		if json.Unmarshal(p.text, &docker) == nil {
			return piece{at: docker.Time, text: bytes.TrimRight([]byte(docker.Log), "\r\n")}.peelMore(near)
		}
	case bytes.HasPrefix(p.text, []byte(`time="`)):
		if end := bytes.IndexByte(p.text[6:], '"'); end > 0 {
			if at, ok := stampTime(p.text[6 : 6+end]); ok {
				p.at, p.stamp, p.stampEnd = at, 6, 6+end
			}
		}
	case p.text[0] != '{':
		p.peelKlog(near)
	}
	return p
}

// peelKlog strips "E1121 14:01:11.123456    1234 file.go:12] ".
func (p *piece) peelKlog(near time.Time) {
	const stamp = "0102 15:04:05.000000"
	level := strings.IndexByte("IWEF", p.text[0])
	if level < 0 || len(p.text) < 1+len(stamp) || p.text[5] != ' ' {
		return
	}
	at, err := time.Parse(stamp, string(p.text[1:1+len(stamp)]))
	head, message, ok := bytes.Cut(p.text, []byte("] "))
	if err != nil || !ok || len(head) > 200 {
		return
	}
	if !p.at.IsZero() {
		near = p.at
	}
	if at = withYear(at, near); !at.IsZero() {
		p.at = at
	}
	p.level, p.text = [...]string{"info", "warn", "error", "fatal"}[level], message
}

// objectStart begins a line of ipamd, the plugins and the agent. Inside the text of such a line
// its quotes would be escaped.
var objectStart = []byte(`{"level":`)

// split yields the messages of a line, which may hold several objects in a row, and returns the
// time of the last one. A message without a time gets that of the message before.
func (p piece) split(before time.Time, yield func(piece)) time.Time {
	for len(p.text) > 0 {
		one, rest := p, []byte(nil)
		if next := 1 + bytes.Index(p.text[1:], objectStart); next > 0 {
			one.text, rest = p.text[:next], p.text[next:]
		}
		if one.text[0] == '{' {
			one.stampObject()
		}
		if one.at.IsZero() {
			one.at = before
		}
		before = one.at
		if len(bytes.TrimSpace(one.text)) > 0 {
			yield(one)
		}
		p = piece{at: p.at, level: p.level, text: rest}
	}
	return before
}

// stampObject finds the time of an object, even of a damaged one.
func (p *piece) stampObject() {
	key := []byte(`"ts":`)
	at := bytes.Index(p.text, key)
	if at < 1 || p.text[at-1] == '\\' {
		return
	}
	at += len(key)
	value := bytes.TrimLeft(p.text[at:], " ")
	at = len(p.text) - len(value)
	end := bytes.IndexAny(value, ",}")
	if end < 0 {
		return
	}
	if value[0] == '"' {
		if t, ok := stampTime(bytes.Trim(value[:end], `"`)); ok {
			p.at, p.stamp, p.stampEnd = t, at, at+end
		}
		return
	}
	if seconds, err := strconv.ParseFloat(string(value[:end]), 64); err == nil && seconds > 0 && seconds < 1<<33 {
		p.at, p.stamp, p.stampEnd = time.UnixMilli(int64(seconds*1000)).UTC(), at, at+end
	}
}

// alike reports whether two messages differ only in their time.
func (p piece) alike(q piece) bool {
	return p.level == q.level && len(p.text)-p.stampEnd == len(q.text)-q.stampEnd &&
		bytes.Equal(p.text[p.stampEnd:], q.text[q.stampEnd:]) && bytes.Equal(p.text[:p.stamp], q.text[:q.stamp])
}

// severity returns the rank of the level among those of daemonlog.
func (p piece) severity() int {
	level := p.level
	for _, key := range []string{`"level":"`, ` level=`} {
		if at := bytes.Index(p.text, []byte(key)); level == "" && at >= 0 {
			level = string(p.text[at+len(key):][:min(10, len(p.text)-at-len(key))])
			level = level[:max(0, strings.IndexAny(level+" ", `" `))]
		}
	}
	return daemonlog.Severity(level)
}

// line returns the message with its level, without what must not leave the node. Other members
// follow the message.
func (p piece) line() evidence.Line {
	text := string(p.text)
	line := evidence.Line{At: p.at.UTC(), Level: p.level, Msg: text}
	switch {
	case text[0] == '{':
		object := daemonlog.Parse(text)
		line.Level, line.Msg = object.Level, object.Message
		for _, m := range object.Members {
			if object.HasMessage {
				line.Msg += " " + m.Key + "=" + m.Value
			}
		}
	case strings.HasPrefix(text, `time="`):
		line.Level = daemonlog.Levels()[p.severity()]
		_, message, ok := strings.Cut(text, ` msg=`)
		quoted, err := strconv.QuotedPrefix(message)
		switch plain, _ := strconv.Unquote(quoted); {
		case ok && err == nil:
			line.Msg = plain + message[len(quoted):]
		case ok:
			line.Msg = message
		}
	case p.level != "":
		line.Msg = strings.ReplaceAll(text, `\"`, `"`)
	}
	line.Msg = scrub.Line(strings.ToValidUTF8(line.Msg, "\uFFFD"))
	return line
}

// Classes of the bytes of a word.
const (
	inWord = 1 << iota
	digit
	vowel
	beyondHex
)

var classes = func() (c [256]uint8) {
	for b := range c {
		switch {
		case '0' <= b && b <= '9':
			c[b] = inWord | digit
		case 'a' <= b|0x20 && b|0x20 <= 'z':
			c[b] = inWord
			if strings.IndexByte("aeiou", byte(b|0x20)) >= 0 {
				c[b] |= vowel
			}
			if b|0x20 > 'f' {
				c[b] |= beyondHex
			}
		}
	}
	return c
}()

// key is the same for messages that differ only in numbers, times, ids, addresses and the random
// ends of names.
func (p piece) key() uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	add := func(b byte) { h = (h ^ uint64(b)) * prime }
	for _, b := range []byte(p.level) {
		add(b)
	}
	text := p.text
	for i := 0; i < len(text); {
		if classes[text[i]] == 0 {
			add(text[i])
			i++
			continue
		}
		from, class := i, uint8(0)
		for ; i < len(text) && classes[text[i]] != 0; i++ {
			class |= classes[text[i]]
		}
		if n := i - from; class&digit != 0 || n > 4 && class&vowel == 0 || n > 3 && class&beyondHex == 0 {
			// An address, a time or an id of several parts is one number.
			for i+1 < len(text) && strings.IndexByte(".:-", text[i]) >= 0 && classes[text[i+1]]&digit != 0 {
				for i++; i < len(text) && classes[text[i]] != 0; i++ {
				}
			}
			add('#')
			continue
		}
		for _, b := range text[from:i] {
			add(b)
		}
	}
	return h
}
