package record

import (
	"bytes"
	"errors"
	"fmt"
	"time"
)

// index is the table of contents of a recording.
type index struct {
	header      Header
	frames      []frame // by time; the first is the beginning of the file
	from, to    time.Time
	samples     int
	nodes       map[string]bool
	repeated    int  // remaining entries of a key frame, which are not counted as samples
	readings    bool // of subnets are in it
	interrupted bool
}

// frame is where a player can start.
type frame struct {
	at     time.Time
	offset int
	lines  int // number of lines up to the next frame
}

// scan reads a recording once. Truncation is not an error; any other kind of file is.
func scan(file []byte) (index, error) {
	x := index{nodes: map[string]bool{}}
	r, err := readFrom(file, 0)
	if err != nil {
		return x, errors.New("not a cnictl recording: it is not gzip-compressed")
	}
	line, err := r.line(nil)
	if err != nil {
		return x, errors.New("not a cnictl recording: it has no header")
	}
	if x.header, err = parseHeader(line); err != nil {
		return x, err
	}
	x.frames = []frame{{at: x.header.StartedAt}}
	member, budget := -1, maxSlack+maxRatio*len(file)-len(line)
	for {
		line, err := r.line(func(offset int) { member = offset })
		if errors.Is(err, errEnd) {
			x.interrupted = r.cut
			return x, nil
		}
		if err != nil {
			return x, err
		}
		if budget -= len(line); budget < 0 {
			return x, fmt.Errorf("the recording is too large when unpacked: more than %d times the file", maxRatio)
		}
		at, err := timeOf(line)
		if err != nil {
			x.interrupted = true
			return x, nil
		}
		x.note(line, at, member)
		member = -1
	}
}

// note adds an entry. member is the offset of the member that it begins, else -1.
func (x *index) note(line []byte, at time.Time, member int) {
	if at.Before(x.to) {
		at = x.to // the recorder's clock went back: the order counts
	}
	x.to = at
	if x.from.IsZero() {
		x.from = at
	}
	key := isKey(line)
	if member >= 0 && key {
		x.frames = append(x.frames, frame{at: at, offset: member})
	}
	x.frames[len(x.frames)-1].lines++
	name := nameIn(line)
	if name != "" && len(x.nodes) < maxNodes {
		x.nodes[name] = true
	}
	switch {
	case key:
		e, err := parseEntry(line)
		if err == nil && e.Key != nil {
			x.repeated = min(e.Key.Nodes, maxNodes)
		}
	case bytes.Contains(head(line), []byte(`,"readings":`)):
		x.readings = true
	case bytes.Contains(head(line), []byte(`,"gone":`)), bytes.Contains(head(line), []byte(`,"doc":`)):
	case x.repeated > 0:
		x.repeated--
	default:
		x.samples++
	}
}

// nameIn returns the node name of a sample, "" if there is none. It is good enough for
// counting: it does not decode escapes.
func nameIn(line []byte) string {
	_, rest, ok := bytes.Cut(line[:min(len(line), 1024)], []byte(`"metadata":{"name":"`))
	if !ok {
		return ""
	}
	name, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(name)
}

// maxReplay limits the entries that a seek applies, beyond the last key frame, to rebuild the
// history before the target.
const maxReplay = 20_000

// before finds the frame from which to play to reach a time: early enough for the history, if
// that is not too many entries.
func (x *index) before(at time.Time, history time.Duration) frame {
	last := 0
	for i, f := range x.frames {
		if i == 0 || !f.at.After(at) {
			last = i
		}
	}
	lines := 0
	for last > 0 && x.frames[last].at.After(at.Add(-history)) {
		if lines += x.frames[last-1].lines; lines > maxReplay {
			break
		}
		last--
	}
	return x.frames[last]
}
