package draw

import (
	"hash/fnv"
)

// ofNodes are colours that mean nothing else in a list of lines.
var ofNodes = []Role{Key, Marked, BarUsed, Accent, BarFree, Match}

// NodeRole returns the colour that tells a node's lines from those of others, always the same for one
// name.
func NodeRole(name string) Role {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	return ofNodes[h.Sum32()%uint32(len(ofNodes))]
}
