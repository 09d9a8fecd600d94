package reading

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"cnictl/daemon/lazy"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
)

// Limits of a log.
const (
	recentFor = 15 * time.Minute
	mostLines = 5000     // of a Log
	mostKept  = 2 << 20  // bytes of their texts
	mostLine  = 16 << 10 // bytes of one line
	slack     = 2        // how many times that is collected before anything is dropped
)

// LogOf returns the source that a file in /var/log/aws-routed-eni belongs to, by its name, empty
// if none: the file may be the log itself or a rotated sibling.
func LogOf(name string) string {
	for _, log := range []struct{ begin, source string }{
		{"ipamd", "log.ipamd"}, {"plugin", "log.plugin"}, {"egress-v4-plugin", "log.plugin"},
		{"egress-v6-plugin", "log.plugin"}, {"network-policy-agent", "log.np"},
	} {
		if rest, ok := strings.CutPrefix(name, log.begin); ok &&
			(strings.HasPrefix(rest, ".log") || strings.HasPrefix(rest, "-2") && strings.Contains(rest, ".log")) {
			return log.source
		}
	}
	return ""
}

// rotation matches the time in the name of a rotated file, as lumberjack and kubelet write it.
var rotation = lazy.Regexp(`[.-](\d{4})-?(\d\d)-?(\d\d)[T-](\d\d)-?(\d\d)-?(\d\d)`)

// RotatedAt returns when a file was rotated, zero if its name does not say.
func RotatedAt(name string) time.Time {
	part := rotation().FindStringSubmatch(name)
	if part == nil {
		return time.Time{}
	}
	at, _ := time.Parse("20060102150405", strings.Join(part[1:], "")) // zero after an error
	return at
}

// LogReader reads one log, from one file or several. It keeps the lines of the log's last quarter
// of an hour, with equal neighbours merged into one with a count. Of older lines it keeps the
// last one of each message, with their number; there, messages that differ only in numbers, ids
// and addresses are the same. If that is still too much, errors, warnings and signatures of the
// catalogue stay.
type LogReader struct {
	now     time.Time // zero for the newest line's
	matcher *catalogue.Matcher

	from, to  time.Time
	truncated bool
	seen      int // messages

	recent      []*entry
	recentBytes int
	older       map[uint64]*entry
	olderBytes  int
}

// entry is a line, or several alike.
type entry struct {
	piece
	first     time.Time // of the lines; at is the last's
	count     int
	important bool // set for older ones; for recent ones only by Log
}

// NewLogReader returns a reader. If now is zero, recent means relative to the newest line.
func NewLogReader(now time.Time) *LogReader {
	return &LogReader{now: now, matcher: catalogue.NewMatcher(), older: map[uint64]*entry{}}
}

// ReadLog reads a log of one file.
func ReadLog(r io.Reader, now time.Time) (evidence.Log, error) {
	l := NewLogReader(now)
	err := l.Read(r)
	return l.Log(), err
}

// LogOfLines reads the lines that a daemon serves. truncated means that it has more.
func LogOfLines(lines []string, truncated bool, now time.Time) evidence.Source[evidence.Log] {
	log, err := ReadLog(strings.NewReader(strings.Join(lines, "\n")), now)
	log.Truncated = log.Truncated || truncated
	return Source(log, err)
}

// Read reads one file, preferably the oldest first. If it fails, what it read before stays.
func (l *LogReader) Read(r io.Reader) error {
	in := bufio.NewReaderSize(r, 4*mostLine)
	var at time.Time // of the previous line
	var partial []byte
	for {
		line, err := in.ReadSlice('\n')
		for rest := err; errors.Is(rest, bufio.ErrBufferFull); {
			l.truncated = true
			line = slices.Clone(line)
			_, rest = in.ReadSlice('\n')
			if err = rest; errors.Is(rest, bufio.ErrBufferFull) {
				continue
			}
		}
		near := cmp.Or(l.now, l.to)
		p := peel(bytes.Trim(line, "\r\n\x00"), near)
		switch {
		case p.partial && len(partial) < 4*mostLine:
			partial = append(partial, p.text...)
		case len(bytes.TrimSpace(p.text)) > 0 || len(partial) > 0:
			if len(partial) > 0 {
				p = piece{at: p.at, text: append(partial, p.text...)}.peelMore(near)
				partial = partial[:0]
			}
			at = p.split(at, l.add)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			l.truncated = true
			return fmt.Errorf("read log: %w", err)
		}
	}
}

// horizon returns the time before which lines are older.
func (l *LogReader) horizon() time.Time { return cmp.Or(l.now, l.to).Add(-recentFor) }

func (l *LogReader) add(p piece) {
	l.seen++
	p.seq = l.seen
	if len(p.text) > mostLine {
		p.text, l.truncated = p.text[:mostLine], true
		p.stampEnd = min(p.stampEnd, mostLine)
		p.stamp = min(p.stamp, p.stampEnd)
	}
	if !p.at.IsZero() {
		if l.from.IsZero() || p.at.Before(l.from) {
			l.from = p.at
		}
		if p.at.After(l.to) {
			l.to = p.at
		}
	}
	if p.at.Before(l.horizon()) {
		l.fold(p, p.at, 1)
		return
	}
	if n := len(l.recent); n > 0 && l.recent[n-1].alike(p) {
		last := l.recent[n-1]
		last.count++
		last.at, last.first = later(last.at, p.at), earlier(last.first, p.at)
		return
	}
	e := &entry{piece: p, first: p.at, count: 1}
	e.text = slices.Clone(p.text)
	l.recent = append(l.recent, e)
	l.recentBytes += len(e.text)
	if len(l.recent) > slack*mostLines || l.recentBytes > slack*mostKept {
		l.sweep()
	}
}

// sweep folds recent lines that have become old and, if too many are left, those that matter
// least.
func (l *LogReader) sweep() {
	horizon := l.horizon()
	l.foldIf(func(e *entry) bool { return e.at.Before(horizon) })
	if len(l.recent) <= mostLines && l.recentBytes <= mostKept {
		return
	}
	l.foldIf(func(e *entry) bool { return !l.important(e.piece) })
	if len(l.recent) <= mostLines && l.recentBytes <= mostKept {
		return
	}
	n := 0
	l.foldIf(func(*entry) bool { n++; return n <= len(l.recent)/2 })
}

func (l *LogReader) foldIf(old func(*entry) bool) {
	kept := l.recent[:0]
	for _, e := range l.recent {
		if old(e) {
			l.recentBytes -= len(e.text)
			l.fold(e.piece, e.first, e.count)
		} else {
			kept = append(kept, e)
		}
	}
	clear(l.recent[len(kept):])
	l.recent = kept
}

// fold adds count lines to those with the same message.
func (l *LogReader) fold(p piece, first time.Time, count int) {
	key := p.key()
	e := l.older[key]
	if e == nil {
		e = &entry{first: first, count: count, important: l.important(p)}
		l.older[key] = e
		e.take(p)
		l.olderBytes += len(e.text)
		if len(l.older) > slack*mostLines || l.olderBytes > slack*mostKept {
			l.drop()
		}
		return
	}
	e.count += count
	e.first = earlier(e.first, first)
	if !p.at.Before(e.at) {
		l.olderBytes += len(p.text) - len(e.text)
		e.take(p)
	}
}

// take makes the entry show a line.
func (e *entry) take(p piece) {
	buffer := e.text
	e.piece = p
	e.text = append(buffer[:0], p.text...)
}

// drop leaves out half of the older messages, those that matter least.
func (l *LogReader) drop() {
	l.truncated = true
	all := slices.SortedFunc(maps.Values(l.older), compareWorth)
	clear(l.older)
	l.olderBytes = 0
	for i, e := range all {
		if i >= mostLines || l.olderBytes+len(e.text) > mostKept {
			break
		}
		l.older[e.key()] = e
		l.olderBytes += len(e.text)
	}
}

// compareWorth sorts first what should stay.
func compareWorth(a, b *entry) int {
	if a.important != b.important {
		if a.important {
			return -1
		}
		return 1
	}
	return cmp.Or(b.at.Compare(a.at), cmp.Compare(b.seq, a.seq))
}

func (l *LogReader) important(p piece) bool {
	return p.severity() > 1 || l.matcher.Match(p.text)
}

// Empty reports whether nothing was read.
func (l *LogReader) Empty() bool { return l.seen == 0 }

// Log returns what was read.
func (l *LogReader) Log() evidence.Log {
	l.sweep()
	all := slices.AppendSeq(slices.Clone(l.recent), maps.Values(l.older))
	for _, e := range l.recent {
		e.important = l.important(e.piece)
	}
	slices.SortFunc(all, compareWorth)
	kept := 0
	for i, e := range all {
		if kept += len(e.text); i >= mostLines || kept > mostKept {
			all, l.truncated = all[:i], true
			break
		}
	}
	slices.SortFunc(all, func(a, b *entry) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.seq, b.seq)) })
	log := evidence.Log{From: l.from, To: l.to, Truncated: l.truncated, Lines: make([]evidence.Line, 0, len(all))}
	for _, e := range all {
		line := e.line()
		if e.count > 1 {
			line.Count, line.Every = e.count, (e.at.Sub(e.first) / time.Duration(e.count-1)).Round(time.Second)
		}
		log.Lines = append(log.Lines, line)
	}
	return log
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
