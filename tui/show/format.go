package show

import (
	"strconv"
	"time"

	"cnictl/daemon/fleet/human"
)

// Unknown is shown for unknown values.
const Unknown = "-"

// Int formats a count, nil as Unknown. Numbers beyond a billion occur only with IPv6 prefixes and
// are shown as a power of two.
func Int(v *int) string {
	if v == nil {
		return Unknown
	}
	return Count(*v)
}

// Count formats a count.
func Count(n int) string {
	if n < 1<<30 {
		return strconv.Itoa(n)
	}
	bits := 0
	for n>>bits > 1 {
		bits++
	}
	return "~2^" + strconv.Itoa(bits)
}

// Times formats how often something happened.
func Times(n int) string { return "×" + strconv.Itoa(n) }

// OrUnknown returns s, or Unknown if it is empty.
func OrUnknown(s string) string {
	if s == "" {
		return Unknown
	}
	return s
}

// Since formats the age of a time; Unknown if nil, or too far away to be meant.
func Since(at *time.Time, now time.Time) string {
	if at == nil {
		return Unknown
	}
	return human.Age(now.Sub(*at))
}

// Until formats the time until a moment; Unknown as in Since.
func Until(at *time.Time, now time.Time) string {
	if at == nil {
		return Unknown
	}
	return human.Age(at.Sub(now))
}
