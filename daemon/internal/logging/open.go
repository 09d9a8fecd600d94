package logging

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"cnictl/daemon/api/logline"
	"cnictl/daemon/logfile"
)

// DefaultPath is where the node's /var/log/aws-routed-eni is mounted in the container.
const DefaultPath = "/host/var/log/aws-routed-eni/ipamd.log"

// Options are the log's two settings, as set in the environment.
type Options struct {
	Path  string // AWS_VPC_K8S_CNI_LOG_FILE: a path, "stdout", "stderr"; "" = DefaultPath
	Level string // AWS_VPC_K8S_CNI_LOGLEVEL: debug, info, warn, error, fatal; anything else = debug
}

// Open opens the log. It creates a file and its directory at once, so that an unwritable
// path is an error here rather than lost lines later.
//
// Logging never waits for the disk; Close writes the queued lines.
func Open(opts Options) (*slog.Logger, io.Closer, error) {
	w, closer, err := open(opts.Path)
	if err != nil {
		return nil, nil, err
	}
	q := newQueue(w, closer.Close)
	level, _ := logline.ParseLevel(opts.Level)
	return slog.New(newQueued(q, slogLevel(level))), q, nil
}

func open(path string) (io.Writer, io.Closer, error) {
	switch strings.ToLower(path) {
	case "stdout":
		return os.Stdout, nothing{}, nil
	case "stderr":
		return os.Stderr, nothing{}, nil
	case "":
		path = DefaultPath
	}
	f, err := openPath(path)
	if err != nil {
		return nil, nil, fmt.Errorf("open log file %s: %w", path, err)
	}
	return f, f, nil
}

func openPath(path string) (io.WriteCloser, error) {
	if logfile.Device(path) {
		return os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	}
	return openFile(path, logfile.MaxSize, time.Now)
}

// nothing is a closer that leaves the process's own streams open.
type nothing struct{}

func (nothing) Close() error { return nil }
