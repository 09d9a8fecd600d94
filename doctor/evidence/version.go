package evidence

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Version is a release: major, minor, patch. The zero value is unknown.
type Version [3]int

// ParseVersion reads "v1.23.1", "1.23", "v1.23.1-eksbuild.2" or an image with such a tag. It
// returns false for anything else.
func ParseVersion(text string) (Version, bool) {
	text, _, _ = strings.Cut(text, "@")
	if i := strings.LastIndexByte(text, ':'); i >= 0 {
		text = text[i+1:]
	}
	text = strings.TrimPrefix(text, "v")
	if i := strings.IndexAny(text, "-+"); i >= 0 {
		text = text[:i]
	}
	var v Version
	parts := strings.Split(text, ".")
	if len(parts) > len(v) {
		return Version{}, false
	}
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return Version{}, false
		}
		v[i] = n
	}
	return v, true
}

// Before reports whether v is older than other.
func (v Version) Before(other Version) bool {
	return cmp.Or(cmp.Compare(v[0], other[0]), cmp.Compare(v[1], other[1]), cmp.Compare(v[2], other[2])) < 0
}

func (v Version) String() string { return fmt.Sprintf("v%d.%d.%d", v[0], v[1], v[2]) }
