package kube

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"cnictl/daemon/fleet/watch"
)

func TestNewestLines(t *testing.T) {
	t.Parallel()
	const stamp = "2026-01-02T03:04:05.123456789Z "
	long := strings.Repeat("x", 100_000)
	for name, row := range map[string]struct {
		text      string
		lines     int
		size      int
		want      []string
		truncated bool
	}{
		"nothing":              {"", 3, 100, nil, false},
		"all":                  {stamp + "a\n" + stamp + "b\n", 3, 100, []string{"a", "b"}, false},
		"as many as asked for": {stamp + "a\n" + stamp + "b\n", 2, 100, []string{"a", "b"}, true}, // there may be more
		"more lines":           {"1\n2\n3\n4\n", 2, 100, []string{"3", "4"}, true},
		"more bytes":           {"aaaa\nbbbb\ncccc\n", 9, 8, []string{"bbbb", "cccc"}, true},
		"without an end":       {stamp + "a\n" + stamp + "b", 3, 100, []string{"a", "b"}, false},
		"an empty line":        {stamp + "\n\n", 3, 100, []string{"", ""}, false},
		"other line ends":      {stamp + "a\r\n", 3, 100, []string{"a"}, false},
		"longer than all":      {long + "\nz\n", 3, 50_000, []string{"z"}, true},
		"the last, too":        {"a\n" + long, 3, 50_000, []string{long[:50_000]}, true},
		"more than is read":    {strings.Repeat(long+"\n", 2*maxRead/len(long)), 1, 1000, []string{long[:1000]}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, truncated, err := newestLines(strings.NewReader(row.text), row.lines, row.size)
			if err != nil || truncated != row.truncated || len(got) != len(row.want) {
				t.Fatalf("%d lines, truncated %v, %v", len(got), truncated, err)
			}
			for i, l := range got {
				if l.Text != row.want[i] {
					t.Errorf("line %d is %.40q, want %.40q", i, l.Text, row.want[i])
				}
			}
		})
	}
	if l := containerLine([]byte(stamp + "a b")); !l.At.Equal(time.Date(2026, 1, 2, 3, 4, 5, 123456789, time.UTC)) || l.Text != "a b" {
		t.Errorf("%+v", l)
	}
	if l := containerLine([]byte("no time here")); !l.At.IsZero() || l.Text != "no time here" {
		t.Errorf("%+v", l)
	}
	broken := io.MultiReader(strings.NewReader("a\n"), iotest.ErrReader(io.ErrUnexpectedEOF))
	if got, _, err := newestLines(broken, 3, 100); !errors.Is(err, io.ErrUnexpectedEOF) || len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestEventsOn(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	pods := []Pod{{}}
	pods[0].Namespace, pods[0].Name = "a", "here"
	var many []Event
	for i := range watch.MaxKubeEvents + 2 {
		many = append(many, Event{UID: string(rune(0x100 + i)), Node: "full", At: at(i)})
	}
	lists := [][]Event{
		{{UID: "late", Node: "n", At: at(9)}, {UID: "elsewhere", Node: "m", At: at(1)}},
		{{UID: "late", Node: "n", At: at(9)}, {UID: "of its pod", Kind: "Pod", Object: "a/here", At: at(3)}},
		{{UID: "of another", Kind: "Pod", Object: "a/there", At: at(4)}, {UID: "was here", Kind: "Pod", Object: "a/here", Node: "m", At: at(5)}},
		many,
	}
	got := eventsOn("n", pods, lists)
	if len(got) != 2 || got[0].UID != "of its pod" || got[1].UID != "late" {
		t.Errorf("%+v", got)
	}
	if got := eventsOn("full", nil, lists); len(got) != watch.MaxKubeEvents || !got[0].At.Equal(at(2)) {
		t.Errorf("%d events from %v on", len(got), got[0].At)
	}
	if got := eventsOn("none", nil, nil); got == nil || len(got) != 0 {
		t.Errorf("%v", got)
	}
}
