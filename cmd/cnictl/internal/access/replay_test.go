package access

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cnictl/cmd/cnictl/internal/cli"
)

// TestMomentOf: --at accepts every form in which a time is displayed.
func TestMomentOf(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 11, 21, 23, 50, 0, 500e6, time.UTC)
	to := from.Add(time.Hour)
	for text, want := range map[string]time.Time{
		"2026-11-21T23:59:11Z":      time.Date(2026, 11, 21, 23, 59, 11, 0, time.UTC),
		"2026-11-22T00:59:11+01:00": time.Date(2026, 11, 21, 23, 59, 11, 0, time.UTC),
		"2026-11-21 23:59:11 UTC":   time.Date(2026, 11, 21, 23, 59, 11, 0, time.UTC),
		"2026-11-21 23:59:11Z":      time.Date(2026, 11, 21, 23, 59, 11, 0, time.UTC),
		"2026-11-21 23:59":          time.Date(2026, 11, 21, 23, 59, 0, 0, time.UTC),
		"23:59:11Z":                 time.Date(2026, 11, 21, 23, 59, 11, 0, time.UTC),
		"23:59:11 UTC":              time.Date(2026, 11, 21, 23, 59, 11, 0, time.UTC),
		"23:50":                     time.Date(2026, 11, 21, 23, 50, 0, 0, time.UTC),
		"00:10:07":                  time.Date(2026, 11, 22, 0, 10, 7, 0, time.UTC), // the next day
		"+5m":                       from.Add(5 * time.Minute),
		"-5m":                       to.Add(-5 * time.Minute),
	} {
		if got, err := momentOf(text, from, to); err != nil || !got.Equal(want) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "yesterday", "25:00", "UTC"} {
		if got, err := momentOf(text, from, to); err == nil {
			t.Errorf("%q: accepted as %v", text, got)
		}
	}
}

// TestNoRecording: for a misspelt name, the recordings in the same directory are
// suggested, but never recording under that name.
func TestNoRecording(t *testing.T) {
	t.Parallel()
	dir, empty := t.TempDir(), t.TempDir()
	for _, name := range []string{"tour.cnirec", "night.cnirec", "notes.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string][2]string{
		filepath.Join(dir, "tuor.cnirec"):   {"files with a similar name: tour.cnirec", "cnictl replay " + dir + "/tour.cnirec"},
		filepath.Join(dir, "tour"):          {"files with a similar name: tour.cnirec", "cnictl replay " + dir + "/tour.cnirec"},
		filepath.Join(dir, "monday"):        {"recordings in " + dir + ": night.cnirec, tour.cnirec", "cnictl replay " + dir + "/night.cnirec"},
		filepath.Join(empty, "tour.cnirec"): {"there are no .cnirec files in " + empty, ""},
		filepath.Join(empty, "x", "y.z"):    {"directory " + empty + "/x does not exist either", ""},
	} {
		e := noRecording(&cli.Factory{Name: "cnictl"}, name)
		if e.Code != cli.ExitNotFound || e.Why != want[0] || e.Do != want[1] || strings.Contains(e.Do, "record ") {
			t.Errorf("%s: %+v", name, e)
		}
	}
}
