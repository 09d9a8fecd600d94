package ipam

import "cmp"

// class is a kind of CIDR in one family, as requested by an Assign.
type class uint8

const classes = 4

func classOf(k Kind, f Family) class {
	c := class(k)
	if f == IPv6 {
		c += 2
	}
	return c
}

// poolKey names the heap of ENIs that serve one class on one network card.
type poolKey struct {
	card  int
	class class
}

// pool holds the CIDRs of one ENI and class that have a free address now. It is in the heap of
// its card while it is not empty and its ENI is usable.
type pool struct {
	eni   *eni
	cidrs heap[*cidr]
	card  *heap[*pool]
	at    int
}

func (p *pool) position() *int { return &p.at }

// before is the order of step 1 in the package doc.
func (p *pool) before(q *pool) bool {
	if n := cmp.Compare(q.eni.assigned, p.eni.assigned); n != 0 {
		return n < 0
	}
	if pp, qp := p.eni.permanent(), q.eni.permanent(); pp != qp {
		return pp
	}
	if n := compareCandidates(p.cidrs.best(), q.cidrs.best()); n != 0 {
		return n < 0
	}
	return compareENIs(p.eni, q.eni) < 0
}

func (c *cidr) position() *int { return &c.at }

// before is the order of step 2.
func (c *cidr) before(d *cidr) bool {
	if n := compareCandidates(c, d); n != 0 {
		return n < 0
	}
	return c.prefix.Addr().Less(d.prefix.Addr())
}

// compareCandidates orders two CIDRs with a free address by how well that address fits. It
// returns 0 for equals.
func compareCandidates(c, d *cidr) int {
	if n := cmp.Compare(d.assigned, c.assigned); n != 0 {
		return n
	}
	cn, dn := c.nextRested(), d.nextRested()
	cFresh, dFresh := cn == nil || cn.aged, dn == nil || dn.aged
	switch {
	case cFresh && dFresh:
		return 0
	case cFresh:
		return -1
	case dFresh:
		return 1
	}
	return cn.unassignedAt.Compare(dn.unassignedAt)
}

// reorder moves a CIDR and its ENI to their places after the CIDR changed.
func (b *Book) reorder(c *cidr) {
	c.pool.cidrs.update(c, c.mayGive())
	b.reorderENI(c.eni)
}

// reorderENI moves an ENI to its places after its flags, its number of assigned addresses or
// one of its pools changed.
func (b *Book) reorderENI(e *eni) {
	usable := e.usable()
	for i := range e.pools {
		p := &e.pools[i]
		p.card.update(p, usable && !p.cidrs.empty())
	}
}

// cardPool returns the heap of a card and class, created on first use.
func (b *Book) cardPool(key poolKey) *heap[*pool] {
	h, ok := b.pools[key]
	if !ok {
		h = &heap[*pool]{}
		b.pools[key] = h
	}
	return h
}
