package logging

import (
	"context"
	"encoding"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"sync"

	"cnictl/daemon/api/logline"
)

// LevelFatal is the level of the last line of a process that gives up.
const LevelFatal = slog.LevelError + 4

// Handler writes one logline per record.
type Handler struct {
	out   *output
	level slog.Leveler
	attrs []byte // encoded members from WithAttrs
	group string // prefix of keys, "a.b.": lines stay flat
}

// output is shared by a handler and the handlers derived from it.
type output struct {
	mu    sync.Mutex // guards w and buf: one line at a time
	w     io.Writer
	queue *queue // takes the lines instead of w unless nil
	buf   []byte
}

// NewHandler returns a handler that writes records of at least level to w.
func NewHandler(w io.Writer, level slog.Leveler) *Handler {
	return &Handler{out: &output{w: w}, level: level}
}

// newQueued returns a handler that adds records of at least level to a queue and never
// blocks.
func newQueued(q *queue, level slog.Leveler) *Handler {
	return &Handler{out: &output{queue: q}, level: level}
}

func (h *Handler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= h.level.Level()
}

func (h *Handler) Handle(_ context.Context, r slog.Record) error {
	var space [96]byte
	caller := appendCaller(space[:0], r.PC)

	h.out.mu.Lock()
	defer h.out.mu.Unlock()
	b := logline.Append(h.out.buf[:0], lineLevel(r.Level), r.Time, string(caller), r.Message)
	b = append(b, h.attrs...)
	r.Attrs(func(a slog.Attr) bool {
		b = appendAttr(b, h.group, a)
		return true
	})
	b = logline.End(b)
	h.out.buf = b
	if h.out.queue != nil {
		h.out.queue.add(b, r.Level)
		return nil
	}
	_, err := h.out.w.Write(b)
	return err
}

func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	next.attrs = slices.Clip(h.attrs)
	for _, a := range attrs {
		next.attrs = appendAttr(next.attrs, h.group, a)
	}
	return &next
}

func (h *Handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	next := *h
	next.group += name + "."
	return &next
}

func appendCaller(b []byte, pc uintptr) []byte {
	if pc == 0 {
		return b
	}
	f, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	return logline.AppendCaller(b, f.File, f.Line)
}

func appendAttr(b []byte, group string, a slog.Attr) []byte {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			group += a.Key + "."
		}
		for _, m := range v.Group() {
			b = appendAttr(b, group, m)
		}
		return b
	}
	if a.Equal(slog.Attr{}) {
		return b
	}
	key := group + a.Key
	switch v.Kind() {
	case slog.KindString:
		return logline.AppendString(b, key, v.String())
	case slog.KindInt64:
		return logline.AppendInt(b, key, v.Int64())
	case slog.KindUint64:
		return logline.AppendUint(b, key, v.Uint64())
	case slog.KindBool:
		return logline.AppendBool(b, key, v.Bool())
	case slog.KindDuration:
		return logline.AppendDuration(b, key, v.Duration())
	case slog.KindTime:
		return logline.AppendTime(b, key, v.Time())
	}
	return appendAny(b, key, v.Any())
}

// appendAny writes values that have a text form as text and all others as JSON.
func appendAny(b []byte, key string, v any) []byte {
	switch v := v.(type) {
	case error:
		return logline.AppendString(b, key, v.Error())
	case encoding.TextMarshaler:
		if text, err := v.MarshalText(); err == nil {
			return logline.AppendString(b, key, string(text))
		}
	case fmt.Stringer:
		return logline.AppendString(b, key, v.String())
	}
	if value, err := json.Marshal(v); err == nil {
		return logline.AppendJSON(b, key, value)
	}
	return logline.AppendString(b, key, fmt.Sprintf("%+v", v))
}

func lineLevel(l slog.Level) logline.Level {
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

func slogLevel(l logline.Level) slog.Level {
	switch l {
	case logline.Fatal:
		return LevelFatal
	case logline.Error:
		return slog.LevelError
	case logline.Warn:
		return slog.LevelWarn
	case logline.Info:
		return slog.LevelInfo
	}
	return slog.LevelDebug
}
