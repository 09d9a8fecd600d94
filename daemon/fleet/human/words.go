package human

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Plural formats a count with its noun.
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// Milliseconds formats how long something took: 40ms, 0.6s, 2.1s, 14s, 2m5s.
func Milliseconds(ms int64) string {
	switch {
	case ms == 0:
		return "0s"
	case ms < 100:
		return strconv.FormatInt(ms, 10) + "ms"
	case ms < 10_000:
		return strconv.FormatFloat(math.Round(float64(ms)/100)/10, 'f', -1, 64) + "s"
	case ms > math.MaxInt64/int64(time.Millisecond):
		return "-"
	}
	return Age(time.Duration(ms) * time.Millisecond)
}

// Age formats a duration like kubectl: 5s, 5m, 3h20m, 2d4h. An impossibly long one, from a missing
// time, which is the year 1, is "-".
func Age(d time.Duration) string {
	switch {
	case d.Abs() > 100*365*24*time.Hour:
		return "-"
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
