package introspect

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
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

// Decode reads a /v1/enis body of any release into the normalised form. Total and
// Assigned are recomputed from the addresses; Cooling and Free follow from Recount,
// before it every address not assigned counts as free. An error says where.
func Decode(body []byte) (*Pool, error) {
	if len(body) > MaxBody {
		return nil, ErrTooLarge
	}
	if !json.Valid(body) {
		return nil, ErrNotJSON
	}
	p, err := decode(body)
	switch {
	case errors.Is(err, ErrCommands):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("decode /v1/enis: %w", err)
	}
	return p, nil
}

func decode(body []byte) (*Pool, error) {
	outer, err := checkStructure(body)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(bytes.TrimSpace(body), []byte("null")) {
		return nil, errors.New("null where an object was expected")
	}
	if slices.Contains(outer, "AvailableCommands") {
		return nil, ErrCommands
	}
	d := decoder{pool: Pool{Mismatches: []Mismatch{}}, cidrs: maxCIDRs, addresses: maxAddresses}
	flat, err := isFlat(outer)
	if err != nil {
		return nil, err
	}
	if flat {
		err = d.flat(body)
	} else {
		err = d.cards(body)
	}
	if err != nil {
		return nil, err
	}
	return d.finish()
}

// isFlat tells the pool that stood at the outer level up to v1.19 from the level of
// network cards that stands there since.
func isFlat(outer []string) (bool, error) {
	for _, member := range []string{"ENIs", "TotalIPs", "AssignedIPs"} {
		if !slices.Contains(outer, member) {
			continue
		}
		for _, key := range outer {
			if _, err := cardIndex(key); err == nil {
				return false, fmt.Errorf("it has both %s and network card %s", member, key)
			}
		}
		return true, nil
	}
	return false, nil
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

// wireCard is a pool of any release. What some release lacks is a pointer.
type wireCard struct {
	TotalIPs    *int
	AssignedIPs *int
	ENIs        map[string]wireENI
}

type wireENI struct {
	ID                  string
	IsPrimary           bool
	IsTrunk             bool
	IsEFA               bool
	DeviceNumber        int
	IPv4Addresses       map[string]wireAddress // up to v1.8
	AvailableIPv4Cidrs  map[string]wireCIDR    // from v1.9
	IPv6Cidrs           map[string]wireCIDR    // from v1.10
	RouteTableID        *int                   // from v1.20.x
	IsExcludedForPodIPs *bool                  // from v1.22
	SubnetID            *string                // from v1.22
}

type wireCIDR struct {
	Cidr          *wireIPNet
	IPv4Addresses map[string]wireAddress // v1.9
	IPAddresses   map[string]wireAddress // from v1.10
}

type wireIPNet struct {
	IP   string
	Mask string // base64
}

type wireAddress struct {
	Address        string
	IPAMKey        IPAMKey
	IPAMMetadata   IPAMMetadata // from v1.11
	AssignedTime   string       // from v1.11
	UnassignedTime string
}

// decoder collects a pool. cidrs and addresses are what is left of the bounds.
type decoder struct {
	pool             Pool
	cidrs, addresses int
	told             []wireCard // by index in pool.Cards
	features         map[Shape]bool
}

// saw notes something that only the releases from a shape on have.
func (d *decoder) saw(s Shape) {
	if d.features == nil {
		d.features = map[Shape]bool{}
	}
	d.features[s] = true
}

func (d *decoder) cards(body []byte) error {
	var doc map[string]wireCard
	if err := unmarshal(body, &doc); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(doc)) {
		index, err := cardIndex(key)
		if err != nil {
			return err
		}
		if err := d.card(index, doc[key]); err != nil {
			return fmt.Errorf("card %d %w", index, err)
		}
	}
	// Newest first: without any ENI nothing tells them apart.
	d.pool.Shape = ShapeBlanked
	switch {
	case len(d.pool.ENIs) > 0 && !d.features[ShapeSubnets]:
		d.pool.Shape = ShapeCards
	case d.features[ShapeCards]:
		d.pool.Shape = ShapeSubnets
	}
	return nil
}

func (d *decoder) flat(body []byte) error {
	var doc wireCard
	if err := unmarshal(body, &doc); err != nil {
		return err
	}
	if err := d.card(0, doc); err != nil {
		return err
	}
	d.pool.Shape = ShapeFamilies
	switch {
	case d.features[ShapeFamilies]:
	case d.features[ShapeAddresses]:
		d.pool.Shape = ShapeAddresses
	case d.features[ShapeCIDRs]:
		d.pool.Shape = ShapeCIDRs
	}
	return nil
}

func (d *decoder) card(index int, card wireCard) error {
	d.pool.Cards = append(d.pool.Cards, CardSummary{Card: index})
	d.told = append(d.told, card)
	for _, id := range slices.Sorted(maps.Keys(card.ENIs)) {
		if len(d.pool.ENIs) == maxENIs {
			return fmt.Errorf("has more than %d ENIs", maxENIs)
		}
		eni, err := d.eni(index, id, card.ENIs[id])
		if err != nil {
			return fmt.Errorf("ENI %.40q: %w", id, err)
		}
		d.pool.ENIs = append(d.pool.ENIs, eni)
	}
	return nil
}

// finish orders what was read and counts it.
func (d *decoder) finish() (*Pool, error) {
	p := &d.pool
	slices.SortFunc(p.ENIs, func(a, b NodeENI) int {
		return cmp.Or(cmp.Compare(a.Card, b.Card), cmp.Compare(a.Device, b.Device), cmp.Compare(a.ID, b.ID))
	})
	if err := p.checkUnique(); err != nil {
		return nil, err
	}
	p.Recount(time.Time{}, 0)
	for i, card := range p.Cards {
		total, assigned := 0, 0
		for _, e := range p.ENIs {
			if e.Card == card.Card {
				total, assigned = total+e.Total, assigned+e.Assigned
			}
		}
		p.compare(card.Card, "TotalIPs", d.told[i].TotalIPs, total)
		p.compare(card.Card, "AssignedIPs", d.told[i].AssignedIPs, assigned)
	}
	slices.SortFunc(p.Mismatches, func(a, b Mismatch) int { return cmp.Compare(a.Card, b.Card) })
	slices.SortFunc(p.Cards, func(a, b CardSummary) int { return cmp.Compare(a.Card, b.Card) })
	return p, nil
}

func (p *Pool) compare(card int, member string, told *int, counted int) {
	if told != nil && *told != counted {
		p.Mismatches = append(p.Mismatches, Mismatch{Card: card, Member: member, Told: *told, Counted: counted})
	}
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

func (d *decoder) eni(card int, key string, e wireENI) (NodeENI, error) {
	n := NodeENI{
		ID: cmp.Or(e.ID, key), Card: card, Device: e.DeviceNumber,
		Primary: e.IsPrimary, Trunk: e.IsTrunk, EFA: e.IsEFA, RouteTable: e.RouteTableID, CIDRs: []NodeCIDR{},
	}
	if e.SubnetID != nil {
		d.saw(ShapeSubnets)
		n.SubnetID = *e.SubnetID
	}
	if e.IsExcludedForPodIPs != nil {
		d.saw(ShapeSubnets)
		n.Excluded = *e.IsExcludedForPodIPs
	}
	for _, s := range []string{n.ID, n.SubnetID} {
		if len(s) > maxName {
			return n, fmt.Errorf("a name of %d bytes", len(s))
		}
	}
	if n.Device < 0 || n.Device >= maxENIs {
		return n, fmt.Errorf("DeviceNumber is %d", n.Device)
	}
	if t := n.RouteTable; t != nil && (*t < 0 || *t > math.MaxUint32) {
		return n, fmt.Errorf("RouteTableID is %d", *t)
	}
	if err := d.cidrMaps(&n, e); err != nil {
		return n, err
	}
	slices.SortFunc(n.CIDRs, func(a, b NodeCIDR) int {
		return cmp.Or(a.CIDR.Addr().Compare(b.CIDR.Addr()), cmp.Compare(a.CIDR.Bits(), b.CIDR.Bits()))
	})
	return n, nil
}

func (d *decoder) cidrMaps(n *NodeENI, e wireENI) error {
	if e.IPv6Cidrs != nil {
		d.saw(ShapeFamilies)
	}
	if e.AvailableIPv4Cidrs != nil {
		d.saw(ShapeCIDRs)
	}
	if e.IPv4Addresses != nil {
		d.saw(ShapeAddresses)
		if e.AvailableIPv4Cidrs != nil || e.IPv6Cidrs != nil {
			return errors.New("it has both IPv4Addresses, of v1.8, and CIDRs, of later releases")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(e.IPv4Addresses)) {
		a := e.IPv4Addresses[key]
		addr, err := parseAddr(cmp.Or(a.Address, key))
		if err == nil && !addr.Is4() {
			err = errors.New("it is not of IPv4")
		}
		if err == nil {
			err = d.addCIDR(n, netip.PrefixFrom(addr, addr.BitLen()), map[string]wireAddress{key: a})
		}
		if err != nil {
			return fmt.Errorf("address %.60q: %w", key, err)
		}
	}
	for _, m := range []map[string]wireCIDR{e.AvailableIPv4Cidrs, e.IPv6Cidrs} {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if err := d.cidr(n, key, m[key]); err != nil {
				return fmt.Errorf("CIDR %.60q: %w", key, err)
			}
		}
	}
	return nil
}

func (d *decoder) cidr(n *NodeENI, key string, c wireCIDR) error {
	prefix, err := c.prefix(key)
	if err != nil {
		return err
	}
	records := c.IPAddresses
	if c.IPAddresses != nil {
		d.saw(ShapeFamilies)
	}
	if c.IPv4Addresses != nil {
		if c.IPAddresses != nil {
			return errors.New("it has both IPv4Addresses, of v1.9, and IPAddresses, of later releases")
		}
		records = c.IPv4Addresses
	}
	return d.addCIDR(n, prefix, records)
}

func (d *decoder) addCIDR(n *NodeENI, prefix netip.Prefix, records map[string]wireAddress) error {
	if d.cidrs--; d.cidrs < 0 {
		return fmt.Errorf("more than %d CIDRs", maxCIDRs)
	}
	c := NodeCIDR{CIDR: prefix, Addresses: []NodeAddress{}}
	seen := make(map[netip.Addr]bool, len(records))
	for key, a := range records {
		if d.addresses--; d.addresses < 0 {
			return fmt.Errorf("more than %d address records", maxAddresses)
		}
		addr, err := parseAddr(cmp.Or(a.Address, key))
		if err != nil {
			return err
		}
		if !prefix.Contains(addr) || seen[addr] {
			return fmt.Errorf("address %s is outside of it or given twice", addr)
		}
		seen[addr] = true
		na, err := a.node(addr)
		if err != nil {
			return fmt.Errorf("address %s: %w", addr, err)
		}
		if a.IPAMKey.ContainerID != "" {
			d.saw(ShapeCards) // blanked since v1.23
		}
		if a.recorded() {
			c.Addresses = append(c.Addresses, na)
		}
	}
	slices.SortFunc(c.Addresses, func(a, b NodeAddress) int { return a.Address.Compare(b.Address) })
	n.CIDRs = append(n.CIDRs, c)
	return nil
}

// recorded reports whether an address is or was a pod's. Up to v1.8 those that never
// were stand in the document too.
func (a wireAddress) recorded() bool {
	return a.IPAMKey != IPAMKey{} || a.IPAMMetadata != IPAMMetadata{} ||
		a.AssignedTime != "" && !isZero(a.AssignedTime) || a.UnassignedTime != "" && !isZero(a.UnassignedTime)
}

func isZero(text string) bool {
	at, err := time.Parse(time.RFC3339Nano, text)
	return err == nil && at.IsZero()
}

func parseAddr(s string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(s)
	if err != nil {
		return addr, fmt.Errorf("parse address: %.60q is none", s)
	}
	return addr.Unmap(), nil
}

// prefix is the CIDR in its canonical form, from the Cidr member, or from the map
// key where that is missing.
func (c wireCIDR) prefix(key string) (netip.Prefix, error) {
	if c.Cidr == nil || *c.Cidr == (wireIPNet{}) {
		p, err := netip.ParsePrefix(key)
		if err != nil {
			return netip.Prefix{}, errors.New("parse CIDR: it is none")
		}
		return checkedPrefix(p)
	}
	addr, err := netip.ParseAddr(c.Cidr.IP)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("parse CIDR: %.60q is no address", c.Cidr.IP)
	}
	addr = addr.Unmap()
	mask, err := base64.StdEncoding.DecodeString(c.Cidr.Mask)
	ones, ok := maskBits(mask)
	if err != nil || !ok || len(mask)*8 != addr.BitLen() {
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

func (a wireAddress) node(addr netip.Addr) (NodeAddress, error) {
	m := a.IPAMMetadata
	if len(m.PodName) > maxName || len(m.PodNamespace) > maxName {
		return NodeAddress{}, errors.New("a pod name longer than Kubernetes allows")
	}
	n := NodeAddress{Address: addr, State: AddressFree, PodNamespace: m.PodNamespace, PodName: m.PodName}
	var err error
	if n.AssignedAt, err = parseTime(a.AssignedTime); err != nil {
		return NodeAddress{}, fmt.Errorf("AssignedTime: %w", err)
	}
	if n.UnassignedAt, err = parseTime(a.UnassignedTime); err != nil {
		return NodeAddress{}, fmt.Errorf("UnassignedTime: %w", err)
	}
	// The container id and interface name are blank since v1.23.0, the pod's name is
	// not there before v1.11.
	if a.IPAMKey != (IPAMKey{}) || m.PodName != "" {
		n.State = AddressAssigned
		n.UnassignedAt = nil
	}
	return n, nil
}

// parseTime reads a time; missing or zero is not known.
func parseTime(text string) (*time.Time, error) {
	if text == "" {
		return nil, nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return nil, fmt.Errorf("%.40q is no time", text)
	}
	return known(at), nil
}

func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
