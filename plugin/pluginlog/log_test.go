package pluginlog_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/plugin/pluginlog"
)

// TestLog: levels, destinations (never standard output), and the source line of each entry.
func TestLog(t *testing.T) {
	t.Parallel()
	now := func() time.Time { return time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC) }
	_, _, at, _ := runtime.Caller(0) // write logs two and three lines below
	write := func(l *pluginlog.Log) {
		l.Info("m")
		l.Error(cause.Internal, "m")
	}
	info := fmt.Sprintf(`{"level":"info","ts":"2026-11-21T03:00:00.000Z","caller":"pluginlog/log_test.go:%d","msg":"m"}`+"\n", at+2)
	failed := fmt.Sprintf(`{"level":"error","ts":"2026-11-21T03:00:00.000Z","caller":"pluginlog/log_test.go:%d","msg":"m","cause":"internal"}`+"\n", at+3)
	path := filepath.Join(t.TempDir(), "x.log")
	for _, row := range []struct {
		file, level, stderr, inFile string
	}{
		{"", "INFO", info + failed, ""}, {"STDOUT", "info", info + failed, ""}, {"stderr", "error", failed, ""}, {"Stderr", "fatal", "", ""}, {path, "", "", info + failed},
	} {
		var errOut bytes.Buffer
		l := pluginlog.New(row.file, row.level, now, &errOut)
		write(l)
		l.Flush()
		l.Flush()
		if errOut.String() != row.stderr {
			t.Errorf("%+v: %s", row, errOut.String())
		}
		if row.inFile == "" {
			continue
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != row.inFile {
			t.Errorf("%s, %v", got, err)
		}
	}
}

// BenchmarkLine measures the cost of a line. An ADD writes about a dozen.
func BenchmarkLine(b *testing.B) {
	l := pluginlog.New(filepath.Join(b.TempDir(), "x.log"), "debug", time.Now, nil)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		l.Debug("Connected to IPAMD via Unix socket: /var/run/aws-node/cni.sock")
		if i%100 == 99 {
			l.Flush()
		}
	}
}
