package record

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/store"
)

// draining is a recording of two hours, with a count of free addresses each minute, which continues
// an earlier one.
func draining(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, Header{StartedAt: start})
	if err != nil {
		t.Fatal(err)
	}
	earlier := store.Readings{{At: start.Add(-48 * time.Hour), Free: 900}, {At: start.Add(-24*time.Hour + 500*time.Millisecond), Free: 700}, {At: start.Add(-time.Hour), Free: 600}}
	err = w.Continue(map[string]store.Readings{"subnet-1": earlier}, start)
	for i := range 120 {
		at := start.Add(time.Duration(i) * time.Minute)
		n := sample("n", 1, at)
		n.Summary.Subnets = []introspect.Subnet{{ID: "subnet-1", CIDR: "10.0.0.0/22", Available: new(500 - i), AsOf: &at}}
		err = errors.Join(err, w.WriteSample(n, at))
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestReadings_SameAfterSeek: wherever a player starts, it knows the counts up to there.
func TestReadings_SameAfterSeek(t *testing.T) {
	t.Parallel()
	file := draining(t)
	played, _ := open(t, file)
	played.Play(false)
	for minute := 0; minute < 120; minute += 7 {
		at := start.Add(time.Duration(minute) * time.Minute)
		played.Seek(at)
		sought, _ := open(t, file)
		sought.Play(false)
		sought.Seek(start.Add(119 * time.Minute))
		sought.Seek(at)
		want, got := played.Readings(), sought.Readings()
		if first := want["subnet-1"][0]; !first.At.Equal(start.Add(-48*time.Hour)) || first.Free != 900 {
			t.Fatalf("%v", want)
		}
		same := func(a, b store.Readings) bool {
			for i := range min(len(a), len(b)) {
				if a[i].Free != b[i].Free || a[i].At.Sub(b[i].At).Abs() > time.Second {
					return false
				}
			}
			return len(a) == len(b)
		}
		if !maps.EqualFunc(want, got, same) {
			t.Errorf("at minute %d:\n%v, want\n%v", minute, got, want)
		}
	}
	if info := played.Info(); info.Samples != 120 || !info.From.Equal(start) {
		t.Errorf("%+v", info)
	}
}

// TestReadings_Older: those of a recording without them are in its samples.
func TestReadings_Older(t *testing.T) {
	t.Parallel()
	z, err := gzip.NewReader(bytes.NewReader(draining(t)))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	var old bytes.Buffer
	zip := gzip.NewWriter(&old)
	for line := range strings.Lines(string(text)) {
		if !strings.Contains(line, `"readings":`) {
			_, err = zip.Write([]byte(line))
		}
	}
	if err := errors.Join(err, zip.Close()); err != nil {
		t.Fatal(err)
	}
	p, _ := open(t, old.Bytes())
	p.Play(false)
	p.Seek(start.Add(100 * time.Minute))
	got := p.Readings()["subnet-1"]
	if len(got) < 90 || !got[0].At.Equal(start) || got[len(got)-1].At.After(start.Add(100*time.Minute)) {
		t.Errorf("%v", got)
	}
}

// TestReadings_Hostile: lists of different lengths, times in the future or in disorder are cut off.
func TestReadings_Hostile(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		r    readings
		free []int
	}{
		"as written":       {readings{First: start, Later: []int64{60, 60}, Free: []int{3, 2, 1}}, []int{3, 2, 1}},
		"more counts":      {readings{First: start, Later: []int64{60}, Free: []int{3, 2, 1}}, []int{3, 2}},
		"more times":       {readings{First: start, Later: []int64{60, 60, 60}, Free: []int{3}}, []int{3}},
		"in the future":    {readings{First: start, Later: []int64{1 << 40, 60}, Free: []int{3, 2, 1}}, []int{3}},
		"not even a first": {readings{First: start.Add(time.Hour * 9), Free: []int{3}}, nil},
	} {
		var free []int
		for _, r := range upTo(tt.r, start.Add(time.Hour)) {
			free = append(free, r.Free)
		}
		if !reflect.DeepEqual(free, tt.free) {
			t.Errorf("%s: %v, want %v", name, free, tt.free)
		}
	}
}
