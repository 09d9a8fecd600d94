// Package jsonlog writes log records as upstream does: one JSON line each, with level, ts,
// caller and msg, then the record's own members. It must not decide what gets logged.
package jsonlog

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"sync"

	"cnictl/daemon/api/logline"
)

// LevelFatal is for the last line of a process that exits because of a failure.
const LevelFatal = slog.LevelError + 4

// New makes a logger. level is a value of AWS_VPC_K8S_CNI_LOGLEVEL; any unknown value counts
// as debug.
func New(w io.Writer, level string) *slog.Logger {
	least, _ := logline.ParseLevel(level)
	return slog.New(&handler{out: &output{w: w}, least: least})
}

type handler struct {
	out   *output
	least logline.Level
	attrs []byte // members of WithAttrs, encoded
}

// output is shared by a handler and the handlers derived from it.
type output struct {
	mu sync.Mutex // guards w: one line at a time
	w  io.Writer
}

func (h *handler) Enabled(_ context.Context, l slog.Level) bool { return levelOf(l) >= h.least }

func (h *handler) Handle(_ context.Context, r slog.Record) error {
	f, _ := runtime.CallersFrames([]uintptr{r.PC}).Next()
	caller := logline.AppendCaller(nil, f.File, f.Line)
	b := logline.Append(nil, levelOf(r.Level), r.Time, string(caller), r.Message)
	b = append(b, h.attrs...)
	r.Attrs(func(a slog.Attr) bool {
		b = appendAttr(b, a)
		return true
	})
	h.out.mu.Lock()
	defer h.out.mu.Unlock()
	_, err := h.out.w.Write(logline.End(b))
	return err
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	next.attrs = slices.Clip(h.attrs)
	for _, a := range attrs {
		next.attrs = appendAttr(next.attrs, a)
	}
	return &next
}

// WithGroup does not nest: the keys are few, and each has one meaning.
func (h *handler) WithGroup(string) slog.Handler { return h }

func appendAttr(b []byte, a slog.Attr) []byte {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindInt64:
		return logline.AppendInt(b, a.Key, v.Int64())
	case slog.KindUint64:
		return logline.AppendUint(b, a.Key, v.Uint64())
	case slog.KindBool:
		return logline.AppendBool(b, a.Key, v.Bool())
	case slog.KindDuration:
		return logline.AppendDuration(b, a.Key, v.Duration())
	case slog.KindTime:
		return logline.AppendTime(b, a.Key, v.Time())
	}
	return logline.AppendString(b, a.Key, fmt.Sprint(v.Any()))
}

func levelOf(l slog.Level) logline.Level {
	switch {
	case l >= LevelFatal:
		return logline.Fatal
	case l >= slog.LevelError:
		return logline.Error
	case l >= slog.LevelWarn:
		return logline.Warn
	case l >= slog.LevelInfo:
		return logline.Info
	}
	return logline.Debug
}
