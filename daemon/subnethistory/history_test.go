package subnethistory

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
)

var start = time.Date(2026, 11, 21, 14, 2, 11, 0, time.UTC)

type count struct {
	at   time.Time
	free int
}

func counts(h *History, subnet string) (out []count) {
	for at, free := range h.Of(subnet) {
		out = append(out, count{at, free})
	}
	return out
}

func check(t *testing.T, h *History, id string, now time.Time) {
	t.Helper()
	got := counts(h, id)
	if len(got) > Most || len(got) == 0 {
		t.Fatalf("%d readings", len(got))
	}
	for k, c := range got {
		if c.at.After(now) || now.Sub(c.at) >= Span+Apart || k > 0 && !c.at.Truncate(Apart).After(got[k-1].at.Truncate(Apart)) {
			t.Fatalf("reading %d of %d is of %s, after one of %s; it is %s", k, len(got), c.at, got[max(k-1, 0)].at, now)
		}
	}
}

// TestNote_Properties: whatever is noted, by a clock that may jump, the readings are in order, one for
// each quarter of an hour, none is older than the span or newer than the clock, and decoding what was
// encoded gives the same.
func TestNote_Properties(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		h, now := &History{}, start
		for i := range 3000 {
			switch r.IntN(400) {
			case 0:
				now = now.Add(-time.Duration(r.Int64N(int64(3 * Span))))
			case 1:
				now = now.Add(time.Duration(r.Int64N(int64(2 * Span))))
			default:
				now = now.Add(time.Duration(r.Int64N(int64(25 * time.Minute))))
			}
			id := fmt.Sprint("subnet-", r.IntN(3))
			wasThere := false
			for _, c := range slices.Backward(h.rings[id]) {
				if !c.time().After(now) {
					wasThere = c.time().Truncate(Apart).Equal(now.Truncate(Apart))
					break
				}
			}
			if kept := h.Note(now, id, i); kept == wasThere {
				t.Fatalf("seed %d: at %s kept %v", seed, now, kept)
			}
			if i%100 == 0 {
				check(t, h, id, now)
			}
		}
		text, err := json.Marshal(h.Document())
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(text)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for id := range h.rings {
			if !slices.Equal(counts(back, id), counts(h, id)) {
				t.Errorf("seed %d: %s changed when it was encoded", seed, id)
			}
		}
	}
}

// TestNote_Sizes: 14 days of the longest numbers fit the bounds, in the file and in memory.
func TestNote_Sizes(t *testing.T) {
	t.Parallel()
	h := &History{}
	id := "subnet-0123456789abcdef0"
	for i := range 2 * Most {
		h.Note(start.Truncate(Apart).Add(time.Duration(i)*Apart+time.Duration(i%2)*(Apart-time.Minute)), id, 65531)
	}
	text, err := json.Marshal(h.Document())
	if err != nil || len(text) > 16<<10 || len(counts(h, id)) != Most {
		t.Errorf("%d bytes for %d readings, %v", len(text), len(counts(h, id)), err)
	}
	if bytes := 8 * cap(h.rings[id]); bytes > 16<<10 {
		t.Errorf("%d bytes of memory", bytes)
	}
}

// TestNote_Subnets: the number of subnets is bounded; one that is no longer read makes room for another.
func TestNote_Subnets(t *testing.T) {
	t.Parallel()
	h := &History{}
	for i := range MostSubnets {
		h.Note(start, fmt.Sprint("subnet-", i), 9)
	}
	if h.Note(start, "subnet-new", 9) || len(h.rings) != MostSubnets {
		t.Errorf("%d subnets", len(h.rings))
	}
	later := start.Add(time.Hour)
	for i := range MostSubnets - 1 {
		h.Note(later, fmt.Sprint("subnet-", i), 9)
	}
	if _, ok := h.Since(fmt.Sprint("subnet-", MostSubnets-1)); !ok || !h.Note(later, "subnet-new", 9) || len(h.rings) != MostSubnets {
		t.Errorf("%d subnets", len(h.rings))
	}
	if _, ok := h.Since(fmt.Sprint("subnet-", MostSubnets-1)); ok {
		t.Error("the subnet that is no longer read is still there")
	}
}

// TestNote_Refuses what a daemon cannot have read.
func TestNote_Refuses(t *testing.T) {
	t.Parallel()
	h := &History{}
	for name, kept := range map[string]bool{
		"unknown": h.Note(start, "a", -1), "too many": h.Note(start, "a", maxFree+1), "no ID": h.Note(start, "", 1),
		"a long ID": h.Note(start, strings.Repeat("x", maxID+1), 1), "no time": h.Note(time.Time{}, "a", 1),
		"a far time": h.Note(start.AddDate(100, 0, 0), "a", 1),
	} {
		if kept {
			t.Errorf("%s is kept", name)
		}
	}
	if len(h.rings) != 0 {
		t.Errorf("%v", h.rings)
	}
}

// TestAfter: what was read before the file was continues what is in the file.
func TestAfter(t *testing.T) {
	t.Parallel()
	file, fresh := &History{}, &History{}
	file.Note(start, "a", 9)
	file.Note(start.Add(Apart), "a", 8)
	fresh.Note(start.Add(Apart).Add(time.Minute), "a", 7) // the same quarter of an hour
	fresh.Note(start.Add(2*Apart), "a", 6)
	fresh.Note(start, "b", 5)
	got := fresh.After(file)
	if a := counts(got, "a"); len(a) != 3 || a[0].free != 9 || a[1].free != 8 || a[2].free != 6 || len(counts(got, "b")) != 1 {
		t.Errorf("%v, %v", a, counts(got, "b"))
	}
}

// TestDecode_Refuses files that this package did not write.
func TestDecode_Refuses(t *testing.T) {
	t.Parallel()
	h := &History{}
	h.Note(start, "subnet-a", 9)
	h.Note(start.Add(Apart), "subnet-a", 8)
	text, err := json.Marshal(h.Document())
	if err != nil {
		t.Fatal(err)
	}
	good := string(text)
	if _, err := Decode(text); err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]string{
		"empty":          "",
		"cut":            good[:len(good)-3],
		"another kind":   strings.Replace(good, introspect.KindSubnetHistory, introspect.KindSummary, 1),
		"a later form":   strings.Replace(good, introspect.APIVersion, "cnictl/v9", 1),
		"a checkpoint":   `{"version":"vpc-cni-ipam/1","allocations":[]}`,
		"backwards":      strings.Replace(good, "900", "-900", 1),
		"the same time":  strings.Replace(good, "[900]", "[0]", 1),
		"too few times":  strings.Replace(good, "[900]", "[]", 1),
		"too many times": strings.Replace(good, "[900]", "[900,900]", 1),
		"negative":       strings.Replace(good, "[9,", "[-9,", 1),
		"no readings":    strings.Replace(strings.Replace(good, "[900]", "[]", 1), "[9,8]", "[]", 1) + "x",
		"beyond 14 days": strings.Replace(good, "900", "9000000", 1),
		"twice":          strings.Replace(good, `"items":[`, `"items":[`+good[strings.Index(good, `{"subnet"`):len(good)-2]+",", 1),
	} {
		if got, err := Decode([]byte(bad)); err == nil {
			t.Errorf("%s: %v", name, got.rings)
		}
	}
}

// FuzzDecode: whatever is in the file, decoding neither panics nor returns what Note would not keep.
func FuzzDecode(f *testing.F) {
	h := &History{}
	for i := range 50 {
		h.Note(start.Add(time.Duration(i)*10*time.Minute), fmt.Sprint("subnet-", i%2), i)
	}
	text, err := json.Marshal(h.Document())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"apiVersion":"cnictl/v1alpha1","kind":"NodeSubnetHistory","items":[` +
		`{"subnet":"a","first":"0001-01-01T00:00:00Z","free":[1]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		h, err := Decode(text)
		if err != nil {
			return
		}
		if len(h.rings) > MostSubnets {
			t.Errorf("%d subnets", len(h.rings))
		}
		again, err := json.Marshal(h.Document())
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(again)
		if err != nil {
			t.Fatal(err)
		}
		for id, ring := range h.rings {
			if len(ring) > Most || !slices.Equal(counts(back, id), counts(h, id)) {
				t.Errorf("%s has %d readings, and others once encoded", id, len(ring))
			}
		}
	})
}
