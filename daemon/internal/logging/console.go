package logging

import (
	"io"
	"log/slog"
	"strings"
)

// Console returns a logger that writes lines of text for people: `time=... level=info
// msg="..."`, the form in which upstream's init container and entrypoint write what
// `kubectl logs` shows. It writes at once.
func Console(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == slog.LevelKey {
			a.Value = slog.StringValue(strings.ToLower(a.Value.String()))
		}
		return a
	}}))
}
