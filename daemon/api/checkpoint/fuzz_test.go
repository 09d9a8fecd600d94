package checkpoint

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"cnictl/daemon/api/netnames"
)

// FuzzTruncated: from a file truncated anywhere, Salvage returns exactly the complete
// entries, and Decode refuses the file.
func FuzzTruncated(f *testing.F) {
	for _, data := range recorded(f) {
		for _, cut := range []int{0, 1, 40, len(data) / 2, len(data) - 2, len(data) - 1, len(data)} {
			f.Add(data, cut)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		entries, err := Decode(data)
		if err != nil {
			return
		}
		whole := encodeAll(entries)
		if cut < 0 || cut > len(whole) {
			cut = len(whole)
		}
		ends := len(head) // end of the current entry in the file
		n := 0
		for _, e := range entries {
			if ends += len(EncodeEntry(e)); ends > cut {
				break
			}
			n++
			ends++ // the comma
		}
		file := whole[:cut]
		if salvaged := Salvage(file); !slices.Equal(salvaged, entries[:n]) {
			t.Errorf("cut at %d of %d: salvaged %d entries, want the first %d of %d", cut, len(whole), len(salvaged), n, len(entries))
		}
		got, err := Decode(file)
		var format *FormatError
		switch {
		case cut >= len(whole)-1: // only the final newline may be missing
			if err != nil || !slices.Equal(got, entries) {
				t.Errorf("whole file: %v", err)
			}
		case cut == 0:
			if !errors.As(err, &format) || format.Problem != Empty {
				t.Errorf("nothing: %v", err)
			}
		case !errors.As(err, &format) || format.Problem != Truncated || got != nil:
			t.Errorf("cut at %d of %d: %v", cut, len(whole), err)
		}
	})
}

// FuzzEntry: any entry is read back as it was written.
func FuzzEntry(f *testing.F) {
	for _, data := range recorded(f) {
		entries, err := Decode(data)
		if err != nil {
			f.Fatal(err)
		}
		e := entries[0]
		f.Add(e.NetworkName, e.ContainerID, e.IfName, e.IPv4.AsSlice(), e.AllocatedAt.UnixNano(), e.PodNamespace, e.PodName, e.Interfaces)
	}
	f.Add(netnames.MigratedNetwork, "c", netnames.MigratedIfName, []byte{0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, int64(0), "", "", 0)
	f.Add("\xff\x00<&>\u2028", "\"\\", "\n", []byte{0, 0, 0, 0}, int64(-1), "\ud7ff\ufffd", "\x7f", -1)
	f.Fuzz(func(t *testing.T, network, container, ifName string, address []byte, at int64, namespace, name string, interfaces int) {
		e := Entry{NetworkName: network, ContainerID: container, IfName: ifName, PodNamespace: namespace, PodName: name, Interfaces: interfaces}
		if at != 0 {
			e.AllocatedAt = time.Unix(0, at).UTC()
		}
		switch ip, ok := netip.AddrFromSlice(address); {
		case !ok || ip.Is4In6():
			return // not a pod's address
		case ip.Is4():
			e.IPv4 = ip
		default:
			e.IPv6 = ip
		}
		want := e
		for _, s := range []*string{&want.NetworkName, &want.ContainerID, &want.IfName, &want.PodNamespace, &want.PodName} {
			*s = validUTF8(*s)
		}
		file := encodeAll([]Entry{e, e})
		got, err := Decode(file)
		if err != nil || len(got) != 2 || got[0] != want || got[1] != want {
			t.Fatalf("read %+v, %v\nwant %+v twice\n%s", got, err, want, file)
		}
		if again := originalBytes(t, []Entry{e, e}); string(again) != string(file) {
			t.Errorf("written\n%s\nupstream's encoder writes\n%s", file, again)
		}
	})
}

// validUTF8 replaces each invalid byte, because JSON text is UTF-8.
func validUTF8(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteRune(r)
	}
	return b.String()
}
