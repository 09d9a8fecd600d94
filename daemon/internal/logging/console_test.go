package logging

import (
	"bytes"
	"log/slog"
	"regexp"
	"testing"
)

func TestConsole(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := Console(&out)
	log.Info("Starting IPAM daemon... ", slog.String("level", "of a key"))
	log.Debug("not shown")
	log.Error("done")
	want := regexp.MustCompile(`^time=\S+ level=info msg="Starting IPAM daemon\.\.\. " level="of a key"\ntime=\S+ level=error msg=done\n$`)
	if !want.Match(out.Bytes()) {
		t.Errorf("have\n%s", &out)
	}
}
