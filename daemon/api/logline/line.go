package logline

import (
	"strconv"
	"strings"
	"time"
)

// Level is a severity.
type Level int8

const (
	Debug Level = iota
	Info
	Warn
	Error
	Fatal
)

var levelNames = [...]string{"debug", "info", "warn", "error", "fatal"}

func (l Level) String() string {
	if l < Debug || l > Fatal {
		return "level(" + strconv.Itoa(int(l)) + ")"
	}
	return levelNames[l]
}

// ParseLevel reads AWS_VPC_K8S_CNI_LOGLEVEL or the plugin's counterpart: the name of a
// level in any case. For any other value, including "", it returns Debug, as upstream does,
// and false.
func ParseLevel(s string) (level Level, ok bool) {
	for i, name := range levelNames {
		if strings.EqualFold(s, name) {
			return Level(i), true
		}
	}
	return Debug, false
}

// timeFormat is ISO 8601 with milliseconds; "Z" for UTC, otherwise "+0200".
const timeFormat = "2006-01-02T15:04:05.000Z0700"

// Append opens a line. The caller has the form "package/file.go:line", see [AppendCaller];
// if it is empty, the member is omitted.
func Append(b []byte, level Level, at time.Time, caller, msg string) []byte {
	b = append(append(append(b, `{"level":"`...), level.String()...), `","ts":`...)
	b = AppendTimeValue(b, at)
	if caller != "" {
		b = AppendString(b, "caller", caller)
	}
	return AppendString(b, "msg", msg)
}

// End closes a line.
func End(b []byte) []byte { return append(b, "}\n"...) }

// AppendString adds a text member.
func AppendString(b []byte, key, value string) []byte {
	return AppendQuoted(appendKey(b, key), value)
}

// AppendInt adds a number.
func AppendInt(b []byte, key string, value int64) []byte {
	return strconv.AppendInt(appendKey(b, key), value, 10)
}

// AppendUint adds a number.
func AppendUint(b []byte, key string, value uint64) []byte {
	return strconv.AppendUint(appendKey(b, key), value, 10)
}

// AppendBool adds a boolean.
func AppendBool(b []byte, key string, value bool) []byte {
	return strconv.AppendBool(appendKey(b, key), value)
}

// AppendDuration adds a duration in Go's form with its unit, "1.5s".
func AppendDuration(b []byte, key string, value time.Duration) []byte {
	return AppendQuoted(appendKey(b, key), value.String())
}

// AppendTime adds a time in the form of "ts".
func AppendTime(b []byte, key string, value time.Time) []byte {
	return AppendTimeValue(appendKey(b, key), value)
}

// AppendJSON adds a member whose value is already JSON.
func AppendJSON(b []byte, key string, value []byte) []byte {
	return append(appendKey(b, key), value...)
}

// AppendTimeValue adds a quoted time without a key.
func AppendTimeValue(b []byte, value time.Time) []byte {
	return append(value.AppendFormat(append(b, '"'), timeFormat), '"')
}

// AppendCaller writes the last two elements of a path and a line, "ipamd/loop.go:81".
func AppendCaller(b []byte, file string, line int) []byte {
	if i := strings.LastIndexByte(file, '/'); i >= 0 {
		file = file[strings.LastIndexByte(file[:i], '/')+1:]
	}
	return strconv.AppendInt(append(append(b, file...), ':'), int64(line), 10)
}

func appendKey(b []byte, key string) []byte {
	return append(AppendQuoted(append(b, ','), key), ':')
}
