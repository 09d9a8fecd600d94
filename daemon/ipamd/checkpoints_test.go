package ipamd

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/checkpoint"
	"cnictl/daemon/keeper"
)

// held returns a checkpoint file with one allocation.
func held(card int) []byte {
	e := checkpoint.Entry{
		NetworkName: "aws-cni", ContainerID: fmt.Sprint("sandbox-", card), IfName: "eth0",
		IPv4: netip.AddrFrom4([4]byte{10, 0, byte(card), 1}), PodNamespace: "shop", PodName: "cart",
	}
	return checkpoint.Encode(slices.Values([][]byte{checkpoint.EncodeEntry(e)}))
}

// TestCheckpoints_FindsTheFilesOfCards writes the files of some cards under names that would
// mislead a pattern, next to foreign files, and finds each again.
func TestCheckpoints_FindsTheFilesOfCards(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"ipam.json", "ipam", "node0/ipam0.json", "n[0-9]/ipam*.json", "a?b/[x]", `back\slash/ipam.json`, "ipam-nic-0.json", "x.json.json", "node-nic-1/ipam.json",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), name)
			write := openCheckpoints(path)
			want := []int{0, 1, 2, 127}
			for _, card := range want {
				if err := write.write(keeper.Image{Files: []keeper.ImageFile{{Card: card, Data: held(card)}}}); err != nil {
					t.Fatal(err)
				}
			}
			for _, number := range []string{"", "0", "01", "+3", "-4", "128", "99999999999999999999", "5x", "x"} {
				other := filepath.Join(filepath.Dir(path), "other-nic-"+number)
				odd := checkpoint.CardPath(path, 0)
				odd = odd[:len(odd)-len(filepath.Ext(odd))]
				for _, file := range []string{other, odd + number + ".tmp"} {
					if err := os.WriteFile(file, []byte("none of ours"), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			got, err := openCheckpoints(path).load()
			if err != nil || len(got.problems) > 0 {
				t.Fatalf("%v, %v", err, got.problems)
			}
			var cards []int
			for _, e := range got.entries {
				cards = append(cards, e.Card)
				if id := fmt.Sprint("sandbox-", e.Card); e.ContainerID != id {
					t.Errorf("card %d has the allocation of %s", e.Card, e.ContainerID)
				}
			}
			if !slices.Equal(cards, want) { // in order, too
				t.Errorf("cards %v, want %v", cards, want)
			}
		})
	}
}

// TestCheckpoints_WriteErrors: files are written in the order of the cards, up to the one
// that fails; a failure is reported, and ends with the next complete image.
func TestCheckpoints_WriteErrors(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ipam.json")
	files := openCheckpoints(path)
	if files.exists() {
		t.Error("a daemon ran here before, without a file")
	}
	if err := os.Mkdir(checkpoint.CardPath(path, 1), 0o700); err != nil { // a file cannot replace it
		t.Fatal(err)
	}
	image := keeper.Image{Files: []keeper.ImageFile{{Card: 0, Data: held(0)}, {Card: 1, Data: held(1)}, {Card: 2, Data: held(2)}}}
	if err := files.write(image); err == nil {
		t.Fatal("a directory was written over")
	}
	if !files.stores[0].Exists() || files.stores[2] != nil {
		t.Error("card 0 was not written, or card 2 was after a failure")
	}
	if err := os.Remove(checkpoint.CardPath(path, 1)); err != nil {
		t.Fatal(err)
	}
	if err := files.write(image); err != nil {
		t.Fatal(err)
	}
	if got, err := openCheckpoints(path).load(); err != nil || len(got.entries) != 3 {
		t.Errorf("%v, %v; want all three", got.entries, err)
	}
}

// TestCheckpoints_DirectoryNotListed: an unlistable directory does not mean no files.
func TestCheckpoints_DirectoryNotListed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "ipam.json")
	if err := openCheckpoints(filepath.Join(dir, "missing", "ipam.json")).unlisted; err != nil {
		t.Errorf("a directory that is yet to be made: %v", err)
	}
	for card, name := range []string{path, checkpoint.CardPath(path, 1)} {
		if err := os.WriteFile(name, held(card), 0o644); err != nil { //nolint:gosec // for the user below
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o311); err != nil { //nolint:gosec // files open, names hidden
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) }) //nolint:gosec // a directory, to be removed
	type result struct {
		got loaded
		err error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the user that it is
		if os.Getuid() == 0 {
			_ = unix.Setfsuid(65534) // root reads every directory
		}
		got, err := openCheckpoints(path).load()
		done <- result{got, err}
	}()
	if r := <-done; !errors.Is(r.err, fs.ErrPermission) || len(r.got.entries) > 0 {
		t.Errorf("%v, %v; want that the directory cannot be listed", r.got.entries, r.err)
	}
}

// TestCheckpoints_OneDamaged: the other files are still used.
func TestCheckpoints_OneDamaged(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ipam.json")
	for card, data := range [][]byte{held(0), []byte("{"), held(2)} {
		name := path
		if card > 0 {
			name = checkpoint.CardPath(path, card)
		}
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := openCheckpoints(path).load()
	if err != nil || len(got.entries) != 2 || len(got.problems) != 1 {
		t.Fatalf("%v, %v, %v; want two entries and one problem", got.entries, got.problems, err)
	}
}

// TestCheckpoints_OnlyAFurtherCard: a file of another card alone also proves an earlier
// daemon.
func TestCheckpoints_OnlyAFurtherCard(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ipam.json")
	if err := os.WriteFile(checkpoint.CardPath(path, 2), held(2), 0o600); err != nil {
		t.Fatal(err)
	}
	if !openCheckpoints(path).exists() {
		t.Error("no daemon ran here before")
	}
}
