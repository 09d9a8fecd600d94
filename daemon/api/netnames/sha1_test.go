package netnames

import (
	"crypto/sha1"
	"strings"
	"testing"
)

func TestSum1(t *testing.T) {
	t.Parallel()
	for n := range 300 {
		text := []byte(strings.Repeat("pod.", n)[:n])
		if sum1(text) != sha1.Sum(text) {
			t.Errorf("%d bytes: differs from crypto/sha1", n)
		}
	}
}

func FuzzSum1(f *testing.F) {
	f.Add([]byte("default.nginx"))
	f.Add(make([]byte, 64))
	f.Fuzz(func(t *testing.T, text []byte) {
		if sum1(text) != sha1.Sum(text) {
			t.Errorf("%x: differs from crypto/sha1", text)
		}
	})
}
