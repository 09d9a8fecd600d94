package netnames

import (
	"crypto/sha1"
	"encoding/hex"
	"strconv"
	"strings"
	"testing"
)

const ifNameSize = 16 // IFNAMSIZ of Linux, with the final NUL

// FuzzNames: for any pod name, its links get names that the kernel accepts and that upstream
// would have chosen.
func FuzzNames(f *testing.F) {
	f.Add("default", "web-0", 0)
	f.Add("kube-system", "coredns-7d9f8b6c5-abcde", 1)
	f.Add("", "", -1)
	f.Add("a.b", "c", 0)
	f.Add(strings.Repeat("n", 63), strings.Repeat("p", 253), 14)
	f.Add("\x00/ %", "\xff", 1<<31)
	f.Fuzz(func(t *testing.T, ns, name string, index int) {
		text := ns + "." + name
		if index > 0 {
			text += "." + strconv.Itoa(index)
		}
		sum := sha1.Sum([]byte(text))
		if got, want := Hash(ns, name, index), hex.EncodeToString(sum[:])[:hashDigits]; got != want {
			t.Fatalf("hash of %q: %s, want %s", text, got, want)
		}
		for _, link := range []string{HostVeth(DefaultVethPrefix, ns, name, index), HostVeth(BranchVethPrefix, ns, name, index),
			HostVeth("abcd", ns, name, index)} {
			if len(link) >= ifNameSize || strings.ContainsAny(link, " /:%\x00") {
				t.Errorf("link %q of %q is refused by the kernel", link, text)
			}
		}
		if d := Dummy(ns, name); !strings.HasPrefix(d, DummyPrefix) || d != DummyPrefix+Hash(ns, name, 0) {
			t.Errorf("dummy %q", d)
		}
	})
}
