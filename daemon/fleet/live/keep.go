package live

import "slices"

// Kept counts the nodes whose tunnels are kept open.
func (p *Plan) Kept() int { return len(p.kept) }

// keep decides whether a node's tunnel stays open: if it is on the screen and there is room.
// If there are too many, the latest on the screen keep theirs, and among nodes that came
// together the first one read: if each displaced another, no tunnel would be used twice.
func (p *Plan) keep(n *node) (bool, []string) {
	switch {
	case p.paused || p.away || !p.onScreen(n):
		p.drop(n)
		return false, nil
	case n.kept:
		return true, nil
	case len(p.kept) < MaxKept:
		n.kept = true
		p.kept = append(p.kept, n)
		return true, nil
	}
	oldest := slices.MinFunc(p.kept, func(a, b *node) int {
		switch {
		case p.rank(a) < p.rank(b):
			return -1
		case p.rank(a) > p.rank(b):
			return 1
		}
		return 0
	})
	if p.rank(oldest) >= p.rank(n) {
		return false, nil
	}
	p.drop(oldest)
	n.kept = true
	p.kept = append(p.kept, n)
	return true, []string{oldest.name}
}

// rank orders nodes by when they came on the screen, the open one last.
func (p *Plan) rank(n *node) uint64 {
	if n.name == p.open {
		return ^uint64(0)
	}
	return n.shown
}

func (p *Plan) drop(n *node) {
	if n.kept {
		n.kept = false
		p.kept = slices.DeleteFunc(p.kept, func(k *node) bool { return k == n })
	}
}

func (p *Plan) dropWhere(when func(*node) bool) []string {
	var names []string
	for _, n := range slices.Clone(p.kept) {
		if when(n) {
			p.drop(n)
			names = append(names, n.name)
		}
	}
	return names
}

// Keeps reports whether a node's tunnel is kept open.
func (p *Plan) Keeps(name string) bool {
	n := p.nodes[name]
	return n != nil && n.kept
}
