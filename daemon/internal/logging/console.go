package logging

import (
	"io"
	"log/slog"
	"strings"
)

// Console returns a logger for human readers: it writes `time=... level=info msg="..."`,
// unbuffered, like upstream's init container and entrypoint do for `kubectl logs`.
func Console(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == slog.LevelKey {
			a.Value = slog.StringValue(strings.ToLower(a.Value.String()))
		}
		return a
	}}))
}
