package introspect

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"time"
)

// Bounds of what Decode accepts. They are far above what AWS allows (a p5.48xlarge has 32
// cards; no instance has 100 ENIs) and far below what would do harm.
const (
	MaxBody      = 8 << 20 // bytes
	maxCards     = 64
	maxENIs      = 1024
	maxCIDRs     = 16_384  // all ENIs together; as many /80s still fit an int64
	maxAddresses = 200_000 // records, all ENIs together
	maxName      = 256     // bytes of an id or a pod's name
)

var (
	// ErrCommands: the body is the list of paths, so the node does not have the requested
	// one.
	ErrCommands = errors.New("the node does not know this path")
	// ErrTooLarge: the body exceeds MaxBody.
	ErrTooLarge = errors.New("response exceeds 8 MiB")
	// ErrNotJSON: the body is not one JSON value.
	ErrNotJSON = errors.New("response is not JSON")
)

// Decode reads a /v1/enis body of any release into the normalised form. Total and Assigned
// are recomputed from the addresses. Recount sets Cooling and Free; before it, every
// unassigned address counts as free. An error says where the problem is.
func Decode(body []byte) (*Pool, error) {
	if len(body) > MaxBody {
		return nil, ErrTooLarge
	}
	if !json.Valid(body) {
		return nil, ErrNotJSON
	}
	return DecodeValid(body)
}

// DecodeValid is Decode for a body already known to be valid JSON within MaxBody.
func DecodeValid(body []byte) (*Pool, error) {
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

// isFlat reports whether the pool is at the outer level, as up to v1.19, rather than below
// network cards, as in later releases.
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

// PathsOf returns the paths that the answer to an unknown path lists, or nil for other
// bodies.
func PathsOf(body []byte) []string {
	if !bytes.Contains(body, []byte(`"AvailableCommands"`)) {
		return nil
	}
	var c struct{ AvailableCommands []string }
	if json.Unmarshal(body, &c) != nil {
		return nil
	}
	return c.AvailableCommands
}

func cardIndex(key string) (int, error) {
	n, err := strconv.Atoi(key)
	if err != nil || n < 0 || n >= maxCards || strconv.Itoa(n) != key {
		return 0, fmt.Errorf("key %.40q is not a network card index", key)
	}
	return n, nil
}

// decoder collects a pool. cidrs and addresses count down what the bounds still allow.
type decoder struct {
	pool             Pool
	cidrs, addresses int
	reported         []wireCard // by index in pool.Cards
	features         map[Shape]bool
}

// saw records a feature that releases have only from shape s on.
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
	// Newest first: without ENIs these shapes look the same.
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
	d.reported = append(d.reported, card)
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

// finish sorts and counts what was read.
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
		p.compare(card.Card, "TotalIPs", d.reported[i].TotalIPs, total)
		p.compare(card.Card, "AssignedIPs", d.reported[i].AssignedIPs, assigned)
	}
	slices.SortFunc(p.Mismatches, func(a, b Mismatch) int { return cmp.Compare(a.Card, b.Card) })
	slices.SortFunc(p.Cards, func(a, b CardSummary) int { return cmp.Compare(a.Card, b.Card) })
	return p, nil
}

func (p *Pool) compare(card int, member string, reported *int, counted int) {
	if reported != nil && *reported != counted {
		p.Mismatches = append(p.Mismatches, Mismatch{Card: card, Member: member, Reported: *reported, Counted: counted})
	}
}

// checkUnique refuses an answer that lists an ENI or a CIDR twice, which would falsify the
// counts.
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
