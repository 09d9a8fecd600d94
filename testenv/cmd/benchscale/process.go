package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// usage of the daemon's process, read in the node.
type process struct {
	site *site
	pid  int
}

func (t *site) daemon() process { return process{t, t.node.DaemonPID()} }

// megabyte is that of the original's figures, which are those of ps.
const megabyte = 1 << 20

// rss is the resident memory in MB: all of it, and what no file stands behind.
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

// ticksPerSecond is USER_HZ, the same on all architectures of Linux that Go has.
const ticksPerSecond = 100

// cpu is the time used so far, those of ended threads included.
func (p process) cpu() (time.Duration, error) {
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
	f, err := p.site.node.Open(filepath.Join("/proc", strconv.Itoa(p.pid), name), os.O_RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("read %s of the daemon: %w", name, err)
	}
	defer f.Close()
	return io.ReadAll(f)
}
