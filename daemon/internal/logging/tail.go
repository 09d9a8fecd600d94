package logging

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/logline"
	"cnictl/daemon/logfile"
	"cnictl/daemon/scrub"
)

const (
	// maxScan bounds how much of the log's end is searched for matching lines: half a
	// minute of a very busy daemon at level debug, days of a quiet one at info.
	maxScan = 8 << 20
	// maxLine bounds one line of an answer.
	maxLine = 16 << 10
	// maxSecret is above the length of any secret that is recognised only as a whole,
	// without a name: an id of 64 digits, an access key.
	maxSecret = 256
	// maxBackup bounds how much of a compressed backup is read. Only its end is wanted,
	// but everything before it has to be read.
	maxBackup = logfile.MaxSize + 1<<20
)

// File returns the path of the log for a setting of AWS_VPC_K8S_CNI_LOG_FILE, "" for
// stdout and stderr.
func File(setting string) string {
	switch strings.ToLower(setting) {
	case "stdout", "stderr":
		return ""
	case "":
		return DefaultPath
	}
	return setting
}

// Tail returns the newest lines that match a query, scrubbed, from the log that a setting
// of AWS_VPC_K8S_CNI_LOG_FILE selects. If the current file is short, it continues in the
// newest rotated one. If the log is not a file, it returns [introspect.ErrNoLogFile].
func Tail(ctx context.Context, setting string, q introspect.LogQuery) (introspect.NodeLogs, error) {
	path := File(setting)
	if path == "" {
		return introspect.NodeLogs{}, fmt.Errorf("%w: AWS_VPC_K8S_CNI_LOG_FILE is %s; use kubectl logs", introspect.ErrNoLogFile, strings.ToLower(setting))
	}
	end, err := readEnd(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return introspect.NodeLogs{}, fmt.Errorf("%w: %s does not exist", introspect.ErrNoLogFile, path)
	}
	if err != nil {
		return introspect.NodeLogs{}, fmt.Errorf("read log: %w", err)
	}
	lines, all := choose(end, q)
	return introspect.NodeLogs{
		APIVersion: introspect.APIVersion, Kind: introspect.KindLogs, Path: path, Lines: lines, Truncated: !all,
	}, nil
}

// ending is the end of a log.
type ending struct {
	text []byte
	cut  bool // older text was left out; the first line may lack its beginning
	more bool // there are older files
}

// readEnd reads the end of the current file, preceded by the end of the newest backup if
// there is room.
func readEnd(ctx context.Context, path string) (ending, error) {
	dir, err := logfile.OpenDir(filepath.Dir(path))
	if err != nil {
		return ending{}, err
	}
	defer dir.Close()
	// If the file is renamed meanwhile, we have opened the newest backup and try again.
	for range 3 {
		f, err := openLog(dir, filepath.Base(path))
		if err != nil {
			return ending{}, err
		}
		end, changed, err := readBoth(ctx, dir, filepath.Base(path), f)
		if err = errors.Join(err, f.Close()); err != nil || !changed {
			return end, err
		}
	}
	return ending{}, errors.New("the log is rotated all the time")
}

func openLog(dir logfile.Dir, name string) (*os.File, error) {
	fd, _, err := dir.Open(name, os.O_RDONLY)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

func readBoth(ctx context.Context, dir logfile.Dir, name string, f *os.File) (end ending, changed bool, err error) {
	end, err = lastBytes(f, maxScan)
	if err != nil || end.cut {
		return end, false, err
	}
	backups := dir.Backups(name)
	if !dir.Is(name, int(f.Fd())) {
		return ending{}, true, nil
	}
	for i, b := range backups {
		before, err := readBackup(ctx, dir, b.Name, maxScan-len(end.text))
		var refused *logfile.Refused
		switch {
		case errors.As(err, &refused): // it is no log of ours
			continue
		case errors.Is(err, fs.ErrNotExist):
			return ending{}, true, nil // compressed or removed meanwhile
		}
		before.text = append(before.text, end.text...)
		before.more = slices.ContainsFunc(backups[i+1:], func(older logfile.Backup) bool { return older.Plain() != b.Plain() })
		return before, false, err
	}
	return end, false, nil
}

// readBackup reads up to `most` bytes from the end of a backup.
func readBackup(ctx context.Context, dir logfile.Dir, name string, most int) (end ending, err error) {
	f, err := openLog(dir, name)
	if err != nil {
		return ending{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if !strings.HasSuffix(name, logfile.Packed) {
		return lastBytes(f, most)
	}
	end, err = unpack(ctx, f, most)
	if err != nil {
		return ending{}, fmt.Errorf("read %s: %w", name, err)
	}
	return end, nil
}

// unpack reads compressed text and keeps up to `most` bytes of its end.
func unpack(ctx context.Context, r io.Reader, most int) (end ending, err error) {
	zr, err := gzip.NewReader(r)
	if err != nil {
		return ending{}, err
	}
	keep := func() {
		if len(end.text) > most {
			end.text = append(end.text[:0], end.text[len(end.text)-most:]...)
			end.cut = true
		}
	}
	chunk := make([]byte, 256<<10)
	for read := 0; read <= maxBackup; {
		if err := ctx.Err(); err != nil {
			return ending{}, err
		}
		n, err := zr.Read(chunk)
		read += n
		end.text = append(end.text, chunk[:n]...)
		if len(end.text) > 2*most {
			keep()
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return ending{}, err
		}
	}
	keep()
	return end, nil
}

// lastBytes reads up to `most` bytes from the end of a file.
func lastBytes(f *os.File, most int) (ending, error) {
	info, err := f.Stat()
	if err != nil {
		return ending{}, err
	}
	from := max(0, info.Size()-int64(most))
	text := make([]byte, info.Size()-from)
	n, err := f.ReadAt(text, from)
	if err != nil && !errors.Is(err, io.EOF) { // EOF: it was truncated meanwhile
		return ending{}, err
	}
	return ending{text: text[:n], cut: from > 0}, nil
}

// choose returns the newest lines of a log's end that match a query. all reports whether
// there are no others. It is pure.
func choose(from ending, q introspect.LogQuery) (lines []string, all bool) {
	all = !from.cut && !from.more
	// Skip a line that is still being written.
	end := from.text[:bytes.LastIndexByte(from.text, '\n')+1]
	if from.cut {
		end = end[bytes.IndexByte(end, '\n')+1:]
	}
	level, _ := logline.ParseLevel(q.Level)
	most := min(max(q.Lines, 1), introspect.MaxLogLines)
	lines = []string{}
	for bytesLeft := introspect.MaxLogBytes; len(end) > 0; {
		start := bytes.LastIndexByte(end[:len(end)-1], '\n') + 1
		raw := end[start : len(end)-1]
		end = end[:start]
		if older(raw, q.Since) {
			// Everything before it is older still, so nothing is missing.
			all = true
			break
		}
		line, ok := wanted(raw, level, q)
		if !ok {
			continue
		}
		if bytesLeft -= len(line); len(lines) == most || bytesLeft < 0 {
			all = false
			break
		}
		lines = append(lines, line)
	}
	slices.Reverse(lines)
	return lines, all
}

// wanted returns a line as sent to the client, and whether it matches. The text is matched
// again after scrubbing, so that a secret cannot be guessed piece by piece.
func wanted(raw []byte, least logline.Level, q introspect.LogQuery) (string, bool) {
	if level, ok := member(raw, `"level":"`); least > logline.Debug {
		if got, known := logline.ParseLevel(level); !ok || !known || got < least {
			return "", false
		}
	}
	if q.Match != "" && !bytes.Contains(raw, []byte(q.Match)) {
		return "", false
	}
	// Scrub more than is shown: a secret must not be cut in two before it is recognised.
	cut := len(raw) > 4*maxLine
	line := scrub.Line(strings.ToValidUTF8(string(raw[:min(len(raw), 4*maxLine)]), "\ufffd"))
	most := maxLine
	if cut {
		most = min(most, max(0, len(line)-maxSecret))
	}
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + "…"
	}
	return line, q.Match == "" || strings.Contains(line, q.Match)
}

// older reports whether a line's time is before since. A line without a time, from a
// library that writes text, counts as no older than its neighbours.
func older(raw []byte, since time.Time) bool {
	if since.IsZero() {
		return false
	}
	text, _ := member(raw, `"ts":"`)
	at, err := time.Parse("2006-01-02T15:04:05.000Z0700", text)
	return err == nil && at.Before(since.Truncate(time.Millisecond))
}

// member finds a text member at the start of a line, where level and ts are.
func member(raw []byte, key string) (string, bool) {
	head := raw[:min(len(raw), 128)]
	_, rest, ok := bytes.Cut(head, []byte(key))
	value, _, closed := bytes.Cut(rest, []byte{'"'})
	return string(value), ok && closed
}
