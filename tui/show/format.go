package show

import (
	"fmt"
	"strconv"
	"time"
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

// Plural formats a count with its noun.
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
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

// Age formats a duration like kubectl: 5s, 5m, 3h20m, 2d4h.
func Age(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 10*time.Minute:
		return twoUnits(d, time.Minute, "m", time.Second, "s")
	case d < 3*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 8*time.Hour:
		return twoUnits(d, time.Hour, "h", time.Minute, "m")
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	case d < 8*24*time.Hour:
		return twoUnits(d, 24*time.Hour, "d", time.Hour, "h")
	}
	return fmt.Sprintf("%dd", int(d.Hours())/24)
}

func twoUnits(d, big time.Duration, bigName string, small time.Duration, smallName string) string {
	n, rest := int(d/big), int(d%big/small)
	if rest == 0 {
		return fmt.Sprintf("%d%s", n, bigName)
	}
	return fmt.Sprintf("%d%s%d%s", n, bigName, rest, smallName)
}

// Since formats the age of a time; Unknown if nil, or too far away to be meant.
func Since(at *time.Time, now time.Time) string {
	if at == nil || absurd(now.Sub(*at)) {
		return Unknown
	}
	return Age(now.Sub(*at))
}

// Until formats the time until a moment; Unknown as in Since.
func Until(at *time.Time, now time.Time) string {
	if at == nil || absurd(at.Sub(now)) {
		return Unknown
	}
	return Age(at.Sub(now))
}

// absurd reports an impossibly long time: a missing time is the year 1.
func absurd(d time.Duration) bool { return d.Abs() > 100*365*24*time.Hour }
