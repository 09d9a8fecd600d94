package node

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"cnictl/daemon/logfile"
	"cnictl/doctor/collect/reading"
	"cnictl/doctor/evidence"
)

const (
	logDir     = "/var/log/aws-routed-eni"
	podLogDir  = "/var/log/pods"
	maxLog     = 24 << 20 // bytes of one log, the newest
	journalled = "20000"  // lines of the journal, the newest
	journalFor = "-24h"
)

// logFile is a file of a log, possibly a rotated one.
type logFile struct {
	name string
	size int64     // of its text, decompressed
	at   time.Time // of its end
}

// logFile examines a directory entry. A rotated file may be compressed long after it ended.
func (c *collector) logFile(dir string, e fs.DirEntry) (logFile, error) {
	info, err := e.Info()
	if err != nil {
		return logFile{}, err
	}
	f := logFile{path.Join(dir, e.Name()), info.Size(), info.ModTime()}
	if at := reading.RotatedAt(e.Name()); !at.IsZero() {
		f.at = at
	}
	if path.Ext(f.name) == ".gz" {
		if length, err := c.tail(f.name, 4); err == nil && len(length) == 4 {
			f.size = int64(binary.LittleEndian.Uint32(length)) // where gzip stores it
		}
	}
	return f, nil
}

// log reads the files in the daemon's log directory that belong to a source.
func (c *collector) log(source string) func(context.Context) (evidence.Log, error) {
	return func(ctx context.Context) (evidence.Log, error) {
		entries, err := c.list(logDir)
		if err != nil {
			return evidence.Log{}, err
		}
		var files []logFile
		for _, e := range entries {
			if reading.LogOf(e.Name()) != source {
				continue
			}
			if f, err := c.logFile(logDir, e); err == nil { // else it was rotated away
				files = append(files, f)
			}
		}
		return c.logOf(ctx, files)
	}
}

// logOf reads the files of one log: as much as its limit allows, from the newest backwards.
func (c *collector) logOf(ctx context.Context, files []logFile) (evidence.Log, error) {
	if len(files) == 0 {
		return evidence.Log{}, fs.ErrNotExist
	}
	slices.SortFunc(files, func(a, b logFile) int {
		return cmp.Or(b.at.Compare(a.at), strings.Compare(b.name, a.name))
	})
	left, n := int64(maxLog), 0
	for n < len(files) && left > 0 {
		left -= files[n].size
		n++
	}
	early, cancel := within(ctx, c.Timeout/2) // leaves time for newer files
	defer cancel()
	reader, torn := reading.NewLogReader(c.Now()), false
	for i := n - 1; i >= 0; i-- {
		skip := int64(0)
		if i == n-1 && left < 0 {
			skip = -left
		}
		packed := path.Ext(files[i].name) == ".gz"
		var err error
		var refused *logfile.Refused
		if packed {
			err = c.readPacked(early, reader, files[i].name, skip)
		} else {
			err = c.readLog(ctx, reader, files[i].name, skip)
		}
		switch {
		case err == nil, errors.Is(err, fs.ErrNotExist): // rotated away
		case packed, n > 1 && errors.As(err, &refused): // others may have put it there
			torn = true
		default:
			return evidence.Log{}, err
		}
	}
	out := reader.Log()
	out.Truncated = out.Truncated || torn || n < len(files) || left < 0
	return cleanLog(out), nil
}

// openLog opens a log file. In the daemon's log directory others can put links to any file of the
// node, and their content would leave it with the evidence; those of kubelet may be links.
func (c *collector) openLog(name string) (*os.File, fs.FileInfo, error) {
	if path.Dir(name) != logDir {
		return c.open(name)
	}
	dir, err := logfile.OpenDir(c.path(logDir) + "/.") // as list does, also where that is a link
	if err != nil {
		return nil, nil, err
	}
	defer dir.Close()
	fd, _, err := dir.Open(path.Base(name), os.O_RDONLY)
	if err != nil {
		return nil, nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	info, err := f.Stat()
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// readLog reads a file after its first skip bytes.
func (c *collector) readLog(ctx context.Context, into *reading.LogReader, name string, skip int64) error {
	f, _, err := c.openLog(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Seek(skip, io.SeekStart); err != nil {
		return err
	}
	return into.Read(inTime{ctx, io.LimitReader(f, maxLog)})
}

// maxPacked bounds how much of a file is decompressed: files are rotated at 100 MB.
const maxPacked = 256 << 20

// readPacked reads a file that was gzipped once, after the first skip bytes of its text.
func (c *collector) readPacked(ctx context.Context, into *reading.LogReader, name string, skip int64) error {
	f, _, err := c.openLog(name)
	if err != nil {
		return err
	}
	defer f.Close()
	unpacked, err := gzip.NewReader(inTime{ctx, f})
	if err != nil {
		return err
	}
	text := bufio.NewReader(inTime{ctx, unpacked})
	if start, _ := text.Peek(2); string(start) == "\x1f\x8b" {
		return errors.New("gzip-compressed more than once")
	}
	if _, err := io.CopyN(io.Discard, text, min(skip, maxPacked)); err != nil {
		return err
	}
	return into.Read(io.LimitReader(text, maxLog))
}

// inTime stops reading when its time is over. What it reads is progress.
type inTime struct {
	ctx context.Context
	io.Reader
}

func (r inTime) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.Reader.Read(p)
	if n > 0 {
		progressOf(r.ctx).goesOn()
	}
	return n, err
}

// cleanLog removes from a log what must not leave the node.
func cleanLog(l evidence.Log) evidence.Log {
	for i := range l.Lines {
		line := &l.Lines[i]
		line.Text, line.Msg = clean(line.Text), clean(line.Msg)
	}
	return l
}

// tail reads the end of a file.
func (c *collector) tail(name string, limit int64) ([]byte, error) {
	f, info, err := c.openLog(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := f.Seek(max(0, info.Size()-limit), io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, limit))
}

// kubeletLog reads the journal of kubelet's unit.
func (c *collector) kubeletLog(ctx context.Context) (evidence.Log, error) {
	if !c.live() {
		return evidence.Log{}, errNotLive
	}
	program, err := find("journalctl")
	if err != nil {
		return evidence.Log{}, err
	}
	cmd := command(ctx, program, "--unit=kubelet", "--since="+journalFor, "--lines="+journalled, "--output=short-iso-precise", "--utc",
		"--no-pager", "--quiet")
	var log evidence.Log
	err = start(ctx, cmd, io.Discard, func(printed io.Reader) (err error) {
		log, err = reading.ReadLog(printed, c.Now())
		return err
	})
	switch {
	case ctx.Err() != nil:
		return evidence.Log{}, err
	case err != nil:
		return evidence.Log{}, fmt.Errorf("journalctl: %w", err)
	case len(log.Lines) == 0 && os.Geteuid() != 0:
		return log, fs.ErrPermission // the journal does not say
	case len(log.Lines) == 0:
		return log, fs.ErrNotExist
	}
	return cleanLog(log), nil
}

// containerLogs reads what the containers of aws-node printed: for each, the current run and the
// one before.
func (c *collector) containerLogs(ctx context.Context) (map[string]evidence.Log, error) {
	pods, err := c.list(podLogDir)
	if err != nil {
		return nil, err
	}
	out := map[string]evidence.Log{}
	for _, pod := range slices.Backward(byTime(pods)) { // a later pod overwrites an earlier one
		if !strings.HasPrefix(pod.Name(), "kube-system_aws-node-") {
			continue
		}
		containers, err := c.list(path.Join(podLogDir, pod.Name()))
		if err != nil {
			return nil, err
		}
		for _, container := range containers {
			if _, done := out[container.Name()]; done {
				continue
			}
			log, err := c.containerLog(ctx, path.Join(podLogDir, pod.Name(), container.Name()))
			if err == nil {
				out[container.Name()] = log
			} else if !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		}
	}
	if len(out) == 0 {
		return nil, os.ErrNotExist
	}
	return out, nil
}

func byTime(entries []fs.DirEntry) []fs.DirEntry {
	at := func(e fs.DirEntry) int64 {
		info, err := e.Info()
		if err != nil {
			return 0
		}
		return info.ModTime().UnixNano()
	}
	slices.SortStableFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(at(a), at(b)) })
	return entries
}

// containerLog reads the files N.log of a container, one per run, of the last two runs.
func (c *collector) containerLog(ctx context.Context, dir string) (evidence.Log, error) {
	entries, err := c.list(dir)
	if err != nil {
		return evidence.Log{}, err
	}
	runs := map[int][]logFile{}
	last := -1
	for _, e := range entries {
		number, rest, _ := strings.Cut(e.Name(), ".")
		run, err := strconv.Atoi(number)
		if err != nil || !strings.HasPrefix(rest, "log") {
			continue
		}
		if f, err := c.logFile(dir, e); err == nil { // else it was rotated away
			runs[run] = append(runs[run], f)
			last = max(last, run)
		}
	}
	log, err := c.logOf(ctx, runs[last])
	if before := runs[last-1]; err == nil && before != nil {
		if previous, err := c.logOf(ctx, before); err == nil {
			log.Previous = &previous
		}
	}
	return log, err
}
