package introspect

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
	"slices"
	"strconv"
	"time"
)

// Bounds of what Decode accepts. They are far above what AWS allows (a
// p5.48xlarge has 32 cards; no instance has 100 ENIs) and far below what would
// hurt.
const (
	MaxBody      = 8 << 20 // bytes
	maxCards     = 64
	maxENIs      = 1024
	maxCIDRs     = 16_384  // all ENIs together; as many /80s still fit an int64
	maxAddresses = 200_000 // records, all ENIs together
	maxName      = 256     // bytes of an id or a pod's name
)

var (
	// ErrCommands: the body is the list of paths, so the node has no such path.
	ErrCommands = errors.New("the node does not know this path")
	// ErrTooLarge: the body exceeds MaxBody.
	ErrTooLarge = errors.New("answer exceeds 8 MiB")
	// ErrNotJSON: the body is not one JSON value.
	ErrNotJSON = errors.New("answer is not JSON")
)

// Decode reads a /v1/enis body into the normalised form. Total and Assigned are
// recomputed from the addresses; Cooling and Free follow from Recount, before it
// every address not assigned counts as free.
func Decode(body []byte) (*Pool, error) {
	shape, err := detect(body)
	if err != nil {
		return nil, err
	}
	// Older shapes are further cases here; each yields the same Pool.
	switch shape {
	case ShapeCards:
		return decodeCards(body)
	default:
		return nil, fmt.Errorf("decode /v1/enis: unknown shape %q", shape)
	}
}

// detect tells the shape of a body by its outer keys.
func detect(body []byte) (Shape, error) {
	if len(body) > MaxBody {
		return "", ErrTooLarge
	}
	var outer map[string]json.RawMessage
	if err := json.Unmarshal(body, &outer); err != nil {
		if !json.Valid(body) {
			return "", ErrNotJSON
		}
		return "", fmt.Errorf("decode /v1/enis: %w", err)
	}
	if outer == nil {
		return "", errors.New("decode /v1/enis: null where an object was expected")
	}
	if _, ok := outer["AvailableCommands"]; ok {
		return "", ErrCommands
	}
	for key := range outer {
		if _, err := cardIndex(key); err != nil {
			return "", fmt.Errorf("decode /v1/enis: %w", err)
		}
	}
	return ShapeCards, nil
}

// IsCommands reports whether a body is the answer to an unknown path.
func IsCommands(body []byte) bool {
	if !bytes.Contains(body, []byte(`"AvailableCommands"`)) {
		return false
	}
	var c struct{ AvailableCommands []string }
	return json.Unmarshal(body, &c) == nil && c.AvailableCommands != nil
}

func cardIndex(key string) (int, error) {
	n, err := strconv.Atoi(key)
	if err != nil || n < 0 || n >= maxCards || strconv.Itoa(n) != key {
		return 0, fmt.Errorf("key %.40q is not a network card index", key)
	}
	return n, nil
}

// budget is what is left of the bounds while a body is read.
type budget struct{ cidrs, addresses int }

// wireENI is ENI with the members that older releases lack as pointers.
type wireENI struct {
	ENI
	RouteTableID *int
}

func decodeCards(body []byte) (*Pool, error) {
	var doc map[string]struct{ ENIs map[string]wireENI }
	if err := json.Unmarshal(body, &doc); err != nil {
		return nil, fmt.Errorf("decode /v1/enis: %w", err)
	}
	p := &Pool{Shape: ShapeCards}
	left := budget{cidrs: maxCIDRs, addresses: maxAddresses}
	for key, card := range doc {
		index, err := cardIndex(key)
		if err != nil {
			return nil, fmt.Errorf("decode /v1/enis: %w", err)
		}
		p.Cards = append(p.Cards, CardSummary{Card: index})
		for id, e := range card.ENIs {
			if len(p.ENIs) == maxENIs {
				return nil, fmt.Errorf("decode /v1/enis: more than %d ENIs", maxENIs)
			}
			eni, err := e.node(index, id, &left)
			if err != nil {
				return nil, fmt.Errorf("decode /v1/enis: card %d ENI %.40q: %w", index, id, err)
			}
			p.ENIs = append(p.ENIs, eni)
		}
	}
	slices.SortFunc(p.Cards, func(a, b CardSummary) int { return cmp.Compare(a.Card, b.Card) })
	slices.SortFunc(p.ENIs, func(a, b NodeENI) int {
		return cmp.Or(cmp.Compare(a.Card, b.Card), cmp.Compare(a.Device, b.Device), cmp.Compare(a.ID, b.ID))
	})
	if err := p.checkUnique(); err != nil {
		return nil, fmt.Errorf("decode /v1/enis: %w", err)
	}
	p.Recount(time.Time{}, 0)
	return p, nil
}

// checkUnique refuses an answer that gives one ENI or CIDR twice: counts over it
// would lie.
func (p *Pool) checkUnique() error {
	ids := map[string]bool{}
	cidrs := map[netip.Prefix]bool{}
	for _, e := range p.ENIs {
		if ids[e.ID] {
			return fmt.Errorf("ENI %s appears twice", e.ID)
		}
		ids[e.ID] = true
		for _, c := range e.CIDRs {
			if cidrs[c.CIDR] {
				return fmt.Errorf("CIDR %s appears twice", c.CIDR)
			}
			cidrs[c.CIDR] = true
		}
	}
	return nil
}

func (e wireENI) node(card int, key string, left *budget) (NodeENI, error) {
	id := cmp.Or(e.ID, key)
	for _, s := range []string{id, e.SubnetID} {
		if len(s) > maxName {
			return NodeENI{}, fmt.Errorf("a name of %d bytes", len(s))
		}
	}
	if e.DeviceNumber < 0 || e.DeviceNumber >= maxENIs {
		return NodeENI{}, fmt.Errorf("DeviceNumber is %d", e.DeviceNumber)
	}
	n := NodeENI{
		ID: id, Card: card, Device: e.DeviceNumber, SubnetID: e.SubnetID,
		Primary: e.IsPrimary, Trunk: e.IsTrunk, EFA: e.IsEFA, Excluded: e.IsExcludedForPodIPs,
		RouteTable: e.RouteTableID, CIDRs: []NodeCIDR{},
	}
	for _, m := range []map[string]CIDR{e.AvailableIPv4Cidrs, e.IPv6Cidrs} {
		for key, c := range m {
			if left.cidrs--; left.cidrs < 0 {
				return NodeENI{}, fmt.Errorf("more than %d CIDRs", maxCIDRs)
			}
			nc, err := c.node(key, left)
			if err != nil {
				return NodeENI{}, fmt.Errorf("CIDR %.60q: %w", key, err)
			}
			n.CIDRs = append(n.CIDRs, nc)
		}
	}
	slices.SortFunc(n.CIDRs, func(a, b NodeCIDR) int {
		return cmp.Or(a.CIDR.Addr().Compare(b.CIDR.Addr()), cmp.Compare(a.CIDR.Bits(), b.CIDR.Bits()))
	})
	return n, nil
}

func (c CIDR) node(key string, left *budget) (NodeCIDR, error) {
	prefix, err := c.prefix(key)
	if err != nil {
		return NodeCIDR{}, err
	}
	n := NodeCIDR{CIDR: prefix, Addresses: []NodeAddress{}}
	seen := make(map[netip.Addr]bool, len(c.IPAddresses))
	for key, a := range c.IPAddresses {
		if left.addresses--; left.addresses < 0 {
			return NodeCIDR{}, fmt.Errorf("more than %d address records", maxAddresses)
		}
		addr, err := netip.ParseAddr(cmp.Or(a.Address, key))
		if err != nil {
			return NodeCIDR{}, fmt.Errorf("parse address: %w", err)
		}
		addr = addr.Unmap()
		if !prefix.Contains(addr) || seen[addr] {
			return NodeCIDR{}, fmt.Errorf("address %s is outside of it or given twice", addr)
		}
		seen[addr] = true
		na, err := a.node(addr)
		if err != nil {
			return NodeCIDR{}, fmt.Errorf("address %s: %w", addr, err)
		}
		n.Addresses = append(n.Addresses, na)
	}
	slices.SortFunc(n.Addresses, func(a, b NodeAddress) int { return a.Address.Compare(b.Address) })
	return n, nil
}

// prefix is the CIDR in its canonical form, from the Cidr member, or from the map
// key where that is missing.
func (c CIDR) prefix(key string) (netip.Prefix, error) {
	if c.Cidr.IP == "" && c.Cidr.Mask == nil {
		p, err := netip.ParsePrefix(key)
		if err != nil {
			return netip.Prefix{}, fmt.Errorf("parse CIDR: %w", err)
		}
		return checkedPrefix(p)
	}
	addr, err := netip.ParseAddr(c.Cidr.IP)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("parse CIDR: %w", err)
	}
	addr = addr.Unmap()
	ones, ok := maskBits(c.Cidr.Mask)
	if !ok || len(c.Cidr.Mask)*8 != addr.BitLen() {
		return netip.Prefix{}, errors.New("its mask is not a network mask")
	}
	return checkedPrefix(netip.PrefixFrom(addr, ones))
}

// checkedPrefix accepts what EC2 gives an interface: one address, a /28, a /80.
func checkedPrefix(p netip.Prefix) (netip.Prefix, error) {
	known := p.IsSingleIP() || p.Addr().Is4() && p.Bits() == 28 || p.Addr().Is6() && p.Bits() == 80
	if !known || p.Addr().Zone() != "" || p != p.Masked() {
		return netip.Prefix{}, errors.New("neither an address nor an aligned /28 or /80")
	}
	return p, nil
}

// maskBits counts the leading ones of a mask without holes.
func maskBits(mask []byte) (int, bool) {
	ones := 0
	for i, b := range mask {
		n := bits.LeadingZeros8(^b)
		ones += n
		if n < 8 {
			if b<<n != 0 {
				return 0, false
			}
			for _, rest := range mask[i+1:] {
				if rest != 0 {
					return 0, false
				}
			}
			break
		}
	}
	return ones, len(mask) == 4 || len(mask) == 16
}

func (a Address) node(addr netip.Addr) (NodeAddress, error) {
	if len(a.IPAMMetadata.PodName) > maxName || len(a.IPAMMetadata.PodNamespace) > maxName {
		return NodeAddress{}, errors.New("a pod name longer than Kubernetes allows")
	}
	n := NodeAddress{
		Address: addr, State: AddressFree,
		PodNamespace: a.IPAMMetadata.PodNamespace, PodName: a.IPAMMetadata.PodName,
		AssignedAt: known(a.AssignedTime), UnassignedAt: known(a.UnassignedTime),
	}
	// The container id and interface name are blank since v1.23.0.
	if a.IPAMKey != (IPAMKey{}) || a.IPAMMetadata.PodName != "" {
		n.State = AddressAssigned
		n.UnassignedAt = nil
	}
	return n, nil
}

func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
