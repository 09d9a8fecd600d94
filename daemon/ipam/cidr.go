package ipam

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"
)

const (
	ipv4PrefixBits = 28 // EC2 delegates IPv4 in blocks of 16
	ipv6PrefixBits = 80 // and IPv6 in blocks of 2^48

	// keepAll is the largest CIDR that remembers every address it ever gave out. A larger one
	// prefers addresses with a record, which bounds its records.
	keepAll = 16
)

// cidr is one secondary IP or prefix of an ENI.
type cidr struct {
	eni    *eni
	prefix netip.Prefix
	size   uint64 // addresses in it
	held   bool

	quarantined time.Time // since when; zero if not

	records  []*record // ordered by address
	assigned int
	cooled   recordList // free records, the longest unassigned first

	pool *pool
	at   int // position in pool.cidrs

	state CIDRState
	stale bool // state is outdated
}

// prefixBits is the length of a delegated prefix of the address's family.
func prefixBits(a netip.Addr) int {
	if a.Is4() {
		return ipv4PrefixBits
	}
	return ipv6PrefixBits
}

func prefixClass(p netip.Prefix) class {
	k, f := SecondaryIPs, IPv4
	if !p.IsSingleIP() {
		k = Prefixes
	}
	if p.Addr().Is6() {
		f = IPv6
	}
	return classOf(k, f)
}

func prefixSize(p netip.Prefix) uint64 { return 1 << (p.Addr().BitLen() - p.Bits()) }

// ValidCIDR reports whether the book can hold p: a single address or a masked /28 or
// /80 of its family.
func ValidCIDR(p netip.Prefix) bool { return validateCIDR(p) == nil }

func validateCIDR(p netip.Prefix) error {
	a := p.Addr()
	switch {
	case !p.IsValid() || a.Is4In6() || a.Zone() != "":
		return fmt.Errorf("%v is not an IPv4 or IPv6 range: %w", p, ErrInvalid)
	case p != p.Masked():
		return fmt.Errorf("%v has bits below its mask: %w", p, ErrInvalid)
	case !p.IsSingleIP() && p.Bits() != prefixBits(a):
		return fmt.Errorf("%v is neither a secondary IP nor a /%d prefix: %w", p, prefixBits(a), ErrInvalid)
	}
	return nil
}

// offset is the number of an address within the CIDR. Every CIDR has at most 2^48
// addresses, so the low 8 bytes hold the difference.
func (c *cidr) offset(a netip.Addr) uint64 { return low64(a) - low64(c.prefix.Addr()) }

func low64(a netip.Addr) uint64 {
	b := a.As16()
	return binary.BigEndian.Uint64(b[8:])
}

// address is the inverse of offset.
func (c *cidr) address(offset uint64) netip.Addr {
	a := c.prefix.Addr()
	b := a.As16()
	binary.BigEndian.PutUint64(b[8:], binary.BigEndian.Uint64(b[8:])+offset)
	if a.Is4() {
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return netip.AddrFrom16(b)
}

// search finds the record of an address, or where it would be.
func (c *cidr) search(a netip.Addr) (int, bool) {
	return slices.BinarySearchFunc(c.records, a, func(r *record, a netip.Addr) int { return r.addr.Compare(a) })
}

func (c *cidr) find(a netip.Addr) *record {
	if i, ok := c.search(a); ok {
		return c.records[i]
	}
	return nil
}

func (c *cidr) insert(r *record) {
	i, _ := c.search(r.addr)
	c.records = slices.Insert(c.records, i, r)
	r.cidr = c
	c.touch()
}

// forget drops the record of an address.
func (c *cidr) forget(r *record) {
	r.unlink()
	if i, ok := c.search(r.addr); ok {
		c.records = slices.Delete(c.records, i, i+1)
	}
	r.cidr = nil
	c.touch()
}

// touch marks the CIDR's part of a snapshot as changed.
func (c *cidr) touch() {
	c.stale = true
	c.eni.touch()
}

// hasFresh reports whether some address has no record.
func (c *cidr) hasFresh() bool { return uint64(len(c.records)) < c.size }

func (c *cidr) free() bool { return c.cooled.first != nil || c.hasFresh() }

// nextRested is the record that take would return, nil if it would use a fresh address.
func (c *cidr) nextRested() *record {
	if c.size <= keepAll && c.hasFresh() {
		return nil
	}
	return c.cooled.first
}

// lowestFresh is the lowest address without a record; hasFresh must be true. Records are
// ordered and distinct, so their offsets exceed their indices from the first gap on, and
// bisection finds the gap.
func (c *cidr) lowestFresh() netip.Addr {
	low, high := 0, len(c.records)
	for low < high {
		mid := int(uint(low+high) >> 1)
		if c.offset(c.records[mid].addr) > uint64(mid) {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return c.address(uint64(low))
}

// take chooses the address as in step 3 of the package doc. free must be true.
func (c *cidr) take() *record {
	if r := c.nextRested(); r != nil {
		r.unlink()
		c.touch()
		return r
	}
	r := &record{addr: c.lowestFresh()}
	c.insert(r)
	return r
}

// count changes the number of assigned addresses by by.
func (c *cidr) count(by int) {
	c.assigned += by
	c.eni.assigned += by
}

// mayGive reports whether the CIDR itself allows giving an address to a new pod.
func (c *cidr) mayGive() bool { return !c.held && c.quarantined.IsZero() && c.free() }

// inUse reports whether addresses of the CIDR may be placed: a quarantined one keeps its pods.
func (c *cidr) inUse() bool { return !c.held && !c.eni.held }

func (c *cidr) snapshot() CIDRState {
	if c.stale {
		c.state = CIDRState{Prefix: c.prefix, Held: c.held, QuarantinedAt: c.quarantined, Assigned: c.assigned}
		if len(c.records) > 0 {
			c.state.Records = make([]AddressState, len(c.records))
			for i, r := range c.records {
				c.state.Records[i] = r.state()
			}
		}
		c.stale = false
	}
	return c.state
}

// Size is the number of addresses in the CIDR: 1, 16 or 2^48.
func (c CIDRState) Size() int {
	if !c.Prefix.IsValid() {
		return 0
	}
	return int(min(prefixSize(c.Prefix), math.MaxInt))
}
