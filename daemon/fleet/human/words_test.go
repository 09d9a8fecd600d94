package human

import (
	"math"
	"testing"
	"time"
)

func TestAge(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"-5s": "0s", "0s": "0s", "119s": "119s", "2m": "2m", "5m3s": "5m3s", "10m": "10m", "179m": "179m", "3h": "3h", "3h20m": "3h20m", "8h": "8h", "47h59m": "47h", "50h": "2d2h", "240h": "10d",
		"876000h": "36500d", "876001h": "-", "-876001h": "-",
	} {
		d, err := time.ParseDuration(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := Age(d); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestMilliseconds(t *testing.T) {
	t.Parallel()
	for ms, want := range map[int64]string{
		0: "0s", 1: "1ms", 99: "99ms", 100: "0.1s", 640: "0.6s", 2140: "2.1s", 3000: "3s", 9990: "10s", 10_004: "10s", 96_500: "96s", 125_000: "2m5s",
		-1: "-1ms", math.MaxInt64: "-", math.MinInt64: "-9223372036854775808ms",
	} {
		if got := Milliseconds(ms); got != want {
			t.Errorf("%d: %s, want %s", ms, got, want)
		}
	}
}

func TestPlural(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0 ENIs", 1: "1 ENI", 12: "12 ENIs"} {
		if got := Plural(n, "ENI", "ENIs"); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
