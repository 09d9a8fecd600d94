package show

import (
	"fmt"
	"strconv"
	"time"
)

// Unknown stands for what is not known.
const Unknown = "-"

// Int prints a count, Unknown for nil. Numbers beyond a billion occur with IPv6
// prefixes only and print as a power of two.
func Int(v *int) string {
	if v == nil {
		return Unknown
	}
	return Count(*v)
}

// Count prints a count.
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

// Plural counts things.
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// OrUnknown prints a string, Unknown when it is empty.
func OrUnknown(s string) string {
	if s == "" {
		return Unknown
	}
	return s
}

// Age prints a duration as kubectl prints ages: 5s, 5m, 3h20m, 2d4h.
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

// Since prints the age of a moment, Unknown for nil and for one so far off that a
// node cannot mean it.
func Since(at *time.Time, now time.Time) string {
	if at == nil || absurd(now.Sub(*at)) {
		return Unknown
	}
	return Age(now.Sub(*at))
}

// Until prints how long it is to a moment, Unknown as Since does.
func Until(at *time.Time, now time.Time) string {
	if at == nil || absurd(at.Sub(now)) {
		return Unknown
	}
	return Age(at.Sub(now))
}

// absurd reports a distance no node has seen: a time that is missing is year 1.
func absurd(d time.Duration) bool { return d.Abs() > 100*365*24*time.Hour }
