package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// process is the daemon's process, whose resource usage is read in the node.
type process struct {
	site *site
	pid  int
}

func (t *site) daemon() process { return process{t, t.node.DaemonPID()} }

// megabyte has the size used in upstream's figures, which are from ps.
const megabyte = 1 << 20

// rss returns the resident memory in MB: in total, and without file mappings.
func (p process) rss() (all, anonymous float64, err error) {
	text, err := p.read("status")
	if err != nil {
		return 0, 0, err
	}
	found := 0
	for line := range bytes.Lines(text) {
		f := bytes.Fields(line)
		if len(f) != 3 {
			continue
		}
		into := map[string]*float64{"VmRSS:": &all, "RssAnon:": &anonymous}[string(f[0])]
		if into == nil {
			continue
		}
		kb, err := strconv.ParseFloat(string(f[1]), 64)
		if err != nil {
			return 0, 0, fmt.Errorf("read memory of the daemon: %w", err)
		}
		*into = kb * 1024 / megabyte
		found++
	}
	if found != 2 {
		return 0, 0, errors.New("read memory of the daemon: /proc has no VmRSS or RssAnon")
	}
	return all, anonymous, nil
}

// cpu returns the CPU time used so far. Threads are accounted in nanoseconds, but only while
// they live; the process's figure includes ended threads, in hundredths of a second.
func (p process) cpu() (time.Duration, error) {
	ticks, err := p.ticks()
	if err != nil {
		return 0, err
	}
	threads, err := p.threads()
	return max(ticks, threads), err
}

// threads returns the CPU time that the living threads have used.
func (p process) threads() (time.Duration, error) {
	dir, err := p.open("task")
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return 0, fmt.Errorf("list threads of the daemon: %w", err)
	}
	var all time.Duration
	for _, name := range names {
		text, err := p.read(filepath.Join("task", name, "schedstat"))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue // it has ended
		}
		if err != nil {
			return 0, err
		}
		used, _, _ := bytes.Cut(text, []byte(" "))
		n, err := strconv.ParseInt(string(used), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read CPU time of a thread of the daemon: %w", err)
		}
		all += time.Duration(n)
	}
	return all, nil
}

// ticksPerSecond is USER_HZ, the same on all Linux architectures that Go supports.
const ticksPerSecond = 100

// ticks returns the CPU time of the process, including ended threads.
func (p process) ticks() (time.Duration, error) {
	text, err := p.read("stat")
	if err != nil {
		return 0, err
	}
	// The second field is a name in brackets; user and system time are fields 14 and 15.
	f := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(f) < 13 {
		return 0, errors.New("read CPU time of the daemon: /proc has too few fields")
	}
	var ticks int64
	for _, field := range f[11:13] {
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read CPU time of the daemon: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond, nil
}

func (p process) read(name string) ([]byte, error) {
	f, err := p.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

func (p process) open(name string) (*os.File, error) {
	f, err := p.site.node.Open(filepath.Join("/proc", strconv.Itoa(p.pid), name), os.O_RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s of the daemon: %w", name, err)
	}
	return f, nil
}
