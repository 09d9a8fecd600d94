package pluginlog_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/logline"
	"cnictl/plugin/pluginlog"
)

// TestLog: levels and destinations; standard output is none.
func TestLog(t *testing.T) {
	t.Parallel()
	now := func() time.Time { return time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC) }
	const info = `{"level":"info","ts":"2026-11-21T03:00:00.000Z","caller":"a.go","msg":"m"}` + "\n"
	const failed = `{"level":"error","ts":"2026-11-21T03:00:00.000Z","caller":"a.go","msg":"m","cause":"internal"}` + "\n"
	path := filepath.Join(t.TempDir(), "x.log")
	for _, row := range []struct {
		file, level, stderr, inFile string
	}{
		{"", "INFO", info + failed, ""}, {"STDOUT", "info", info + failed, ""}, {"stderr", "error", failed, ""}, {"Stderr", "fatal", "", ""}, {path, "", "", info + failed},
	} {
		var errOut bytes.Buffer
		l := pluginlog.New(row.file, row.level, now, &errOut)
		l.Line(logline.Info, "a.go", "m")
		l.Error("a.go", cause.Internal, "m")
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
