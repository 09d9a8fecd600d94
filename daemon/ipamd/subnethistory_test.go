package ipamd

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/daemon/config"
	"cnictl/daemon/keeper"
	"cnictl/daemon/resync"
	"cnictl/daemon/subnethistory"
)

// historyOf returns a history whose file is in dir, and its log.
func historyOf(dir string) (*subnetHistory, *bytes.Buffer) {
	var said bytes.Buffer
	c := config.Config{CheckpointPath: filepath.Join(dir, "ipam.json")}
	return newSubnetHistory(c, slog.New(slog.NewTextHandler(&said, nil))), &said
}

var listed = []resync.Subnet{{ID: "subnet-a", AvailableIPs: 100}, {ID: "subnet-unknown", AvailableIPs: resync.Unknown}}

// TestSubnetHistory_Restart: a daemon continues what the one before it has written, in a file that only
// its owner can read.
func TestSubnetHistory_Restart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before, _ := historyOf(dir)
	before.load()
	at := time.Date(2026, 11, 21, 14, 2, 11, 0, time.UTC)
	before.note(at, listed)
	before.save()
	after, said := historyOf(dir)
	after.note(at.Add(time.Hour), listed) // EC2 answers before the disk does
	after.load()
	after.save()
	last, _ := historyOf(dir)
	last.load()
	items := last.served()().Items
	if len(items) != 1 || items[0].Subnet != "subnet-a" || len(items[0].Free) != 2 || !items[0].First.Equal(at) || said.Len() > 0 {
		t.Errorf("%+v %s", items, said)
	}
	if since := last.since("subnet-a"); since == nil || !since.Equal(at) || last.since("subnet-unknown") != nil {
		t.Errorf("since %v", since)
	}
	info, err := os.Stat(filepath.Join(dir, "ipam-subnets.json"))
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestSubnetHistory_NotUsable: a file that is none of ours is set aside with the reason, and a new one
// begun; the log says once that it cannot be written.
func TestSubnetHistory_NotUsable(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(path string) error{
		"invalid character":  func(path string) error { return os.WriteFile(path, []byte("free"), 0o600) },
		"unexpected end":     func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"not a regular file": func(path string) error { return unix.Mkfifo(path, 0o600) },
		"larger than": func(path string) error {
			return os.WriteFile(path, bytes.Repeat([]byte(" "), subnethistory.MostBytes+1), 0o600)
		},
		"it is of mode d":                      func(path string) error { return os.Mkdir(path, 0o755) },
		"where NodeSubnetHistory of cnictl/v1": func(path string) error { return os.WriteFile(path, []byte("{}"), 0o600) },
	} {
		dir := t.TempDir()
		h, said := historyOf(dir)
		if err := make(h.path); err != nil {
			t.Fatal(err)
		}
		h.load()
		if text := said.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, name) {
			t.Errorf("%s: %s", name, text)
		}
		if _, err := os.Lstat(h.path + ".damaged"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		h.note(time.Now(), listed)
		h.save()
		if again, said := historyOf(dir); true {
			if again.load(); again.since("subnet-a") == nil || said.Len() > 0 {
				t.Errorf("%s: not written: %s", name, said)
			}
		}
	}
	h, said := historyOf("/dev/null")
	h.load()
	h.save()
	h.save()
	if text := said.String(); strings.Count(text, "not written") != 1 {
		t.Error(text)
	}
}

// TestSubnetHistory_OffThePath: with a disk that never answers, the owner notes what EC2 counted and
// everything can be read: nothing of it touches the disk.
func TestSubnetHistory_OffThePath(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := newLonely(t, nil)
	l.recorder.subnets, _ = historyOf(dir)
	subnet := l.node.identity.SubnetID
	at := time.Now()
	for i := range 10 {
		at = at.Add(20 * time.Minute)
		l.recorder.record(at, keeper.SubnetsListed{Subnets: []resync.Subnet{{ID: subnet, AvailableIPs: 1000 - i}}})
	}
	if items := l.recorder.subnets.served()().Items; len(items) != 1 || len(items[0].Free) != 10 {
		t.Errorf("%+v", items)
	}
	views := subnetViews(keeper.State{SubnetsRead: at, Subnets: []resync.Subnet{{ID: subnet}, {ID: "subnet-new"}}}, l.recorder.subnets)
	if len(views) != 2 || views[1].HistorySince != nil || views[0].HistorySince == nil ||
		at.Sub(*views[0].HistorySince).Truncate(time.Second) != 3*time.Hour {
		t.Errorf("%+v", views)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("%v, %v", files, err)
	}
}

// TestSubnetHistory_None: without counts of IPv4 addresses there is no document.
func TestSubnetHistory_None(t *testing.T) {
	t.Parallel()
	for _, c := range []config.Config{{IPv6: true}, {IMDSOnly: true}} {
		h := newSubnetHistory(c, slog.New(slog.DiscardHandler))
		h.note(time.Now(), listed)
		if h.served() != nil || h.since("subnet-a") != nil {
			t.Errorf("%+v keeps a history", c)
		}
	}
}
