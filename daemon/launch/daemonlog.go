package launch

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"

	"cnictl/daemon/logfile"
)

// daemonLog is the daemon's log file, read from its end at the time the daemon started.
type daemonLog struct {
	path string // "": the log goes to a stream, which is visible anyway
	from int64  // bytes
}

func openDaemonLog(path string) daemonLog {
	if strings.EqualFold(path, "stdout") || strings.EqualFold(path, "stderr") {
		return daemonLog{}
	}
	l := daemonLog{path: path}
	if info, err := os.Lstat(path); err == nil {
		l.from = info.Size()
	}
	return l
}

// logWindow is how much of the log's end is searched.
const logWindow = 16 << 10

// reason returns the last log line that explains why the daemon does not serve: its last
// warning or error, otherwise its last line, or "" if it has logged nothing.
func (l daemonLog) reason() string {
	if l.path == "" {
		return ""
	}
	dir, err := logfile.OpenDir(filepath.Dir(l.path))
	if err != nil {
		return ""
	}
	defer dir.Close()
	fd, _, err := dir.Open(filepath.Base(l.path), os.O_RDONLY)
	if err != nil {
		return ""
	}
	f := os.NewFile(uintptr(fd), l.path)
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	from := l.from
	if info.Size() < from {
		from = 0 // rotated since
	}
	from = max(from, info.Size()-logWindow)
	text, err := io.ReadAll(io.NewSectionReader(f, from, info.Size()-from))
	if err != nil {
		return ""
	}
	return reasonIn(text)
}

// reasonIn finds the reason in lines of the log; the first and the last may be cut.
func reasonIn(text []byte) string {
	var last, grave string
	for line := range bytes.Lines(text) {
		var entry struct{ Level, Msg, Error, Reason string }
		if json.Unmarshal(line, &entry) != nil || entry.Msg == "" {
			continue
		}
		for _, more := range []string{entry.Reason, entry.Error} {
			if more != "" {
				entry.Msg += ": " + more
			}
		}
		last = entry.Msg
		switch entry.Level {
		case "warn", "error", "fatal":
			grave = entry.Msg
		}
	}
	if grave != "" {
		return grave
	}
	return last
}
