package draw

import (
	"hash/fnv"
	"slices"
)

// ofNodes are colours that mean nothing else.
var ofNodes = []Role{Node1, Node2, Node3, Node4, Node5, Node6}

// NodeRole returns the colour that tells a node's lines from those of others, always the same for one
// name.
func NodeRole(name string) Role {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	return ofNodes[h.Sum32()%uint32(len(ofNodes))]
}

// NodeRoles returns the colours of nodes whose lines are shown together: that of [NodeRole] or, if
// another node has it, the next that none has, as long as there is one.
func NodeRoles(names []string) map[string]Role {
	out, taken := make(map[string]Role, len(names)), map[Role]bool{}
	for _, name := range names {
		role := NodeRole(name)
		for at := slices.Index(ofNodes, role); taken[role] && len(taken) < len(ofNodes); {
			at = (at + 1) % len(ofNodes)
			role = ofNodes[at]
		}
		out[name], taken[role] = role, true
	}
	return out
}
