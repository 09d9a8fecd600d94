package record

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"cnictl/daemon/api/introspect"
)

// errEnd marks the end of the readable data: of the file, or where it is truncated.
var errEnd = errors.New("end of the recording")

// reader reads entries, starting at a member of a recording.
type reader struct {
	data  *bytes.Reader // the rest of the file; gzip reads no byte too many from it
	zip   *gzip.Reader
	lines *bufio.Reader
	cut   bool // the file is truncated
}

// readFrom starts at a member.
func readFrom(file []byte, offset int) (*reader, error) {
	r := &reader{data: bytes.NewReader(file)}
	if _, err := r.data.Seek(int64(offset), io.SeekStart); err != nil {
		return nil, err
	}
	var err error
	if r.zip, err = gzip.NewReader(r.data); err != nil {
		return nil, err
	}
	r.zip.Multistream(false)
	r.lines = bufio.NewReaderSize(r.zip, 64<<10)
	return r, nil
}

// offset returns where the next member begins, once this one is read.
func (r *reader) offset() int { return int(r.data.Size()) - r.data.Len() }

// line reads a line, continuing into the next member at the end of one. It calls begin for each
// new member.
func (r *reader) line(begin func(offset int)) ([]byte, error) {
	var long []byte
	for {
		part, err := r.lines.ReadSlice('\n')
		if len(long)+len(part) > maxLine {
			return nil, fmt.Errorf("a line is longer than %d bytes", maxLine)
		}
		switch {
		case err == nil && long == nil:
			return part, nil
		case err == nil:
			return append(long, part...), nil
		case errors.Is(err, bufio.ErrBufferFull):
			long = append(long, part...)
		case errors.Is(err, io.EOF) && len(part) == 0 && long == nil:
			if err := r.nextMember(begin); err != nil {
				return nil, err
			}
		default:
			// A truncated line, a broken checksum, or garbage after a member: all complete lines have
			// been read.
			r.cut = true
			return nil, errEnd
		}
	}
}

func (r *reader) nextMember(begin func(int)) error {
	if r.data.Len() == 0 {
		return errEnd
	}
	at := r.offset()
	if err := r.zip.Reset(r.data); err != nil {
		r.cut = true
		return errEnd
	}
	r.zip.Multistream(false)
	r.lines.Reset(r.zip)
	if begin != nil {
		begin(at)
	}
	return nil
}

// entry reads the next entry and returns it with the length of its line in bytes.
func (r *reader) entry() (entry, int, error) {
	line, err := r.line(nil)
	if err != nil {
		return entry{}, 0, err
	}
	e, err := parseEntry(line)
	return e, len(line), err
}

func parseEntry(line []byte) (entry, error) {
	var e entry
	if err := introspect.Unmarshal(line, &e); err != nil {
		return entry{}, fmt.Errorf("an entry is not readable: %w", err)
	}
	if e.At.IsZero() {
		return entry{}, errors.New("an entry has no time")
	}
	return e, nil
}

// timeOf returns the time of an entry, without parsing the rest if the line has Writer's
// format.
func timeOf(line []byte) (time.Time, error) {
	const before = `{"at":"`
	if rest, ok := bytes.CutPrefix(line, []byte(before)); ok {
		if text, _, ok := bytes.Cut(rest[:min(len(rest), 40)], []byte(`"`)); ok {
			return time.Parse(time.RFC3339, string(text))
		}
	}
	e, err := parseEntry(line)
	return e.At, err
}

// head returns the part of a line that identifies its kind.
func head(line []byte) []byte { return line[:min(len(line), 64)] }

func isKey(line []byte) bool { return bytes.Contains(head(line), []byte(`,"key":`)) }

func parseHeader(line []byte) (Header, error) {
	var h Header
	if err := json.Unmarshal(line, &h); err != nil || h.Format != Format {
		return Header{}, errors.New("not a cnictl recording: its first line is not a recording's header")
	}
	if h.Version != Version {
		return Header{}, fmt.Errorf("the recording has format version %d; this cnictl reads version %d", h.Version, Version)
	}
	return h, nil
}
